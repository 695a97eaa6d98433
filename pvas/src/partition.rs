//! What lies where in one partition.
//!
//! ```text
//!  0          control_bytes      heap_offset         stacks_offset     bytes
//!  ├─ Control ─┼─ starter ──╌╌╌──┼─ heap ────────────┼─ stacks ─────────┤
//!  header      memory that       registered memory   one area, cut up
//!  regions     every rank        and tables          by whoever runs ULTs
//!  lot, bells  reaches at once
//! ```
//!
//! [`Control`] is what peers and the launcher look at. All of it is atomics
//! and all zeroes is a rank that has not started, so that a fresh file is
//! valid. The header is written once by whoever makes the file: it tells a
//! program that was built differently before it misreads the rest.

use crate::config::{self, Config};
use crate::futex::SharedFutex;
use std::fmt;
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::mem::{Rank, RegionKey, RegionTable};
use tsumugi_core::signal::Lot;
use tsumugi_core::sync::{AtomicU8, AtomicU32, AtomicU64, CachePadded, Ordering};
use tsumugi_core::wait::{Bells, Futex};

/// Regions that one rank can have registered at a time.
pub const REGIONS_MAX: usize = RegionKey::INDEX_MAX;
/// Longest report of who waits for what.
pub const REPORT_BYTES_MAX: usize = 16 << 10;
/// Words for barriers and sums.
pub const COLLECTIVE_WORDS: usize = 512;
/// The key under which every rank's starter memory is registered.
pub const STARTER_KEY: RegionKey = RegionKey::new(0, 1);
/// The key under which every rank's collective words are registered.
pub const COLLECTIVE_KEY: RegionKey = RegionKey::new(1, 1);

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// It has not attached to its partition yet.
    Starting = 0,
    /// It has attached.
    Running = 1,
    /// It said that it is done, or ended without ever attaching.
    Finished = 2,
    /// It ended before it was done.
    Failed = 3,
}

/// The head of a partition.
#[repr(C, align(4096))]
pub struct Control {
    header: Header,
    life: CachePadded<Life>,
    regions: CachePadded<RegionTable<REGIONS_MAX>>,
    lot: CachePadded<Lot>,
    bells: Bells,
    /// Written by every worker that wakes.
    activity: CachePadded<AtomicU64>,
    boot: CachePadded<Boot>,
    report: CachePadded<Report>,
    collective: CachePadded<[AtomicU64; COLLECTIVE_WORDS]>,
}

/// Written once, by the maker of the file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    layout: AtomicU64,
    version: AtomicU32,
    rank: AtomicU32,
    size: AtomicU32,
}

/// Written by the rank at start and end, and by whoever notices its death.
#[repr(C)]
struct Life {
    pid: AtomicU32,
    state: AtomicU32,
    workers: AtomicU32,
    outside: AtomicU32,
}

/// `phase` counts barriers in steps of two; its lowest bit says that a rank
/// is gone. `arrived` and `phase` are used in rank 0's partition only.
#[repr(C)]
struct Boot {
    arrived: AtomicU32,
    phase: AtomicU32,
    card_len: AtomicU32,
    card: [AtomicU8; CARD_BYTES_MAX],
}

/// The launcher counts `wanted` up; the rank writes the text and then stores
/// the count that it answers in `answered`.
#[repr(C)]
struct Report {
    wanted: AtomicU32,
    answered: AtomicU32,
    len: AtomicU32,
    text: [AtomicU8; REPORT_BYTES_MAX],
}

/// Why the head of a partition is not this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The file is no partition at all.
    Magic {
        /// What it starts with.
        found: u64,
    },
    /// Made by another release.
    Version {
        /// Of the launcher.
        found: u32,
        /// Of this program.
        ours: u32,
    },
    /// The same release, but built so that its structures differ.
    Layout {
        /// Of the launcher.
        found: u64,
        /// Of this program.
        ours: u64,
    },
    /// It is somebody else's.
    Place {
        /// Whose it is, of how many.
        found: (u32, u32),
        /// Whose it should be.
        wanted: (u32, u32),
    },
}

impl Control {
    /// Writes the header into a fresh file.
    pub fn make(&self, rank: Rank, size: u32) {
        self.header.layout.store(LAYOUT, Ordering::Relaxed);
        self.header.version.store(VERSION, Ordering::Relaxed);
        self.header.rank.store(rank.0, Ordering::Relaxed);
        self.header.size.store(size, Ordering::Relaxed);
        // Release: pairs with the Acquire in `check`.
        self.header.magic.store(MAGIC, Ordering::Release);
    }

