//! A rank's place on its node, and the services that its idle workers run.

use crate::affinity;
use crate::config::Chosen;
use crate::host_operations::HostTables;
use crate::net::NetLayer;
use crate::node_queue::NodeQueue;
use crate::service::am::Am;
use crate::service::collectives::{Collectives, GroupHandle, IN_FLIGHT, NO_NAME, WORLD};
use crate::service::global_memory::GlobalDriver;
use crate::service::messages::{MessageWait, Messages};
use crate::service::{Service, Services};
use crate::word_wait::WordWait;
use std::any::Any;
use std::fmt::{self, Write as _};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tsumugi_core::coll::row::CellRow;
use tsumugi_core::coll::schedule::CollChoice;
use tsumugi_core::coll::{NodeBarrier, Team};
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::RegionKey;
use tsumugi_core::signal::{ParkingLot, Waiters};
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::{DoorbellSet, Reason, Wait};
use tsumugi_pvas::partition::{COLLECTIVE_KEY, ControlBlock};
use tsumugi_pvas::{Direct, ExposedArea, Heap, Member, fence};
use tsumugi_ult::{Here, Progress, Spawner, UltInfo};

/// The parts of a rank that do not belong to its scheduler.
pub struct RankNode {
    member: Member,
    /// Its waits for words, of its own memory and of its node.
    word_wait: Arc<WordWait>,
    team: Team,
    /// This rank's barrier within its node, if the job has no other node.
    circle: Option<NodeBarrier>,
    am: Am,
    messages: Arc<Messages>,
    collectives: Arc<Collectives>,
    /// The group of all ranks.
    world: GroupHandle,
    /// The global memory, once the ranks have opened it.
    global: OnceLock<Arc<GlobalDriver>>,
    /// The services that come and go.
    services: Services,
    /// Set while the scheduler runs: it lists the waiting ULTs.
    spawner: Mutex<Option<Spawner>>,
    /// Shared arrays that were dropped since the last barrier.
    dropped: Mutex<Vec<DeferredFree>>,
    queue: Option<Arc<NodeQueue>>,
    /// The network layer, if there are other nodes.
    net: Option<Arc<NetLayer>>,
    /// The core of each worker; empty: the system chooses.
    cores: Vec<usize>,
    /// There are several workers, of which one, the attendant, polls for all that have no ULT.
    is_attended: bool,
    /// The memory of this rank for containers, as configured.
    pool_bytes: usize,
    /// What the facade keeps until the end of the rank.
    kept: Mutex<Option<Kept>>,
    /// The main function has returned.
    has_returned: AtomicBool,
}

/// A value of the facade, which may have handles of the rank in it.
type Kept = Box<dyn Any + Send + Sync>;

/// Memory of any kind that is freed when it is dropped.
pub(crate) type DeferredFree = Box<dyn Send>;

impl RankNode {
    /// Bytes of a node and of its waits for words.
    pub const BYTES: usize = size_of::<Self>() + size_of::<WordWait>();

    pub(crate) fn new(
        member: Member,
        am: Am,
        messages: Messages,
        net: Option<Arc<NetLayer>>,
        chosen: &Chosen,
        (cores, is_crowded): (Vec<usize>, bool),
    ) -> Self {
        let queue = NodeQueue::new(chosen.path, member.direct(), chosen.idleness()).map(Arc::new);
        let team = Team::new(member.rank(), member.size(), COLLECTIVE_KEY);
        let circle = NodeBarrier::new(member.local().0, member.size());
        let circle = Some(circle).filter(|_| member.nodes().count() == 1);
        let messages = Arc::new(messages);
        let word_wait = Arc::new(WordWait::new(&member, chosen.idleness().spins));
        let (heard, waits) = (messages.clone(), word_wait.clone());
        let choice = CollChoice::new(chosen.collectives, is_crowded);
        let collectives = Arc::new(Collectives::new(&member, heard, waits, choice));
        Self {
            world: GroupHandle::world(&collectives),
            collectives,
            circle,
            member,
            word_wait,
            team,
            am,
            messages,
            global: OnceLock::new(),
            services: Services::default(),
            spawner: Mutex::new(None),
            dropped: Mutex::default(),
            queue,
            net,
            cores,
            is_attended: chosen.workers > 1,
            pool_bytes: chosen.pool_bytes,
            kept: Mutex::default(),
            has_returned: AtomicBool::new(false),
        }
    }

