//! An endpoint under a lock for which no thread waits (delegation).
//!
//! A thread that finds the lock free takes it and does its own work. A thread
//! that finds the lock held leaves its operation in the ring and a mark in the
//! lock. The holder finds the mark when it lets the lock go, and does that
//! operation too:
//!
//! ```text
//!  FREE ──CAS──► HELD ──CAS──► FREE                       uncontended: two
//!                 │  ▲
//!   another: push,│  │ clear the mark, drain the ring     contended: the
//!   fetch_or MORE ▼  │ (bounded), try to let go again     other thread's push
//!             HELD|MORE                                   and one fetch_or
//! ```
//!
//! The mark is set after the push and in the same word as the lock. So either the
//! thread that pushed gets the lock or the holder sees the mark: no operation is
//! left in the ring without a thread that must take it. A holder that has done
//! [`HELP_MAX`] operations of other threads leaves the rest to the next thread
//! that calls or polls.
//!
//! A callback runs under the lock. Operations that it submits go to the ring,
//! which is the backlog (docs/architecture.md).
//!
//! Progress: `enqueue` is lock-free. A thread that is stopped while it holds the
//! lock delays completions, but no submit.

use super::port::Port;
use super::work::Work;
use crate::backend::Endpoint;
use crate::mem::AddrError;
use crate::mutate;
use crate::op::Op;
use crate::ring::MpscView;
use crate::sync::{AtomicU32, CachePadded, Ordering, UnsafeCell, spin_loop};
use core::fmt;

/// One endpoint that any thread may work.
pub struct Delegate<'t, E: Endpoint> {
    lock: CachePadded<AtomicU32>,
    port: UnsafeCell<Port<'t, E>>,
    ring: MpscView<'t, Work>,
}

// SAFETY: the port is reached only through `LockedPort`, and the lock lets one `LockedPort`
// exist at a time; the ring's only consumer is the holder.
unsafe impl<E: Endpoint> Sync for Delegate<'_, E> {}

impl<'t, E: Endpoint> Delegate<'t, E> {
    /// Makes a free lock on `port`, and takes the ring where work waits for the
    /// holder. Only the holder pops from `ring`.
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

    /// Begins the operation: gathers it, or leaves it to the holder. Lock-free.
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

    /// Begins the operation, and works the endpoint at once if no other thread
    /// does: for a caller that waits. Lock-free.
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

    /// Leaves work to the holder, which may be this thread. Lock-free.
    ///
    /// # Errors
    ///
    /// The work: the ring is full.
    pub fn leave(&self, work: Work) -> Result<(), Work> {
        self.ring.try_push(work)?;
        self.mark();
        Ok(())
    }

    /// Posts what has gathered and takes completions, if no other thread holds
    /// the lock. Returns how many completions there were.
    pub fn poll(&self) -> usize {
        let Some(held) = self.try_hold() else { return 0 };
        self.drain();
        held.with(Port::turn).1
    }

    /// Posts what has gathered, if no other thread holds the lock.
    pub fn flush(&self) {
        if let Some(held) = self.try_hold() {
            held.with(|port| port.flush());
        }
    }

    /// Returns whether no operation is on its way, as far as this thread can see:
    /// while another thread holds the lock, false.
    pub fn is_quiet(&self) -> bool {
        self.try_hold()
            .is_some_and(|held| self.ring.is_empty() && held.with(|port| port.is_quiet()))
    }

    /// Returns whether operations wait to be posted, as far as this thread can
    /// see: while another thread holds the lock, true.
    pub fn has_gathered(&self) -> bool {
        self.try_hold()
            .is_none_or(|held| !self.ring.is_empty() || held.with(|port| port.has_gathered()))
    }

    #[inline(always)]
    fn try_hold(&self) -> Option<LockedPort<'_, 't, E>> {
        // Acquire: pairs with the Release in `let_go`.
        self.lock
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| LockedPort(self))
    }

    /// Waits a bounded time for the lock, which was taken. The other thread works
    /// fastest if this thread does not touch the lock's cache line for a while.
    /// Two threads that stand back for one another take turns of many operations
    /// each.
    #[cold]
    #[inline(never)]
    fn stand_back(&self) -> Option<LockedPort<'_, 't, E>> {
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

    /// Marks the lock after a push: the holder will take the work, or this thread
    /// becomes the holder now.
    fn mark(&self) {
        mutate!("delegate_mark_only_if_held": {} => {
            if self.lock.load(Ordering::Relaxed) & HELD != 0 {
                self.lock.fetch_or(MORE, Ordering::AcqRel);
            }
            return;
        });
        // Release: the push is before it, pairs with the Acquire in `help`.
        // Acquire: as in `try_hold`.
        if self.lock.fetch_or(HELD | MORE, Ordering::AcqRel) & HELD == 0 {
            drop(LockedPort(self));
        }
    }

    /// Moves operations from the ring to the batch. Only the holder calls this
    /// function. Returns whether the ring was emptied.
    fn drain(&self) -> bool {
        for _ in 0..HELP_MAX {
            let room = || {
                let port = self.port.get_mut();
                // SAFETY: the caller holds the lock, so the port is the caller's
                // alone.
                unsafe { port.deref().has_room() || port.deref().flush() > 0 }
            };
            if !room() {
                return false;
            }
            // SAFETY: the caller holds the lock, and `new` demands that there be
            // no other consumer.
            let op = match unsafe { self.ring.try_pop() } {
                Some(Work::Op(op)) => op,
                Some(Work::Call(call)) => {
                    call.make();
                    continue;
                }
                None => return true,
            };
            // SAFETY: the caller holds the lock, as above.
            let gathered = unsafe { self.port.get_mut().deref().gather(op) };
            debug_assert!(gathered.is_ok(), "the batch has room");
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

    /// Does the work that other threads left with a mark, then lets the lock go.
    #[cold]
    #[inline(never)]
    fn help(&self) {
        for _ in 0..HELP_ROUNDS_MAX {
            // Acquire: pairs with the Release in `mark`, so the push before
            // it is seen.
            mutate!("delegate_mark_kept": _ = self.lock.swap(HELD, Ordering::AcqRel) => ());
            let emptied = self.drain();
            // SAFETY: this thread holds the lock.
            unsafe { self.port.get_mut().deref().flush() };
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
        // The device is full, or other threads push without end: the next thread
        // that calls or polls goes on.
        self.lock.store(FREE, Ordering::Release);
    }
}

/// The right to use the port, given back on drop, also when a callback panics.
struct LockedPort<'d, 't, E: Endpoint>(&'d Delegate<'t, E>);

impl<'t, E: Endpoint> LockedPort<'_, 't, E> {
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut Port<'t, E>) -> R) -> R {
        let port = self.0.port.get_mut();
        // SAFETY: this thread holds the lock, and `with` is not called inside of
        // itself.
        f(unsafe { port.deref() })
    }
}

impl<E: Endpoint> Drop for LockedPort<'_, '_, E> {
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

/// Operations of other threads that a holder does in one go.
const HELP_MAX: usize = 64;
const HELP_ROUNDS_MAX: usize = 4;

const STAND_BACK_ROUNDS: usize = if cfg!(tsumugi_loom) { 1 } else { 4 };
const STAND_BACK_SPINS: usize = if cfg!(tsumugi_loom) { 1 } else { 40 };
const LOOKS_MAX: usize = if cfg!(tsumugi_loom) { 1 } else { 8 };