    /// Whether this is `rank`'s partition, made by a program like this one.
    ///
    /// # Errors
    ///
    /// [`HeaderError`].
    pub fn check(&self, rank: Rank, size: u32) -> Result<(), HeaderError> {
        // Acquire: pairs with the Release in `make`.
        let found = self.header.magic.load(Ordering::Acquire);
        if found != MAGIC {
            return Err(HeaderError::Magic { found });
        }
        let found = self.header.version.load(Ordering::Relaxed);
        if found != VERSION {
            return Err(HeaderError::Version { found, ours: VERSION });
        }
        let found = self.header.layout.load(Ordering::Relaxed);
        if found != LAYOUT {
            return Err(HeaderError::Layout { found, ours: LAYOUT });
        }
        let header = &self.header;
        let found = (header.rank.load(Ordering::Relaxed), header.size.load(Ordering::Relaxed));
        if found != (rank.0, size) {
            return Err(HeaderError::Place { found, wanted: (rank.0, size) });
        }
        Ok(())
    }

    /// Takes the rank for process `pid`; the process that has it if it is taken.
    ///
    /// # Errors
    ///
    /// The pid that attached before.
    pub fn attach(&self, pid: u32) -> Result<(), u32> {
        self.life.pid.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire)?;
        self.set_state(State::Running);
        Ok(())
    }

    /// The process that attached; 0 if none has.
    pub fn pid(&self) -> u32 {
        self.life.pid.load(Ordering::Acquire)
    }

    /// How far the rank has come.
    pub fn state(&self) -> State {
        match self.life.state.load(Ordering::SeqCst) {
            0 => State::Starting,
            1 => State::Running,
            2 => State::Finished,
            _ => State::Failed,
        }
    }

    /// Says how far the rank has come.
    pub fn set_state(&self, state: State) {
        self.life.state.store(state as u32, Ordering::SeqCst);
    }

    /// Whether the rank has not been declared lost.
    pub fn is_alive(&self) -> bool {
        !self.regions.is_struck()
    }

    /// What the rank has registered.
    #[inline(always)]
    pub fn regions(&self) -> &RegionTable<REGIONS_MAX> {
        &self.regions
    }

    /// Where notifiers leave word for the rank's waiters.
    #[inline(always)]
    pub fn lot(&self) -> &Lot {
        &self.lot
    }

    /// How to wake the rank's workers.
    #[inline(always)]
    pub fn bells(&self) -> &Bells {
        &self.bells
    }

    /// How many workers may sleep on the bells. The rank sets it; as long as
    /// it is 0 the rank is never called quiet.
    pub fn workers(&self) -> &AtomicU32 {
        &self.life.workers
    }

    /// Counts whenever a worker wakes from sleep: what moves while a launcher
    /// looks twice is not quiet.
    pub fn activity(&self) -> &AtomicU64 {
        &self.activity
    }

    /// Timers, threads and handles outside of the workers that may still wake
    /// somebody: while there is one the rank is not called quiet.
    pub fn outside(&self) -> &AtomicU32 {
        &self.life.outside
    }

    /// Words for barriers and sums, registered under [`COLLECTIVE_KEY`].
    pub fn collective(&self) -> &[AtomicU64; COLLECTIVE_WORDS] {
        &self.collective
    }

    /// Asks the rank for a report and returns the number of the request. The
    /// caller then rings the rank's bells.
    pub fn ask_report(&self) -> u32 {
        // SeqCst: before the caller looks who sleeps.
        self.report.wanted.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The request that has not been answered, if there is one: a worker that
    /// wakes looks here. Wait-free.
    #[inline]
    pub fn wanted_report(&self) -> Option<u32> {
        let wanted = self.report.wanted.load(Ordering::SeqCst);
        (wanted != self.report.answered.load(Ordering::Relaxed)).then_some(wanted)
    }

    /// Answers request `number`; what does not fit is cut off. One thread of
    /// the rank at a time.
    pub fn answer_report(&self, number: u32, text: &str) {
        let len = store_bytes(&self.report.text, text.as_bytes());
        self.report.len.store(len as u32, Ordering::Relaxed);
        // Release: pairs with the Acquire in `report`.
        self.report.answered.store(number, Ordering::Release);
    }

    /// The answer to request `number`, if it has come.
    pub fn report(&self, number: u32) -> Option<String> {
        // Acquire: pairs with the Release in `answer_report`.
        if self.report.answered.load(Ordering::Acquire) != number {
            return None;
        }
        let len = self.report.len.load(Ordering::Relaxed) as usize;
        Some(String::from_utf8_lossy(&load_bytes(&self.report.text, len)).into_owned())
    }

    /// Publishes the rank's card. The caller has checked its length.
    pub(crate) fn set_card(&self, card: &[u8]) {
        let len = store_bytes(&self.boot.card, card);
        // Release: pairs with the Acquire in `card`.
        self.boot.card_len.store(len as u32 + 1, Ordering::Release);
    }

    /// The rank's card, if it has published one.
    pub(crate) fn card(&self) -> Option<Vec<u8>> {
        // Acquire: pairs with the Release in `set_card`.
        let len = self.boot.card_len.load(Ordering::Acquire).checked_sub(1)?;
        Some(load_bytes(&self.boot.card, len as usize))
    }

    /// Rank 0's: how many have arrived at the barrier, and its phase.
    pub(crate) fn boot_words(&self) -> (&AtomicU32, &AtomicU32) {
        (&self.boot.arrived, &self.boot.phase)
    }
}

