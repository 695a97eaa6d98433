//! The head of a partition: the part that peers and the launcher read.
//!
//! All of it is atomics, and all zeroes mean a rank that has not started, so that a
//! fresh file is valid.

use super::death_log::DeathLog;
use super::header::{HeaderError, PartitionHeader, digest};
use super::report::{REPORT_BYTES_MAX, Report, load_bytes, store_bytes};
use crate::distance::CorePlacement;
use std::fmt;
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::coll::row::CellRow;
use tsumugi_core::mem::{LocalRank, RegionKey, RegionTable};
use tsumugi_core::signal::ParkingLot;
use tsumugi_core::sync::{AtomicU8, AtomicU32, AtomicU64, CachePadded, Ordering};
use tsumugi_core::wait::DoorbellSet;

/// The largest number of regions that one rank can have registered at a time.
pub const REGIONS_MAX: usize = RegionKey::INDEX_MAX;
/// The number of words for barriers and sums.
pub const COLLECTIVE_WORDS: usize = 512;
/// The number of groups of one node that a rank can have rows for, at a time.
pub const COLLECTIVE_ROWS: usize = 8;
/// The part of a head with the rows of groups of some ranks.
pub const GROUP_ROWS: &str = "collective rows of groups (from the first split on)";
/// The key under which every rank's starter memory is registered.
pub const STARTER_KEY: RegionKey = RegionKey::new(0, 1);
/// The key under which every rank's collective words are registered.
pub const COLLECTIVE_KEY: RegionKey = RegionKey::new(1, 1).of_runtime();

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RankState {
    /// The rank has not attached to its partition yet.
    Starting = 0,
    /// The rank has attached.
    Running = 1,
    /// The rank reported that it is done, or its process ended without attaching.
    Finished = 2,
    /// The rank ended before it was done.
    Failed = 3,
}

/// The head of a partition.
#[repr(C, align(4096))]
pub struct ControlBlock {
    header: PartitionHeader,
    life: CachePadded<RankStatus>,
    regions: CachePadded<RegionTable<REGIONS_MAX>>,
    parking_lot: CachePadded<ParkingLot>,
    bells: DoorbellSet,
    /// Incremented by every worker that wakes.
    activity: CachePadded<AtomicU64>,
    boot: CachePadded<Boot>,
    place: CachePadded<CorePlacement>,
    report: CachePadded<Report>,
    death_log: CachePadded<DeathLog>,
    collective: CachePadded<[AtomicU64; COLLECTIVE_WORDS]>,
    rows: [CellRow; COLLECTIVE_ROWS],
}

/// The state of the rank. Written by the rank at start and end, and by the process
/// that notices its death.
#[repr(C)]
struct RankStatus {
    pid: AtomicU32,
    state: AtomicU32,
    workers: AtomicU32,
    outside: AtomicU32,
    sleeps_fenced: AtomicU32,
    neglected: AtomicU32,
    pulse: AtomicU32,
    closed: AtomicU32,
    pid_space: AtomicU64,
}

/// The words of the bootstrap. `phase` counts barriers in steps of two; its lowest
/// bit means that a rank is gone. `arrived` and `phase` are used in rank 0's
/// partition only.
#[repr(C)]
struct Boot {
    arrived: AtomicU32,
    phase: AtomicU32,
    card_len: AtomicU32,
    card: [AtomicU8; CARD_BYTES_MAX],
}

impl ControlBlock {
    /// Writes the header into a fresh file.
    pub fn make(&self, rank: LocalRank, size: u32) {
        self.header.make(rank, size, LAYOUT);
    }

    /// Checks that this is `rank`'s partition, made by a program like this one.
    ///
    /// # Errors
    ///
    /// The first of these that holds:
    ///
    /// - [`HeaderError::Magic`]: the file is not a partition.
    /// - [`HeaderError::Version`]: another release has made it.
    /// - [`HeaderError::Layout`]: a build with other structures has made it.
    /// - [`HeaderError::Place`]: it belongs to another rank, or to a job of another size.
    pub fn check(&self, rank: LocalRank, size: u32) -> Result<(), HeaderError> {
        self.header.check(rank, size, LAYOUT)
    }

    /// A digest of the layout of partitions in this build.
    pub(crate) const fn layout() -> u64 {
        LAYOUT
    }

