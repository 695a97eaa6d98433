//! Operations on ranks of other nodes: a carrier takes each of them, and says
//! later, from whatever thread, how it ended.
//!
//! ```text
//!  machine ─► begin ─► Carrier::post ─► under way ──done──► ended ─► machine
//!                 ▲         │ Busy                            │
//!                 │         ▼                                 │ rings the rank
//!                 └──── refused ◄──── at each look ───────────┘
//! ```
//!
//! There is a place for each operation that the machine can have under way: for
//! messages one a staging cell, one a landing buffer, and one for each notice
//! that returns credits. So nothing is allocated, and what is refused has its
//! place until it is taken. The end of an operation goes through a list of its
//! own: whoever calls back never waits for the machine.
//!
//! An operation under way is something outside the workers that may wake
//! somebody: the rank is not called quiet before its end was rung for. Nobody
//! tells when there is room again, which other parts of the program also take:
//! a rank with something refused has work, and offers it again at each look.

use super::carrier::Carrier;
use super::onward::Onward;
use super::{LANDINGS, STAGING_CELLS};
use crate::by_swap::{BySwap, Turn};
use crate::far::CHUNKS;
use crate::{AddrError, Rank, RemoteAddr};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_core::am::NOTICES_MAX;
use tsumugi_core::completion::Callback;
use tsumugi_core::mem::{Agent, LocalAddr, RegionKey, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicBool, AtomicUsize, Ordering};
use tsumugi_core::tag::Tag;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// A carrier, and what it was given.
pub(crate) struct Far {
    carrier: Arc<dyn Carrier>,
    table: Arc<Outbound>,
}

/// Bytes that operations take.
pub(super) fn footprint() -> usize {
    let place = size_of::<Place>() + 2 * size_of::<u32>() + 2 * size_of::<Ended>();
    size_of::<Outbound>() + PLACES * place + CHUNKS * size_of::<Passed>()
}

/// The operations that were begun and whose end the machine was not told.
struct Outbound {
    member: Member,
    places: Box<[Place]>,
    book: Mutex<Book>,
    /// Something has ended since the last look.
    has_news: AtomicBool,
    /// What was refused and has not begun since, on the list or about to be
    /// offered.
    refused: AtomicUsize,
}

/// An operation on its way; what its callback is given.
struct Place {
    index: u32,
    flight: Mutex<Flight>,
}

struct Flight {
    op: Op,
    rest: Rest,
    /// While it is under way: keeps the place where it is.
    table: Option<Arc<Outbound>>,
}

/// What belongs to an operation besides it.
enum Rest {
    Nothing,
    /// This goes as one with it.
    Then(Op),
    /// The device has not what was asked for: what it does instead.
    BySwap(BySwap),
    /// Its bytes are for another far rank.
    Onward(Onward),
}

/// Which places are what.
struct Book {
    free: Vec<u32>,
    refused: VecDeque<u32>,
    ended: Vec<Ended>,
    /// What is to be given back.
    passed: Vec<Passed>,
}

/// What bytes have passed through, and how the last operation on it has ended.
type Passed = (LocalAddr, Result<u64, AddrError>);
/// How an operation has ended.
type Ended = (Tag, Result<u64, AddrError>);

impl Far {
    /// For at most `places` operations at a time.
    pub(crate) fn new(carrier: Arc<dyn Carrier>, member: &Member, places: usize) -> Self {
        Self { carrier, table: Arc::new(Outbound::new(member, places)) }
    }

    pub(super) fn carrier(&self) -> &dyn Carrier {
        &*self.carrier
    }

    #[inline]
    pub(crate) fn is_near(&self, rank: Rank) -> bool {
        self.carrier.is_near(rank)
    }

    pub(crate) fn is_alive(&self, rank: Rank) -> bool {
        self.carrier.is_alive(rank)
    }

    /// Begins an operation, or keeps it until there is room; whether it has
    /// begun.
    pub(crate) fn begin(&self, op: &Op) -> bool {
        let index = self.take_place(op, Rest::Nothing);
        self.begin_at(index)
    }

    /// The same for a put of bytes that are at another far rank.
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

