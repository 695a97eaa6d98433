//! Where a worker finds the next ULT, and how it sleeps when there is none.
//!
//! In this order: the hand-over slot (a joiner whose
//! ULT just ended), the own deque (youngest first), the yielded queue (oldest
//! first), those that stay on this worker, the outsiders' queue, other
//! workers. Urgent ULTs come before all. Every [`FAIR_TURN`]
//! the worker polls progress and takes the oldest of the yielded, of those that
//! stay, or of the outsiders, and now and then of the own queue, so nothing
//! starves however busy the youngest are.
//!
//! # Giving and stealing
//!
//! A theft takes a barrier on all processors, see `deque`, and on a virtual
//! machine that stops its victim for microseconds. So whoever searches is seen
//! by those who push: they send it the oldest of several ULTs by mail, with a
//! compare-and-swap. Who searches steals only what it has seen for a while
//! ([`PATIENCE`]): from workers that do not push, and mail from those that do
//! not come for it, having lost their processors perhaps.
//!
//! # Sleeping
//!
//! An idle worker searches, spins a bounded number of rounds, lets other OS
//! threads run a few times, and then sleeps until it is rung. Whoever pushes
//! rings unless somebody searches, who will see the push: a searcher counts
//! itself out *before* its last look, and both sides have a fence between. A
//! searcher that found something passes the search on if more is left.

use super::{Seen, Worker};
use crate::deque::{Deque, Steal};
use crate::futex::{SystemFutex, os_yield};
use crate::mail::Mail;
use crate::sched::record::Kind;
use crate::slab::Slot;
use crate::task::Task;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::time::Duration;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{Ordering, fence, mutant, spin_loop};
use tsumugi_core::time::Instant;

impl Worker {
    /// The next ULT to run; waits for one. `None`: the scheduler stops.
    #[inline]
    pub(super) fn find(&self) -> Option<Slot> {
        if self.until_fair.get() > SWITCH {
            self.until_fair.set(self.until_fair.get() - SWITCH);
        } else {
            self.until_fair.set(FAIR_TURN);
            if self.shared.is_stopped() {
                return None;
            }
            if let Some(slot) = self.fair_turn() {
                return Some(slot);
            }
        }
        if let Some(slot) = self.look_near() {
            return Some(slot);
        }
        self.idle()
    }

    #[inline(always)]
    fn look_near(&self) -> Option<Slot> {
        if !self.shared.urgent.is_empty()
            && let Some(slot) = self.take_urgent()
        {
            return Some(slot);
        }
        if let Some(slot) = NonNull::new(self.next.replace(ptr::null_mut())) {
            return Some(slot);
        }
        let seat = self.seat();
        // SAFETY: we are the seat's owner.
        let near = unsafe { seat.ready.pop() };
        // Those that stay here take turns with those that let others run.
        if near.is_none()
            && self.own_count.get() > 0
            && self.own_turn.replace(!self.own_turn.get())
            && let Some(slot) = self.take_own()
        {
            return Some(slot);
        }
        // SAFETY: as above.
        match near.or_else(|| unsafe { seat.yielded.take_first() }) {
            Some(task) => NonNull::new(task),
            None => self.look_far(),
        }
    }

    /// What others have queued for us, or for anybody.
    #[inline]
    fn look_far(&self) -> Option<Slot> {
        if (self.own_count.get() > 0 || !self.seat().pinned.is_empty())
            && let Some(slot) = self.take_own()
        {
            return Some(slot);
        }
        if self.shared.inject.is_empty() { None } else { self.take_injected() }
    }

    /// The oldest of those that stay here.
    #[cold]
    fn take_own(&self) -> Option<Slot> {
        let pinned = &self.seat().pinned;
        if !pinned.is_empty() {
            pinned.take_all(|task| {
                let Some(slot) = NonNull::new(task) else { return };
                self.count_woken(slot);
                self.keep(slot);
            });
        }
        let slot = self.own.borrow_mut().pop_front()?;
        self.own_count.set(self.own_count.get() - 1);
        Some(slot)
    }

    /// The oldest of the urgent; the others are next here, or elsewhere.
    #[cold]
    fn take_urgent(&self) -> Option<Slot> {
        let (mut first, mut more) = (None, false);
        self.shared.urgent.take_all(|task| match first {
            None => first = NonNull::new(task),
            Some(_) => {
                // SAFETY: `take_all` has taken it out.
                unsafe { self.shared.urgent.push(task) };
                more = true;
            }
        });
        if more {
            // Who looked meanwhile found nothing.
            self.notify();
        }
        first
    }

    /// Takes all that came from outside, and runs the first.
    #[cold]
    fn take_injected(&self) -> Option<Slot> {
        let (mut first, mut more) = (None, false);
        self.shared.inject.take_all(|task| {
            let Some(slot) = NonNull::new(task) else { return };
            self.count_woken(slot);
            if first.is_none() {
                first = Some(slot);
            } else {
                // SAFETY: we are the seat's owner.
                unsafe { self.seat().yielded.push(task) };
                more = true;
            }
        });
        if more {
            self.notify();
        }
        first
    }

