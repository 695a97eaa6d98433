//! The head of a partition: what peers and the launcher look at.
//!
//! All of it is atomics, and all zeroes is a rank that has not started, so
//! that a fresh file is valid. The header is written once by whoever makes
//! the file: it tells a program that was built differently before it misreads
//! the rest.

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
/// operation on it answers `PeerLost`, and every wait for a signal ends. `controls` are those of all ranks, in order.
pub fn declare_lost<'c>(rank: Rank, controls: impl Iterator<Item = &'c Control> + Clone) {
    if let Some(dead) = controls.clone().nth(rank.0 as usize) {
        dead.set_state(State::Failed);
        dead.regions().strike();
    }
    for control in controls.clone() {
        control.lot().break_off(rank);
        control.bells().ring_all(&SharedFutex);
    }
    declare_gone(controls);
}

/// Set in the phase of the barriers of the start when a rank is gone.
pub(crate) const BOOT_GONE: u32 = 1;

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

fn store_bytes(to: &[AtomicU8], from: &[u8]) -> usize {
    for (to, from) in to.iter().zip(from) {
        to.store(*from, Ordering::Relaxed);
    }
    from.len().min(to.len())
}

fn load_bytes(from: &[AtomicU8], len: usize) -> Vec<u8> {
    from.iter().take(len).map(|byte| byte.load(Ordering::Relaxed)).collect()
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
