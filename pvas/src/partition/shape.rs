//! Where partitions lie and how they are divided, within the limits of the system.

use super::CONTROL_BYTES;
use crate::config::{self, ConfigError, HugePages, SpaceConfig};
use std::fmt;
use tsumugi_core::mem::LocalRank;

/// Where the partitions lie and how they are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionShape {
    /// Where rank 0's partition starts.
    pub base: usize,
    /// Rank r's partition starts `r << shift` bytes after the base.
    pub shift: u32,
    /// As in [`SpaceConfig`].
    pub starter_bytes: usize,
    /// As in [`SpaceConfig`], or less where a limit requires it.
    pub exposed_bytes: usize,
    /// As in [`SpaceConfig`], or less where a limit requires it.
    pub heap_bytes: usize,
    /// As in [`SpaceConfig`], or less where a limit requires it.
    pub stack_bytes: usize,
}

/// The limits of the system that partitions must fit under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `RLIMIT_AS` (`ulimit -v`): the bytes that one process may map.
    pub address_space_bytes: Option<u64>,
    /// `RLIMIT_FSIZE` (`ulimit -f`): the bytes that one file may have, memory files
    /// included.
    pub file_bytes: Option<u64>,
    /// Huge pages that are free and not reserved (`HugePages_Free` without
    /// `HugePages_Rsvd`).
    pub huge_page_bytes: u64,
}

/// Why the partitions of a job do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// Zero ranks, or too many.
    Size {
        /// The number of ranks that was requested.
        size: u32,
    },
    /// `RLIMIT_AS` is too low.
    AddressSpace {
        /// The limit.
        limit_bytes: u64,
        /// The least that one process of the job must map.
        needed_bytes: u64,
    },
    /// `RLIMIT_FSIZE` is too low.
    FileSize {
        /// The limit.
        limit_bytes: u64,
        /// The least that one partition takes.
        needed_bytes: u64,
    },
    /// Too few huge pages are reserved for the heaps and exposed memory.
    HugePages {
        /// The bytes of huge pages that are free.
        free_bytes: u64,
        /// The bytes that the job needs.
        needed_bytes: u64,
    },
    /// A size, or the base, is one that no partition can have.
    Config(ConfigError),
    /// The range ends above the part of the address space that is free.
    Range {
        /// Where it would start.
        base: usize,
        /// How long it would be.
        bytes: u128,
    },
}

impl PartitionShape {
    /// The partitions of `size` ranks with the sizes of `config`, or smaller if the
    /// limits require it.
    ///
    /// # Errors
    ///
    /// - [`ShapeError::Size`]: `size` is 0 or above [`RANKS_MAX`](config::RANKS_MAX).
    /// - [`ShapeError::Config`]: a size of `config` is larger than any partition may have,
    ///   or the base is too high or not a multiple of [`BASE_ALIGN`](config::BASE_ALIGN).
    /// - [`ShapeError::FileSize`], [`ShapeError::AddressSpace`]: the least sizes do not fit
    ///   within `RLIMIT_FSIZE` or `RLIMIT_AS`.
    /// - [`ShapeError::HugePages`]: the policy takes huge pages from the pool, and too few
    ///   are free.
    /// - [`ShapeError::Range`]: the partitions end above [`BASE_MAX`](config::BASE_MAX).
    pub fn fit(size: u32, config: &SpaceConfig, limits: Limits) -> Result<Self, ShapeError> {
        if size == 0 || size > config::RANKS_MAX {
            return Err(ShapeError::Size { size });
        }
        config.check().map_err(ShapeError::Config)?;
        let wanted = Self::new(config, wanted_parts(config));
        let least = Self::new(config, least_parts(config));
        let mut room = wanted.bytes() as u64;
        if let Some(limit_bytes) = limits.file_bytes {
            let needed_bytes = least.bytes() as u64;
            if limit_bytes < needed_bytes {
                return Err(ShapeError::FileSize { limit_bytes, needed_bytes });
            }
            room = room.min(limit_bytes);
        }
        if let Some(limit_bytes) = limits.address_space_bytes {
            let program = config::PROGRAM_BYTES as u64;
            let needed = |each: usize| each as u64 * u64::from(size) + program;
            let needed_bytes = needed(least.bytes());
            if limit_bytes < needed_bytes {
                return Err(ShapeError::AddressSpace { limit_bytes, needed_bytes });
            }
            if limit_bytes < needed(room as usize) {
                // The limit is shared with the program, which gets a quarter of it,
                // if the least sizes of the partitions leave a quarter.
                let each = (limit_bytes - program.max(limit_bytes / 4)) / u64::from(size);
                room = each.max(least.bytes() as u64);
            }
        }
        let shape = wanted.within(config, room as usize);
        let huge_bytes = (shape.exposed_bytes + shape.heap_bytes) as u64 * u64::from(size);
        let (free_bytes, needed_bytes) = (limits.huge_page_bytes, huge_bytes);
        if config.policy.huge_pages == HugePages::Reserved && free_bytes < needed_bytes {
            return Err(ShapeError::HugePages { free_bytes, needed_bytes });
        }
        let bytes = u128::from(size) << shape.shift;
        if shape.base as u128 + bytes > config::BASE_MAX as u128 {
            return Err(ShapeError::Range { base: shape.base, bytes });
        }
        Ok(shape)
    }

