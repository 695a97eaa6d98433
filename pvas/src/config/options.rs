//! The options of a partition, from the environment.

use super::error::ConfigError;
use super::limits::{
    BASE_ALIGN, BASE_DEFAULT, BASE_MAX, EXPOSED_BYTES, EXPOSED_BYTES_MIN, GRACE_MS, GRACE_MS_MAX,
    HEAP_BYTES, HEAP_BYTES_MIN, PART_BYTES_MAX, STACK_BYTES, STACK_BYTES_MIN, STARTER_BYTES,
    STARTER_BYTES_MAX,
};
use super::number::{aligned, bounded, parse_number};
use super::policy::{HugePages, Peers, Policy, Populate};
use super::variables::{BASE, EXPOSED, GRACE, HEAP, HUGE_PAGES, PEERS, POPULATE, STACKS, STARTER};

/// The options of a rank's partition. Sizes are virtual: a page costs memory only
/// after its first touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceConfig {
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

impl SpaceConfig {
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
impl SpaceConfig {
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

impl Default for SpaceConfig {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<SpaceConfig, ConfigError> {
        SpaceConfig::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn an_empty_environment_is_the_default() {
        assert_eq!(SpaceConfig::from_lookup(|_| None), Ok(SpaceConfig::default()));
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
