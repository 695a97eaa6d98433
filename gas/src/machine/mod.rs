//! One rank's part in the global memory: requests in, operations out.
//!
//! The machine holds no socket, reads no clock and waits for nobody:
//!
//! 1. [`try_issue`](Machine::try_issue), [`register`](Machine::register),
//!    [`unregister`](Machine::unregister): requests in.
//! 2. [`poll_op`](Machine::poll_op) until `None`: operations to be posted,
//!    tagged; their completions go to [`handle`](Machine::handle), in any
//!    order, and twice if it must be.
//! 3. [`handle`](Machine::handle): an operation has completed, a notified word
//!    of the control region has changed, a rank has died, time has passed.
//! 4. [`poll`](Machine::poll) until `None`: operations that have ended and
//!    regions that nobody reaches any more. Then 2 again.
//!
//! What is carried out inside a call (a load, a store or an atomic on a rank
//! of the same node) needs none of this: [`Cache::hold`] and the backend.
//! The machine is for what takes time or is ordered, and for the misses of
//! those calls: [`want`](Machine::want).
//!
//! # Who does a copy
//!
//! The source puts; if the caller is the destination, it gets; if it is
//! neither, it does it all the same where it reaches the memory of both. Else it
//! asks the source (see `command.rs`), and where devices keep the order, or the
//! bytes go as one with what is behind them, the destination tells the caller of
//! the end: three trips. Where that cannot be, and the copy is not long, the caller
//! gets and puts: four trips that wait for no other processor.
//!
//! Each operation under way has a place of its own, and so has each that is done
//! for others, so that no rank's own requests keep it from serving (hazard A7).
//! Places are served in turn, one operation each time, and each may have a quarter
//! of what can be in flight: a slow destination does not hold up the rest.
//!
//! # What an end means
//!
//! A copy has ended when its bytes are there, at whatever rank. Where a put
//! that has completed may not have landed, its last byte is read back first.
//! What was issued [after](crate::order::After) another begins then, also when
//! the other ended with an error.
//!
//! # Deaths
//!
//! What needs the memory of a rank that died, or was asked of it, ends with
//! [`AccessError::PeerLost`], which names the rank; a copy that it was asked to
//! do may be done in part, and what it has sent of it may land at any time.
//! Everything else goes on.
//!
//! A rank that was [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up)
//! is as good as dead for those that have done so. Who asks a third rank for a copy
//! hears of whom that one has given up, which may be a rank that the caller still
//! knows.
//!
//! Progress: wait-free, on one thread; a bell costs a look at a word for each
//! 64 ranks, at each note and at each command.

mod ask;
mod flight;
mod parts;
mod run;
mod tables;
mod traffic;
mod whose;

pub use tables::{Asked, Flight, Job, Tables};
pub use traffic::{Event, Out, Outgoing, Setup};

use crate::address::GlobalAddr;
use crate::cache::{Cache, Fetcher, Seats, Wanted};
use crate::control::Control;
use crate::error::AccessError;
use crate::order::{After, Full, Handle, Order};
use crate::request::Request;
use crate::table::{Agent, Entry, NameError, Registry};
use core::fmt;
use tables::{Phase, Queue, What};
use tsumugi_core::mem::{Rank, Region};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;
use whose::touches;

/// One rank's part in the global memory.
pub struct Machine<'m> {
    setup: Setup<'m>,
    control: Control,
    cache: Cache<'m>,
    registry: Registry<'m>,
    fetcher: Fetcher<'m>,
    order: Order<'m>,
    words: &'m [AtomicU64],
    jobs: &'m mut [Job],
    commands: &'m mut [Asked],
    flights: &'m mut [Flight],
    free_flight: u32,
    /// Flights whose hints are to be posted.
    hints_due: u32,
    window: u32,
    /// Jobs with something to post, and those that wait for anything to be
    /// given back.
    run: Queue,
    later: Queue,
    ended: Queue,
    /// Notes may be there that were not taken.
    has_notes: bool,
    /// A rank was lost: what it tells from here on is not heard.
    knows_loss: bool,
    note_cursor: usize,
    /// The ranks of the operation issued last.
    last_ranks: (Option<Rank>, Option<Rank>),
    now: Instant,
    earliest: Option<Instant>,
    dropped: u64,
    hints: u64,
    relayed: u64,
}

