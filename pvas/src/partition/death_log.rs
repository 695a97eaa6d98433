//! The list of the ranks of other nodes that have died, in the first partition of a
//! node, so that one rank that learns of a death informs all.
//!
//! ```text
//!  entries: rank | rank | NODE + node | 0 | 0 ...    (each plus one)
//! ```
//!
//! The first process that learns of a death takes the first empty entry; entries
//! are never removed. A death for which there is no entry left is not recorded:
//! after so many deaths a job is over.
//!
//! Progress: lock-free.

use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// The list; see the module. All zeroes: no rank of another node has died.
#[repr(C)]
pub(crate) struct DeathLog {
    count: AtomicU32,
    entries: [AtomicU32; DEATHS_MAX],
}

/// The dead rank or node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// One rank.
    Rank(Rank),
    /// All ranks of a node, by its number in the job.
    Node(u32),
}

impl DeathLog {
    /// Adds an entry; returns false if it was there already, or if the list is
    /// full.
    pub(crate) fn record(&self, gone: Gone) -> bool {
        let word = match gone {
            Gone::Rank(rank) => rank.0 + 1,
            Gone::Node(node) => (node + 1) | NODE,
        };
        for entry in &self.entries {
            // Release: pairs with the Acquire in `iter`.
            match entry.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.count.fetch_add(1, Ordering::Release);
                    return true;
                }
                Err(found) if found == word => return false,
                Err(_) => {}
            }
        }
        false
    }

    /// The number of entries, for a comparison with the number that the caller has
    /// seen. An entry that is just being added may be in the list before it is
    /// counted.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        // Acquire: pairs with the Release in `record`.
        self.count.load(Ordering::Acquire)
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Gone> + '_ {
        let words = self.entries.iter().map(|entry| entry.load(Ordering::Acquire));
        words.take_while(|word| *word != 0).map(|word| match word & NODE {
            0 => Gone::Rank(Rank(word - 1)),
            _ => Gone::Node((word & !NODE) - 1),
        })
    }
}

const NODE: u32 = 1 << 31;
const DEATHS_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_death_is_listed_once() {
        // SAFETY: the list consists of atomics, for which all zeroes are valid.
        let death_log: DeathLog = unsafe { std::mem::zeroed() };
        let all = [Gone::Rank(Rank(0)), Gone::Node(0), Gone::Rank(Rank(70_000))];
        for gone in all {
            assert!(death_log.record(gone) && !death_log.record(gone), "{gone:?}");
        }
        assert_eq!((death_log.count(), death_log.iter().collect::<Vec<_>>()), (3, all.to_vec()));
    }

    #[test]
    fn a_death_that_does_not_fit_is_not_listed() {
        // SAFETY: as above.
        let death_log: DeathLog = unsafe { std::mem::zeroed() };
        let recorded = (0..300).filter(|rank| death_log.record(Gone::Rank(Rank(*rank)))).count();
        assert_eq!((recorded, death_log.count()), (DEATHS_MAX, DEATHS_MAX as u32));
    }
}