    /// Takes the rank for process `pid`.
    ///
    /// # Errors
    ///
    /// The pid of the process that attached before.
    pub fn attach(&self, pid: u32) -> Result<(), u32> {
        self.life.pid.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire)?;
        self.set_state(RankState::Running);
        Ok(())
    }

    /// The process that attached; 0 if none has.
    pub fn pid(&self) -> u32 {
        self.life.pid.load(Ordering::Acquire)
    }

    /// The PID namespace in which that number names the process.
    pub fn pid_space(&self) -> u64 {
        self.life.pid_space.load(Ordering::Relaxed)
    }

    /// Sets the PID namespace, before [`attach`](Self::attach) publishes the
    /// number.
    pub(crate) fn set_pid_space(&self, space: u64) {
        self.life.pid_space.store(space, Ordering::Relaxed);
    }

    /// The word that contains the number of the process. Its value is known, so
    /// that a copy of it can be checked.
    pub(crate) fn pid_word(&self) -> &AtomicU32 {
        &self.life.pid
    }

    /// How far the rank has come.
    pub fn state(&self) -> RankState {
        match self.life.state.load(Ordering::SeqCst) {
            0 => RankState::Starting,
            1 => RankState::Running,
            2 => RankState::Finished,
            _ => RankState::Failed,
        }
    }

    /// Sets how far the rank has come.
    pub fn set_state(&self, state: RankState) {
        self.life.state.store(state as u32, Ordering::SeqCst);
    }

    /// Whether the rank has not been declared lost.
    pub fn is_alive(&self) -> bool {
        !self.regions.is_marked_dead()
    }

    /// The table of the regions that the rank has registered.
    #[inline(always)]
    pub fn regions(&self) -> &RegionTable<REGIONS_MAX> {
        &self.regions
    }

    /// The table of the rank's waiters, through which peers notify them.
    #[inline(always)]
    pub fn parking_lot(&self) -> &ParkingLot {
        &self.parking_lot
    }

    /// The doorbells of the rank's workers.
    #[inline(always)]
    pub fn bells(&self) -> &DoorbellSet {
        &self.bells
    }

    /// The number of workers that may sleep on the bells. The rank sets it; as long
    /// as it is 0 the rank does not count as quiet.
    pub fn workers(&self) -> &AtomicU32 {
        &self.life.workers
    }

    /// Counts how often a worker has woken from sleep: if the count changes between
    /// two looks of the launcher, the rank is not quiet.
    pub fn activity(&self) -> &AtomicU64 {
        &self.activity
    }

    /// The number of timers, threads and handles outside of the workers that may
    /// still wake a worker: while it is not 0 the rank does not count as quiet.
    pub fn outside(&self) -> &AtomicU32 {
        &self.life.outside
    }

    /// Whether this rank's workers execute [`fence::heavy`](crate::fence::heavy)
    /// before they sleep, so that a thread that wakes them needs no fence.
    #[inline(always)]
    pub fn sleeps_fenced(&self) -> bool {
        self.life.sleeps_fenced.load(Ordering::Relaxed) != 0
    }

    /// Notifies the rank's helper that a long message, or anything by the network, has
    /// come and no thread of the rank polls for it.
    pub fn set_neglected(&self) {
        self.life.neglected.store(1, Ordering::SeqCst);
    }

    /// Whether this notification has been sent.
    #[inline]
    pub fn is_neglected(&self) -> bool {
        self.life.neglected.load(Ordering::SeqCst) != 0
    }

    /// The same; takes the notification away.
    #[inline]
    pub fn take_neglected(&self) -> bool {
        self.is_neglected() && self.life.neglected.swap(0, Ordering::SeqCst) != 0
    }

    /// Whether the rank has ended, in one way or another: none of its threads accesses
    /// memory of a peer for a message any more.
    pub fn is_closed(&self) -> bool {
        self.life.closed.load(Ordering::SeqCst) != 0
    }

    /// Sets [`is_closed`](Self::is_closed).
    pub fn set_closed(&self) {
        self.life.closed.store(1, Ordering::SeqCst);
    }

    /// A counter, odd, that goes on as long as the rank's watch over the network
    /// gets a processor; 0: the rank has no such watch, or no longer.
    pub fn pulse(&self) -> &AtomicU32 {
        &self.life.pulse
    }

    /// Sets [`sleeps_fenced`](Self::sleeps_fenced), before the barrier at start.
    pub fn set_sleeps_fenced(&self, fenced: bool) {
        self.life.sleeps_fenced.store(u32::from(fenced), Ordering::Relaxed);
    }

    /// The distance of the rank to others.
    pub fn place(&self) -> &CorePlacement {
        &self.place
    }

    /// Words for barriers and sums, registered under [`COLLECTIVE_KEY`].
    pub fn collective(&self) -> &[AtomicU64; COLLECTIVE_WORDS] {
        &self.collective
    }

    /// The memory in which the rank publishes short values of collectives, a row for each
    /// group.
    pub fn rows(&self) -> &[CellRow; COLLECTIVE_ROWS] {
        &self.rows
    }

    /// Asks the rank for a report and returns the number of the request. The
    /// caller then rings the rank's bells.
    pub fn ask_report(&self) -> u32 {
        self.report.ask()
    }

    /// The report request that has not been answered, if there is one: a worker
    /// that wakes checks for it. Wait-free.
    #[inline]
    pub fn wanted_report(&self) -> Option<u32> {
        self.report.wanted()
    }

    /// Answers request `number`; the text is cut off if it is too long. Only one
    /// thread of the rank may call this at a time.
    pub fn answer_report(&self, number: u32, text: &str) {
        self.report.answer(number, text);
    }

    /// The answer to request `number`, if it has come.
    pub fn report(&self, number: u32) -> Option<String> {
        self.report.answered(number)
    }

    /// The parts of a head, and the bytes of each part; together they are
    /// [`CONTROL_BYTES`].
    pub fn parts() -> [(&'static str, usize); 14] {
        let parts = [
            ("header", std::mem::offset_of!(ControlBlock, life)),
            ("life", size_of::<CachePadded<RankStatus>>()),
            ("region table", size_of::<CachePadded<RegionTable<REGIONS_MAX>>>()),
            ("parking lot", size_of::<CachePadded<ParkingLot>>()),
            ("bells", size_of::<DoorbellSet>()),
            ("activity", size_of::<CachePadded<AtomicU64>>()),
            ("card", size_of::<CachePadded<Boot>>()),
            ("distances", size_of::<CachePadded<CorePlacement>>()),
            ("report", size_of::<CachePadded<Report>>()),
            ("dead of other nodes", size_of::<CachePadded<DeathLog>>()),
            ("collective words", size_of::<CachePadded<[AtomicU64; COLLECTIVE_WORDS]>>()),
            ("collective row of all ranks", size_of::<CellRow>()),
            (GROUP_ROWS, size_of::<[CellRow; COLLECTIVE_ROWS - 1]>()),
            ("up to the page", 0),
        ];
        let used: usize = parts.iter().map(|(_, bytes)| bytes).sum();
        parts.map(|(name, bytes)| match name {
            "up to the page" => (name, CONTROL_BYTES - used),
            _ => (name, bytes),
        })
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

    /// The list of the dead of other nodes; used in the first partition of a node.
    pub(crate) fn death_log(&self) -> &DeathLog {
        &self.death_log
    }

    /// The words of the barrier: how many ranks have arrived, and the phase. Used
    /// in rank 0's partition.
    pub(crate) fn boot_words(&self) -> (&AtomicU32, &AtomicU32) {
        (&self.boot.arrived, &self.boot.phase)
    }
}

/// The bytes of a partition that the launcher maps.
pub const CONTROL_BYTES: usize = size_of::<ControlBlock>();

impl fmt::Debug for ControlBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlBlock")
            .field("rank", &self.header.rank())
            .field("pid", &self.pid())
            .field("state", &self.state())
            .field("regions", &self.regions)
            .finish_non_exhaustive()
    }
}

