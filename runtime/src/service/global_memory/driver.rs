//! The driver: the machine under its lock, and the work that it issues.

use super::control::ControlRegions;
use super::lookaside::{self, Lookaside, LookasideMemory};
use super::open;
use super::open::{Missing, Open, Woken};
use super::tables::{MachineTables, PART_BYTES, machine};
use crate::deadline::Deadline;
use crate::death::DeathWatch;
use crate::error::Error;
use crate::guest::GUESTS;
use crate::host_operations::HostOperations;
use crate::net::{JOINED_BYTES, Transport};
use crate::panic;
use crate::service::Service;
use crate::service::am::RemoteOps;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{LocalAddr, Region, RegionKey};
use tsumugi_core::sync::Ordering;
use tsumugi_gas::address::{GlobalAddr, Split};
use tsumugi_gas::cache::{HazardPointers, TableCache};
use tsumugi_gas::control::ControlShape;
use tsumugi_gas::ledger::Ledger;
use tsumugi_gas::machine::{GlobalMachine, MachineEvent, MachineOutput};
use tsumugi_gas::table::NameError;
use tsumugi_pvas::{Direct, Member};
use tsumugi_ult::SystemFutex;

/// The driver of one rank.
pub struct GlobalDriver {
    pub(super) member: Member,
    pub(super) direct: Direct,
    pub(super) remote: Option<RemoteOps>,
    pub(super) control: ControlRegions,
    pub(super) cache: TableCache<'static>,
    lookaside: Lookaside,
    /// Whether the devices keep the order of a put and the operation posted behind
    /// it.
    pub(super) keeps_order: bool,
    pub(super) state: Mutex<DriverState>,
    pub(super) deadline: Deadline,
    pub(super) deaths: DeathWatch,
    /// The operations of the rank that the ends of operations may end.
    pub(super) host: Arc<HostOperations>,
}

/// The state under the lock.
pub(super) struct DriverState {
    pub(super) machine: GlobalMachine<'static>,
    pub(super) open: Open,
    /// The callers that wait for the table of a rank.
    pub(super) missing: Vec<NonNull<Missing>>,
    /// Memory whose address was taken away, kept until no rank reaches it.
    pub(super) retiring: Vec<(GlobalAddr, RetiredMemory)>,
    pub(super) is_closed: bool,
    /// Lists for the threads that drive. They keep their room, so nothing is allocated.
    spare: Vec<DueActions>,
    _tables: (MachineTables, LookasideMemory),
}

/// Registered memory, which is freed when it is dropped.
pub type RetiredMemory = Box<dyn Send>;

/// Actions that are to be done after the lock is released.
#[derive(Default)]
struct DueActions {
    woken: Vec<Woken>,
    retired: Vec<RetiredMemory>,
}

// SAFETY: the pointers in `missing` are only used under the lock, as their uses
// explain; all other members can be sent.
unsafe impl Send for GlobalDriver {}
// SAFETY: as for `Send`; all members that change are atomic or under the lock.
unsafe impl Sync for GlobalDriver {}

/// The memory that the driver takes for each worker, and for each guest.
pub const SEAT_BYTES: usize = size_of::<HazardPointers>() + lookaside::SEAT_BYTES;

/// The memory that the driver takes at each rank of a job that opens it: names and
/// bytes.
pub fn footprint(ranks: u32) -> impl Iterator<Item = (&'static str, u64)> {
    let shape = ControlShape::of(ranks, 1);
    let callers = open::footprint(shape.own_jobs as usize) + size_of::<GlobalDriver>();
    let parts = Ledger::new(shape);
    let parts = parts.parts().map(|part| (part.name, part.bytes)).collect::<Vec<_>>();
    parts.into_iter().chain([("callers and their operations", callers as u64)])
}

impl GlobalDriver {
    /// Makes the driver of a rank without any registrations. Its control region is
    /// registered; the keys of the other ranks' regions are not known yet.
    pub fn new(
        member: &Member,
        transport: Option<&Arc<dyn Transport>>,
        workers: usize,
        colors: u32,
    ) -> Result<Self, Error> {
        let shape = ControlShape::of(member.size(), colors);
        // Each region that there is room for has a name of its own, and can be
        // replaced several times before a name repeats.
        let split = Split::fit(shape.ranks, colors, REGION_BYTES)?;
        let control = ControlRegions::new(member, transport.map(|transport| &**transport), shape)?;
        let remote_completion = transport.is_none_or(|transport| transport.remote_completion());
        let keeps_order = transport.is_some_and(|transport| transport.keeps_order(PART_BYTES));
        let joined_bytes = transport.map_or(0, |_| JOINED_BYTES);
        let ordered_bytes = if keeps_order { PART_BYTES } else { joined_bytes };
        let carried_bytes = transport.map_or(0, |transport| transport.carried_bytes_max());
        let device = (remote_completion, ordered_bytes, carried_bytes);
        let seats = GUESTS + workers;
        let (machine, tables) = machine(member, shape, split, &control, device, seats);
        let (lookaside, lookaside_memory) = Lookaside::new(seats, split.region_bytes_max());
        let places = shape.flights as usize;
        let remote = transport.map(|transport| RemoteOps::new(transport.clone(), member, places));
        Ok(Self {
            member: member.clone(),
            direct: member.direct(),
            remote,
            control,
            cache: machine.cache(),
            lookaside,
            keeps_order,
            state: Mutex::new(DriverState {
                machine,
                open: Open::new(shape.own_jobs as usize),
                missing: Vec::new(),
                retiring: Vec::new(),
                is_closed: false,
                spare: Vec::new(),
                _tables: (tables, lookaside_memory),
            }),
            deadline: Deadline::new(),
            deaths: DeathWatch::default(),
            host: Arc::default(),
        })
    }

