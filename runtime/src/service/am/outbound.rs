//! Operations on ranks of other nodes: the transport takes each of them, and calls back
//! later, on any thread, with its result.
//!
//! ```text
//!  machine ─► begin ─► Transport::post ─► under way ──done──► ended ─► machine
//!                 ▲         │ Busy                              │
//!                 │         ▼                                   │ rings the rank
//!                 └──── refused ◄──── at each look ─────────────┘
//! ```
//!
//! There is a place for each operation that the machine can have under way: for
//! messages one for each staging cell, one for each landing buffer, and one for each
//! notice that returns credits. So nothing is allocated, and a refused operation
//! keeps its place until the transport takes it. The end of an operation goes through
//! a list of its own, so the thread that calls back never waits for the lock of the
//! machine.
//!
//! An operation under way counts as an outside event that may wake a ULT: the rank
//! is not quiet before the doorbell for its end was rung. There is no event when the
//! transport has room again, because other parts of the program take that room, too.
//! So a rank with a refused operation has work, and offers the operation again at
//! each look.

use super::lanes::{LANDINGS, STAGING_CELLS};
use super::onward::Onward;
use crate::cas_loop::{CasLoop, CasTurn};
use crate::net::{CHUNKS, Transport};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_core::am::NOTICES_MAX;
use tsumugi_core::completion::Callback;
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};
use tsumugi_core::mem::{Agent, LocalAddr, RegionKey, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicBool, AtomicUsize, Ordering};
use tsumugi_core::tag::Tag;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// The transport, and the operations that it was given.
pub struct RemoteOps {
    transport: Arc<dyn Transport>,
    table: Arc<Outbound>,
}

/// Bytes of the tables of operations.
pub fn footprint() -> usize {
    let place = size_of::<OutboundSlot>() + 2 * size_of::<u32>() + 2 * size_of::<EndedOp>();
    size_of::<Outbound>() + PLACES * place + CHUNKS * size_of::<Passed>()
}

/// Operations that have begun and of which the machine has not taken the end.
struct Outbound {
    member: Member,
    places: Box<[OutboundSlot]>,
    lists: Mutex<OutboundLists>,
    /// An operation has ended since the last look.
    has_news: AtomicBool,
    /// Operations that the transport refused and that have not begun since; they are
    /// on the list, or a thread is about to offer them.
    refused: AtomicUsize,
}

/// An operation under way; the argument of its callback.
struct OutboundSlot {
    index: u32,
    flight: Mutex<RemoteFlight>,
}

struct RemoteFlight {
    op: Op,
    rest: Rest,
    /// Set while the operation is under way: keeps the place allocated.
    table: Option<Arc<Outbound>>,
}

/// The state of an operation besides its descriptor.
enum Rest {
    Nothing,
    /// The second operation, which goes as one with the first.
    Then(Op),
    /// The device does not have the atomic: a compare-and-swap loop in its place.
    CasLoop(CasLoop),
    /// The bytes go on to another remote rank.
    Onward(Onward),
}

/// The lists of places by state.
struct OutboundLists {
    free: Vec<u32>,
    refused: VecDeque<u32>,
    ended: Vec<EndedOp>,
    /// Buffers that are to be given back.
    passed: Vec<Passed>,
}

/// A buffer of a copy, and the result of the last operation on it.
type Passed = (LocalAddr, Result<u64, AddrError>);
/// An operation's tag and its result.
type EndedOp = (Tag, Result<u64, AddrError>);

