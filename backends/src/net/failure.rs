//! What a device refused.

use super::card::CardError;
use tsumugi_core::mem::Rank;
use tsumugi_core::op::Kind;

/// Why operations failed, for whoever wants to say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many did.
    pub count: u64,
    /// The last one.
    pub last: Option<Failure>,
}

/// One thing that a device refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose memory it was about; `None` if that is not known.
    pub peer: Option<Rank>,
    /// What was to be done there; `None` for packets and the own tables.
    pub kind: Option<Kind>,
    /// The library's error.
    pub code: i32,
    /// The provider's own number for it.
    pub provider_code: i32,
    /// The card, if that was it.
    pub card: Option<CardError>,
}

impl Failures {
    #[cold]
    pub(super) fn add(&mut self, failure: Failure) {
        self.count += 1;
        self.last = Some(failure);
    }
}

impl Failure {
    pub(super) const fn new(
        peer: Option<Rank>,
        kind: Option<Kind>,
        code: i32,
        provider_code: i32,
    ) -> Self {
        Self { peer, kind, code, provider_code, card: None }
    }
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{kind:?}")?,
            None => write!(f, "a packet or a table")?,
        }
        match self.peer {
            Some(peer) => write!(f, " of {peer}")?,
            None => write!(f, " of a rank that is not known")?,
        }
        match self.card {
            Some(card) => write!(f, ": {card}"),
            None => write!(f, ": the device's error {} ({})", self.code, self.provider_code),
        }
    }
}