    /// The key of the control region.
    pub fn key(&self) -> RegionKey {
        self.control.key()
    }

    /// Sets the keys of the other ranks' control regions, if not all keys are the
    /// same.
    pub fn connect(&mut self, keys: Option<Box<[RegionKey]>>) {
        self.control.connect(keys);
    }

    /// Sets the operations of the rank that no engine carries out.
    pub(crate) fn share_host(&mut self, host: &Arc<HostOperations>) {
        self.host = host.clone();
    }

    /// The cache that lookups use.
    #[inline(always)]
    pub fn cache(&self) -> TableCache<'static> {
        self.cache
    }

    /// The lookaside buffers.
    #[inline]
    pub fn lookaside(&self) -> Lookaside {
        self.lookaside
    }

    /// Gives a region a global address, a name of colour `color`.
    pub fn name(&self, color: u8, region: &Region) -> Result<GlobalAddr, NameError> {
        self.lock().machine.register(color, region, region.key.agent())
    }

    /// The global address of a byte of this rank, if it has one.
    pub fn addr_of(&self, at: NonNull<u8>) -> Option<GlobalAddr> {
        let state = self.lock();
        let mut regions = state.machine.registered();
        regions.find_map(|(first, entry)| {
            let start = LocalAddr { key: entry.key, offset: 0 };
            let base = self.direct.local(start, entry.bytes).ok()?;
            let offset = (at.as_ptr() as u64).checked_sub(base.as_ptr() as u64)?;
            let is_inside = offset < entry.bytes;
            is_inside.then(|| GlobalAddr::from_bits(first.to_bits() + offset))
        })
    }

    /// Takes an address away, and keeps the memory until no rank reaches it any
    /// more.
    pub fn retire(&self, addr: GlobalAddr, memory: RetiredMemory) {
        let mut state = self.lock();
        if !state.is_closed && state.machine.unregister(addr).is_ok() {
            state.retiring.push((addr, memory));
            drop(state);
            self.drive();
        } else {
            drop(state);
            drop(memory);
        }
    }

    /// Called when an operation that held a pin has ended.
    pub fn tick(&self) {
        self.lock().machine.handle(MachineEvent::Tick, self.deadline.now());
        self.drive();
    }

    /// Called when a notified word of this rank's control region has changed, or there
    /// may be more work.
    pub fn stir(&self) {
        // SeqCst: after the change of the word, and before the check for sleeping
        // workers.
        self.control.bell().store(1, Ordering::SeqCst);
        self.ring(self.member.rank());
    }

    /// Carries out or begins the operations that the machine issues, and reports to
    /// waiting callers; returns how many of these there were. The number of turns
    /// is bounded, because a ULT of this worker may hold the table for which others
    /// wait.
    pub(super) fn drive(&self) -> usize {
        let (mut done, mut ended, mut due) = (0, [None; BATCH], None);
        for turn in 0.. {
            let mut state = self.lock();
            for event in ended.iter_mut().filter_map(Option::take) {
                state.machine.handle(event, self.deadline.now());
            }
            if let Some(remote) = &self.remote {
                let now = self.deadline.now();
                done += remote.take_ended(|tag, result| {
                    state.machine.handle(MachineEvent::Completed { tag, result }, now);
                });
            }
            let mut outgoing = [None; BATCH];
            let is_last = turn == TURNS;
            for out in outgoing.iter_mut().filter(|_| !is_last) {
                *out = state.machine.poll_op();
                if out.is_none() {
                    break;
                }
            }
            let mut told = 0;
            while !is_last && let Some(out) = state.machine.poll() {
                told += 1;
                let due = due.get_or_insert_with(|| state.spare.pop().unwrap_or_default());
                state.tell(out, due);
            }
            let is_over = outgoing[0].is_none() && told == 0;
            if is_over {
                state.spare.extend(due.take());
            }
            self.deadline.note(state.machine.next_deadline(), &self.member);
            drop(state);
            if is_last {
                // There may be more work.
                self.stir();
            }
            if is_over {
                break;
            }
            for (out, event) in outgoing.iter().flatten().zip(&mut ended) {
                *event = self.post(out);
                done += 1;
            }
            if let Some(due) = &mut due {
                due.settle(&self.host);
            }
            done += told;
        }
        done
    }

    /// Wakes a worker of `rank`, which is on this node, or its progress thread if
    /// all workers compute.
    pub(super) fn ring(&self, rank: Rank) {
        self.member.control_of(rank).bells().ring_helped(&SystemFutex, || {});
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DriverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for GlobalDriver {
    /// Handles what has come, and carries out the resulting work. Returns whether
    /// there was any. Returns at once if another thread does this already.
    fn pump(&self) -> bool {
        if !self.is_neglected() {
            return false;
        }
        let Ok(mut state) = self.state.try_lock() else { return false };
        // SeqCst: the swap comes before the reads of the words, so a word that
        // changes after they were read is announced by a new bell.
        let has_rung = self.control.bell().swap(0, Ordering::SeqCst) != 0;
        let has_died = self.deaths.take(&self.member);
        if has_died {
            for rank in (0..self.member.size()).map(Rank) {
                if !self.member.is_alive(rank) {
                    state.machine.handle(MachineEvent::Lost(rank), self.deadline.now());
                }
            }
        }
        let event = if has_rung || has_died { MachineEvent::Rang } else { MachineEvent::Tick };
        state.machine.handle(event, self.deadline.now());
        drop(state);
        let begun = self.remote.as_ref().map_or(0, RemoteOps::offer_again);
        self.drive() + begun > 0
    }

    /// Whether there is work; for a thread that is about to sleep.
    #[inline]
    fn has_work(&self) -> bool {
        self.control.bell().load(Ordering::SeqCst) != 0
            || self.deaths.has_news(&self.member)
            || self.remote.as_ref().is_some_and(RemoteOps::has_work)
    }

    /// Whether there is work or a time limit has passed.
    #[inline]
    fn is_neglected(&self) -> bool {
        self.has_work() || self.deadline.has_passed()
    }

    /// The time until the next time limit.
    fn until_deadline(&self) -> Option<Duration> {
        self.deadline.left()
    }

    fn rang(&self, key: RegionKey) -> bool {
        let is_own = key == self.key();
        if is_own {
            self.stir();
        }
        is_own
    }

    fn is_busy(&self) -> bool {
        !self.lock().machine.is_empty()
    }

    /// Closes the driver: from now on accesses of peers return that this rank is
    /// gone, and memory of the program is no longer kept.
    fn close(&self) {
        self.direct.unregister(self.key());
        let mut state = self.lock();
        state.is_closed = true;
        let retiring = std::mem::take(&mut state.retiring);
        drop(state);
        drop(retiring);
    }
}

impl DriverState {
    /// Reports an output of the machine to its caller.
    fn tell(&mut self, out: MachineOutput, due: &mut DueActions) {
        match out {
            MachineOutput::Ended { handle, result } => {
                self.open.end(handle, result, &mut due.woken)
            }
            MachineOutput::Retired(retired) => {
                let at = self.retiring.iter().position(|(addr, _)| *addr == retired.addr);
                due.retired.extend(at.map(|at| self.retiring.swap_remove(at).1));
            }
            MachineOutput::Table { rank, result } => {
                self.missing.retain(|missing| {
                    // SAFETY: a caller that waits stays on this list, and its stack
                    // frame alive, until the result was set under the lock that is
                    // held here.
                    let missing = unsafe { &mut *missing.as_ptr() };
                    let is_told = missing.rank == rank;
                    if is_told {
                        missing.result = Some(result);
                        due.woken.extend(missing.waker.take().map(Woken::Thread));
                    }
                    !is_told
                });
            }
        }
    }
}

impl DueActions {
    fn settle(&mut self, host: &HostOperations) {
        self.retired.clear();
        for woken in self.woken.drain(..) {
            match woken {
                Woken::Thread(waker) => waker.wake(),
                // A panic of a task's waker is not this thread's.
                Woken::Task(waker) => _ = panic::contain("the waker of a future", || waker.wake()),
                Woken::Host(tag) => _ = host.tables().completions().complete(tag, Ok(0)),
            }
        }
    }
}

impl fmt::Debug for GlobalDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalDriver({:?})", self.lock().machine)
    }
}

/// The length of the longest region for which every job has addresses.
const REGION_BYTES: u64 = 1 << 34;
/// The maximum number of turns with the lock before other threads may run.
const TURNS: u32 = 100;
/// The maximum number of operations between two turns with the lock.
const BATCH: usize = 8;