/// Tells the barriers of the start that a rank is gone: whoever waits there
/// for it, or will, gets an error. `controls` are those of all ranks.
pub fn declare_gone<'c>(controls: impl Iterator<Item = &'c Control>) {
    for control in controls {
        let (_, phase) = control.boot_words();
        // SeqCst: after the state that says who is gone.
        phase.fetch_or(BOOT_GONE, Ordering::SeqCst);
        SharedFutex.wake(phase, u32::MAX);
    }
}

/// Declares `rank` dead to all ranks: its keys are struck, so that every
/// operation on it answers `PeerLost`, and every sleeper of every rank looks
/// again at what it waits for. `controls` are those of all ranks, in order.
pub fn declare_lost<'c>(rank: Rank, controls: impl Iterator<Item = &'c Control> + Clone) {
    if let Some(dead) = controls.clone().nth(rank.0 as usize) {
        dead.set_state(State::Failed);
        dead.regions().strike();
    }
    for control in controls.clone() {
        control.lot().announce_all();
        control.bells().ring_all(&SharedFutex);
    }
    declare_gone(controls);
}

/// Set in the phase of the barriers of the start when a rank is gone.
pub(crate) const BOOT_GONE: u32 = 1;

/// Where the partitions lie and how they are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Where rank 0's partition starts.
    pub base: usize,
    /// Rank r's starts `r << shift` further on.
    pub shift: u32,
    /// As in [`Config`].
    pub starter_bytes: usize,
    /// As in [`Config`], or less where a limit demands it.
    pub heap_bytes: usize,
    /// As in [`Config`], or less where a limit demands it.
    pub stack_bytes: usize,
}

/// The limits of the system that partitions must fit under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `RLIMIT_AS` (`ulimit -v`): what one process may map.
    pub address_space_bytes: Option<u64>,
    /// `RLIMIT_FSIZE` (`ulimit -f`): what one file may hold, memory files included.
    pub file_bytes: Option<u64>,
}

/// Why the partitions of a job do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// Zero ranks, or too many.
    Size {
        /// What was asked for.
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
    /// The range ends above the part of the address space that is free.
    Range {
        /// Where it would start.
        base: usize,
        /// How long it would be.
        bytes: u128,
    },
}