    /// The rank as a member of its node.
    #[inline]
    pub fn member(&self) -> &Member {
        &self.member
    }

    pub(crate) fn rank(&self) -> Rank {
        self.member.rank()
    }

    pub(crate) fn direct(&self) -> Direct {
        self.member.direct()
    }

    /// The engine, if operations go through one.
    pub(crate) fn queue(&self) -> Option<Arc<NodeQueue>> {
        self.queue.clone()
    }

    /// The network layer, if there are other nodes.
    pub fn net(&self) -> Option<Arc<NetLayer>> {
        self.net.clone()
    }

    pub(crate) fn heap(&self) -> &'static Heap {
        self.member.heap()
    }

    pub(crate) fn exposed(&self) -> &ExposedArea {
        self.member.exposed()
    }

    /// The rank's part in collectives.
    pub fn team(&self) -> &Team {
        &self.team
    }

    pub(crate) fn circle(&self) -> Option<NodeBarrier> {
        self.circle
    }

    pub(crate) fn word_wait(&self) -> &WordWait {
        &self.word_wait
    }

    pub(crate) fn am(&self) -> &Am {
        &self.am
    }

    pub(crate) fn messages(&self) -> &Arc<Messages> {
        &self.messages
    }

    /// The group of all ranks.
    pub(crate) fn world(&self) -> &GroupHandle {
        &self.world
    }

    /// The global memory, if it was opened.
    #[inline]
    pub fn global(&self) -> Option<&Arc<GlobalDriver>> {
        self.global.get()
    }

    /// The services that come and go while the rank runs.
    #[inline]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The memory of this rank for containers, as configured.
    pub fn pool_bytes(&self) -> usize {
        self.pool_bytes
    }

    /// A clone of the value that is kept until the end of the rank, if it is of this type.
    pub fn kept<T: Any + Clone>(&self) -> Option<T> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// Keeps a value until the end of the rank, in place of the one before.
    pub fn keep<T: Any + Send + Sync>(&self, value: T) {
        let before =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).replace(Box::new(value));
        // Not under the lock: the value may have handles of this rank.
        drop(before);
    }

    /// Opens the global memory. Returns the driver that was there first.
    pub fn open_global(&self, mut driver: GlobalDriver) -> &Arc<GlobalDriver> {
        driver.share_host(self.messages.host());
        self.global.get_or_init(|| Arc::new(driver))
    }

    /// Calls `of` for each service; returns whether one call returned true.
    #[inline]
    fn any(&self, of: impl Fn(&dyn Service) -> bool) -> bool {
        self.any_but_messages(&of) | of(&*self.messages)
    }

    #[inline]
    fn any_but_messages(&self, of: impl Fn(&dyn Service) -> bool) -> bool {
        of(&self.am)
            | self.global().is_some_and(|global| of(&**global))
            | self.services.any(&of)
            | of(&*self.collectives)
    }

    /// Does what can be done now, for messages if `takes_messages`. Returns whether there was
    /// anything.
    #[inline(always)]
    fn poll_all(&self, takes_messages: bool) -> bool {
        // First, because parcels that have come may concern all others.
        let arrived = self.messages.poll_net();
        let woken = self.waiters().drain(self.parking_lot());
        let served = self.any_but_messages(|service| service.pump());
        let moved = if takes_messages { self.messages.pump() } else { self.messages.help() };
        let control = self.member.control();
        if let Some(number) = control.wanted_report() {
            control.answer_report(number, &self.report());
        }
        let completed = self.queue.as_ref().is_some_and(|queue| queue.poll());
        woken > 0 || served || moved || completed || arrived
    }

    /// Waits until all that was sent has arrived, or cannot arrive any more, and the
    /// operations have ended that ULTs carry out.
    pub fn settle(&self) {
        let has_carried = || self.messages.host().used().is_some_and(HostTables::has_carried);
        // Yields with no lock held: other ULTs call services, too.
        while self.any(|service| service.is_busy()) || has_carried() {
            self.any(|service| service.pump());
            Here.yield_now();
        }
    }

    /// How long until the next time limit.
    pub(crate) fn until_deadline(&self) -> Option<Duration> {
        let global = self.global().and_then(|global| global.until_deadline());
        let collectives = self.collectives.until_deadline();
        self.am.until_deadline().into_iter().chain(global).chain(collectives).min()
    }

    /// Handles the change of a word under `key` by another node.
    pub(crate) fn rang(&self, key: RegionKey) {
        self.any(|service| service.rang(key));
    }

    /// The operations in flight that no engine carries out.
    pub(crate) fn host(&self) -> &HostTables {
        self.messages.host().tables()
    }

    pub(crate) fn waiters(&self) -> &Waiters {
        self.word_wait.waiters()
    }

    /// The rank's slots for waiters on words of its memory.
    #[inline]
    pub fn parking_lot(&self) -> &ParkingLot {
        self.member.control().parking_lot()
    }

    /// Bytes of memory that every rank can access from the start.
    pub fn starter_bytes(&self) -> usize {
        self.member.starter().bytes as usize
    }

    /// Keeps memory that peers may still use.
    pub(crate) fn defer_free(&self, memory: DeferredFree) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    /// Takes the memory that was buried so far.
    pub(crate) fn take_deferred(&self) -> Vec<DeferredFree> {
        std::mem::take(&mut self.dropped.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The doorbells of this rank's workers, which peers ring.
    pub(crate) fn bells(&self) -> &'static DoorbellSet {
        let bells: *const DoorbellSet = self.member.control().bells();
        // SAFETY: a space that has a heap is never unmapped, and a retired one is
        // reset to zeroes, which are bells without a sleeper.
        unsafe { &*bells }
    }

    /// Allows the launcher to check from here on whether the rank is quiet.
    pub(crate) fn watch(&self, spawner: &Spawner, workers: usize) {
        *self.spawner.lock().unwrap_or_else(PoisonError::into_inner) = Some(spawner.clone());
        self.member.control().workers().store(workers as u32, Ordering::SeqCst);
    }

    /// Whether the rank runs: its services are not closed.
    pub fn is_watched(&self) -> bool {
        self.spawner.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Notes that the main function has returned: the rank waits for the other ranks' ends.
    pub(crate) fn note_returned(&self) {
        // Relaxed: for reports.
        self.has_returned.store(true, Ordering::Relaxed);
    }

    /// Ends that, and closes the services of the rank.
    pub(crate) fn unwatch(&self) {
        self.member.control().workers().store(0, Ordering::SeqCst);
        *self.spawner.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.am.close();
        self.messages.close();
        self.collectives.close();
        if let Some(global) = self.global() {
            global.close();
        }
        self.services.close();
        if let Some(tables) = self.messages.host().used() {
            tables.cut_off_carried();
        }
        drop(self.take_deferred());
        // The value has handles of this rank, so it would keep the rank for ever.
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(kept);
    }

    /// Whether the helper would find work that no worker has taken.
    pub(crate) fn is_neglected(&self) -> bool {
        self.parking_lot().has_fired() || self.any(|service| service.is_neglected())
    }

    /// Does work that no worker has taken: signals and services. Returns whether there
    /// was any.
    pub(crate) fn help(&self) -> bool {
        let woken = self.waiters().drain(self.parking_lot());
        self.any(|service| service.help()) || woken > 0
    }

    /// Whether a service has work that may take long, as handlers do.
    pub(crate) fn is_called(&self) -> bool {
        self.am.has_work()
            || self.global().is_some_and(|global| global.has_work())
            || self.services.any(|service| service.has_work())
    }

    /// Lets another worker poll, because `worker`, if it is the attendant, has other work to do
    /// first. A peer may have rung nobody until now, so its messages are looked at.
    fn step_aside(&self, worker: usize) {
        if self.bells().attendance().leave(worker) {
            self.messages.look_again();
        }
    }

    /// A line for each ULT, with what it waits for.
    fn report(&self) -> String {
        let spawner = self.spawner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(spawner) = spawner.as_ref() else { return String::new() };
        let (mut text, mut more) = (String::new(), 0);
        spawner.dump(&mut |ult| {
            if text.len() < REPORT_BYTES {
                text.push_str(&self.line_of(&ult, spawner.now()));
            } else {
                more += 1;
            }
        });
        if more > 0 {
            let _ = writeln!(text, "and {more} more ULTs");
        }
        if let Some((thread, reason)) = tsumugi_ult::sleeper_of(self.member.control().outside()) {
            let caller_of = thread.caller_of;
            let _ = writeln!(text, "the thread that called {caller_of}{}", self.wait_for(reason));
        }
        self.collectives.each_waiting(|reason| {
            if text.len() < REPORT_BYTES {
                let _ = writeln!(text, "an operation{}", self.wait_in(&reason, None));
            }
        });
        text
    }
}

impl fmt::Debug for RankNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankNode({})", self.rank())
    }
}