impl<'m> Machine<'m> {
    /// A rank that has registered nothing.
    ///
    /// # Panics
    ///
    /// If the tables are not those of the shape, or the split has no room for
    /// the job.
    pub fn new(setup: Setup<'m>, tables: Tables<'m>) -> Self {
        let Setup { rank, split, shape, .. } = setup;
        assert_eq!(shape.fault(), None);
        assert!(rank.0 < shape.ranks && shape.ranks - 1 <= split.last_rank().0);
        assert!(shape.colors <= split.colors(), "{} colours", shape.colors);
        assert!(setup.part_bytes_max > 0);
        let Tables { words, slots, seats, records, awaited, told, fetches, .. } = tables;
        let Tables { issued, edges, jobs, commands, flights, .. } = tables;
        let bits = shape.bitmap_words();
        let lens = [words.len(), slots.len(), records.len(), awaited.len(), told.len()];
        let names = shape.colors as usize * crate::address::REGIONS;
        assert_eq!(lens, [shape.words(), shape.copies as usize, names, bits, bits]);
        let lens = [jobs.len(), issued.len(), commands.len(), edges.len()];
        let wanted = [shape.own_jobs, shape.commands, shape.conditions].map(|len| len as usize);
        assert_eq!(lens, [shape.jobs(), wanted[0], wanted[1], wanted[2]]);
        assert_eq!(
            [fetches.len(), flights.len()],
            [shape.fetches, shape.flights].map(|len| len as usize)
        );

        let control = Control::new(setup.control, rank, shape);
        let seats = Seats::new(seats, setup.barrier);
        let copies = &words[control.copy_words()..];
        let cache = Cache::new(slots, copies, seats, split, setup.starter);
        let registry = Registry::new(split, control, shape, setup.starter, words, records, awaited);
        let fetcher = Fetcher::new(cache, control, shape.colors, words, told, fetches);
        let order = Order::new(issued, edges);
        jobs.fill(Job::FREE);
        commands.fill(Asked::FREE);
        let window = (flights.len() as u32 / 4).max(1);
        Self {
            setup,
            control,
            cache,
            registry,
            fetcher,
            order,
            words,
            jobs,
            commands,
            free_flight: flight::chain(flights),
            flights,
            hints_due: tables::NONE,
            window,
            run: Queue::EMPTY,
            later: Queue::EMPTY,
            ended: Queue::EMPTY,
            has_notes: false,
            knows_loss: false,
            note_cursor: 0,
            last_ranks: (None, None),
            now: Instant::ZERO,
            earliest: None,
            dropped: 0,
            hints: 0,
            relayed: 0,
        }
    }

