//! Where a worker finds the next ULT, and how it sleeps when there is none.
//!
//! The order is: `next` (a child that runs before its parent, or a joiner of a
//! ULT that just ended), the own deque (youngest first), the yielded queue
//! (oldest first), the ULTs that stay on this worker, the queue for ULTs from
//! outside, other workers. Urgent ULTs come before all except a child that runs
//! before its parent. At every fair turn, see `turn`, the worker polls progress
//! and takes the oldest of the yielded queue, of the ULTs that stay, or of those
//! from outside, and now and then of the own deque. So no ULT starves, however
//! busy the youngest ones are.
//!
//! # The next
//!
//! `next` is the worker's own: no thief sees it, and no thief is woken for it. So
//! it is filled while a ULT leaves, and empty when the next one is resumed: a
//! ready ULT is invisible to an idle worker for at most one switch of its holder.
//!
//! ```text
//!            leaves             fair turn or urgent one?
//!   A ─────────────────► next ──── no ───────────────────────► resumed
//!     spawns child first  │ yes
//!     ends, is joined     ├─ a child that has not begun ─────► resumed; the
//!                         │                            turn is at the next switch
//!                         └─ a joiner ─► own deque, notify; the oldest,
//!                                        or the urgent one ──► resumed
//! ```
//!
//! The child runs first at every spawn, as in a call. The fair turn that it
//! delays comes when the child leaves. A chain of children that each spawn the
//! next delays the turn on this worker only, and only as long as there are
//! stacks: all the parents are in the own deque.
//!
//! A function that takes any other ULT out of a queue for a while and puts it
//! back calls [`notify`]: a worker that searched meanwhile, and sleeps now, has
//! not seen that ULT.
//!
//! [`notify`]: Worker::notify
//!
//! # Sleeping
//!
//! An idle worker searches, spins for a bounded number of rounds, lets other OS
//! threads run a few times (see `yields`), and then sleeps until its bell rings. A
//! thread that pushes rings a bell unless a worker searches, because a searcher
//! will see the push: it stops being counted as a searcher *before* its last
//! look, and both sides have a fence between their two accesses. A searcher that
//! found a ULT passes the search on if more are left.

use super::thread::Worker;
use crate::deque::WorkDeque;
use crate::futex::SystemFutex;
use crate::public_slot::PublicSlot;
use crate::sched::record::WorkerRequests;
use crate::sched::turn::SWITCH;
use crate::slab::TaskSlot;
use crate::task::Task;
use core::ptr::{self, NonNull};
use core::time::Duration;
use tsumugi_core::mutate;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{Ordering, fence, spin_loop};
use tsumugi_core::time::Instant;

impl Worker {
    /// Returns the next ULT to run; waits for one. `None`: the scheduler stops.
    #[inline]
    pub(super) fn find(&self) -> Option<TaskSlot> {
        let turn = self.turn();
        if turn.get().has_counted() {
            self.tell();
        }
        let spent = turn.get();
        if spent.leaves(SWITCH) {
            turn.set(spent.less(SWITCH));
        } else if let Some(child) = self.take_child() {
            return Some(child);
        } else {
            turn.set(spent.anew());
            if self.shared.is_stopped() {
                return None;
            }
            if let Some(slot) = self.fair_turn() {
                self.show_next();
                return Some(slot);
            }
        }
        if let Some(slot) = self.look_near() {
            return Some(slot);
        }
        // The model need not look at everything twice.
        if cfg!(not(tsumugi_loom))
            && let Some(slot) = self.take_public()
        {
            // Other workers may have missed the ULTs that were linked to this one.
            self.notify();
            return Some(slot);
        }
        self.idle()
    }

    #[inline(always)]
    fn look_near(&self) -> Option<TaskSlot> {
        if self.shared.wanted.has(WorkerRequests::URGENT)
            && let Some(slot) = self.take_child().or_else(|| self.take_urgent())
        {
            self.show_next();
            return Some(slot);
        }
        if let Some(slot) = self.take_next() {
            return Some(slot);
        }
        let worker_slot = self.worker_slot();
        // SAFETY: we are the worker slot's owner.
        let near = unsafe { worker_slot.ready.pop() }.and_then(NonNull::new);
        let near = if near.is_none() && worker_slot.public_slot.is_full() {
            self.take_back()
        } else {
            near
        };
        // The ULTs that stay here take turns with those that yielded.
        if near.is_none()
            && self.own_count.get() > 0
            && self.own_turn.replace(!self.own_turn.get())
            && let Some(slot) = self.take_own()
        {
            return Some(slot);
        }
        // SAFETY: as above.
        match near.or_else(|| unsafe { worker_slot.yielded.take_first() }.and_then(NonNull::new)) {
            Some(slot) => Some(slot),
            None => self.look_far(),
        }
    }

