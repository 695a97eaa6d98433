//! The machine of one rank, as its driver calls it.

use super::tables::{
    self, FlightPurpose, InFlightOp, MachineTables, OpPhase, OpQueue, PendingOp, SentCommand,
};
use super::traffic::{MachineEvent, MachineOutput, MachineSetup, OutgoingOp};
use crate::address::GlobalAddr;
use crate::cache::{Fetcher, HazardDomain, TableCache, TableWanted};
use crate::control::ControlRegion;
use crate::order::{After, Full, Handle, OpOrder};
use crate::request::GlobalRequest;
use crate::table::{Agent, NameError, RegionEntry, Registry};
use core::fmt;
use tsumugi_core::mem::{AddrError, Rank, Region};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;

/// One rank's part in the global memory.
pub struct GlobalMachine<'m> {
    pub(super) setup: MachineSetup<'m>,
    pub(super) control: ControlRegion,
    pub(super) cache: TableCache<'m>,
    pub(super) registry: Registry<'m>,
    pub(super) fetcher: Fetcher<'m>,
    pub(super) order: OpOrder<'m>,
    pub(super) words: &'m [AtomicU64],
    pub(super) jobs: &'m mut [PendingOp],
    pub(super) commands: &'m mut [SentCommand],
    pub(super) flights: &'m mut [InFlightOp],
    pub(super) free_flight: u32,
    /// The flights of which the hints are to be posted.
    pub(super) hints_due: u32,
    pub(super) window: u32,
    /// Jobs with something to post, and jobs that wait until any resource is given
    /// back.
    pub(super) run: OpQueue,
    pub(super) later: OpQueue,
    pub(super) ended: OpQueue,
    /// Notes may have come that were not taken.
    pub(super) has_notes: bool,
    /// A rank was lost, and its messages are not received any more.
    pub(super) knows_loss: bool,
    pub(super) note_cursor: usize,
    /// The ranks of the operation that was issued last.
    pub(super) last_ranks: (Option<Rank>, Option<Rank>),
    pub(super) now: Instant,
    pub(super) earliest: Option<Instant>,
    pub(super) dropped: u64,
    pub(super) hints: u64,
    pub(super) relayed: u64,
}

impl<'m> GlobalMachine<'m> {
    /// The machine of a rank that has registered nothing.
    ///
    /// # Panics
    ///
    /// If the tables do not fit the shape, or the split has no room for the job.
    pub fn new(setup: MachineSetup<'m>, tables: MachineTables<'m>) -> Self {
        let MachineSetup { rank, split, shape, .. } = setup;
        if let Some(fault) = shape.fault() {
            panic!("{fault}: {shape:?}");
        }
        let (ranks, last) = (shape.ranks, split.last_rank());
        assert!(rank.0 < ranks, "{rank} of a job of {ranks} ranks");
        assert!(ranks - 1 <= last.0, "{ranks} ranks: an address can name ranks up to {last}");
        let (colors, colors_max) = (shape.colors, split.colors());
        assert!(colors <= colors_max, "{colors} colours: an address can name {colors_max}");
        assert!(setup.part_bytes_max > 0, "part_bytes_max is 0: must be at least 1");
        let MachineTables { words, slots, hazards, records, awaited, told, fetches, .. } = tables;
        let MachineTables { issued, edges, jobs, commands, flights, .. } = tables;
        let bits = shape.bitmap_words();
        let lens = [words.len(), slots.len(), records.len(), awaited.len(), told.len()];
        let names = shape.colors as usize * crate::address::REGIONS;
        let wanted = [shape.words(), shape.copies as usize, names, bits, bits];
        assert_eq!(lens, wanted, "lengths of words, slots, records, awaited, told");
        let lens = [jobs.len(), issued.len(), commands.len(), edges.len()];
        let wanted = [shape.own_jobs, shape.commands, shape.conditions].map(|len| len as usize);
        let wanted = [shape.jobs(), wanted[0], wanted[1], wanted[2]];
        assert_eq!(lens, wanted, "lengths of jobs, issued, commands, edges");
        assert_eq!(
            [fetches.len(), flights.len()],
            [shape.fetches, shape.flights].map(|len| len as usize),
            "lengths of fetches, flights"
        );

        let control = ControlRegion::new(setup.control, rank, shape);
        let hazards = HazardDomain::new(hazards, setup.barrier);
        let copies = &words[control.copy_words()..];
        let cache = TableCache::new(slots, copies, hazards, split, setup.starter);
        let registry = Registry::new(split, control, shape, setup.starter, words, records, awaited);
        let fetcher = Fetcher::new(cache, control, shape.colors, words, told, fetches);
        let order = OpOrder::new(issued, edges);
        jobs.fill(PendingOp::FREE);
        commands.fill(SentCommand::FREE);
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
            free_flight: InFlightOp::chain(flights),
            flights,
            hints_due: tables::NONE,
            window,
            run: OpQueue::EMPTY,
            later: OpQueue::EMPTY,
            ended: OpQueue::EMPTY,
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

    /// The cache of tables, in which accesses look up addresses.
    pub const fn cache(&self) -> TableCache<'m> {
        self.cache
    }