    /// Counts one that another thread sent, if it was woken and is not new.
    fn count_woken(&self, slot: Slot) {
        // SAFETY: taken from a queue, so it is ours.
        if unsafe { slot.as_ref() }.is_ready() {
            self.count(Counter::WokenAfar);
        }
    }

    /// The oldest of a queue of those that could starve, another one each time;
    /// polls on the way.
    #[cold]
    fn fair_turn(&self) -> Option<Slot> {
        self.shared.halt.stand();
        self.now.set(self.shared.now());
        self.count(Counter::Polls);
        let moved = self.shared.progress.poll() | self.shared.fire(self.now.get());
        let seat = self.seat();
        let turn = self.fair_turns.get().wrapping_add(1);
        self.fair_turns.set(turn);
        // SAFETY: we are the seat's owner.
        let take = |queue: &Deque<Task>| unsafe { queue.take_first() }.and_then(NonNull::new);
        let aged = if turn.is_multiple_of(AGED_TURN) { take(&seat.ready) } else { None };
        let oldest = aged.or_else(|| {
            (0..3).find_map(|queue| match turn.wrapping_add(queue) % 3 {
                0 => self.take_injected(),
                1 => self.take_own(),
                _ => take(&seat.yielded),
            })
        });
        // A lone ULT in a yield loop waits for somebody else; where cores are
        // shared, that somebody needs one.
        if oldest.is_some() && !moved && self.shared.spin == 0 && !self.shared.has_ready() {
            os_yield();
        }
        oldest
    }

