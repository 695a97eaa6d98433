//! An endpoint with an owner: requesters push into a ring, one thread does the
//! rest (a communication thread).
//!
//! ```text
//!  requesters                     owner
//!  push ─► ring ───────────────►  drain ─► batch ─► post ─► poll ─► complete
//!    └─ the push reports that       │ nothing to do, for some rounds
//!       the owner sleeps: wake it   ▼
//!                                 prepare ─► mark the empty ring ─► sleep on
//! ```                                                              the event
//!
//! The mark that the owner sleeps is in a word that each push exchanges anyway:
//! so while the owner is awake, requesters need no fence and read no word of the
//! owner.
//!
//! Executor and completer are one thread (Tofu's rule): a device that does not
//! allow two threads at once needs no lock, and foreign calls that must run on
//! that thread go through the same ring, see [`Work::Call`].
//!
//! Progress: `enqueue` is lock-free.

use super::port::Port;
use super::work::Work;
use crate::backend::Endpoint;
use crate::mutate;
use crate::op::Op;
use crate::ring::{MpscConsumer, MpscView, Pushed};
use crate::sync::{AtomicBool, CachePadded, Ordering, spin_loop};
use crate::wait::{EventWord, Futex};
use core::fmt;
use core::time::Duration;

/// The requesters' side.
pub struct Offload<'t> {
    ring: MpscView<'t, Work>,
    event: CachePadded<EventWord>,
    stop: AtomicBool,
}

/// The owner's side.
pub struct DeviceOwner<'o, 't, E: Endpoint> {
    offload: &'o Offload<'t>,
    consumer: MpscConsumer<'t, Work>,
    port: Port<'t, E>,
}

/// How an owner waits when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Turns without work before the owner lets other threads run.
    pub spins: u32,
    /// How often the owner lets other threads run before it sleeps.
    pub yields: u32,
}

impl<'t> Offload<'t> {
    /// Makes the requesters' side, which pushes into `ring`.
    pub fn new(ring: MpscView<'t, Work>) -> Self {
        let event = CachePadded::new(EventWord::new());
        Self { ring, event, stop: AtomicBool::new(false) }
    }

    /// Makes the owner's side; there is only one.
    ///
    /// # Safety
    ///
    /// No other consumer of the ring exists while the owner does.
    pub unsafe fn owner<E: Endpoint>(&self, port: Port<'t, E>) -> DeviceOwner<'_, 't, E> {
        // SAFETY: the caller of `owner` promises that there is no other consumer.
        let consumer = unsafe { self.ring.consumer() };
        DeviceOwner { offload: self, consumer, port }
    }

    /// Pushes an operation for the owner. Lock-free.
    ///
    /// # Errors
    ///
    /// The operation: the ring is full.
    #[inline]
    pub fn enqueue(&self, op: Op, futex: &dyn Futex) -> Result<(), Op> {
        self.push(Work::Op(op), futex).map_err(|_| op)
    }

    /// Pushes work for the owner. Lock-free.
    ///
    /// # Errors
    ///
    /// The work: the ring is full.
    #[inline]
    pub fn push(&self, work: Work, futex: &dyn Futex) -> Result<(), Work> {
        if self.ring.try_push_told(work)? == Pushed::Asleep {
            self.notify(futex);
        }
        Ok(())
    }

    /// Ends [`DeviceOwner::run`] when all operations that were enqueued have ended.
    pub fn stop(&self, futex: &dyn Futex) {
        self.stop.store(true, Ordering::SeqCst);
        self.notify(futex);
    }

    /// Returns how many elements the owner has not taken yet; a hint.
    pub fn backlog(&self) -> usize {
        self.ring.len()
    }

    #[cold]
    #[inline(never)]
    fn notify(&self, futex: &dyn Futex) {
        if self.event.notify() {
            futex.wake(self.event.word(), 1);
        }
    }
}

impl<E: Endpoint> DeviceOwner<'_, '_, E> {
    /// Takes work from the ring, posts it, and takes completions. Returns whether
    /// there was anything to do.
    #[inline]
    pub fn turn(&mut self) -> bool {
        let mut taken = 0;
        while taken < TURN_MAX && (self.port.has_room() || self.port.flush() > 0) {
            match self.consumer.try_pop() {
                Some(Work::Op(op)) => {
                    let gathered = self.port.gather(op);
                    debug_assert!(gathered.is_ok(), "the batch has room");
                }
                Some(Work::Call(call)) => call.make(),
                None => break,
            }
            taken += 1;
        }
        // What has gathered by now is one batch: waiting longer would gain
        // nothing, because the ring is empty.
        let (posted, completed) = self.port.turn();
        taken + posted + completed > 0
    }

    /// Calls `turn` until [`Offload::stop`], and sleeps when there is nothing to
    /// do. `relax` lets other threads of the system run.
    pub fn run(&mut self, idle: Idle, futex: &dyn Futex, relax: &dyn Fn()) {
        let mut empty = 0u32;
        loop {
            if self.turn() {
                empty = 0;
                continue;
            }
            empty = empty.saturating_add(1);
            if empty <= idle.spins {
                spin_loop();
            } else if empty - idle.spins <= idle.yields || !self.port.is_quiet() {
                relax();
            } else if self.offload.stop.load(Ordering::SeqCst) && !self.consumer.is_ready() {
                return;
            } else {
                self.sleep(futex, None);
                empty = 0;
            }
        }
    }

    /// Sleeps until a requester pushes, or `limit` passes; returns at once if
    /// there is something to do.
    pub fn sleep(&mut self, futex: &dyn Futex, limit: Option<Duration>) {
        let event = &self.offload.event;
        let ticket = event.prepare();
        let stop = self.offload.stop.load(Ordering::SeqCst);
        // After `prepare`: a requester that sees the mark must find the event
        // prepared.
        let marked = mutate!("offload_no_last_look": self.consumer.try_mark() => {
            self.consumer.try_mark();
            true
        });
        if stop || !marked || !self.port.is_quiet() {
            event.cancel();
            return;
        }
        futex.wait(event.word(), ticket.expected(), limit);
        event.cancel();
    }
}

impl fmt::Debug for Offload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offload({:?})", self.ring)
    }
}

impl<E: Endpoint> fmt::Debug for DeviceOwner<'_, '_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceOwner({:?})", self.port)
    }
}

/// Operations taken from the ring before completions are looked at.
const TURN_MAX: usize = 64;