    /// Makes a ULT the next, before any queue.
    pub(super) fn set_next(&self, slot: TaskSlot) {
        debug_assert!(self.next.get().is_null(), "`next` has a ULT already");
        self.next.set(slot.as_ptr());
    }

    /// Takes `next`.
    #[inline(always)]
    fn take_next(&self) -> Option<TaskSlot> {
        let next = NonNull::new(self.next.get())?;
        self.next.set(ptr::null_mut());
        Some(next)
    }

    /// Takes `next` if it is a child that runs before its parent.
    #[cold]
    fn take_child(&self) -> Option<TaskSlot> {
        let next = NonNull::new(self.next.get())?;
        // SAFETY: `next` is ready, and this worker's. A joiner is not new.
        let is_child = unsafe { next.as_ref() }.is_new();
        if mutate!("child_first_after_others": is_child => false) { self.take_next() } else { None }
    }

    /// Queues `next` where other workers see it, because another ULT runs before.
    #[cold]
    fn show_next(&self) {
        if let Some(next) = mutate!("next_not_shown": self.take_next() => None) {
            self.push(next);
        }
    }

    /// Takes a ULT that other threads have queued for this worker, or for any
    /// worker.
    #[inline]
    fn look_far(&self) -> Option<TaskSlot> {
        if (self.own_count.get() > 0 || !self.worker_slot().pinned.is_empty())
            && let Some(slot) = self.take_own()
        {
            return Some(slot);
        }
        if self.shared.inject.is_empty() { None } else { self.take_injected() }
    }

    /// Takes the oldest of the ULTs that stay here.
    #[cold]
    fn take_own(&self) -> Option<TaskSlot> {
        let pinned = &self.worker_slot().pinned;
        if !pinned.is_empty() {
            pinned.take_all(|task| {
                let Some(slot) = NonNull::new(task) else { return };
                self.note_taken(slot);
                self.keep(slot);
            });
        }
        let slot = self.own.borrow_mut().pop_front()?;
        self.own_count.set(self.own_count.get() - 1);
        self.unblock_direct_switches();
        // A ULT that yielded when the worker had no other one was queued without
        // a wake-up.
        if !self.worker_slot().yielded.is_empty() && self.shared.sleepers() > 0 {
            self.shared.notify_sleepers();
        }
        Some(slot)
    }

    /// Takes the oldest urgent ULT; queues the others again, for this worker or
    /// another.
    #[cold]
    fn take_urgent(&self) -> Option<TaskSlot> {
        let (mut first, mut more) = (None, false);
        self.shared.wanted.hear_of_urgent();
        self.shared.urgent.take_all(|task| match (first, NonNull::new(task)) {
            (Some(_), Some(slot)) => {
                // SAFETY: `take_all` has taken the ULT out, so it is in no queue.
                unsafe { self.shared.push_urgent(slot) };
                more = true;
            }
            (_, slot) => first = slot,
        });
        if more {
            // A worker that searched meanwhile found nothing.
            self.notify();
        }
        if let Some(slot) = first {
            // SAFETY: `take_all` has taken the ULT out, so it is this worker's.
            self.note_come(slot, unsafe { slot.as_ref() }.is_ready());
        }
        first
    }

    /// Takes all ULTs that came from outside, and returns the first.
    #[cold]
    fn take_injected(&self) -> Option<TaskSlot> {
        let (mut first, mut more) = (None, false);
        self.shared.inject.take_all(|task| {
            let Some(slot) = NonNull::new(task) else { return };
            self.note_taken(slot);
            if first.is_none() {
                first = Some(slot);
            } else {
                // SAFETY: we are the worker slot's owner.
                unsafe { self.worker_slot().yielded.push(task) };
                more = true;
            }
        });
        if more {
            self.notify();
        }
        first
    }

    /// Counts a ULT that another thread sent, if it was woken and is not new.
    fn note_taken(&self, slot: TaskSlot) {
        // SAFETY: the ULT was taken from a queue, so it is this worker's.
        let woken = unsafe { slot.as_ref() }.is_ready();
        if woken {
            self.count(Counter::WokenAfar);
        }
        self.note_come(slot, woken);
    }