impl RankNode {
    /// The collective whose words include the one at `at`: its kind and its number.
    fn collective_at(&self, at: u64) -> Option<String> {
        let words = self.member().space().controls().find_map(|control| {
            let words = control.collective().as_ptr_range();
            words.contains(&ptr::with_exposed_provenance(at as usize)).then_some(words)
        })?;
        let index = (at as usize - words.start.addr()) / size_of::<u64>();
        // Relaxed: for a report.
        if self.has_returned.load(Ordering::Relaxed) {
            return Some("the barrier at the end of the job".to_owned());
        }
        Some(match index {
            ..BARRIER_WORDS_FROM => format!("collective {}", self.team.collective_number()),
            _ => format!("barrier {}", self.team.barrier_number()),
        })
    }

    /// For what a ULT waits that sleeps because of the word at `at`, if the word is in a row of
    /// a group.
    fn wait_in_row(&self, at: u64) -> Option<Reason> {
        let place = ptr::with_exposed_provenance::<CellRow>(at as usize);
        let row_of = |control: &ControlBlock| {
            let rows = control.rows().as_ptr_range();
            rows.contains(&place).then(|| (at as usize - rows.start.addr()) / size_of::<CellRow>())
        };
        let row = self.member().space().controls().find_map(row_of)?;
        self.collectives.wait_in_row(row)
    }