    #[cold]
    fn idle(&self) -> Option<Slot> {
        let shared = &*self.shared;
        shared.idle.searching.fetch_add(1, Ordering::SeqCst);
        self.seat().mail.open();
        shared.progress.on_idle(self.index);
        let (mut rounds, mut idle_since) = (0, None);
        let rests = !shared.progress.is_long();
        loop {
            if shared.is_stopped() {
                self.seat().mail.close();
                shared.progress.on_busy(self.index);
                shared.idle.searching.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            shared.halt.stand();
            if let Some(slot) = self.search() {
                shared.progress.on_busy(self.index);
                if let Some(letter) = self.seat().mail.close() {
                    self.take_in(letter);
                }
                self.pass_search_on();
                shared.hand_clock_on();
                return Some(slot);
            }
            self.count(Counter::Polls);
            if shared.progress.poll() || self.watch_clock() {
                rounds = 0;
                continue;
            }
            if rounds % CLOCK_ROUNDS == 0 {
                self.count_idle(&mut idle_since, shared.now());
            }
            rounds += 1;
            if rounds <= shared.spin {
                if rests {
                    self.pause();
                }
            } else if rounds <= shared.spin + OS_YIELDS {
                os_yield();
            } else {
                self.sleep();
                self.count_idle(&mut idle_since, self.now.get());
                rounds = 0;
            }
        }
    }

    /// Counts the time since the clock was last looked at. Not when the search
    /// has found something, which would have to wait for it.
    fn count_idle(&self, since: &mut Option<Instant>, now: Instant) {
        if cfg!(not(tsumugi_loom)) {
            let idle = since.replace(now).map_or(Duration::ZERO, |since| now.since(since));
            self.seat().counters.add(Counter::IdleNs, idle.as_nanos() as u64);
        }
    }

    /// One look at everything.
    fn search(&self) -> Option<Slot> {
        if self.seat().mail.has_come() {
            match self.seat().mail.close() {
                Some(letter) => return Some(self.open_letter(letter)),
                None => self.seat().mail.open(),
            }
        }
        self.look_near().or_else(|| self.feed()).or_else(|| self.steal())
    }

    /// A short rest, in which the mail is looked at.
    fn pause(&self) {
        for _ in 0..PAUSES {
            if self.seat().mail.has_come() {
                return;
            }
            spin_loop();
        }
    }

    /// Sleeps until rung, unless a last look finds something. The caller is
    /// counted as searching, before and after.
    fn sleep(&self) {
        let shared = &*self.shared;
        if let Some(letter) = self.seat().mail.close() {
            self.take_in(letter);
            self.now.set(shared.now());
            return self.seat().mail.open();
        }
        let ticket = shared.bells.prepare(self.index);
        shared.idle.sleepers.fetch_add(1, Ordering::SeqCst);
        shared.idle.searching.fetch_sub(1, Ordering::SeqCst);
        shared.progress.on_sleep(self.index);
        // SeqCst: pairs with the fences in `notify_sleepers` and `Bells::ring`,
        // and with the light half in `notify`.
        shared.fences.heavy();
        let keeps = shared.alarms.keep(self.index);
        let limit = keeps.map(|due| due.since(shared.now()));
        let stay = !mutant("sleep_no_last_look")
            && (shared.has_ready()
                || !self.seat().pinned.is_empty()
                || shared.is_stopped()
                || shared.halt.is_called()
                || limit.is_some_and(|limit| limit.is_zero())
                || shared.progress.has_work()
                || self.can_feed());
        if stay {
            shared.bells.stay(self.index);
            // What is there may be in the hands of a thief just now.
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
        self.seat().mail.open();
        self.now.set(shared.now());
    }

    /// Interrupts sleeps that are due; whether there were any.
    #[inline]
    fn watch_clock(&self) -> bool {
        self.shared.alarms.next().is_some() && self.shared.fire(self.shared.now())
    }

    /// The search is over; if nobody else searches and more is there, it was
    /// perhaps not rung for because of us.
    fn pass_search_on(&self) {
        if self.shared.idle.searching.fetch_sub(1, Ordering::SeqCst) == 1
            && self.shared.seats.len() > 1
        {
            fence(Ordering::SeqCst);
            if self.shared.has_ready() {
                self.shared.notify_sleepers();
            }
        }
    }

    fn steal(&self) -> Option<Slot> {
        let seats = &self.shared.seats;
        if seats.len() == 1 {
            return None;
        }
        let start = self.random() as usize;
        let looks = self.looks.replace(0);
        for offset in 0..seats.len() {
            let victim = start.wrapping_add(offset) % seats.len();
            let seat = &seats[victim];
            let nothing = seat.ready.is_empty() && seat.yielded.is_empty() && !seat.mail.is_full();
            if victim == self.index || nothing {
                continue;
            }
            self.looks.set(looks + 1);
            if looks < self.shared.spin.min(PATIENCE) {
                continue;
            }
            if let Some(slot) = self.intercept(&seat.mail) {
                return Some(slot);
            }
            let stolen = self
                .steal_from(&self.lonely[victim][0], &seat.ready)
                .or_else(|| self.steal_from(&self.lonely[victim][1], &seat.yielded));
            if let Some(slot) = stolen {
                self.count(Counter::Steals);
                self.note(Kind::Steal, slot);
                return stolen;
            }
        }
        None
    }

    /// Takes what a worker was sent that did not come for it.
    fn intercept(&self, mail: &Mail<Task>) -> Option<Slot> {
        let slot = self.open_letter(mail.intercept()?);
        // SAFETY: it is ours now.
        if unsafe { slot.as_ref() }.is_plain() {
            return Some(slot);
        }
        // Back to the worker that it stays on, or before all others.
        self.route(slot);
        None
    }

    /// Takes the oldest of a queue, and of a long one some more to keep. A lone
    /// ULT is left to its worker until the second look at it: most such are
    /// about to be joined.
    fn steal_from(&self, lonely: &Cell<Seen>, queue: &Deque<Task>) -> Option<Slot> {
        let wants = |task: *mut Task| {
            // SAFETY: descriptors stay, whoever has this one by now.
            let seen = (task.addr(), unsafe { &*task }.stamp());
            // The model need not look at everything twice.
            lonely.replace(seen) == seen || cfg!(tsumugi_loom)
        };
        // SAFETY: we are the owner of our own seat.
        let keep = |task: *mut Task| unsafe { self.seat().ready.push(task) };
        match queue.steal(wants, keep) {
            Steal::Taken(task) => NonNull::new(task),
            Steal::Empty | Steal::Lost => None,
        }
    }

    fn can_feed(&self) -> bool {
        // SAFETY: one that waits for a stack is alive.
        let can = |slot: Slot| self.has_spare_stack(unsafe { slot.as_ref() }.class());
        !self.shared.hungry.is_empty() && self.shared.hungry.is_first(can)
    }

    fn random(&self) -> u64 {
        // Xorshift: enough to spread thieves.
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }
}

/// Between two looks at everything that could starve: 61 switches, or four
/// times as many ULTs that ran in the place of their joiners.
pub(super) const FAIR_TURN: u32 = 61 * SWITCH;
/// Of so many fair turns one takes the oldest of the own queue: seldom, because
/// in a tree of ULTs that is the largest branch, which is better stolen.
const AGED_TURN: u32 = 16;
pub(super) const SWITCH: u32 = 4;
pub(super) const CALL: u32 = 1;
/// Looks at what others have before it is stolen: a barrier on all processors
/// takes microseconds, and most of them come to give in less.
const PATIENCE: u32 = if cfg!(tsumugi_loom) { 0 } else { 16 };
/// Rounds of a search between two looks at the clock.
const CLOCK_ROUNDS: u32 = 8;
const OS_YIELDS: u32 = if cfg!(tsumugi_loom) { 0 } else { 4 };
const PAUSES: u32 = if cfg!(tsumugi_loom) { 1 } else { 8 };