    /// Begins a put and what goes as [one](Carrier::post_joined) with it. False:
    /// there is no room for that, and the put goes alone.
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
        let index = table.lock().free.pop().expect("a place for each operation");
        let mut flight = table.places[index as usize].lock();
        (flight.op, flight.rest) = (*op, rest);
        index
    }

    /// Offers again what was refused, what has waited longest first, as long as
    /// it is taken; how much was.
    pub(crate) fn offer_again(&self) -> usize {
        let table = &*self.table;
        // Relaxed: what this thread does not know of, another look finds.
        let refused = table.refused.load(Ordering::Relaxed);
        let again = |_: &usize| {
            let Some(index) = table.lock().refused.pop_front() else { return false };
            let has_begun = self.offer(index);
            if has_begun {
                // Not before: whoever looks meanwhile must not fall asleep.
                table.refused.fetch_sub(1, Ordering::SeqCst);
            } else {
                // Behind the others: there may be room for one of them.
                table.lock().refused.push_back(index);
            }
            has_begun
        };
        (0..refused).take_while(again).count()
    }

    /// Tells a machine what has ended; how much that was.
    pub(crate) fn take_ended(&self, mut tell: impl FnMut(Tag, Result<u64, AddrError>)) -> usize {
        let table = &*self.table;
        if !table.has_news.load(Ordering::Relaxed) {
            return 0;
        }
        // SeqCst: before the list is looked at, so that what comes after is
        // rung for.
        table.has_news.store(false, Ordering::SeqCst);
        let mut book = table.lock();
        let count = book.ended.len();
        for (tag, result) in book.ended.drain(..) {
            tell(tag, result);
        }
        for (chunk, result) in book.passed.drain(..) {
            self.carrier.give_back(chunk, result);
        }
        count
    }

    /// Whether the machine has something to be told, or something waits for
    /// room.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        let table = &*self.table;
        // SeqCst: a sleeper looks here after it said that it would sleep.
        table.has_news.load(Ordering::SeqCst) || table.refused.load(Ordering::SeqCst) > 0
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().free.len() == self.table.places.len()
    }

    /// Whether so much is under way that only what was asked for may follow:
    /// else a rank that stalls would take the room of those that do not.
    pub(super) fn is_full(&self) -> bool {
        let open = self.table.places.len() - self.table.lock().free.len();
        open >= STAGING_CELLS / 2
    }

    /// For a look at whether the table is gone.
    #[cfg(test)]
    pub(super) fn downgrade(&self) -> std::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.table)
    }

    fn offer(&self, index: u32) -> bool {
        let table = &self.table;
        let place = &table.places[index as usize];
        let (op, then) = {
            let mut flight = place.lock();
            if flight.is_unlent() {
                match self.carrier.lend() {
                    Some(chunk) => flight.pass_by(chunk),
                    None if !self.carrier.has_lent_all() => return false,
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
        // SAFETY: the flight keeps the table, and with it the place, until the
        // call, which takes it out; places may be reached from any thread.
        let done = unsafe { Callback::new(ended, (&raw const *place).cast_mut().cast()) };
        let posted = match &then {
            None => self.carrier.post(&op, done),
            Some(then) => self.carrier.post_joined(&op, then, done),
        };
        let has_begun = posted.is_ok();
        if !has_begun {
            place.lock().table = None;
            table.member.control().outside().fetch_sub(1, Ordering::SeqCst);
        }
        has_begun
    }

    /// There is no memory for it to pass through, and never will be.
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
            Place { index, flight: Mutex::new(Flight { op, rest: Rest::Nothing, table: None }) }
        };
        Self {
            member: member.clone(),
            places: (0..places as u32).map(place).collect(),
            book: Mutex::new(Book {
                free: (0..places as u32).rev().collect(),
                refused: VecDeque::with_capacity(places),
                ended: Vec::with_capacity(2 * places),
                passed: Vec::with_capacity(CHUNKS),
            }),
            has_news: AtomicBool::new(false),
            refused: AtomicUsize::new(0),
        }
    }

    /// An operation is to be offered again.
    fn keep(&self, index: u32) {
        self.lock().refused.push_back(index);
        // SeqCst: before the look at who sleeps.
        self.refused.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    /// One turn of an operation has ended, and the next is to be offered.
    fn go_on(&self, index: u32) {
        self.keep(index);
        // After the bell: the rank is never quiet with something to be done.
        self.member.control().outside().fetch_sub(1, Ordering::SeqCst);
    }

    /// An operation has ended.
    fn end(&self, index: u32, ended: impl IntoIterator<Item = Ended>, passed: Option<Passed>) {
        let mut book = self.lock();
        book.free.push(index);
        book.passed.extend(passed);
        let is_first = book.ended.is_empty();
        book.ended.extend(ended);
        drop(book);
        if is_first {
            // SeqCst: before the look at who sleeps.
            self.has_news.store(true, Ordering::SeqCst);
            self.ring();
        }
        // After the bell: the rank is never quiet with something to be done.
        self.member.control().outside().fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes a worker, or the helper if all compute.
    fn ring(&self) {
        self.member.control().bells().ring_helped(&SystemFutex, || {});
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Whether its bytes are to pass through memory that is not lent yet.
    const fn is_unlent(&self) -> bool {
        matches!(&self.rest, Rest::Onward(onward) if onward.is_unlent())
    }

    /// They pass through this.
    fn pass_by(&mut self, chunk: LocalAddr) {
        if let Rest::Onward(onward) = &mut self.rest {
            self.op = onward.lend(chunk, &self.op);
        }
    }

    /// What is to be done before it has ended. Bytes for another rank are put when
    /// they have come. An atomic that the device has not is a loop of those that it
    /// has.
    fn turn(&mut self, result: &mut Result<u64, AddrError>) -> Option<Op> {
        let is_devices = self.op.remote.key.agent() == Agent::Device;
        match (&mut self.rest, *result) {
            (Rest::Onward(onward), result) => return onward.next(result),
            (Rest::BySwap(by_swap), Ok(found)) => match by_swap.take(found) {
                Turn::Next(op) => return Some(op),
                Turn::Ended(was) => *result = Ok(was),
            },
            (Rest::Nothing, Err(AddrError::Unsupported { .. })) if is_devices => {
                let (by_swap, first) = BySwap::begin(&self.op)?;
                self.rest = Rest::BySwap(by_swap);
                return Some(first);
            }
            _ => {}
        }
        None
    }
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.table.places.len() - self.table.lock().free.len();
        write!(f, "Far({open} of {} operations)", self.table.places.len())
    }
}

/// Operations of messages that can be under way.
pub(super) const PLACES: usize = STAGING_CELLS + LANDINGS + NOTICES_MAX;

/// What a carrier calls.
fn ended(data: *mut (), mut result: Result<u64, AddrError>) {
    // SAFETY: a place that was given with this function, whose table the
    // flight keeps.
    let place = unsafe { &*data.cast_const().cast::<Place>() };
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
        Rest::Nothing | Rest::BySwap(_) => table.end(index, [(tag, result)], None),
    }
}

#[cfg(test)]
mod tests;