impl RemoteOps {
    /// Makes a table for at most `places` operations at a time.
    pub fn new(transport: Arc<dyn Transport>, member: &Member, places: usize) -> Self {
        Self { transport, table: Arc::new(Outbound::new(member, places)) }
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Whether the rank is on this node.
    #[inline]
    pub fn is_near(&self, rank: Rank) -> bool {
        self.transport.is_near(rank)
    }

    pub(crate) fn is_alive(&self, rank: Rank) -> bool {
        self.transport.is_alive(rank)
    }

    /// Begins an operation, or keeps it until the transport has room. Returns whether
    /// it has begun.
    pub fn begin(&self, op: &Op) -> bool {
        let index = self.take_place(op, Rest::Nothing);
        self.begin_at(index)
    }

    /// Does the same for a put of bytes that are at another remote rank.
    pub(crate) fn begin_between(&self, source: RemoteAddr, put: &Op) -> bool {
        let (onward, get) = Onward::begin(source, put);
        let index = self.take_place(&get, Rest::Onward(onward));
        self.begin_at(index)
    }

    fn begin_at(&self, index: u32) -> bool {
        let has_begun = self.offer(index);
        if !has_begun {
            self.table.keep(index);
        }
        has_begun
    }

    /// Begins a put and a second operation as [one](Transport::post_joined). False:
    /// there is no room for both as one, and the put was kept alone.
    pub(crate) fn begin_joined(&self, put: &Op, then: &Op) -> bool {
        let index = self.take_place(put, Rest::Then(*then));
        let has_begun = self.offer(index);
        if !has_begun {
            self.table.places[index as usize].lock().rest = Rest::Nothing;
            self.table.keep(index);
        }
        has_begun
    }

    fn take_place(&self, op: &Op, rest: Rest) -> u32 {
        let table = &*self.table;
        let index = table.lock().free.pop().expect("the table has a place for each operation");
        let mut flight = table.places[index as usize].lock();
        (flight.op, flight.rest) = (*op, rest);
        index
    }

    /// Offers refused operations to the transport again, in order, until it refuses
    /// one. Returns how many have begun.
    pub fn offer_again(&self) -> usize {
        let table = &*self.table;
        // Relaxed: a refusal that this thread misses is seen at another look.
        let refused = table.refused.load(Ordering::Relaxed);
        let again = |_: &usize| {
            let Some(index) = table.lock().refused.pop_front() else { return false };
            let has_begun = self.offer(index);
            if has_begun {
                // Not earlier: a worker that looks meanwhile must not fall asleep.
                table.refused.fetch_sub(1, Ordering::SeqCst);
            } else {
                // Behind the others: there may be room for one of them.
                table.lock().refused.push_back(index);
            }
            has_begun
        };
        (0..refused).take_while(again).count()
    }

    /// Hands the ends of operations to the machine by `tell`. Returns how many there
    /// were.
    pub fn take_ended(&self, mut tell: impl FnMut(Tag, Result<u64, AddrError>)) -> usize {
        let table = &*self.table;
        if !table.has_news.load(Ordering::Relaxed) {
            return 0;
        }
        // SeqCst: the flag is cleared before the list is taken, so that the doorbell
        // is rung for an operation that ends later.
        table.has_news.store(false, Ordering::SeqCst);
        let mut lists = table.lock();
        let count = lists.ended.len();
        for (tag, result) in lists.ended.drain(..) {
            tell(tag, result);
        }
        for (chunk, result) in lists.passed.drain(..) {
            self.transport.give_back(chunk, result);
        }
        count
    }

    /// Whether an ended operation is to be handed to the machine, or a refused one
    /// waits for room.
    #[inline]
    pub fn has_work(&self) -> bool {
        let table = &*self.table;
        // SeqCst: a sleeper looks here after it has announced that it will sleep.
        table.has_news.load(Ordering::SeqCst) || table.refused.load(Ordering::SeqCst) > 0
    }

    /// Whether no operation is under way.
    pub fn is_empty(&self) -> bool {
        self.table.lock().free.len() == self.table.places.len()
    }

    /// Whether half of the staging cells are in use, so that only replies may
    /// follow: else a rank that stalls would take the places of the ranks that do
    /// not.
    pub(super) fn is_full(&self) -> bool {
        let open = self.table.places.len() - self.table.lock().free.len();
        open >= STAGING_CELLS / 2
    }

    /// For a test whether the table was freed.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn downgrade(&self) -> std::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.table)
    }

    fn offer(&self, index: u32) -> bool {
        let table = &self.table;
        let place = &table.places[index as usize];
        let (op, then) = {
            let mut flight = place.lock();
            if flight.is_unlent() {
                match self.transport.lend() {
                    Some(chunk) => flight.pass_by(chunk),
                    None if !self.transport.has_lent_all() => return false,
                    None => {
                        drop(flight);
                        self.refuse(index);
                        return true;
                    }
                }
            }
            flight.table = Some(table.clone());
            let then = if let Rest::Then(then) = flight.rest { Some(then) } else { None };
            (flight.op, then)
        };
        table.member.control().outside().fetch_add(1, Ordering::SeqCst);
        // SAFETY: the flight holds an `Arc` of the table, and with it the place,
        // until the callback takes it out; places may be used on any thread.
        let done = unsafe { Callback::new(ended, (&raw const *place).cast_mut().cast()) };
        let posted = match &then {
            None => self.transport.post(&op, done),
            Some(then) => self.transport.post_joined(&op, then, done),
        };
        let has_begun = posted.is_ok();
        if !has_begun {
            place.lock().table = None;
            table.member.control().outside().fetch_sub(1, Ordering::SeqCst);
        }
        has_begun
    }

    /// Ends an operation for which there is no buffer, and never will be.
    fn refuse(&self, index: u32) {
        let table = &*self.table;
        let mut flight = table.places[index as usize].lock();
        flight.rest = Rest::Nothing;
        let Op { tag, remote, .. } = flight.op;
        drop(flight);
        table.member.control().outside().fetch_add(1, Ordering::SeqCst);
        table.end(index, [(tag, Err(AddrError::Unsupported { addr: remote }))], None);
    }
}

