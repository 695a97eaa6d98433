//! The registration table of a rank, and when its names are given away again.
//!
//! A table has 255 entries of 16 bytes for each colour, all of which another
//! rank reads at once when it first needs one:
//!
//! ```text
//!  word 0   check (16) | flags (8) | life (8) | key (32)
//!  word 1   bytes of the region
//! ```
//!
//! The key is the region's key in `core`, whose generation the backends check
//! at every access; the table adds the name of 8 bits, the length and who may
//! do what, so that an address is refused before it reaches a device. The
//! check is over both words: an entry that was half written when it was read
//! is taken for none, whatever order its bytes came in.

mod registry;

pub use registry::{NameError, Record, Retired};
pub(crate) use registry::{Registry, take};
pub use tsumugi_core::mem::Agent;

use crate::address::{GlobalAddr, REGIONS};
use crate::error::AccessError;
use tsumugi_core::mem::{Access, Need, RegionKey};

/// What an entry of a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The region's key in the backends.
    pub key: RegionKey,
    /// Its length.
    pub bytes: u64,
    /// Which holder of the name it is.
    pub life: u8,
    /// What peers may do with it.
    pub access: Access,
    /// Who does its atomics.
    pub agent: Agent,
}

/// The starter memory of every rank: the same key and length everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starter {
    /// Its key.
    pub key: RegionKey,
    /// Its length.
    pub bytes: u64,
    /// Who does its atomics.
    pub agent: Agent,
}

impl Entry {
    /// As the two words of a table.
    pub fn encode(&self) -> [u64; 2] {
        let flags = LIVE | (self.access as u64) << 1 | (self.agent as u64) << 3;
        let low = u64::from(self.key.to_bits()) | u64::from(self.life) << 32 | flags << 40;
        [low | check(low, self.bytes) << 48, self.bytes]
    }

    /// From such words: `None` for one that says nothing or is half written.
    pub fn decode([word, bytes]: [u64; 2]) -> Option<Self> {
        let low = word & LOW;
        let flags = low >> 40;
        if flags & LIVE == 0 || word >> 48 != check(low, bytes) {
            return None;
        }
        Some(Self {
            key: RegionKey::from_bits(low as u32),
            bytes,
            life: (low >> 32) as u8,
            access: match Self::access_bits([word, bytes]) {
                0 => Access::Local,
                3 => Access::ReadWrite,
                _ => Access::Read,
            },
            agent: Self::agent_of([word, bytes]),
        })
    }

    /// Whether such words, which were checked, are an entry of that life.
    #[inline(always)]
    pub(crate) const fn is_live([word, _]: [u64; 2], life: u8) -> bool {
        (word >> 32) & 0x1ff == 0x100 | life as u64
    }

    #[inline(always)]
    pub(crate) const fn access_bits([word, _]: [u64; 2]) -> u32 {
        (word >> 41) as u32 & 3
    }

    #[inline(always)]
    pub(crate) const fn agent_of([word, _]: [u64; 2]) -> Agent {
        if word >> 43 & 1 == 0 { Agent::Cpu } else { Agent::Device }
    }

    /// Whether `bytes` bytes at `offset` may be used as `need` says.
    ///
    /// # Errors
    ///
    /// [`AccessError::OutOfRange`], [`AccessError::ReadOnly`].
    pub fn admit(
        &self,
        addr: GlobalAddr,
        offset: u64,
        bytes: u64,
        need: Need,
    ) -> Result<(), AccessError> {
        if bytes > self.bytes || offset > self.bytes - bytes {
            return Err(AccessError::OutOfRange { addr, bytes });
        }
        if self.access as u32 & need as u32 != need as u32 {
            return Err(match self.access {
                Access::Local => AccessError::Stale { addr },
                _ => AccessError::ReadOnly { addr },
            });
        }
        Ok(())
    }
}

impl Starter {
    pub(crate) const fn entry(&self) -> Entry {
        let Self { key, bytes, agent } = *self;
        Entry { key, bytes, life: 0, access: Access::ReadWrite, agent }
    }
}

/// The word at which the entry of a name starts, in the tables of a rank.
pub(crate) const fn entry_word(color: u8, name: usize) -> usize {
    (color as usize * (REGIONS + 1) + name) * 2
}

/// 16 bits over an entry; not against an adversary.
const fn check(low: u64, bytes: u64) -> u64 {
    let mixed = (low ^ bytes.wrapping_mul(ODD)).wrapping_mul(ODD);
    mixed >> 48
}

const LIVE: u64 = 1;
const LOW: u64 = (1 << 48) - 1;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_two_words() {
        for (access, agent) in [
            (Access::Local, Agent::Cpu),
            (Access::Read, Agent::Device),
            (Access::ReadWrite, Agent::Cpu),
        ] {
            let entry =
                Entry { key: RegionKey::new(9, 77), bytes: 1 << 33, life: 200, access, agent };
            let words = entry.encode();
            assert_eq!(Entry::decode(words), Some(entry));
            assert!(Entry::is_live(words, 200) && !Entry::is_live(words, 201));
            assert!(!Entry::is_live([0; 2], 0));
            assert_eq!(Entry::access_bits(words), access as u32);
            assert_eq!(Entry::agent_of(words), agent);
        }
        assert_eq!(Entry::decode([0, 0]), None);
    }

    /// Whichever half of an entry is older, it is not taken for one.
    #[test]
    fn a_torn_entry_is_none() {
        let entry = |bytes, life| Entry {
            key: RegionKey::new(3, 5 + u32::from(life)),
            bytes,
            life,
            access: Access::ReadWrite,
            agent: Agent::Cpu,
        };
        let mut taken = 0;
        for life in 0..100 {
            let (old, new) = (entry(64, life), entry(4096 + u64::from(life), life + 1));
            let ([old_word, old_bytes], [new_word, new_bytes]) = (old.encode(), new.encode());
            taken += usize::from(Entry::decode([new_word, old_bytes]).is_some());
            taken += usize::from(Entry::decode([old_word, new_bytes]).is_some());
            assert!(Entry::decode([0, new_bytes]).is_none());
        }
        assert_eq!(taken, 0);
    }
}