impl Shape {
    /// The partitions of `size` ranks as `config` wants them, or smaller if
    /// the limits demand it.
    ///
    /// # Errors
    ///
    /// [`ShapeError`].
    pub fn fit(size: u32, config: &Config, limits: Limits) -> Result<Self, ShapeError> {
        if size == 0 || size > config::RANKS_MAX {
            return Err(ShapeError::Size { size });
        }
        let wanted = Self::new(config, config.heap_bytes, config.stack_bytes);
        let least = Self::new(config, config::HEAP_BYTES_MIN, config::STACK_BYTES_MIN);
        let mut room = wanted.bytes() as u64;
        if let Some(limit_bytes) = limits.file_bytes {
            let needed_bytes = least.bytes() as u64;
            if limit_bytes < needed_bytes {
                return Err(ShapeError::FileSize { limit_bytes, needed_bytes });
            }
            room = room.min(limit_bytes);
        }
        if let Some(limit_bytes) = limits.address_space_bytes {
            let program = (limit_bytes / 4).max(config::PROGRAM_BYTES as u64);
            let needed_bytes = least.bytes() as u64 * u64::from(size);
            let each = limit_bytes.saturating_sub(program) / u64::from(size);
            if each < least.bytes() as u64 {
                let needed_bytes = needed_bytes + config::PROGRAM_BYTES as u64;
                return Err(ShapeError::AddressSpace { limit_bytes, needed_bytes });
            }
            room = room.min(each);
        }
        let shape = wanted.within(config, room as usize);
        let bytes = u128::from(size) << shape.shift;
        if shape.base as u128 + bytes > config::BASE_MAX as u128 {
            return Err(ShapeError::Range { base: shape.base, bytes });
        }
        Ok(shape)
    }

    /// Heap and stacks in the proportion of the wanted ones, within `room`.
    fn within(self, config: &Config, room: usize) -> Self {
        if self.bytes() <= room {
            return self;
        }
        let free = (room - self.heap_offset()) as u128;
        let both = (self.heap_bytes + self.stack_bytes) as u128;
        let share = |part: usize| (free * part as u128 / both) as usize;
        let heap = round_down(share(self.heap_bytes), config::BASE_ALIGN);
        let heap = heap.max(config::HEAP_BYTES_MIN);
        let rest = round_down(free as usize - heap, config::BASE_ALIGN);
        if rest < config::STACK_BYTES_MIN {
            let heap = round_down(free as usize - config::STACK_BYTES_MIN, config::BASE_ALIGN);
            return Self::new(config, heap, config::STACK_BYTES_MIN);
        }
        Self::new(config, heap, rest)
    }

    fn new(config: &Config, heap_bytes: usize, stack_bytes: usize) -> Self {
        Self::cut(
            config.base.unwrap_or(config::BASE_DEFAULT),
            config.starter_bytes,
            heap_bytes,
            stack_bytes,
        )
    }

    fn cut(base: usize, starter_bytes: usize, heap_bytes: usize, stack_bytes: usize) -> Self {
        let mut shape = Self {
            base,
            shift: 0,
            starter_bytes: round_up(starter_bytes, 4096),
            heap_bytes: round_up(heap_bytes, config::BASE_ALIGN),
            stack_bytes: round_up(stack_bytes, config::BASE_ALIGN),
        };
        shape.shift = shape.bytes().next_power_of_two().trailing_zeros();
        shape
    }

    /// As text, for the environment of a rank.
    pub fn to_text(self) -> String {
        format!(
            "{:x},{:x},{:x},{:x}",
            self.base, self.starter_bytes, self.heap_bytes, self.stack_bytes
        )
    }

    /// From [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Self> {
        let mut numbers = text.split(',').map(|part| usize::from_str_radix(part, 16).ok());
        let mut next = || numbers.next().flatten().filter(|n| *n <= 1 << 46);
        let shape = Self::cut(next()?, next()?, next()?, next()?);
        numbers.next().is_none().then_some(shape)
    }

    /// Mapped bytes of one partition.
    pub const fn bytes(&self) -> usize {
        self.stacks_offset() + self.stack_bytes
    }

    /// Where rank `rank`'s partition starts.
    #[inline(always)]
    pub const fn start(&self, rank: Rank) -> usize {
        self.base + ((rank.0 as usize) << self.shift)
    }

    /// Where the starter memory starts in a partition.
    pub const fn starter_offset(&self) -> usize {
        CONTROL_BYTES
    }

    /// Where the heap starts in a partition.
    pub const fn heap_offset(&self) -> usize {
        round_up(CONTROL_BYTES + self.starter_bytes, config::BASE_ALIGN)
    }

    /// Where the stacks start in a partition.
    pub const fn stacks_offset(&self) -> usize {
        self.heap_offset() + self.heap_bytes
    }
}

