//! The options of a partition, from the environment.

use super::error::ConfigError;
use super::kind::ValueKind;
use super::limits::{
    BASE_ALIGN, BASE_DEFAULT, BASE_MAX, EXPOSED_BYTES, EXPOSED_BYTES_MIN, GRACE_DEFAULT,
    GRACE_MS_MAX, HEAP_BYTES, HEAP_BYTES_MIN, PART_BYTES_MAX, STACK_BYTES, STACK_BYTES_MIN,
    STARTER_BYTES, STARTER_BYTES_MAX,
};
use super::number::aligned;
use super::policy::{HugePages, Peers, Policy, Populate};
use super::variables::{BASE, EXPOSED, GRACE, HEAP, HUGE_PAGES, PEERS, POPULATE, STACKS, STARTER};
use std::time::Duration;

/// The options of a rank's partition. Sizes are virtual: a page costs memory only
/// after its first touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    /// The time from a rank's death until the other ranks get SIGTERM; SIGKILL
    /// follows 700 ms later. In this time the other ranks can react to the death,
    /// for instance save their work.
    pub grace: Duration,
}

tsumugi_core::setters! { SpaceConfig:
    base: usize, "where rank 0's partition starts";
    starter_bytes: usize, "the memory that every rank can reach as soon as all have started";
    exposed_bytes: usize, "the memory for arrays that peers reach";
    heap_bytes: usize, "the heap for buffers and tables";
    stack_bytes: usize, "the memory for the stacks of ULTs";
    policy: Policy, "when pages are allocated, and which ranks may write to them";
    grace: Duration, "the time from a rank's death until the other ranks get SIGTERM";
}

impl SpaceConfig {
    /// The options from the environment; a variable that is not set has its
    /// default.
    ///
    /// # Errors
    ///
    /// Those of [`from_lookup`](Self::from_lookup).
    pub fn from_env() -> Result<Self, ConfigError> {
        // A value that is not UTF-8 is none of the valid ones.
        let lossy = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        Self::from_lookup(|name| std::env::var_os(name).map(lossy))
    }

    /// The options from `lookup`, which takes the place of the environment.
    ///
    /// # Errors
    ///
    /// For the first variable with a value that is not allowed:
    ///
    /// - [`ConfigError::Unreadable`]: the value is not a size, an address or a time.
    /// - [`ConfigError::OutOfBounds`]: the number is below the smallest or above the largest
    ///   value.
    /// - [`ConfigError::Unaligned`]: the base is not a multiple of [`BASE_ALIGN`].
    /// - [`ConfigError::NoSuchChoice`]: the word is none of the choices of the variable.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let size = |name, default, min, max| {
            let size = ValueKind::Size.read(name, lookup(name).as_deref(), min, max)?;
            Ok(size.unwrap_or(default))
        };
        let base = ValueKind::Address.read(BASE, lookup(BASE).as_deref(), 1 << 16, BASE_MAX)?;
        let base = base.map(|value| aligned(BASE, value, BASE_ALIGN)).transpose()?;
        let populate = Populate::CHOICES.read(POPULATE, lookup(POPULATE).as_deref())?;
        let huge_pages = HugePages::CHOICES.read(HUGE_PAGES, lookup(HUGE_PAGES).as_deref())?;
        let peers = Peers::CHOICES.read(PEERS, lookup(PEERS).as_deref())?;
        let grace = ValueKind::Time.read(GRACE, lookup(GRACE).as_deref(), 0, GRACE_MS_MAX)?;
        Ok(Self {
            base,
            starter_bytes: size(STARTER, STARTER_BYTES, 0, STARTER_BYTES_MAX)?,
            exposed_bytes: size(EXPOSED, EXPOSED_BYTES, EXPOSED_BYTES_MIN, PART_BYTES_MAX)?,
            heap_bytes: size(HEAP, HEAP_BYTES, HEAP_BYTES_MIN, PART_BYTES_MAX)?,
            stack_bytes: size(STACKS, STACK_BYTES, STACK_BYTES_MIN, PART_BYTES_MAX)?,
            policy: Policy {
                populate: populate.unwrap_or_default(),
                huge_pages: huge_pages.unwrap_or_default(),
                peers: peers.unwrap_or_default(),
            },
            grace: grace.map_or(GRACE_DEFAULT, |ms| Duration::from_millis(ms as u64)),
        })
    }

    /// Checks that all sizes are small enough that sums of them do not overflow.
    ///
    /// # Errors
    ///
    /// [`ConfigError::OutOfBounds`] or [`ConfigError::Unaligned`], with the
    /// variable for the value that is refused.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let base = self.base.unwrap_or(BASE_DEFAULT);
        aligned(BASE, ValueKind::Address.bounded(BASE, base, 0, BASE_MAX)?, BASE_ALIGN)?;
        let size = |name, value, max| ValueKind::Size.bounded(name, value, 0, max);
        size(STARTER, self.starter_bytes, STARTER_BYTES_MAX)?;
        size(EXPOSED, self.exposed_bytes, PART_BYTES_MAX)?;
        size(HEAP, self.heap_bytes, PART_BYTES_MAX)?;
        size(STACKS, self.stack_bytes, PART_BYTES_MAX)?;
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
            grace: GRACE_DEFAULT,
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
        assert!(heap.contains("TSUMUGI_HEAP_BYTES=4KiB is not between 64MiB and 4TiB"), "{heap}");
        let peers = with("TSUMUGI_PEERS", "raed").unwrap_err().to_string();
        assert!(peers.contains("write, read-heap, read, auto; did you mean read?"), "{peers}");
        let grace = with("TSUMUGI_GRACE_TIMEOUT", "300").unwrap_err().to_string();
        assert!(grace.contains("300ms, 5s"), "{grace}");
    }

    #[test]
    fn sizes_and_times_have_units_and_auto_is_the_default() {
        let heap = |text| with(HEAP, text).unwrap().heap_bytes;
        assert_eq!([heap("1G"), heap("64MiB"), heap("auto")], [1 << 30, 64 << 20, HEAP_BYTES]);
        assert_eq!(with(GRACE, "2s").unwrap().grace, Duration::from_secs(2));
        assert_eq!(with(PEERS, "auto"), Ok(SpaceConfig::default()));
    }
}
