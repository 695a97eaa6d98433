//! An endpoint under a lock that nobody waits for.
//!
//! Whoever comes while it is free takes it and does its own work. Whoever
//! comes while it is held leaves the operation in the ring and a mark in the
//! lock, and the holder, who finds the mark when it lets go, does that too:
//!
//! ```text
//!  FREE ──CAS──► HELD ──CAS──► FREE                       uncontended: two
//!                 │  ▲
//!   another: push,│  │ clear the mark, drain the ring     contended: the
//!   fetch_or MORE ▼  │ (bounded), try to let go again     other one's push
//!             HELD|MORE                                   and one fetch_or
//! ```
//!
//! The mark is set after the push and in the same word as the lock, so either
//! the one who pushed gets the lock or the holder sees the mark: nothing is
//! left in the ring with nobody to care. A holder that has done [`HELP_MAX`]
//! operations of others leaves the rest to whoever comes next or polls.
//!
//! A callback runs under the lock; what it submits goes to the ring, which is
//! the backlog of ARCHITECTURE 2.2.
//!
//! Progress: `enqueue` is lock-free; one thread that is stopped while it holds
//! the lock delays completions, but nobody's submit.

use super::port::Port;
use super::work::Work;
use crate::backend::Endpoint;
use crate::mem::AddrError;
use crate::op::Op;
use crate::ring::MpscView;
use crate::sync::{AtomicU32, CachePadded, Ordering, UnsafeCell, mutant, spin_loop};
use core::fmt;

/// One endpoint that any thread may work.
pub struct Delegate<'t, E: Endpoint> {
    lock: CachePadded<AtomicU32>,
    port: UnsafeCell<Port<'t, E>>,
    ring: MpscView<'t, Work>,
}

// SAFETY: the port is reached only through `Held`, of which the lock lets one
// exist at a time; the ring's only consumer is the holder.
unsafe impl<E: Endpoint> Sync for Delegate<'_, E> {}

impl<'t, E: Endpoint> Delegate<'t, E> {
    /// A free port, and the ring where work waits for its holder. Nobody else
    /// pops from `ring`.
    ///
    /// # Safety
    ///
    /// No consumer of the ring exists, nor is one made later.
    pub unsafe fn new(port: Port<'t, E>, ring: MpscView<'t, Work>) -> Self {
        Self { lock: CachePadded::new(AtomicU32::new(FREE)), port: UnsafeCell::new(port), ring }
    }

    /// Carries the operation out inside the call, if the device can and the
    /// lock is free.
    #[inline(always)]
    pub fn try_now(&self, op: &Op) -> Option<Result<u64, AddrError>> {
        if !E::IS_IMMEDIATE {
            return None;
        }
        let held = match self.try_hold() {
            Some(held) => held,
            None => self.stand_back()?,
        };
        held.with(|port| port.try_now(op))
    }

    /// Gives the operation on its way. Lock-free.
    ///
    /// # Errors
    ///
    /// The operation: the ring is full.
    #[inline]
    pub fn enqueue(&self, op: Op) -> Result<(), Op> {
        let op = match self.try_hold() {
            Some(held) => match held.with(|port| port.gather(op)) {
                Ok(()) => return Ok(()),
                Err(op) => op,
            },
            None => op,
        };
        self.leave(Work::Op(op)).map_err(|_| op)
    }

    /// The same, and works the endpoint at once, if nobody else does: for a
    /// caller that waits. Lock-free.
    ///
    /// # Errors
    ///
    /// The operation: the ring is full.
    #[inline]
    pub fn enqueue_now(&self, op: Op) -> Result<(), Op> {
        let op = match self.try_hold() {
            Some(held) => {
                let gathered = held.with(|port| {
                    port.gather(op)?;
                    port.turn();
                    Ok(())
                });
                match gathered {
                    Ok(()) => return Ok(()),
                    Err(op) => op,
                }
            }
            None => op,
        };
        self.leave(Work::Op(op)).map_err(|_| op)
    }

    /// Leaves work to the holder, who may be this thread. Lock-free.
    ///
    /// # Errors
    ///
    /// The work: the ring is full.
    pub fn leave(&self, work: Work) -> Result<(), Work> {
        self.ring.try_push(work)?;
        self.mark();
        Ok(())
    }

    /// Posts what has gathered and takes what has completed, if nobody else is
    /// at it. Returns how many completions there were.
    pub fn poll(&self) -> usize {
        let Some(held) = self.try_hold() else { return 0 };
        self.drain();
        held.with(Port::turn).1
    }

    /// Posts what has gathered, if nobody else is at it.
    pub fn flush(&self) {
        if let Some(held) = self.try_hold() {
            held.with(|port| port.flush());
        }
    }

    /// Whether nothing is on its way, as far as one can see: while somebody
    /// else holds the lock, false.
    pub fn is_quiet(&self) -> bool {
        self.try_hold()
            .is_some_and(|held| self.ring.is_empty() && held.with(|port| port.is_quiet()))
    }