    /// Polls, and takes the oldest of a queue that could starve, of another queue
    /// at each fair turn.
    #[cold]
    fn fair_turn(&self) -> Option<TaskSlot> {
        self.shared.halt.stand();
        self.now.set(self.shared.now());
        self.count(Counter::Polls);
        let moved = self.shared.progress.poll() | self.shared.fire(self.now.get());
        // For a queue to which nothing is pushed: no push notifies for it.
        self.notify();
        let worker_slot = self.worker_slot();
        let turn = self.fair_turns.get().wrapping_add(1);
        self.fair_turns.set(turn);
        // SAFETY: we are the worker slot's owner.
        let take = |queue: &WorkDeque<Task>| unsafe { queue.take_first() }.and_then(NonNull::new);
        // Where turns take so long that the deque is due at each one, the other
        // queues still come first at every second turn.
        let is_due =
            || self.now.get().since(self.aged.get()) >= AGED || turn.is_multiple_of(AGED_TURN);
        let aged = turn.is_multiple_of(2) && is_due();
        let aged = if aged {
            self.aged.set(self.now.get());
            self.take_back().or_else(|| take(&worker_slot.ready))
        } else {
            None
        };
        let oldest = aged.or_else(|| {
            (0..3).find_map(|queue| match turn.wrapping_add(queue) % 3 {
                0 => self.take_injected(),
                1 => self.take_own(),
                _ => take(&worker_slot.yielded),
            })
        });
        // A lone ULT in a yield loop waits for another thread. Where cores are
        // shared, that thread needs this core.
        if oldest.is_some() && !moved && self.shared.spin == 0 && !self.shared.has_ready() {
            self.yields.yield_core(|| self.shared.now());
        }
        oldest
    }

    #[cold]
    fn idle(&self) -> Option<TaskSlot> {
        let shared = &*self.shared;
        self.worker_slot().handoff.open();
        // Each search begins without stealing, see `steal`.
        self.looks.set(0);
        shared.progress.on_idle(self.index);
        let (mut rounds, mut idle_since, mut counted) = (0, None, false);
        let rests = !shared.progress.is_long();
        loop {
            if shared.is_stopped() {
                self.worker_slot().handoff.close();
                shared.progress.on_busy(self.index);
                if counted {
                    shared.idle.searching.fetch_sub(1, Ordering::SeqCst);
                }
                return None;
            }
            if !counted && rounds >= shared.spin.min(UNCOUNTED) {
                counted = true;
                shared.idle.searching.fetch_add(1, Ordering::SeqCst);
            }
            shared.halt.stand();
            if let Some(slot) = self.search() {
                shared.progress.on_busy(self.index);
                if let Some(batch) = self.worker_slot().handoff.close() {
                    self.queue_batch(batch);
                }
                if counted {
                    self.pass_search_on();
                } else {
                    // Other workers may have missed the ULTs that were linked to
                    // this one.
                    self.notify();
                }
                shared.hand_clock_on();
                return Some(slot);
            }
            self.count(Counter::Polls);
            if shared.progress.poll_idle(self.index) || self.watch_clock() {
                rounds = 0;
                continue;
            }
            rounds += 1;
            if rounds % CLOCK_ROUNDS == 0 || rounds > shared.spin {
                self.count_idle(&mut idle_since, shared.now());
            }
            if rounds <= shared.spin {
                if rests {
                    self.pause();
                }
            } else if rounds > shared.spin + OS_YIELDS || !self.yields.yield_core(|| shared.now()) {
                self.sleep();
                self.count_idle(&mut idle_since, self.now.get());
                rounds = 0;
            }
        }
    }

    /// Counts the time since the clock was last read. It is not called when the
    /// search has found a ULT, because the ULT would have to wait for it.
    fn count_idle(&self, since: &mut Option<Instant>, now: Instant) {
        if cfg!(not(tsumugi_loom)) {
            let idle = since.replace(now).map_or(Duration::ZERO, |since| now.since(since));
            self.worker_slot().counters.add(Counter::IdleNs, idle.as_nanos() as u64);
        }
    }

    /// Looks at everything once.
    fn search(&self) -> Option<TaskSlot> {
        if self.worker_slot().handoff.has_come() {
            match self.worker_slot().handoff.close() {
                Some(batch) => return Some(self.accept_batch(batch)),
                None => self.worker_slot().handoff.open(),
            }
        }
        let near = self.look_near().or_else(|| self.take_public());
        near.or_else(|| self.resume_stack_waiter()).or_else(|| self.steal())
    }

