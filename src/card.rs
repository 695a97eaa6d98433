//! What each rank tells all others at start.

use crate::{Error, Rank};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::RegionKey;
use tsumugi_pvas::Member;

/// Where a rank's lanes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// Those of active messages.
    pub(crate) calls: RegionKey,
    /// Those of messages.
    pub(crate) messages: RegionKey,
}

impl Card {
    /// Tells the others. They have been told after the barrier that follows.
    pub(crate) fn publish(self, member: &mut Member) -> Result<(), Error> {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.calls.to_bits().to_le_bytes());
        bytes[4..].copy_from_slice(&self.messages.to_bits().to_le_bytes());
        Ok(member.publish(&bytes)?)
    }

    /// Everybody's, in the order of the ranks. Those of other nodes have the
    /// same: each rank registers the same before anything else, in a partition
    /// that is fresh.
    pub(crate) fn all(self, member: &mut Member) -> Result<Vec<Self>, Error> {
        let (size, mut bytes) = (member.size(), [0; CARD_BYTES_MAX]);
        let card = |rank| {
            let Some(local) = member.local_of(rank) else { return Ok(self) };
            let len = member.card(local, &mut bytes)?;
            Self::read(&bytes[..len]).ok_or(Error::Boot(BootError::NoCard { rank }))
        };
        (0..size).map(Rank).map(card).collect()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let key = |word: &[u8]| {
            let bits = u32::from_le_bytes(*word.first_chunk()?);
            Some(RegionKey::from_bits(bits))
        };
        let (calls, messages) = bytes.split_at_checked(4)?;
        Some(Self { calls: key(calls)?, messages: key(messages)? })
    }
}

const BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_card_is_none() {
        for len in 0..BYTES {
            assert_eq!(Card::read(&[1; BYTES][..len]), None, "{len} bytes");
        }
        assert!(Card::read(&[1; BYTES]).is_some());
    }
}
