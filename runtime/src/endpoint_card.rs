//! The endpoint information that each rank publishes to its node at start.

use crate::error::Error;
use std::ptr::{self, NonNull};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{LocalRank, RegionKey};
use tsumugi_pvas::Member;

/// The keys of a rank's lanes, and what the ranks of a node must know alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointCard {
    /// The lanes of active messages.
    pub(crate) calls: RegionKey,
    /// The lanes of messages.
    pub(crate) messages: RegionKey,
    /// Whether the node has more workers than cores, as this rank sees it.
    pub(crate) is_crowded: bool,
}

/// Bytes in this rank's exposed memory that its whole node uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) at: usize,
    pub(crate) bytes: usize,
}

impl EndpointCard {
    /// Publishes the card. The other ranks can read it after the barrier that
    /// follows.
    pub(crate) fn publish(self, member: &mut Member, common: Common) -> Result<(), Error> {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.calls.to_bits().to_le_bytes());
        bytes[4..8].copy_from_slice(&self.messages.to_bits().to_le_bytes());
        bytes[8..16].copy_from_slice(&(common.at as u64).to_le_bytes());
        bytes[16..24].copy_from_slice(&(common.bytes as u64).to_le_bytes());
        bytes[24] = u8::from(self.is_crowded);
        Ok(member.publish(&bytes)?)
    }

    /// The bytes that the first rank of this node has for all of its ranks; they
    /// stay.
    pub(crate) fn common(member: &mut Member) -> Result<Option<&'static [u8]>, Error> {
        let mut bytes = [0; CARD_BYTES_MAX];
        let len = member.card(Rank(0), &mut bytes)?;
        let words = bytes[..len].get(8..24).unwrap_or_default().as_chunks::<8>().0;
        let &[at, bytes] = words else { return Ok(None) };
        let (at, bytes) = (u64::from_le_bytes(at) as usize, u64::from_le_bytes(bytes));
        let Some(base) = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(at)) else {
            return Ok(None);
        };
        if !member.space().is_exposed(LocalRank(0), base, bytes) {
            return Ok(None);
        }
        // SAFETY: exposed memory of that rank, which a space that has a heap keeps
        // mapped for good. The rank wrote the bytes before it published their place,
        // and they are never written again.
        Ok(Some(unsafe { std::slice::from_raw_parts(base.as_ptr(), bytes as usize) }))
    }

    /// The cards of this rank's node, in the order of the ranks.
    pub(crate) fn all(member: &mut Member) -> Result<Vec<Self>, Error> {
        let ranks: Vec<Rank> = member.neighbours().collect();
        let mut bytes = [0; CARD_BYTES_MAX];
        let card = |(local, rank)| {
            let len = member.card(local, &mut bytes)?;
            Self::read(&bytes[..len]).ok_or(Error::Boot(BootError::NoCard { rank }))
        };
        (0..).map(Rank).zip(ranks).map(card).collect()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let key = |word: &[u8]| {
            let bits = u32::from_le_bytes(*word.first_chunk()?);
            Some(RegionKey::from_bits(bits))
        };
        let (calls, rest) = bytes.split_at_checked(4)?;
        let (messages, _) = rest.split_at_checked(4)?;
        let is_crowded = *bytes.get(24)? != 0;
        Some(Self { calls: key(calls)?, messages: key(messages)?, is_crowded })
    }
}

const BYTES: usize = 25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_card_is_none() {
        for len in 0..8 {
            assert_eq!(EndpointCard::read(&[1; BYTES][..len]), None, "{len} bytes");
        }
        assert!(EndpointCard::read(&[1; BYTES]).is_some());
    }
}