    /// Pauses shortly, but ends when a ULT comes through the hand-off slot, or is published by the
    /// worker from which this one took last.
    fn pause(&self) {
        let worker_slots = &self.shared.worker_slots;
        for _ in 0..PAUSES {
            let others = cfg!(not(tsumugi_loom)) && worker_slots.len() > 1;
            if self.worker_slot().handoff.has_come()
                || others && worker_slots[self.asked.get()].public_slot.is_full()
            {
                return;
            }
            spin_loop();
        }
    }

    /// Sleeps until the bell rings, unless a last look finds something. The
    /// caller is counted as searching, before and after.
    fn sleep(&self) {
        let shared = &*self.shared;
        if let Some(batch) = self.worker_slot().handoff.close() {
            self.queue_batch(batch);
            self.now.set(shared.now());
            return self.worker_slot().handoff.open();
        }
        let ticket = shared.bells.prepare(self.index);
        shared.idle.sleepers.fetch_add(1, Ordering::SeqCst);
        shared.idle.searching.fetch_sub(1, Ordering::SeqCst);
        shared.progress.on_sleep(self.index);
        // SeqCst: pairs with the fences in `notify_sleepers` and `DoorbellSet::ring`,
        // and with the light half in `sleepers`.
        shared.fences.heavy();
        let public_slots = shared.worker_slots.iter().map(|worker_slot| &worker_slot.public_slot);
        let has_public =
            shared.worker_slots.len() > 1 && !PublicSlot::all_empty(public_slots, shared.fences);
        let keeps = shared.alarms.keep(self.index);
        let limit = keeps.map(|due| due.since(shared.now()));
        let stay = mutate!("sleep_no_last_look":
            has_public
                || shared.has_ready()
                || !self.worker_slot().pinned.is_empty()
                || shared.is_stopped()
                || shared.halt.is_called()
                || limit.is_some_and(|limit| limit.is_zero())
                || shared.progress.has_work()
                || self.can_run_stack_waiter()
            => false
        );
        if stay {
            shared.bells.stay(self.index);
            // A thief may be about to take what was seen.
            spin_loop();
        } else {
            self.count(Counter::Sleeps);
            shared.bells.sleep(self.index, ticket, &SystemFutex, limit);
        }
        if keeps.is_some() {
            shared.alarms.unkeep();
        }
        shared.progress.on_wake(self.index);
        shared.idle.searching.fetch_add(1, Ordering::SeqCst);
        shared.idle.sleepers.fetch_sub(1, Ordering::SeqCst);
        self.worker_slot().handoff.open();
        self.now.set(shared.now());
    }

    /// Interrupts sleeps that are due. Returns whether there were any.
    #[inline]
    fn watch_clock(&self) -> bool {
        self.shared.alarms.next().is_some() && self.shared.fire(self.shared.now())
    }

    /// Ends the search. Wakes a sleeper if no other worker searches and there is
    /// more to run: perhaps no bell rang for it, because this worker searched.
    fn pass_search_on(&self) {
        if self.shared.idle.searching.fetch_sub(1, Ordering::SeqCst) == 1
            && self.shared.worker_slots.len() > 1
        {
            // SeqCst: between the count and the look; pairs with the fence in
            // `notify_sleepers`.
            fence(Ordering::SeqCst);
            // Without a sleeper, the queues of the other workers are not read.
            if self.shared.idle.sleepers.load(Ordering::Relaxed) > 0 && self.shared.has_ready() {
                self.shared.notify_sleepers();
            }
        }
    }

    fn can_run_stack_waiter(&self) -> bool {
        // SAFETY: a ULT that waits for a stack is alive.
        let can = |slot: TaskSlot| self.has_spare_stack(unsafe { slot.as_ref() }.class());
        !self.shared.stack_waiters.is_empty() && self.shared.stack_waiters.is_first(can)
    }
}

/// After so long a fair turn takes the oldest of the own deque. That is seldom,
/// because in a tree of ULTs the oldest is the largest branch, and to have it
/// stolen is better. In the model the turns are to be the same each time.
const AGED: Duration = if cfg!(tsumugi_loom) { Duration::MAX } else { Duration::from_millis(1) };
/// The same after so many fair turns, for a system without a clock.
const AGED_TURN: u32 = if cfg!(tsumugi_loom) { 2 } else { 256 };
/// Rounds of a search before it is counted as one, so that a short search does
/// not touch the cache line of the count.
const UNCOUNTED: u32 = 8;
/// Rounds of a search between two reads of the clock.
const CLOCK_ROUNDS: u32 = 8;
const OS_YIELDS: u32 = if cfg!(tsumugi_loom) { 0 } else { 4 };
const PAUSES: u32 = if cfg!(tsumugi_loom) { 1 } else { 8 };