    /// The line of one ULT.
    fn line_of(&self, ult: &UltInfo, now: Instant) -> String {
        let mut line = format!("ULT {}", ult.id);
        if let Some(name) = &ult.name {
            let _ = write!(line, " \"{name}\"");
        }
        let _ = match ult.reason {
            None => write!(line, " {:?}", ult.state),
            Some(reason) => write!(line, "{}", self.wait_for(reason)),
        };
        if let Some(since) = ult.since {
            let _ = write!(line, ", for {:.1} s", now.since(since).as_secs_f64());
        }
        line + "\n"
    }

    /// A wait in a collective, which the call `begun_by` has begun.
    fn wait_in<'a>(
        &self,
        reason: &'a Reason,
        begun_by: Option<&'static str>,
    ) -> CollectiveWait<'a> {
        let group = (reason.at >> 32) as u16;
        let name = self.messages.context_name(if group == 0 { WORLD } else { group });
        CollectiveWait { reason, begun_by, name }
    }

    /// The words for a wait for the end of a collective that was begun.
    fn in_flight(&self, Reason { what, at, .. }: Reason) -> String {
        let begun_by = (what != NO_NAME).then_some(what);
        let found = self.collectives.waits_at(at);
        let unknown = Reason { what: "in collective", at, wanted: 0 };
        self.wait_in(&found.unwrap_or(unknown), begun_by).to_string()
    }

    /// The words for a wait, of which a wait for a signal may be one in a collective.
    fn wait_for(&self, reason: Reason) -> String {
        match reason {
            Reason { what: "signal", at, .. } => match self.wait_in_row(at) {
                None => words_of(reason, self.collective_at(at)),
                Some(in_row) => self.wait_in(&in_row, None).to_string(),
            },
            reason if reason.what.starts_with("in ") => self.wait_in(&reason, None).to_string(),
            _ => match MessageWait::of(&reason, &self.messages) {
                Some(message) => message.to_string(),
                None if reason.wanted == IN_FLIGHT => self.in_flight(reason),
                None => words_of(reason, None),
            },
        }
    }
}

