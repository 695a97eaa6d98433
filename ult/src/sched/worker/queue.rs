//! Where ULTs go that may run: the worker's own queues, or others'.

use super::Worker;
use crate::inject::Linked;
use crate::mail::Letter;
use crate::sched::record::Kind;
use crate::sched::shared::{Seat, Shared};
use crate::slab::Slot;
use crate::task::Task;
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::Ordering;

impl Worker {
    /// Queues a ULT that was just filled.
    #[inline]
    pub(crate) fn spawned(&self, slot: Slot) {
        self.note_spawned(slot);
        self.push(slot);
    }

    /// Queues a ULT that was just filled and given traits.
    ///
    /// # Panics
    ///
    /// If it is to stay on a worker that there is not.
    pub(crate) fn spawned_with_traits(&self, slot: Slot) {
        self.note_spawned(slot);
        self.route(slot);
    }

    /// Queues a ULT that slept, or hands it to the worker that it slept on.
    ///
    /// # Safety
    ///
    /// The caller used up its waker; this is the calling thread's worker.
    // Inlined where a ULT unparks another: a call costs as much as the rest.
    #[inline(always)]
    pub(crate) unsafe fn ready(&self, slot: Slot) {
        self.count(Counter::Wakes);
        // SAFETY: it sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        let last = task.last();
        // What is seldom needed is done in calls that this ends with, so that
        // it saves no registers.
        if self.shared.wanted.any()
            || !task.is_plain()
            || self.handing_over.get()
            || last != self.index
        {
            // SAFETY: the caller's.
            return unsafe { self.ready_in_particular(slot) };
        }
        task.set_runnable();
        self.push(slot);
    }

