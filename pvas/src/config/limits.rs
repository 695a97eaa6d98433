//! Defaults and bounds of the options.

use std::time::Duration;

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
/// Default of [`SpaceConfig::starter_bytes`](super::SpaceConfig::starter_bytes).
pub const STARTER_BYTES: usize = 64 << 10;
/// Default of [`SpaceConfig::exposed_bytes`](super::SpaceConfig::exposed_bytes).
pub const EXPOSED_BYTES: usize = 16 << 30;
/// Default of [`SpaceConfig::heap_bytes`](super::SpaceConfig::heap_bytes): one arena of the allocator, and a
/// partition of less than 64 GiB in all.
pub const HEAP_BYTES: usize = 15 << 30;
/// Default of [`SpaceConfig::stack_bytes`](super::SpaceConfig::stack_bytes).
pub const STACK_BYTES: usize = 32 << 30;
/// Default of [`SpaceConfig::grace`](super::SpaceConfig::grace).
pub const GRACE_DEFAULT: Duration = Duration::from_millis(300);
/// The largest value of [`SpaceConfig::grace`](super::SpaceConfig::grace): one hour, in
/// milliseconds.
pub const GRACE_MS_MAX: usize = 3_600_000;
/// The smallest value of [`SpaceConfig::exposed_bytes`](super::SpaceConfig::exposed_bytes): room for some arrays.
pub const EXPOSED_BYTES_MIN: usize = 16 << 20;
/// The smallest value of [`SpaceConfig::heap_bytes`](super::SpaceConfig::heap_bytes): the allocator's arenas are
/// multiples of 32 MiB and lose a little to their own tables.
pub const HEAP_BYTES_MIN: usize = 64 << 20;
/// The smallest value of [`SpaceConfig::stack_bytes`](super::SpaceConfig::stack_bytes): room for a few hundred stacks.
pub const STACK_BYTES_MIN: usize = 16 << 20;
/// Limits that exceed the memory of any machine; no sum of sizes below them
/// overflows.
pub(super) const STARTER_BYTES_MAX: usize = 1 << 36;
pub(super) const PART_BYTES_MAX: usize = 1 << 42;
/// The address space that a limit (`RLIMIT_AS`) must leave for the program itself:
/// this, or a quarter of the limit if that is more.
pub const PROGRAM_BYTES: usize = 256 << 20;
/// The largest number of ranks of one node.
pub const RANKS_MAX: u32 = 4096;