    /// Reduces each part to its least size plus a share of the rest of `room`, in
    /// proportion to the size that was requested. The caller has checked that the
    /// least sizes fit.
    fn within(self, config: &SpaceConfig, room: usize) -> Self {
        if self.bytes() <= room {
            return self;
        }
        let (wanted, least) = (wanted_parts(config), least_parts(config));
        let smallest = Self::new(config, least).bytes();
        let (spare, lacking) = (room - smallest, self.bytes() - smallest);
        let part = |index: usize| {
            let more = (wanted[index] - least[index]) as u128;
            let more = (spare as u128 * more / lacking as u128) as usize;
            least[index] + round_down(more, config::BASE_ALIGN)
        };
        Self::new(config, [part(0), part(1), part(2)])
    }

    fn new(config: &SpaceConfig, parts: [usize; 3]) -> Self {
        Self::cut(config.base.unwrap_or(config::BASE_DEFAULT), config.starter_bytes, parts)
    }

    /// `parts` are exposed memory, heap and stacks.
    fn cut(base: usize, starter_bytes: usize, parts: [usize; 3]) -> Self {
        let [exposed_bytes, heap_bytes, stack_bytes] =
            parts.map(|bytes| round_up(bytes, config::BASE_ALIGN));
        let mut shape = Self {
            base,
            shift: 0,
            starter_bytes: round_up(starter_bytes, 4096),
            exposed_bytes,
            heap_bytes,
            stack_bytes,
        };
        shape.shift = shape.bytes().next_power_of_two().trailing_zeros();
        shape
    }

    /// The shape as text, for the environment of a rank.
    pub fn to_text(self) -> String {
        format!(
            "{:x},{:x},{:x},{:x},{:x}",
            self.base, self.starter_bytes, self.exposed_bytes, self.heap_bytes, self.stack_bytes
        )
    }