    /// As `ready`, of one that parked, on the only worker: nobody else sleeps or
    /// comes for it. The scheduler and the seat are the worker's own.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn ready_alone(&self, shared: &Shared, seat: &Seat, slot: Slot) {
        // SAFETY: it sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        if shared.wanted.any() || !task.is_for_all() {
            cold_path();
            // SAFETY: the caller's.
            return unsafe { self.ready_in_particular(slot) };
        }
        // SAFETY: we are the seat's owner.
        unsafe { seat.ready.push(slot.as_ptr()) };
    }

    #[inline(never)]
    unsafe fn ready_in_particular(&self, slot: Slot) {
        self.note(Kind::Wake, slot);
        // SAFETY: it sleeps, so it is alive.
        let task = unsafe { slot.as_ref() };
        if !task.is_plain() {
            task.set_runnable();
            return self.route(slot);
        }
        if self.handing_over.get() && self.next.get().is_null() {
            task.set_runnable();
            self.set_next(slot);
            return;
        }
        let last = task.last();
        if last != self.index && self.shared.seats[last].mail.try_send(slot.into()) {
            return;
        }
        task.set_runnable();
        self.push(slot);
    }

    /// Queues a chain of ULTs that slept and may run on any worker, and tells
    /// others of all of them at once. A worker that spins, and ran one of them
    /// last, is handed that one.
    ///
    /// # Safety
    ///
    /// The caller used up their wakers; this is the calling thread's worker.
    pub(crate) unsafe fn ready_all(&self, first: Slot) {
        let seat = self.seat();
        let mut chain = Some(first);
        while let Some(slot) = chain {
            // Read before somebody has it.
            chain = self.next_of(slot);
            self.count(Counter::Wakes);
            self.note(Kind::Wake, slot);
            // SAFETY: it sleeps, so it is alive.
            let task = unsafe { slot.as_ref() };
            let last = task.last();
            if last != self.index {
                let mail = &self.shared.seats[last].mail;
                if mail.is_open() && mail.try_send(slot.into()) {
                    continue;
                }
            }
            task.set_runnable();
            // SAFETY: we are the seat's owner.
            unsafe { seat.ready.push(slot.as_ptr()) };
        }
        self.notify();
    }

    /// Takes what came by mail: queues what hangs on it.
    pub(super) fn open_letter(&self, letter: Letter<Task>) -> Slot {
        if letter.more {
            self.queue_all(self.next_of(letter.first));
        }
        // SAFETY: whoever sent it made it ours.
        let slept = unsafe { letter.first.as_ref() }.set_awake();
        // On the only worker it may not have said so, but nothing else comes.
        if slept || self.shared.seats.len() == 1 {
            self.count(Counter::WokenAfar);
            self.note_come(letter.first, true);
        } else {
            self.count(Counter::Steals);
            self.note(Kind::Steal, letter.first);
        }
        letter.first
    }

    /// Queues what came by mail, while something else is to be run.
    #[cold]
    pub(super) fn take_in(&self, letter: Letter<Task>) {
        let slot = self.open_letter(letter);
        // SAFETY: as there.
        if unsafe { slot.as_ref() }.is_plain() { self.push(slot) } else { self.route(slot) }
    }

    /// Queues a ULT and those that hang on it.
    fn queue_all(&self, mut chain: Option<Slot>) {
        while let Some(slot) = chain {
            chain = self.next_of(slot);
            // SAFETY: we are the seat's owner.
            unsafe { self.seat().ready.push(slot.as_ptr()) };
        }
    }

    fn next_of(&self, slot: Slot) -> Option<Slot> {
        // SAFETY: whoever takes a chain has all of it.
        NonNull::new(unsafe { slot.as_ref() }.link().load(Ordering::Relaxed))
    }

    /// Lays the oldest of several ULTs out, for whoever has nothing; there is
    /// room.
    fn lay_out(&self) {
        let seat = self.seat();
        let (mut first, mut last, mut count) = (None, None, 0);
        // SAFETY: we are the seat's owner.
        unsafe {
            seat.ready.take_part(|task| {
                let slot = NonNull::new(task);
                (*task).link().store(ptr::null_mut(), Ordering::Relaxed);
                match last {
                    None => first = slot,
                    Some(last) => {
                        NonNull::<Task>::as_ref(&last).link().store(task, Ordering::Relaxed)
                    }
                }
                (last, count) = (slot, count + 1);
            });
        }
        let Some(first) = first else { return };
        // SAFETY: we are the seat's owner, and nobody else fills the place.
        unsafe { seat.offer.lay_out(Letter { first, more: count > 1 }) };
    }

    /// Takes what this worker had laid out, of several the youngest.
    #[cold]
    #[inline(never)]
    pub(super) fn take_back(&self) -> Option<Slot> {
        let letter = self.seat().offer.take()?;
        if !letter.more {
            return Some(letter.first);
        }
        self.queue_all(Some(letter.first));
        // SAFETY: we are the seat's owner.
        let youngest = unsafe { self.seat().ready.pop() };
        // The others were in no queue meanwhile.
        self.notify();
        NonNull::new(youngest?)
    }

    /// Queues a ULT again that was laid out, if it is the only one there and the
    /// queue is empty. Whether it is the youngest now.
    pub(super) fn queues_again(&self, wanted: Slot) -> bool {
        let seat = self.seat();
        if seat.offer.seen().map(|letter| letter.first) != Some(wanted) || !seat.ready.is_empty() {
            return false;
        }
        let Some(letter) = seat.offer.take() else { return false };
        self.queue_all(Some(letter.first));
        if letter.more {
            // They were in no queue meanwhile.
            self.notify();
        }
        !letter.more
    }

    /// Brings a ULT of the own queue to the front; false if it is not among
    /// the [`REACH`] youngest.
    pub(crate) fn bring_forward(&self, wanted: Slot) -> bool {
        let (mut others, mut found) = ([ptr::null_mut(); REACH], false);
        let mut count = 0;
        while count < REACH && !found {
            // SAFETY: we are the seat's owner.
            let Some(task) = (unsafe { self.seat().ready.pop() }) else { break };
            found = ptr::eq(task, wanted.as_ptr());
            if !found {
                others[count] = task;
                count += 1;
            }
        }
        for task in others[..count].iter().rev() {
            // SAFETY: as above.
            unsafe { self.seat().ready.push(*task) };
        }
        if !found && self.seat().offer.seen().map(|letter| letter.first) == Some(wanted) {
            let letter = self.seat().offer.take();
            found = letter.is_some();
            if let Some(Letter { more: true, .. }) = letter {
                self.queue_all(self.next_of(wanted));
            }
        }
        if found {
            // SAFETY: as above.
            unsafe { self.seat().ready.push(wanted.as_ptr()) };
        }
        // They were in no queue meanwhile.
        self.notify();
        found
    }

    /// Whether this worker knows of other ULTs to run.
    pub(crate) fn is_busy(&self) -> bool {
        let seat = self.seat();
        !seat.ready.is_empty()
            || seat.offer.is_full()
            || !seat.yielded.is_empty()
            || self.own_count.get() > 0
    }

    /// Queues a ULT that was asked to stay on a worker, or is urgent.
    #[cold]
    pub(super) fn route(&self, slot: Slot) {
        // SAFETY: it is ours until it is queued.
        let task = unsafe { slot.as_ref() };
        match task.worker() {
            Some(worker) if worker == self.index => self.keep(slot),
            // SAFETY: as above.
            Some(worker) => unsafe { self.shared.post(worker, slot) },
            None if task.is_plain() => self.push(slot),
            None => {
                // Before all others, on whichever worker looks first.
                // SAFETY: as above.
                unsafe { self.shared.push_urgent(slot) };
                self.notify();
            }
        }
    }

    /// Queues a ULT that stays on this worker.
    #[cold]
    pub(super) fn keep(&self, slot: Slot) {
        self.own.borrow_mut().push_back(slot);
        self.own_count.set(self.own_count.get() + 1);
        self.tie();
    }

    #[inline]
    pub(super) fn push(&self, slot: Slot) {
        // SAFETY: we are the seat's owner.
        unsafe { self.seat().ready.push(slot.as_ptr()) };
        self.notify();
    }

    /// Lets other workers have a part of what was pushed; there may be none.
    /// What is seldom needed is called last, so that the rest saves no registers.
    #[inline(always)]
    pub(super) fn notify(&self) {
        if !self.seat().offer.is_calm() {
            self.serve_idle();
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_idle(&self) {
        let seat = self.seat();
        if !seat.offer.is_full() && seat.ready.has_several() {
            self.lay_out();
        }
        if self.shared.sleepers() > 0 {
            self.shared.notify_sleepers();
        }
    }

    #[inline]
    pub(super) fn queue_yielded(&self, slot: Slot) {
        self.count(Counter::Yields);
        // SAFETY: it is ours until it is pushed.
        let task = unsafe { slot.as_ref() };
        task.set_runnable();
        if !task.is_plain() && task.worker().is_some() {
            return self.keep(slot);
        }
        let seat = self.seat();
        // SAFETY: we are the seat's owner.
        unsafe { seat.yielded.push(slot.as_ptr()) };
        if self.shared.sleepers() > 0 {
            self.offer_yielded();
        }
    }

    /// Somebody sleeps, and may be wanted if this worker has more than one.
    #[cold]
    fn offer_yielded(&self) {
        let seat = self.seat();
        if !seat.ready.is_empty()
            || seat.yielded.has_several()
            || seat.offer.is_full()
            || self.own_count.get() > 0
        {
            self.shared.notify_sleepers();
        }
    }
}

/// How far `bring_forward` looks.
const REACH: usize = 64;
