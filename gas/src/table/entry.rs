//! The entry of a region in a table, and the starter memory, which needs no entry.

use crate::address::{GlobalAddr, REGIONS};
use tsumugi_core::mem::{Access, AddrError, Agent, Need, RegionKey};

/// The contents of an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// The region's key in the backends.
    pub key: RegionKey,
    /// The length of the region.
    pub bytes: u64,
    /// The life of the name: which region of that name it is.
    pub life: u8,
    /// The access that peers have.
    pub access: Access,
    /// The agent that carries out atomics on the region.
    pub agent: Agent,
}

/// The starter memory of every rank: the same key and length everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starter {
    /// The key of the memory.
    pub key: RegionKey,
    /// The length of the memory.
    pub bytes: u64,
    /// The agent that carries out atomics on the memory.
    pub agent: Agent,
}

impl RegionEntry {
    /// The entry as the two words of a table.
    pub fn encode(&self) -> [u64; 2] {
        let flags = LIVE | (self.access as u64) << 1 | (self.agent as u64) << 3;
        let low = u64::from(self.key.to_bits()) | u64::from(self.life) << 32 | flags << 40;
        [low | check(low, self.bytes) << 48, self.bytes]
    }

    /// The entry in such words: `None` for words without an entry, or half written.
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

    /// Whether words that were checked are an entry of that life.
    #[inline(always)]
    pub(crate) const fn is_live([word, _]: [u64; 2], life: u8) -> bool {
        (word >> 32) & 0x1ff == 0x100 | life as u64
    }

    /// The length of the region in words that were checked.
    #[inline(always)]
    pub(crate) const fn bytes_of([_, bytes]: [u64; 2]) -> u64 {
        bytes
    }

    #[inline(always)]
    pub(crate) const fn access_bits([word, _]: [u64; 2]) -> u32 {
        (word >> 41) as u32 & 3
    }

    #[inline(always)]
    pub(crate) const fn agent_of([word, _]: [u64; 2]) -> Agent {
        if word >> 43 & 1 == 0 { Agent::Cpu } else { Agent::Device }
    }

    /// Checks that `bytes` bytes at `offset` may be used as `need` requires.
    ///
    /// # Errors
    ///
    /// - [`AddrError::OutOfRange`]: some of the bytes lie outside the region.
    /// - [`AddrError::ReadOnly`]: `need` is to write, and the region is for reading.
    /// - [`AddrError::StaleKey`]: the region is for its own rank alone.
    pub fn admit(
        &self,
        addr: GlobalAddr,
        offset: u64,
        bytes: u64,
        need: Need,
    ) -> Result<(), AddrError<GlobalAddr>> {
        if bytes > self.bytes || offset > self.bytes - bytes {
            return Err(AddrError::OutOfRange { addr, bytes, region_bytes: Some(self.bytes) });
        }
        if self.access as u32 & need as u32 != need as u32 {
            return Err(match self.access {
                Access::Local => AddrError::StaleKey { addr },
                _ => AddrError::ReadOnly { addr },
            });
        }
        Ok(())
    }
}

impl Starter {
    pub(crate) const fn entry(&self) -> RegionEntry {
        let Self { key, bytes, agent } = *self;
        RegionEntry { key, bytes, life: 0, access: Access::ReadWrite, agent }
    }
}

/// The index of the word at which the entry of a name starts, in the tables of a
/// rank.
pub(crate) const fn entry_word(color: u8, name: usize) -> usize {
    (color as usize * (REGIONS + 1) + name) * 2
}

/// A check of 16 bits over an entry; no protection against an adversary.
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
            let entry = RegionEntry {
                key: RegionKey::new(9, 77),
                bytes: 1 << 33,
                life: 200,
                access,
                agent,
            };
            let words = entry.encode();
            assert_eq!(RegionEntry::decode(words), Some(entry));
            assert!(RegionEntry::is_live(words, 200) && !RegionEntry::is_live(words, 201));
            assert!(!RegionEntry::is_live([0; 2], 0));
            assert_eq!(RegionEntry::access_bits(words), access as u32);
            assert_eq!(RegionEntry::agent_of(words), agent);
        }
        assert_eq!(RegionEntry::decode([0, 0]), None);
    }

    #[test]
    fn an_entry_admits_allowed_accesses_inside_its_region() {
        let addr = GlobalAddr::from_bits(77);
        let entry = |access| RegionEntry {
            key: RegionKey::new(9, 77),
            bytes: 64,
            life: 0,
            access,
            agent: Agent::Cpu,
        };
        for (offset, bytes, is_in) in [
            (0, 64, true),
            (56, 8, true),
            (64, 0, true),
            (57, 8, false),
            (0, 65, false),
            (65, 0, false),
            (1 << 40, 8, false),
            (8, u64::MAX, false),
        ] {
            let admitted = entry(Access::ReadWrite).admit(addr, offset, bytes, Need::Write);
            let error = Err(AddrError::OutOfRange { addr, bytes, region_bytes: Some(64) });
            assert_eq!(admitted, if is_in { Ok(()) } else { error }, "{bytes} at {offset}");
        }
        let (stale, read_only) = (AddrError::StaleKey { addr }, AddrError::ReadOnly { addr });
        for (access, need, expected) in [
            (Access::ReadWrite, Need::Write, Ok(())),
            (Access::ReadWrite, Need::Read, Ok(())),
            (Access::Read, Need::Read, Ok(())),
            (Access::Read, Need::Write, Err(read_only)),
            (Access::Local, Need::Local, Ok(())),
            (Access::Local, Need::Read, Err(stale)),
            (Access::Local, Need::Write, Err(stale)),
        ] {
            assert_eq!(entry(access).admit(addr, 0, 8, need), expected, "{access:?} {need:?}");
        }
    }

    /// A mixture of two entries is not taken for an entry.
    #[test]
    fn a_torn_entry_is_not_decoded() {
        let entry = |bytes, life| RegionEntry {
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
            taken += usize::from(RegionEntry::decode([new_word, old_bytes]).is_some());
            taken += usize::from(RegionEntry::decode([old_word, new_bytes]).is_some());
            assert!(RegionEntry::decode([0, new_bytes]).is_none());
        }
        assert_eq!(taken, 0);
    }
}