/// The words for a wait for `reason`, in `collective` if there is one.
fn words_of(reason: Reason, collective: Option<String>) -> String {
    let mut line = String::new();
    match reason {
        Reason { what: "signal", .. } if collective.is_some() => {
            let _ = write!(line, " waits in {}", collective.unwrap_or_default());
        }
        Reason { what: "signal", at, wanted } => {
            let _ = write!(line, " waits for a change of the signal word at {at:#x}");
            let _ = write!(line, ", which it compares with {wanted}");
        }
        Reason { what: "join", at, .. } => {
            let _ = write!(line, " waits for the end of ULT {at}");
        }
        Reason { what: "call", at, wanted } => {
            let _ = write!(line, " waits for the reply of rank {at} to a call of handler {wanted}");
        }
        Reason { what: "room for a call", at, .. } => {
            let _ = write!(line, " waits for room for a call of rank {at}");
        }
        Reason { what: "table", at, .. } => {
            let _ = write!(line, " waits for the region table of rank {at}");
        }
        Reason { what, at: 0, .. } => {
            let _ = write!(line, " waits: {what}");
        }
        Reason { what, at, .. } => {
            let _ = write!(line, " waits: {what} at {at:#x}");
        }
    }
    line
}

/// A wait in a collective, which names itself `in gather`: with its number, the number of
/// its group if that is not the group of all ranks, and the rank for which it waits.
struct CollectiveWait<'a> {
    reason: &'a Reason,
    /// The call that has begun it, if it does not wait itself.
    begun_by: Option<&'static str>,
    /// The name that the program has for the group.
    name: Option<String>,
}

impl fmt::Display for CollectiveWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reason { what, at, wanted } = *self.reason;
        let (group, number) = (at >> 32, at as u32);
        write!(f, " waits {what} {number}")?;
        if group != 0 {
            write!(f, " of group {group}")?;
        }
        if let Some(name) = &self.name {
            // Nothing in it ends the words for the collective before their end.
            write!(f, " ({})", name.replace([',', '\n'], " "))?;
        }
        if let Some(call) = self.begun_by {
            write!(f, ", begun by {call}")?;
        }
        match wanted.checked_sub(1) {
            Some(rank) => write!(f, ", for rank {rank}"),
            None => Ok(()),
        }
    }
}

impl Progress for RankNode {
    fn poll(&self) -> bool {
        self.poll_all(!self.messages.is_taken_care_of())
    }

    /// The only worker polls by itself; of several, the attendant, which steps aside for the
    /// time of handlers.
    fn poll_idle(&self, worker: usize) -> bool {
        if !self.is_attended {
            return self.poll();
        }
        if !self.bells().attendance().take(worker) {
            return false;
        }
        if self.is_called() {
            self.step_aside(worker);
        }
        self.poll_all(!self.messages.is_in_hand())
    }

    fn is_long(&self) -> bool {
        self.net.is_some()
    }

    fn has_work(&self) -> bool {
        self.parking_lot().has_fired()
            || self.any(|service| service.has_work())
            || self.queue.as_ref().is_some_and(|queue| queue.needs_poll())
            || self.net.as_ref().is_some_and(|net| net.needs_poll())
            || self.member.control().wanted_report().is_some()
    }

    fn on_start(&self, worker: usize) {
        if let Some(core) = self.cores.get(worker) {
            // If that is refused, the worker runs where it did: slower, not wrong.
            let _ = affinity::pin(*core);
        }
    }

    fn on_timers(&self, pending: bool) {
        let outside = self.member.control().outside();
        // A rank with a timer is not quiet: it wakes by itself.
        if pending {
            outside.fetch_add(1, Ordering::SeqCst);
        } else {
            outside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn on_idle(&self, worker: usize) {
        self.bells().attendance().take(worker);
    }

    fn on_busy(&self, worker: usize) {
        // Nobody relied on another worker than the attendant.
        if self.bells().attendance().leave(worker) {
            self.any(|service| {
                service.on_busy();
                false
            });
        }
    }

    fn on_sleep(&self, worker: usize) {
        // `has_work` is the look that must follow.
        let _ = self.bells().attendance().leave(worker);
        if let Some(net) = &self.net {
            net.worker_sleeps();
        }
        if self.member.control().sleeps_fenced() {
            fence::heavy();
        }
    }

    fn on_wake(&self, worker: usize) {
        if let Some(net) = &self.net {
            net.worker_wakes();
        }
        self.bells().attendance().take(worker);
        self.member.control().activity().fetch_add(1, Ordering::SeqCst);
    }
}

/// The first collective word of the barrier by counters; those before are of the tree.
pub(crate) const BARRIER_WORDS_FROM: usize = 32;
/// Bytes of a rank's report when the job has stalled: enough to see the cause.
const REPORT_BYTES: usize = 12 << 10;
