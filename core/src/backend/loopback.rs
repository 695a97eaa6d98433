//! A job inside one process: a region table for each rank, all three interfaces of a
//! backend, and a queue that can behave as badly as a device's.
//!
//! ```text
//!  Loopback            tables[0]  tables[1]  ...        one per rank
//!    └─ rank(r) ─► LoopbackRank      Domain, LoadStore: at once
//!                     └─ endpoint() ─► LoopbackEndpoint
//!                          post ─► [ op, due ] ... ─► poll: execute, complete
//! ```
//!
//! An operation takes effect when its completion is delivered, not before.
//! [`Delivery`] sets that moment: at once, some polls late, or in an order drawn
//! from a seed. So code paths for pending operations, for completions out of order
//! and for full queues can be tested without a device.
//!
//! Progress: as [`execute`], for each operation delivered.

use super::{Capabilities, Completion, Domain, Endpoint, LoadStore, execute};
use crate::mem::{
    Access, AddrError, LocalAddr, Need, Rank, Region, RegionKey, RegionTable, RegisterError,
    RemoteAddr,
};
use crate::op::Op;
use crate::random::SplitMix64;
use core::fmt;
use core::ptr::NonNull;
use heapless::Vec;

/// A job of up to `RANKS` ranks. Each rank has up to `REGIONS` regions (a power of
/// two) and endpoints with up to `DEPTH` operations in flight.
pub struct Loopback<'n, const RANKS: usize, const REGIONS: usize = 64, const DEPTH: usize = 64> {
    tables: [RegionTable<REGIONS>; RANKS],
    size: u32,
    delivery: Delivery,
    notify: &'n Notify<'n>,
}

/// The callback after a notifying operation: it gets the remote address of the word
/// that changed, and the place of the word in memory.
type Notify<'n> = dyn Fn(RemoteAddr, NonNull<u8>) + Sync + 'n;

/// When completions are delivered, and in what order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The number of polls by which an operation is delayed before it takes effect.
    pub late_polls: u32,
    /// The seed from which the order is drawn; `None`: the order of the posts.
    pub shuffle: Option<u64>,
}

/// A [`Loopback`] from one rank's side.
#[derive(Clone, Copy)]
pub struct LoopbackRank<'l, const RANKS: usize, const REGIONS: usize, const DEPTH: usize> {
    job: &'l Loopback<'l, RANKS, REGIONS, DEPTH>,
    rank: Rank,
}

/// A queue of posted operations.
pub struct LoopbackEndpoint<'l, const RANKS: usize, const REGIONS: usize, const DEPTH: usize> {
    at: LoopbackRank<'l, RANKS, REGIONS, DEPTH>,
    queue: Vec<Posted, DEPTH>,
    polls: u64,
    random: SplitMix64,
    held: bool,
}

struct Posted {
    op: Op,
    due: u64,
}

impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize>
    Loopback<'static, RANKS, REGIONS, DEPTH>
{
    /// A job of `size` ranks without regions.
    ///
    /// # Panics
    ///
    /// If `size` is not 1 to `RANKS`.
    pub fn new(size: u32) -> Self {
        assert!(
            (1..=RANKS as u64).contains(&u64::from(size)),
            "a loopback of {size} ranks: it has 1 to {RANKS}"
        );
        let tables = core::array::from_fn(|_| RegionTable::new());
        Self { tables, size, delivery: Delivery::default(), notify: &|_, _| {} }
    }
}

impl<'n, const RANKS: usize, const REGIONS: usize, const DEPTH: usize>
    Loopback<'n, RANKS, REGIONS, DEPTH>
{
    /// The same job, with endpoints that deliver as `delivery` sets.
    #[must_use]
    pub fn delivering(self, delivery: Delivery) -> Self {
        Self { delivery, ..self }
    }

    /// The same job, which calls `notify` after each notifying operation.
    #[must_use]
    pub fn notifying<'m>(self, notify: &'m Notify<'m>) -> Loopback<'m, RANKS, REGIONS, DEPTH> {
        let Self { tables, size, delivery, .. } = self;
        Loopback { tables, size, delivery, notify }
    }

    /// The job from the side of `rank`.
    ///
    /// # Panics
    ///
    /// If the job has no such rank.
    pub fn rank(&self, rank: Rank) -> LoopbackRank<'_, RANKS, REGIONS, DEPTH> {
        assert!(rank.0 < self.size, "{rank} does not exist: the job has {} ranks", self.size);
        LoopbackRank { job: self, rank }
    }

    /// Declares `rank` dead for all other ranks.
    pub fn kill(&self, rank: Rank) {
        self.tables[rank.0 as usize].mark_dead();
    }

    fn table(&self, rank: Rank) -> Result<&RegionTable<REGIONS>, AddrError> {
        RegionTable::<REGIONS>::check_rank(rank, self.size)?;
        Ok(&self.tables[rank.0 as usize])
    }
}

