//! The failures that devices report.

use super::card::CardError;
use tsumugi_core::mem::Rank;
use tsumugi_core::op::Kind;

/// The failures of operations, for messages to the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceFailures {
    /// The number of failures.
    pub count: u64,
    /// The last failure.
    pub last: Option<DeviceFailure>,
}

/// One failure of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFailure {
    /// The rank that owns the memory; `None` if it is not known.
    pub peer: Option<Rank>,
    /// The kind of the operation; `None` for packets, reads of a peer's directory,
    /// registrations and the first contact with a peer, and if it is not known.
    pub kind: Option<Kind>,
    /// The library's error.
    pub code: i32,
    /// The provider's own number for it.
    pub provider_code: i32,
    /// The error of the peer's card, if that was the reason.
    pub card: Option<CardError>,
}

impl DeviceFailures {
    #[cold]
    pub(super) fn add(&mut self, failure: DeviceFailure) {
        self.count += 1;
        self.last = Some(failure);
    }
}

impl DeviceFailure {
    pub(super) const fn new(
        peer: Option<Rank>,
        kind: Option<Kind>,
        code: i32,
        provider_code: i32,
    ) -> Self {
        Self { peer, kind, code, provider_code, card: None }
    }
}

impl core::fmt::Display for DeviceFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{kind:?}")?,
            None if self.card.is_some() => write!(f, "contact")?,
            None => write!(f, "a packet, a directory read or a registration")?,
        }
        match self.peer {
            Some(peer) => write!(f, " with {peer}")?,
            None => write!(f, " with an unknown rank")?,
        }
        let (code, provider) = (self.code, self.provider_code);
        match self.card {
            Some(card) => write!(f, ": {card}"),
            None => write!(f, ": error {code} of the network library, {provider} of its provider"),
        }
    }
}