/// Bytes that the launcher maps of a partition.
pub const CONTROL_BYTES: usize = size_of::<Control>();

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("rank", &self.header.rank.load(Ordering::Relaxed))
            .field("pid", &self.pid())
            .field("state", &self.state())
            .field("regions", &self.regions)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { found } => {
                write!(f, "the memory file is no partition: it starts with {found:#018x}")
            }
            Self::Version { found, ours } => write!(
                f,
                "the launcher is tsumugi {} and this program is {}",
                version_text(*found),
                version_text(*ours)
            ),
            Self::Layout { found, ours } => write!(
                f,
                "the launcher's partitions have layout {found:#018x} and this program's \
                 {ours:#018x}: build both from one source"
            ),
            Self::Place { found, wanted } => write!(
                f,
                "the memory file is that of rank {} of {}, not of rank {} of {}",
                found.0, found.1, wanted.0, wanted.1
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size } => {
                write!(f, "a job has 1 to {} ranks, not {size}", config::RANKS_MAX)
            }
            Self::AddressSpace { limit_bytes, needed_bytes } => write!(
                f,
                "RLIMIT_AS (ulimit -v) is {limit_bytes} bytes; the partitions and the program \
                 need at least {needed_bytes}"
            ),
            Self::FileSize { limit_bytes, needed_bytes } => write!(
                f,
                "RLIMIT_FSIZE (ulimit -f) is {limit_bytes} bytes; a partition needs at least \
                 {needed_bytes}"
            ),
            Self::Range { base, bytes } => write!(
                f,
                "{bytes:#x} bytes of partitions from {base:#x} on end above {:#x}: set \
                 TSUMUGI_HEAP_BYTES and TSUMUGI_STACK_BYTES lower",
                config::BASE_MAX
            ),
        }
    }
}

impl std::error::Error for ShapeError {}

fn store_bytes(to: &[AtomicU8], from: &[u8]) -> usize {
    for (to, from) in to.iter().zip(from) {
        to.store(*from, Ordering::Relaxed);
    }
    from.len().min(to.len())
}

fn load_bytes(from: &[AtomicU8], len: usize) -> Vec<u8> {
    from.iter().take(len).map(|byte| byte.load(Ordering::Relaxed)).collect()
}

const fn round_up(bytes: usize, to: usize) -> usize {
    bytes.next_multiple_of(to)
}

const fn round_down(bytes: usize, to: usize) -> usize {
    bytes - bytes % to
}

fn version_text(version: u32) -> String {
    format!("{}.{}.{}", version >> 20, version >> 10 & 0x3ff, version & 0x3ff)
}

const MAGIC: u64 = u64::from_le_bytes(*b"tsumugi\x01");

/// The release: ten bits a part.
const VERSION: u32 = decimal(env!("CARGO_PKG_VERSION_MAJOR")) << 20
    | decimal(env!("CARGO_PKG_VERSION_MINOR")) << 10
    | decimal(env!("CARGO_PKG_VERSION_PATCH"));

/// A digest of where everything lies in a `Control`.
const LAYOUT: u64 = digest(&[
    size_of::<Control>(),
    std::mem::offset_of!(Control, life),
    std::mem::offset_of!(Control, regions),
    std::mem::offset_of!(Control, lot),
    std::mem::offset_of!(Control, bells),
    std::mem::offset_of!(Control, activity),
    std::mem::offset_of!(Control, boot),
    std::mem::offset_of!(Control, report),
    std::mem::offset_of!(Control, collective),
    size_of::<RegionTable<1>>(),
    size_of::<RegionTable<2>>(),
    size_of::<Lot>(),
    size_of::<Bells>(),
    Bells::WORKERS_MAX,
    REGIONS_MAX,
    REPORT_BYTES_MAX,
    COLLECTIVE_WORDS,
    CARD_BYTES_MAX,
]);

const fn decimal(text: &str) -> u32 {
    let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as u32;
        at += 1;
    }
    value
}

/// FNV-1a over words.
const fn digest(words: &[usize]) -> u64 {
    let (mut at, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    while at < words.len() {
        hash = (hash ^ words[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

const _: () = {
    // Mapped by page, and small enough that many ranks cost little.
    assert!(CONTROL_BYTES.is_multiple_of(4096) && CONTROL_BYTES <= 256 << 10);
    // A slot of the region table never lies across two cache lines.
    assert!(std::mem::offset_of!(Control, regions).is_multiple_of(64));
    assert!(size_of::<[AtomicU64; COLLECTIVE_WORDS]>() == 4096);
};

#[cfg(test)]
mod tests;