impl<'l, const RANKS: usize, const REGIONS: usize, const DEPTH: usize> Domain
    for LoopbackRank<'l, RANKS, REGIONS, DEPTH>
{
    type Endpoint<'d>
        = LoopbackEndpoint<'d, RANKS, REGIONS, DEPTH>
    where
        Self: 'd;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "loopback",
            load_store: true,
            device_atomics: true,
            inline_bytes_max: 0,
            in_flight_max: DEPTH,
            in_order: self.job.delivery.shuffle.is_none(),
            remote_completion: true,
        }
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.job.size
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        unsafe { self.job.tables[self.rank.0 as usize].register(base, bytes, access) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        self.job.tables[self.rank.0 as usize].unregister(key)
    }

    fn endpoint(&self) -> LoopbackEndpoint<'_, RANKS, REGIONS, DEPTH> {
        let random = SplitMix64::new(self.job.delivery.shuffle.unwrap_or(0));
        LoopbackEndpoint { at: *self, queue: Vec::new(), polls: 0, random, held: false }
    }
}

// SAFETY: `register` demands of its callers what `resolve` promises: mapped memory
// that holds plain bytes only.
unsafe impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize> LoadStore
    for LoopbackRank<'_, RANKS, REGIONS, DEPTH>
{
    fn size(&self) -> u32 {
        self.job.size
    }

    #[inline]
    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        self.job.table(addr.rank)?.resolve(addr, bytes, need)
    }

    #[inline]
    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        let addr = RemoteAddr { rank: self.rank, key: addr.key, offset: addr.offset };
        self.resolve(addr, bytes, Need::Local)
    }

    fn notify(&self, addr: RemoteAddr, at: NonNull<u8>) {
        (self.job.notify)(addr, at);
    }
}

impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize>
    LoopbackEndpoint<'_, RANKS, REGIONS, DEPTH>
{
    /// Stops deliveries, if `held` is true, until the next `hold(false)`.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// The number of operations in the queue.
    pub fn in_flight(&self) -> usize {
        self.queue.len()
    }

    /// The next operation to be delivered, if one is due.
    fn next(&mut self) -> Option<Op> {
        let is_due = |posted: &Posted| posted.due <= self.polls;
        if self.at.job.delivery.shuffle.is_none() {
            return self.queue.first().is_some_and(is_due).then(|| self.queue.remove(0).op);
        }
        let count = self.queue.len();
        let start = self.random.below(count as u64) as usize;
        let drawn = (0..count)
            .map(|step| (start + step) % count)
            .find(|&index| self.queue[index].due <= self.polls)?;
        Some(self.queue.swap_remove(drawn).op)
    }
}

impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize> Endpoint
    for LoopbackEndpoint<'_, RANKS, REGIONS, DEPTH>
{
    fn post(&mut self, ops: &[Op]) -> usize {
        let due = self.polls + 1 + u64::from(self.at.job.delivery.late_polls);
        let taken = ops.iter().take_while(|op| self.queue.push(Posted { op: **op, due }).is_ok());
        taken.count()
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.polls += 1;
        if self.held {
            return 0;
        }
        let mut delivered = 0;
        while delivered < completions.len()
            && let Some(op) = self.next()
        {
            let result = execute(&self.at, &op);
            completions[delivered] = Completion { tag: op.tag, result };
            delivered += 1;
        }
        delivered
    }

    /// False: nothing here raises an event.
    fn arm(&mut self) -> bool {
        false
    }
}

impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize> fmt::Debug
    for Loopback<'_, RANKS, REGIONS, DEPTH>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loopback({} ranks, {:?})", self.size, self.delivery)
    }
}

impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize> fmt::Debug
    for LoopbackRank<'_, RANKS, REGIONS, DEPTH>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loopback({} of {})", self.rank, self.job.size)
    }
}

impl<const RANKS: usize, const REGIONS: usize, const DEPTH: usize> fmt::Debug
    for LoopbackEndpoint<'_, RANKS, REGIONS, DEPTH>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopbackEndpoint({} of {DEPTH} in flight)", self.queue.len())
    }
}