    /// Parses the text of [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Self> {
        let mut numbers = text.split(',').map(|part| usize::from_str_radix(part, 16).ok());
        let mut next = || numbers.next().flatten().filter(|n| *n <= 1 << 46);
        let shape = Self::cut(next()?, next()?, [next()?, next()?, next()?]);
        numbers.next().is_none().then_some(shape)
    }

    /// The mapped bytes of one partition.
    pub const fn bytes(&self) -> usize {
        self.stacks_offset() + self.stack_bytes
    }

    /// Where rank `rank`'s partition starts.
    #[inline(always)]
    pub const fn start(&self, rank: LocalRank) -> usize {
        self.base + ((rank.0 as usize) << self.shift)
    }

    /// Where the starter memory starts in a partition.
    pub const fn starter_offset(&self) -> usize {
        CONTROL_BYTES
    }

    /// Where the exposed memory starts in a partition.
    pub const fn exposed_offset(&self) -> usize {
        round_up(CONTROL_BYTES + self.starter_bytes, config::BASE_ALIGN)
    }

    /// Where the memory for rings ends in a partition; it starts with the exposed
    /// memory. Peers may write to it in a job in which [`Peers`](config::Peers)
    /// otherwise may only read.
    pub const fn rings_end(&self) -> usize {
        self.exposed_offset() + round_up(self.exposed_bytes / 4, config::BASE_ALIGN)
    }

    /// Where the heap starts in a partition.
    pub const fn heap_offset(&self) -> usize {
        self.exposed_offset() + self.exposed_bytes
    }

    /// Where the stacks start in a partition.
    pub const fn stacks_offset(&self) -> usize {
        self.heap_offset() + self.heap_bytes
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size } => {
                write!(f, "a job has 1 to {} ranks on each node, not {size}", config::RANKS_MAX)
            }
            Self::AddressSpace { limit_bytes, needed_bytes } => write!(
                f,
                "RLIMIT_AS (ulimit -v) is {limit_bytes} bytes; the partitions and the program \
                 need at least {needed_bytes}: raise the limit"
            ),
            Self::FileSize { limit_bytes, needed_bytes } => write!(
                f,
                "RLIMIT_FSIZE (ulimit -f) is {limit_bytes} bytes; a partition needs at least \
                 {needed_bytes}: raise the limit"
            ),
            Self::HugePages { free_bytes, needed_bytes } => write!(
                f,
                "{}=reserved: {free_bytes} bytes of huge pages are free (vm.nr_hugepages); heaps \
                 and exposed memory of all ranks are {needed_bytes}: set {} and {} lower, or \
                 reserve more",
                config::HUGE_PAGES,
                config::EXPOSED,
                config::HEAP
            ),
            Self::Config(error) => write!(f, "{error}"),
            Self::Range { base, bytes } => write!(
                f,
                "{bytes:#x} bytes of partitions from {base:#x} on end above {:#x}: set \
                 {}, {} and {} lower",
                config::BASE_MAX,
                config::EXPOSED,
                config::HEAP,
                config::STACKS
            ),
        }
    }
}

impl std::error::Error for ShapeError {}

fn wanted_parts(config: &SpaceConfig) -> [usize; 3] {
    [config.exposed_bytes, config.heap_bytes, config.stack_bytes]
}

fn least_parts(config: &SpaceConfig) -> [usize; 3] {
    [
        config.exposed_bytes.min(config::EXPOSED_BYTES_MIN),
        config.heap_bytes.min(config::HEAP_BYTES_MIN),
        config.stack_bytes.min(config::STACK_BYTES_MIN),
    ]
}

const fn round_up(bytes: usize, to: usize) -> usize {
    bytes.next_multiple_of(to)
}