    /// What lookups see.
    pub const fn cache(&self) -> Cache<'m> {
        self.cache
    }

    /// Gives a region, which the backend has registered, its global address:
    /// that of its first byte.
    ///
    /// # Errors
    ///
    /// [`NameError`].
    pub fn register(
        &mut self,
        color: u8,
        region: &Region,
        agent: Agent,
    ) -> Result<GlobalAddr, NameError> {
        self.registry.register(color, region, agent)
    }

    /// Takes a region's address away, of which `addr` is any. New operations
    /// on it are refused; when those under way have ended, everywhere, the
    /// driver gets [`Out::Retired`].
    ///
    /// # Errors
    ///
    /// [`AccessError::Stale`] when there is no such region here.
    pub fn unregister(&mut self, addr: GlobalAddr) -> Result<(), AccessError> {
        self.registry.unregister(addr)
    }

    /// All that has an address now, the starter memory too: that of the first
    /// byte, and what there is.
    pub fn registered(&self) -> impl Iterator<Item = (GlobalAddr, Entry)> + '_ {
        self.registry.live()
    }

    /// Names of this rank's that are not free.
    pub fn names(&self) -> usize {
        self.registry.len()
    }

    /// Issues an operation that begins as `after` says. It ends once, with
    /// [`Out::Ended`].
    ///
    /// # Errors
    ///
    /// [`Full`]; nothing was issued.
    pub fn try_issue(&mut self, request: Request, after: After<'_>) -> Result<Handle, Full> {
        let ranks = self.ranks_of(&request);
        let handle = self.order.try_issue(after, ranks == self.last_ranks)?;
        self.last_ranks = ranks;
        Ok(self.accept(handle, request))
    }

    /// Issues one that ends when all that were issued so far and touch `rank`
    /// have.
    ///
    /// # Errors
    ///
    /// [`Full`]; nothing was issued.
    pub fn try_flush(&mut self, rank: Rank) -> Result<Handle, Full> {
        let (split, jobs) = (self.setup.split, &self.jobs[..]);
        let handle = self.order.try_issue_each(|handle| {
            let job = &jobs[handle.index()];
            touches(split, &job.request, rank)
        })?;
        self.last_ranks = (None, None);
        Ok(self.accept(handle, Request::Fence))
    }

    /// Issues one that ends when all that were issued so far have.
    ///
    /// # Errors
    ///
    /// [`Full`]; nothing was issued.
    pub fn try_flush_all(&mut self) -> Result<Handle, Full> {
        self.try_issue(Request::Fence, After::All)
    }

    /// Whether this one has ended and the driver was told.
    pub fn has_ended(&self, handle: Handle) -> bool {
        self.order.has_ended(handle)
    }

    /// Whether this one and all that were issued before it have.
    pub fn has_ended_up_to(&self, handle: Handle) -> bool {
        self.order.has_ended_up_to(handle)
    }

    /// The table of an address's rank is wanted: a lookup has missed it. When
    /// it is coming, [`Out::Table`] says when to look again.
    ///
    /// # Errors
    ///
    /// [`AccessError::Nowhere`].
    pub fn want(&mut self, addr: GlobalAddr) -> Result<Wanted, AccessError> {
        let table = self.table_of(addr)?;
        Ok(self.fetcher.want(table))
    }

    /// The same after a lookup whose copy did not list the region.
    ///
    /// # Errors
    ///
    /// [`AccessError::Nowhere`].
    pub fn want_newer(&mut self, addr: GlobalAddr, version: u32) -> Result<Wanted, AccessError> {
        let table = self.table_of(addr)?;
        Ok(self.fetcher.refresh(table, version))
    }

    /// Something has happened, at `now`.
    pub fn handle(&mut self, event: Event, now: Instant) {
        self.now = now;
        match event {
            Event::Completed { tag, result } => self.complete(tag, result),
            // As if no word had been free for it.
            Event::NotPosted(tag) => self.complete(tag, Ok(1)),
            Event::Rang => {
                self.registry.take_acks();
                self.fetcher.rang();
                self.has_notes = true;
                self.take_ends();
            }
            Event::Lost(rank) => self.lose(rank),
            Event::Tick => {}
        }
        self.wake_later();
        if self.earliest.is_some_and(|earliest| earliest <= now) {
            self.wake_backoffs();
        }
    }

    /// The next operation to be posted. Its completion goes to
    /// [`handle`](Self::handle).
    pub fn poll_op(&mut self) -> Option<Outgoing> {
        if let Some(out) = self.poll_hint() {
            return Some(out);
        }
        if !self.has_flight() {
            return None;
        }
        if let Some(rank) = self.registry.poll_ask() {
            let (word, bit) = self.control.drop(rank);
            let op = Op::atomic(Kind::FetchOr, word, bit);
            let is_last = self.control.drop_hint(rank).is_none();
            let op = if is_last { op.notifying() } else { op };
            return Some(self.fly(op, Agent::Cpu, What::Ask(rank)));
        }
        if let Some(out) = self.poll_tables() {
            return Some(out);
        }
        self.take_notes();
        while let Some(slot) = self.order.poll_ready() {
            self.start(slot);
        }
        while let Some(job) = self.run.pop(self.jobs) {
            if let Some(out) = self.advance(job) {
                return Some(out);
            }
        }
        // Jobs may have missed tables just now.
        self.poll_tables()
    }

    /// The next thing for the driver.
    pub fn poll(&mut self) -> Option<Out> {
        if let Some(index) = self.ended.pop(self.jobs) {
            let Job { error, value, .. } = self.jobs[index];
            self.jobs[index] = Job::FREE;
            let handle = self.order.handle(index);
            self.order.end(index);
            return Some(Out::Ended { handle, result: error.map_or(Ok(value), Err) });
        }
        if let Some(fetched) = self.fetcher.poll() {
            self.table_came(fetched.table, fetched.result);
            let (rank, _) = self.setup.split.owner(fetched.table)?;
            return Some(Out::Table { rank, result: fetched.result });
        }
        self.registry.poll_retired().map(Out::Retired)
    }

    /// When [`handle`](Self::handle) is to be called at the latest.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.earliest
    }

    /// Operations of this rank that have not ended.
    pub const fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether all have.
    pub const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Notes and commands that were none, or came for nobody.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Commands of others that came with their notes.
    pub const fn hints(&self) -> u64 {
        self.hints
    }

    /// Copies of others whose destination told of the end.
    pub const fn relayed(&self) -> u64 {
        self.relayed
    }

    /// Tables of others that gave way to others, and reads of tables.
    pub const fn table_counts(&self) -> (u64, u64) {
        self.fetcher.counts()
    }

    fn poll_tables(&mut self) -> Option<Outgoing> {
        let (op, step) = self.fetcher.poll_op()?;
        Some(self.fly(op, Agent::Cpu, What::Cache(step)))
    }

    fn accept(&mut self, handle: Handle, request: Request) -> Handle {
        self.jobs[handle.index()] = Job { phase: Phase::Ordered, request, ..Job::FREE };
        handle
    }
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("rank", &self.setup.rank)
            .field("order", &self.order)
            .field("tables", &self.fetcher)
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}