/// A digest of the layout of a `ControlBlock`.
const LAYOUT: u64 = digest(&[
    size_of::<ControlBlock>(),
    size_of::<RankStatus>(),
    std::mem::offset_of!(ControlBlock, life),
    std::mem::offset_of!(ControlBlock, regions),
    std::mem::offset_of!(ControlBlock, parking_lot),
    std::mem::offset_of!(ControlBlock, bells),
    std::mem::offset_of!(ControlBlock, activity),
    std::mem::offset_of!(ControlBlock, boot),
    std::mem::offset_of!(ControlBlock, place),
    std::mem::offset_of!(ControlBlock, report),
    std::mem::offset_of!(ControlBlock, death_log),
    std::mem::offset_of!(ControlBlock, collective),
    std::mem::offset_of!(ControlBlock, rows),
    size_of::<CellRow>(),
    COLLECTIVE_ROWS,
    size_of::<RegionTable<1>>(),
    size_of::<RegionTable<2>>(),
    size_of::<ParkingLot>(),
    size_of::<DoorbellSet>(),
    DoorbellSet::WORKERS_MAX,
    REGIONS_MAX,
    REPORT_BYTES_MAX,
    COLLECTIVE_WORDS,
    CARD_BYTES_MAX,
]);

const _: () = {
    // The head is mapped by page, and small enough that many ranks cost little.
    assert!(CONTROL_BYTES.is_multiple_of(4096) && CONTROL_BYTES <= 256 << 10);
    // A slot of the region table never lies across two cache lines.
    assert!(std::mem::offset_of!(ControlBlock, regions).is_multiple_of(64));
    assert!(size_of::<[AtomicU64; COLLECTIVE_WORDS]>() == 4096);
};

#[cfg(test)]
pub(super) mod tests;