    /// Whether something waits to be posted, as far as one can see: while
    /// somebody else holds the lock, true.
    pub fn has_gathered(&self) -> bool {
        self.try_hold()
            .is_none_or(|held| !self.ring.is_empty() || held.with(|port| port.has_gathered()))
    }

    #[inline(always)]
    fn try_hold(&self) -> Option<Held<'_, 't, E>> {
        // Acquire: pairs with the Release in `let_go`.
        self.lock
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Held(self))
    }

    /// The lock was taken: another thread works here, and it works fastest if
    /// it is left alone for a while with the lock's cache line. Two threads
    /// that stand back for one another take turns of many operations each.
    #[cold]
    #[inline(never)]
    fn stand_back(&self) -> Option<Held<'_, 't, E>> {
        for _ in 0..STAND_BACK_ROUNDS {
            for _ in 0..STAND_BACK_SPINS {
                spin_loop();
            }
            for _ in 0..LOOKS_MAX {
                if self.lock.load(Ordering::Relaxed) == FREE
                    && let Some(held) = self.try_hold()
                {
                    return Some(held);
                }
                spin_loop();
            }
        }
        None
    }

    /// After a push: the holder will see to it, or we are the holder now.
    fn mark(&self) {
        if mutant("delegate_mark_only_if_held") {
            if self.lock.load(Ordering::Relaxed) & HELD == 0 {
                return;
            }
            self.lock.fetch_or(MORE, Ordering::AcqRel);
            return;
        }
        // Release: the push is before it, pairs with the Acquire in `let_go`.
        // Acquire: as in `try_hold`.
        if self.lock.fetch_or(HELD | MORE, Ordering::AcqRel) & HELD == 0 {
            drop(Held(self));
        }
    }

    /// Moves operations from the ring to the batch; the holder calls it.
    /// Whether the ring was emptied.
    fn drain(&self) -> bool {
        for _ in 0..HELP_MAX {
            // SAFETY: the caller holds the lock, and `new` demands that there
            // be no other consumer.
            let room =
                self.port.with_mut(|port| unsafe { (*port).has_room() || (*port).flush() > 0 });
            if !room {
                return false;
            }
            // SAFETY: the same.
            let op = match unsafe { self.ring.try_pop() } {
                Some(Work::Op(op)) => op,
                Some(Work::Call(call)) => {
                    call.make();
                    continue;
                }
                None => return true,
            };
            // SAFETY: the same; there is room.
            let gathered = self.port.with_mut(|port| unsafe { (*port).gather(op) });
            debug_assert!(gathered.is_ok(), "there was room");
        }
        false
    }

    #[inline(always)]
    fn let_go(&self) {
        // Release: pairs with the Acquire of the next holder.
        let freed = self.lock.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.help();
        }
    }

    /// Somebody left work and a mark.
    #[cold]
    #[inline(never)]
    fn help(&self) {
        for _ in 0..HELP_ROUNDS_MAX {
            if !mutant("delegate_mark_kept") {
                // Acquire: pairs with the Release in `mark`: its push is seen.
                self.lock.swap(HELD, Ordering::AcqRel);
            }
            let emptied = self.drain();
            // SAFETY: the lock is held.
            self.port.with_mut(|port| unsafe { (*port).flush() });
            // Release: as in `let_go`.
            if emptied
                && self
                    .lock
                    .compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
        }
        // The device is full, or others push without end: whoever comes or
        // polls next goes on.
        self.lock.store(FREE, Ordering::Release);
    }
}

/// The right to the port, given back on drop, also when a callback panics.
struct Held<'d, 't, E: Endpoint>(&'d Delegate<'t, E>);

impl<'t, E: Endpoint> Held<'_, 't, E> {
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut Port<'t, E>) -> R) -> R {
        // SAFETY: the lock is ours, and `with` is not called inside of itself.
        self.0.port.with_mut(|port| f(unsafe { &mut *port }))
    }
}

impl<E: Endpoint> Drop for Held<'_, '_, E> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl<E: Endpoint> fmt::Debug for Delegate<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.lock.load(Ordering::Relaxed) & HELD != 0;
        write!(f, "Delegate({}, {:?})", if held { "held" } else { "free" }, self.ring)
    }
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const MORE: u32 = 2;

/// Operations of others that a holder does in one go.
const HELP_MAX: usize = 64;
const HELP_ROUNDS_MAX: usize = 4;

const STAND_BACK_ROUNDS: usize = if cfg!(tsumugi_loom) { 1 } else { 4 };
const STAND_BACK_SPINS: usize = if cfg!(tsumugi_loom) { 1 } else { 40 };
const LOOKS_MAX: usize = if cfg!(tsumugi_loom) { 1 } else { 8 };