impl Outbound {
    fn new(member: &Member, places: usize) -> Self {
        let place = |index| {
            let nowhere = RemoteAddr { offset: 0, rank: Rank(0), key: RegionKey::from_bits(0) };
            let op = Op::get_word(nowhere, Width::W8);
            OutboundSlot {
                index,
                flight: Mutex::new(RemoteFlight { op, rest: Rest::Nothing, table: None }),
            }
        };
        Self {
            member: member.clone(),
            places: (0..places as u32).map(place).collect(),
            lists: Mutex::new(OutboundLists {
                free: (0..places as u32).rev().collect(),
                refused: VecDeque::with_capacity(places),
                ended: Vec::with_capacity(2 * places),
                passed: Vec::with_capacity(CHUNKS),
            }),
            has_news: AtomicBool::new(false),
            refused: AtomicUsize::new(0),
        }
    }

    /// Keeps an operation that is to be offered again.
    fn keep(&self, index: u32) {
        self.lock().refused.push_back(index);
        // SeqCst: before the check of the sleepers; pairs with `has_work` of a
        // sleeper.
        self.refused.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    /// One step of an operation has ended: keeps the next step, which is to be
    /// offered.
    fn go_on(&self, index: u32) {
        self.keep(index);
        // After the doorbell: the rank is never quiet while it has something to do.
        self.member.control().outside().fetch_sub(1, Ordering::SeqCst);
    }

    /// Records that operations have ended, and frees the place.
    fn end(&self, index: u32, ended: impl IntoIterator<Item = EndedOp>, passed: Option<Passed>) {
        let mut lists = self.lock();
        lists.free.push(index);
        lists.passed.extend(passed);
        let is_first = lists.ended.is_empty();
        lists.ended.extend(ended);
        drop(lists);
        if is_first {
            // SeqCst: before the check of the sleepers; pairs with `has_work` of a
            // sleeper.
            self.has_news.store(true, Ordering::SeqCst);
            self.ring();
        }
        // After the doorbell: the rank is never quiet while it has something to do.
        self.member.control().outside().fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes a worker, or the helper if all workers compute.
    fn ring(&self) {
        self.member.control().bells().ring_helped(&SystemFutex, || {});
    }

    fn lock(&self) -> MutexGuard<'_, OutboundLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteFlight {
    /// Whether its bytes need a buffer that is not lent yet.
    const fn is_unlent(&self) -> bool {
        matches!(&self.rest, Rest::Onward(onward) if onward.is_unlent())
    }

    /// Sets the buffer through which the bytes pass.
    fn pass_by(&mut self, chunk: LocalAddr) {
        if let Rest::Onward(onward) = &mut self.rest {
            self.op = onward.lend(chunk, &self.op);
        }
    }

    /// Returns the next step of the operation, or `None` if it has ended. The bytes
    /// of a copy between remote ranks are put after the get. An atomic that the device
    /// does not have is a loop of compare-and-swap.
    fn turn(&mut self, result: &mut Result<u64, AddrError>) -> Option<Op> {
        let is_devices = self.op.remote.key.agent() == Agent::Device;
        match (&mut self.rest, *result) {
            (Rest::Onward(onward), result) => return onward.next(result),
            (Rest::CasLoop(by_swap), Ok(found)) => match by_swap.take(found) {
                CasTurn::Next(op) => return Some(op),
                CasTurn::Ended(was) => *result = Ok(was),
            },
            (Rest::Nothing, Err(AddrError::Unsupported { .. })) if is_devices => {
                let (by_swap, first) = CasLoop::begin(&self.op)?;
                self.rest = Rest::CasLoop(by_swap);
                return Some(first);
            }
            _ => {}
        }
        None
    }
}

impl OutboundSlot {
    fn lock(&self) -> MutexGuard<'_, RemoteFlight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RemoteOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.table.places.len() - self.table.lock().free.len();
        write!(f, "RemoteOps({open} of {} operations)", self.table.places.len())
    }
}

/// Operations of messages that can be under way.
pub(super) const PLACES: usize = STAGING_CELLS + LANDINGS + NOTICES_MAX;

/// The callback of a transport.
fn ended(data: *mut (), mut result: Result<u64, AddrError>) {
    // SAFETY: `data` is the place that was given to `Callback::new` with this
    // function; the flight holds an `Arc` of the place's table.
    let place = unsafe { &*data.cast_const().cast::<OutboundSlot>() };
    let index = place.index;
    let mut flight = place.lock();
    let table = flight.table.take().expect("an operation ends once");
    if let Some(next) = flight.turn(&mut result) {
        flight.op = next;
        drop(flight);
        return table.go_on(index);
    }
    let tag = flight.op.tag;
    let rest = std::mem::replace(&mut flight.rest, Rest::Nothing);
    drop(flight);
    match rest {
        Rest::Then(then) => {
            table.end(index, [(tag, result.map(|_| 0)), (then.tag, result)], None);
        }
        Rest::Onward(onward) => {
            let passed = onward.chunk().map(|chunk| (chunk, result));
            table.end(index, [(tag, result)], passed);
        }
        Rest::Nothing | Rest::CasLoop(_) => table.end(index, [(tag, result)], None),
    }
}

#[cfg(test)]
mod tests;