const fn round_down(bytes: usize, to: usize) -> usize {
    bytes - bytes % to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ValueKind;

    fn limits(address_space: Option<u64>, file: Option<u64>) -> Limits {
        Limits { address_space_bytes: address_space, file_bytes: file, ..Limits::default() }
    }

    #[test]
    fn an_impossible_size_is_named() {
        let fit =
            |config| PartitionShape::fit(2, &config, Limits::default()).unwrap_err().to_string();
        let largest = usize::MAX - 4095;
        let all = [
            (SpaceConfig { starter_bytes: largest, ..SpaceConfig::small() }, config::STARTER),
            (SpaceConfig { exposed_bytes: largest, ..SpaceConfig::small() }, config::EXPOSED),
            (SpaceConfig { heap_bytes: largest, ..SpaceConfig::small() }, config::HEAP),
            (SpaceConfig { stack_bytes: largest, ..SpaceConfig::small() }, config::STACKS),
            (SpaceConfig { base: Some(largest), ..SpaceConfig::small() }, config::BASE),
        ];
        for (options, name) in all {
            let kind = if name == config::BASE { ValueKind::Address } else { ValueKind::Size };
            let error = fit(options);
            assert!(error.contains(&format!("{name}={}", kind.show(largest))), "{error}");
        }
    }

    #[test]
    fn without_limits_a_partition_is_as_configured() {
        let config = SpaceConfig::default();
        let shape = PartitionShape::fit(4, &config, Limits::default()).unwrap();
        assert_eq!(shape.exposed_bytes, config.exposed_bytes);
        assert_eq!((shape.heap_bytes, shape.stack_bytes), (config.heap_bytes, config.stack_bytes));
        assert_eq!((shape.base, shape.shift), (config::BASE_DEFAULT, 36));
        assert_eq!(shape.start(LocalRank(3)), config::BASE_DEFAULT + (3 << 36));
        assert_eq!(PartitionShape::from_text(&shape.to_text()), Some(shape));
        assert_eq!(PartitionShape::from_text("1,2,3,4"), None);
        assert_eq!(PartitionShape::from_text("1,2,3,4,5,6"), None);
    }

    #[test]
    fn limits_make_partitions_smaller() {
        for (size, gib) in [(1, 1), (4, 4), (33, 16), (2, 100)] {
            let limit = gib << 30;
            let shape =
                PartitionShape::fit(size, &SpaceConfig::default(), limits(Some(limit), None))
                    .unwrap();
            assert!(
                shape.bytes() as u64 * u64::from(size) <= limit - (256 << 20),
                "{size} {shape:?}"
            );
            assert!(shape.exposed_bytes >= config::EXPOSED_BYTES_MIN);
            assert!(shape.heap_bytes >= config::HEAP_BYTES_MIN);
            assert!(shape.stack_bytes >= config::STACK_BYTES_MIN);
            let file =
                PartitionShape::fit(size, &SpaceConfig::default(), limits(None, Some(limit)))
                    .unwrap();
            assert!(file.bytes() as u64 <= limit);
        }
    }

    #[test]
    fn a_limit_that_is_too_low_is_named() {
        let error = |limits| {
            PartitionShape::fit(33, &SpaceConfig::default(), limits).unwrap_err().to_string()
        };
        let address_space = error(limits(Some(1 << 30), None));
        assert!(address_space.contains("RLIMIT_AS (ulimit -v) is 1073741824"), "{address_space}");
        let file = error(limits(None, Some(1 << 20)));
        assert!(file.contains("RLIMIT_FSIZE (ulimit -f) is 1048576"), "{file}");
    }

    #[test]
    fn a_limit_that_just_suffices_changes_nothing() {
        let config =
            SpaceConfig { heap_bytes: 1 << 30, exposed_bytes: 1 << 30, ..SpaceConfig::default() };
        let config = SpaceConfig { stack_bytes: 1 << 30, ..config };
        let whole = PartitionShape::fit(4, &config, Limits::default()).unwrap();
        let least = PartitionShape::new(&config, least_parts(&config)).bytes() as u64 * 4;
        let program = config::PROGRAM_BYTES as u64;
        let just = whole.bytes() as u64 * 4 + program;
        let fit = |limit| PartitionShape::fit(4, &config, limits(Some(limit), None));
        assert_eq!(fit(just), Ok(whole));
        assert!(fit(just - 1).unwrap().bytes() < whole.bytes());
        assert!(fit(least + program).is_ok());
        let (limit_bytes, needed_bytes) = (least + program - 1, least + program);
        let error = ShapeError::AddressSpace { limit_bytes, needed_bytes };
        assert_eq!(fit(limit_bytes), Err(error));
    }

    #[test]
    fn a_pool_of_huge_pages_that_is_too_small_is_named() {
        let policy = config::Policy { huge_pages: HugePages::Reserved, ..Default::default() };
        let config =
            SpaceConfig { heap_bytes: 64 << 20, exposed_bytes: 16 << 20, ..SpaceConfig::default() };
        let config = SpaceConfig { policy, ..config };
        let fit = |huge_page_bytes| {
            PartitionShape::fit(2, &config, Limits { huge_page_bytes, ..Limits::default() })
        };
        assert!(fit(160 << 20).is_ok());
        let error = fit((160 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("167772159") && error.contains("167772160"), "{error}");
    }

    #[test]
    fn a_job_has_a_size_and_a_place() {
        let fit = |size| PartitionShape::fit(size, &SpaceConfig::default(), Limits::default());
        assert_eq!(fit(0), Err(ShapeError::Size { size: 0 }));
        assert!(fit(512).is_ok());
        assert!(matches!(fit(4096), Err(ShapeError::Range { .. })));
    }
}