    /// Gives a region, which the backend has registered, a global address, and
    /// returns the address of the region's first byte.
    ///
    /// # Errors
    ///
    /// - [`NameError::Full`]: all names of the colour are in use, or not free again
    ///   yet.
    /// - [`NameError::NoSuchColor`]: the ranks have no such colour.
    /// - [`NameError::TooLong`]: an address cannot name all bytes of the region.
    pub fn register(
        &mut self,
        color: u8,
        region: &Region,
        agent: Agent,
    ) -> Result<GlobalAddr, NameError> {
        self.registry.register(color, region, agent)
    }

    /// Takes a region's address away; `addr` is any address in the region. New
    /// operations on the region are refused; when the operations under way have
    /// ended, on all ranks, the driver gets [`MachineOutput::Retired`].
    ///
    /// # Errors
    ///
    /// [`AddrError::Nowhere`] if `addr` is not an address of this rank;
    /// [`AddrError::StaleKey`] if no region is registered there, or if the address is of
    /// the starter memory.
    pub fn unregister(&mut self, addr: GlobalAddr) -> Result<(), AddrError<GlobalAddr>> {
        self.registry.unregister(addr)
    }

    /// All regions that have an address now, and the starter memory: the address of
    /// the first byte, and the entry.
    pub fn registered(&self) -> impl Iterator<Item = (GlobalAddr, RegionEntry)> + '_ {
        self.registry.live()
    }

    /// The number of this rank's names that are not free.
    pub fn names(&self) -> usize {
        self.registry.len()
    }

    /// Issues an operation, which begins when `after` allows it. It ends once, with
    /// [`MachineOutput::Ended`].
    ///
    /// # Errors
    ///
    /// A [`Full`], and nothing was issued: [`Full::Operations`] if all places for
    /// operations are taken; [`Full::Conditions`] if the places for conditions do not
    /// suffice for the operations that this one has to wait for.
    pub fn try_issue(&mut self, request: GlobalRequest, after: After<'_>) -> Result<Handle, Full> {
        let ranks = self.ranks_of(&request);
        let handle = self.order.try_issue(after, ranks == self.last_ranks)?;
        self.last_ranks = ranks;
        Ok(self.accept(handle, request))
    }

    /// Issues a fence that ends when all operations that were issued so far and
    /// touch `rank` have ended.
    ///
    /// # Errors
    ///
    /// A [`Full`], and nothing was issued: [`Full::Operations`] if all places for
    /// operations are taken; [`Full::Conditions`] if the places for conditions do not
    /// suffice for the operations that this one has to wait for.
    pub fn try_flush(&mut self, rank: Rank) -> Result<Handle, Full> {
        let (split, jobs) = (self.setup.split, &self.jobs[..]);
        let handle = self.order.try_issue_each(|handle| {
            let job = &jobs[handle.index()];
            job.request.touches(split, rank)
        })?;
        self.last_ranks = (None, None);
        Ok(self.accept(handle, GlobalRequest::Fence))
    }

    /// Issues a fence that ends when all operations that were issued so far have
    /// ended.
    ///
    /// # Errors
    ///
    /// A [`Full`], and nothing was issued: [`Full::Operations`] if all places for
    /// operations are taken; [`Full::Conditions`] if the places for conditions do not
    /// suffice for the operations that this one has to wait for.
    pub fn try_flush_all(&mut self) -> Result<Handle, Full> {
        self.try_issue(GlobalRequest::Fence, After::All)
    }

    /// Whether the operation has ended and the driver has received its end.
    pub fn has_ended(&self, handle: Handle) -> bool {
        self.order.has_ended(handle)
    }

    /// Whether the operation and all that were issued before it have ended.
    pub fn has_ended_up_to(&self, handle: Handle) -> bool {
        self.order.has_ended_up_to(handle)
    }

    /// Requests the table of an address's rank, which a lookup did not find. If the
    /// table is on its way, [`MachineOutput::Table`] reports when to look again.
    ///
    /// # Errors
    ///
    /// [`AddrError::Nowhere`] if the address is null, or the job has no such rank or
    /// colour.
    pub fn want(&mut self, addr: GlobalAddr) -> Result<TableWanted, AddrError<GlobalAddr>> {
        let table = self.table_of(addr)?;
        Ok(self.fetcher.want(table))
    }

    /// Requests a newer table, after a lookup in the copy with `version` did not
    /// find the region.
    ///
    /// # Errors
    ///
    /// [`AddrError::Nowhere`] if the address is null, or the job has no such rank or
    /// colour.
    pub fn want_newer(
        &mut self,
        addr: GlobalAddr,
        version: u32,
    ) -> Result<TableWanted, AddrError<GlobalAddr>> {
        let table = self.table_of(addr)?;
        Ok(self.fetcher.refresh(table, version))
    }

    /// Handles an event, at the time `now`.
    pub fn handle(&mut self, event: MachineEvent, now: Instant) {
        self.now = now;
        match event {
            MachineEvent::Completed { tag, result } => self.complete(tag, result),
            // Handled as if no word had been free for the note.
            MachineEvent::NotPosted(tag) => self.complete(tag, Ok(1)),
            MachineEvent::Rang => {
                self.registry.take_acks();
                self.fetcher.rang();
                self.has_notes = true;
                self.take_ends();
            }
            MachineEvent::Lost(rank) => self.lose(rank),
            MachineEvent::Tick => {}
        }
        self.wake_later();
        if self.earliest.is_some_and(|earliest| earliest <= now) {
            self.wake_backoffs();
        }
    }

    /// The next operation to post. Its completion goes to [`handle`](Self::handle).
    pub fn poll_op(&mut self) -> Option<OutgoingOp> {
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
            return Some(self.fly(op, Agent::Cpu, FlightPurpose::Ask(rank)));
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

    /// The next result for the driver.
    pub fn poll(&mut self) -> Option<MachineOutput> {
        if let Some(index) = self.ended.pop(self.jobs) {
            let PendingOp { error, value, .. } = self.jobs[index];
            self.jobs[index] = PendingOp::FREE;
            let handle = self.order.handle(index);
            self.order.end(index);
            return Some(MachineOutput::Ended { handle, result: error.map_or(Ok(value), Err) });
        }
        if let Some(fetched) = self.fetcher.poll() {
            self.table_came(fetched.table, fetched.result);
            let (rank, _) = self.setup.split.owner(fetched.table)?;
            return Some(MachineOutput::Table { rank, result: fetched.result });
        }
        self.registry.poll_retired().map(MachineOutput::Retired)
    }

    /// The time at which [`handle`](Self::handle) must be called at the latest.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.earliest
    }

    /// The number of operations of this rank that have not ended.
    pub const fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether all operations of this rank have ended.
    pub const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of words received that were no note, command or end, or that
    /// belong to no operation under way.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number of commands of other ranks that came with their notes.
    pub const fn hints(&self) -> u64 {
        self.hints
    }

    /// The number of this rank's copies by others of which the destination reported
    /// the end.
    pub const fn relayed(&self) -> u64 {
        self.relayed
    }

    /// The number of tables of others that were evicted, and of reads of tables.
    pub const fn table_counts(&self) -> (u64, u64) {
        self.fetcher.counts()
    }

    fn poll_tables(&mut self) -> Option<OutgoingOp> {
        let (op, step) = self.fetcher.poll_op()?;
        Some(self.fly(op, Agent::Cpu, FlightPurpose::Cache(step)))
    }

    fn accept(&mut self, handle: Handle, request: GlobalRequest) -> Handle {
        self.jobs[handle.index()] =
            PendingOp { phase: OpPhase::Ordered, request, ..PendingOp::FREE };
        handle
    }
}

impl fmt::Debug for GlobalMachine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GlobalMachine")
            .field("rank", &self.setup.rank)
            .field("order", &self.order)
            .field("tables", &self.fetcher)
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}
