//! Every number of this crate that a user may change, and every environment
//! variable that the crate reads or sets.
//!
//! Variables that the user sets:
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TSUMUGI_PVAS_BASE` | where rank 0's partition starts | `0x200000000000` |
//! | `TSUMUGI_STARTER_BYTES` | memory that peers reach from the start | 64 KiB |
//! | `TSUMUGI_EXPOSED_BYTES` | arrays of a rank that peers reach (virtual) | 16 GiB |
//! | `TSUMUGI_HEAP_BYTES` | heap of a rank, for buffers and tables (virtual) | 15 GiB |
//! | `TSUMUGI_STACK_BYTES` | stacks of a rank (virtual) | 32 GiB |
//! | `TSUMUGI_POPULATE` | when pages come: `none` with their first touch, `own` when they are allocated, `peers` also those of peers | `none` |
//! | `TSUMUGI_HUGE_PAGES` | heaps and exposed memory: `none`, `advise`, `reserved` (from the pool) | `advise` |
//! | `TSUMUGI_PEERS` | what a rank may do to peers' partitions: `write`, `read-heap`, `read` | `write` |
//! | `TSUMUGI_GRACE_MS` | milliseconds from a rank's death until the launcher asks the other ranks to end; 1200 at least between hosts of `tsumugi run --hosts` | 300 |
//! | `TSUMUGI_NODE` | which node this is, where sockets cannot tell | boot and network namespace |
//!
//! Variables that the launcher sets for its ranks: `TSUMUGI_RANK`, `TSUMUGI_SIZE`,
//! `TSUMUGI_PVAS_FDS` (`5,6,7`: one memory file per rank), `TSUMUGI_PVAS_SHAPE`
//! (`base,starter,exposed,heap,stacks` in hex) and `TSUMUGI_JOB` (the mark by which
//! the launcher or its guardian finds processes that are left at the end). Where a
//! site's launcher starts the ranks, [`meet`](crate::meet) hands the memory files
//! over, and `TSUMUGI_RANK`, `TSUMUGI_SIZE` and `TSUMUGI_JOB` are enough.

mod policy;

pub use policy::{HugePages, Peers, Policy, Populate};

use std::fmt;
use tsumugi_core::excerpt::Excerpt;

/// The options of a rank's partition. Sizes are virtual: a page costs memory only
/// after its first touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where rank 0's partition starts; a multiple of 2 MiB. `None`: the default
    /// place, or any free place if no peer has to use the same one.
    pub base: Option<usize>,
    /// Memory that every rank can reach as soon as all have started.
    pub starter_bytes: usize,
    /// Memory for arrays that peers reach.
    pub exposed_bytes: usize,
    /// Heap for buffers of the rank's own operations, and for tables.
    pub heap_bytes: usize,
    /// Memory for the stacks of ULTs.
    pub stack_bytes: usize,
    /// When pages are allocated, and which ranks may write to them.
    pub policy: Policy,
    /// Milliseconds from a rank's death until the other ranks get SIGTERM; SIGKILL
    /// follows 700 ms later. In this time the other ranks can react to the death,
    /// for instance save their work.
    pub grace_ms: u32,
}

/// Why a variable of the environment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Not a number (decimal, or hexadecimal after `0x`).
    NotANumber {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// A number outside of the allowed range.
    OutOfBounds {
        /// The variable.
        name: &'static str,
        /// The value of the variable.
        value: usize,
        /// The smallest value that is allowed.
        min: usize,
        /// The largest value that is allowed.
        max: usize,
    },
    /// The value is none of the words that the variable accepts.
    NoSuchChoice {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// The value is not a multiple of the required alignment.
    Unaligned {
        /// The variable.
        name: &'static str,
        /// The value of the variable.
        value: usize,
        /// The required alignment.
        align: usize,
    },
}

impl Config {
    /// The options from the environment; a variable that is not set has its
    /// default.
    ///
    /// # Errors
    ///
    /// Those of [`from_lookup`](Self::from_lookup).
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// The options from `lookup`, which takes the place of the environment.
    ///
    /// # Errors
    ///
    /// For the first variable with a value that is not allowed:
    ///
    /// - [`ConfigError::NotANumber`]: the value of a size, of the base or of the grace is
    ///   not a number.
    /// - [`ConfigError::OutOfBounds`]: the number is below the smallest or above the largest
    ///   value.
    /// - [`ConfigError::Unaligned`]: the base is not a multiple of [`BASE_ALIGN`].
    /// - [`ConfigError::NoSuchChoice`]: the word is none of the choices of the variable.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let number = |name: &'static str, default: usize, min: usize, max: usize| match lookup(name)
        {
            None => Ok(default),
            Some(text) => bounded(name, parse_number(name, &text)?, min, max),
        };
        let base = match lookup(BASE) {
            None => None,
            Some(text) => {
                let value = bounded(BASE, parse_number(BASE, &text)?, 1 << 16, BASE_MAX)?;
                Some(aligned(BASE, value, BASE_ALIGN)?)
            }
        };
        let policy = Policy {
            populate: Populate::from_word(POPULATE, lookup(POPULATE).as_deref())?,
            huge_pages: HugePages::from_word(HUGE_PAGES, lookup(HUGE_PAGES).as_deref())?,
            peers: Peers::from_word(PEERS, lookup(PEERS).as_deref())?,
        };
        Ok(Self {
            base,
            starter_bytes: number(STARTER, STARTER_BYTES, 0, STARTER_BYTES_MAX)?,
            exposed_bytes: number(EXPOSED, EXPOSED_BYTES, EXPOSED_BYTES_MIN, PART_BYTES_MAX)?,
            heap_bytes: number(HEAP, HEAP_BYTES, HEAP_BYTES_MIN, PART_BYTES_MAX)?,
            stack_bytes: number(STACKS, STACK_BYTES, STACK_BYTES_MIN, PART_BYTES_MAX)?,
            policy,
            grace_ms: number(GRACE, GRACE_MS as usize, 0, GRACE_MS_MAX as usize)? as u32,
        })
    }

    /// Checks that all sizes are small enough that sums of them do not overflow.
    ///
    /// # Errors
    ///
    /// [`ConfigError::OutOfBounds`] or [`ConfigError::Unaligned`], with the
    /// variable for the value that is refused.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        aligned(BASE, bounded(BASE, self.base.unwrap_or(BASE_DEFAULT), 0, BASE_MAX)?, BASE_ALIGN)?;
        bounded(STARTER, self.starter_bytes, 0, STARTER_BYTES_MAX)?;
        bounded(EXPOSED, self.exposed_bytes, 0, PART_BYTES_MAX)?;
        bounded(HEAP, self.heap_bytes, 0, PART_BYTES_MAX)?;
        bounded(STACKS, self.stack_bytes, 0, PART_BYTES_MAX)?;
        Ok(())
    }
}

#[cfg(test)]
impl Config {
    /// Small partitions, for tests.
    pub(crate) fn small() -> Self {
        Self {
            exposed_bytes: 16 << 20,
            heap_bytes: 64 << 20,
            stack_bytes: 16 << 20,
            ..Self::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base: None,
            starter_bytes: STARTER_BYTES,
            exposed_bytes: EXPOSED_BYTES,
            heap_bytes: HEAP_BYTES,
            stack_bytes: STACK_BYTES,
            policy: Policy::default(),
            grace_ms: GRACE_MS,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { name, value } => {
                write!(f, "{name}={value:?} is not a number (decimal, or hexadecimal after 0x)")
            }
            Self::OutOfBounds { name, value, min, max } => {
                write!(f, "{name}={value:#x} is not between {min:#x} and {max:#x}")
            }
            Self::NoSuchChoice { name, value } => {
                write!(f, "{name}={value:?} is none of its values: see tsumugi info --config")
            }
            Self::Unaligned { name, value, align } => {
                write!(f, "{name}={value:#x} is not a multiple of {align:#x}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Parses a number as the user writes it: decimal, or hexadecimal after `0x`.
///
/// # Errors
///
/// [`ConfigError::NotANumber`] if the text is not such a number, or the number is above
/// [`usize::MAX`].
pub fn parse_number(name: &'static str, text: &str) -> Result<usize, ConfigError> {
    let plain: String = text.trim().chars().filter(|c| *c != '_').collect();
    let number = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(hex) => usize::from_str_radix(hex, 16),
        None => plain.parse(),
    };
    number.map_err(|_| ConfigError::NotANumber { name, value: Excerpt::new(text) })
}

fn bounded(name: &'static str, value: usize, min: usize, max: usize) -> Result<usize, ConfigError> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(ConfigError::OutOfBounds { name, value, min, max })
    }
}

fn aligned(name: &'static str, value: usize, align: usize) -> Result<usize, ConfigError> {
    if value.is_multiple_of(align) {
        Ok(value)
    } else {
        Err(ConfigError::Unaligned { name, value, align })
    }
}

/// The user's variable for where the space starts.
pub const BASE: &str = "TSUMUGI_PVAS_BASE";
/// The user's variable for [`Config::starter_bytes`].
pub const STARTER: &str = "TSUMUGI_STARTER_BYTES";
/// The user's variable for [`Config::exposed_bytes`].
pub const EXPOSED: &str = "TSUMUGI_EXPOSED_BYTES";
/// The user's variable for [`Config::heap_bytes`].
pub const HEAP: &str = "TSUMUGI_HEAP_BYTES";
/// The user's variable for [`Config::stack_bytes`].
pub const STACKS: &str = "TSUMUGI_STACK_BYTES";
/// The user's variable for [`Policy::populate`].
pub const POPULATE: &str = "TSUMUGI_POPULATE";
/// The user's variable for [`Policy::huge_pages`].
pub const HUGE_PAGES: &str = "TSUMUGI_HUGE_PAGES";
/// The user's variable for [`Policy::peers`].
pub const PEERS: &str = "TSUMUGI_PEERS";
/// The user's variable for [`Config::grace_ms`].
pub const GRACE: &str = "TSUMUGI_GRACE_MS";
/// The user's variable for the identity of this node.
pub const NODE: &str = "TSUMUGI_NODE";
/// This rank's number.
pub const RANK: &str = "TSUMUGI_RANK";
/// Ranks of the job.
pub const SIZE: &str = "TSUMUGI_SIZE";
/// Descriptors of the memory files, in the order of the ranks.
pub const FDS: &str = "TSUMUGI_PVAS_FDS";
/// Where and how large the partitions are.
pub const SHAPE: &str = "TSUMUGI_PVAS_SHAPE";
/// The descriptor from which a rank of several nodes reads the ranks that have
/// died.
pub const DEATHS: &str = "TSUMUGI_DEATHS_FD";
/// The descriptor to which such a rank writes the ranks that it declares lost.
pub const LOSSES: &str = "TSUMUGI_LOSSES_FD";
/// The mark of a job's processes.
pub const JOB: &str = "TSUMUGI_JOB";

/// Free in every kind of Linux executable, with address randomisation and
/// with AddressSanitizer; ThreadSanitizer needs `0x1000000000`.
pub const BASE_DEFAULT: usize = 0x2000_0000_0000;
/// Free with ThreadSanitizer, for [`BASE_TSAN_BYTES`].
pub const BASE_TSAN: usize = 0x10_0000_0000;
/// 256 GiB.
pub const BASE_TSAN_BYTES: usize = 256 << 30;
/// The largest base: position-independent executables lie above.
pub const BASE_MAX: usize = 0x5000_0000_0000;
/// The alignment of the base, and of the start of a heap: a huge page.
pub const BASE_ALIGN: usize = 2 << 20;
/// Default of [`Config::starter_bytes`].
pub const STARTER_BYTES: usize = 64 << 10;
/// Default of [`Config::exposed_bytes`].
pub const EXPOSED_BYTES: usize = 16 << 30;
/// Default of [`Config::heap_bytes`]: one arena of the allocator, and a
/// partition of less than 64 GiB in all.
pub const HEAP_BYTES: usize = 15 << 30;
/// Default of [`Config::stack_bytes`].
pub const STACK_BYTES: usize = 32 << 30;
/// Default of [`Config::grace_ms`].
pub const GRACE_MS: u32 = 300;
/// The largest value of [`Config::grace_ms`]: one hour.
pub const GRACE_MS_MAX: u32 = 3_600_000;
/// The smallest value of [`Config::exposed_bytes`]: room for some arrays.
pub const EXPOSED_BYTES_MIN: usize = 16 << 20;
/// The smallest value of [`Config::heap_bytes`]: the allocator's arenas are
/// multiples of 32 MiB and lose a little to their own tables.
pub const HEAP_BYTES_MIN: usize = 64 << 20;
/// The smallest value of [`Config::stack_bytes`]: room for a few hundred stacks.
pub const STACK_BYTES_MIN: usize = 16 << 20;
/// Limits that exceed the memory of any machine; no sum of sizes below them
/// overflows.
const STARTER_BYTES_MAX: usize = 1 << 36;
const PART_BYTES_MAX: usize = 1 << 42;
/// The address space that a limit (`RLIMIT_AS`) must leave for the program itself:
/// this, or a quarter of the limit if that is more.
pub const PROGRAM_BYTES: usize = 256 << 20;
/// The largest number of ranks of one node.
pub const RANKS_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Config, ConfigError> {
        Config::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn an_empty_environment_is_the_default() {
        assert_eq!(Config::from_lookup(|_| None), Ok(Config::default()));
    }

    #[test]
    fn a_base_is_hexadecimal_or_decimal() {
        assert_eq!(with(BASE, "0x1000_0000_0000").unwrap().base, Some(1 << 44));
        assert_eq!(with(BASE, "17592186044416").unwrap().base, Some(1 << 44));
    }

    #[test]
    fn a_bad_value_is_named() {
        let message = |value| with(BASE, value).unwrap_err().to_string();
        assert!(message("high up").contains("TSUMUGI_PVAS_BASE=\"high up\""));
        assert!(message("0x1001").contains("0x1001"));
        assert!(message("0x100001000").contains("multiple of 0x200000"));
        let heap = with("TSUMUGI_HEAP_BYTES", "4096").unwrap_err().to_string();
        assert!(heap.contains("TSUMUGI_HEAP_BYTES=0x1000"), "{heap}");
    }
}
