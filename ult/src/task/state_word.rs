//! The word of the state: its changes are counted, so that a copy of the reason is
//! consistent.

use super::descriptor::Task;
use super::state::{LENDING, NEW, PARKED, RUNNABLE, SLEEPING, STATE_MASK, UltState, state_of};
use core::slice;
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Reason;

impl Task {
    /// The state; `None` for a free slot.
    /// [`SchedulerShared::runs`](crate::sched::shared::SchedulerShared::runs) tells whether a ULT that
    /// is `Ready` here is running.
    pub(crate) fn state(&self) -> Option<UltState> {
        state_of(self.state.load(Ordering::Acquire))
    }

    /// Whether the ULT never ran. Called by its spawner, which still has the handle.
    #[inline(always)]
    pub(crate) fn is_new(&self) -> bool {
        self.state.load(Ordering::Relaxed) & STATE_MASK == NEW
    }

    /// Whether the ULT was woken, or yielded. Called by the worker that took it from
    /// a queue.
    pub(crate) fn is_ready(&self) -> bool {
        self.state.load(Ordering::Relaxed) & STATE_MASK == RUNNABLE
    }

    /// A number that changes with every change of the state, and when the ULT leaves
    /// a worker to the hub.
    pub(crate) fn stamp(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// Notes that the ULT waits for a child that runs in its place.
    #[inline(always)]
    pub(crate) fn begin_lending(&self) {
        self.step(RUNNABLE, LENDING);
    }

    /// Notes that the child has ended.
    #[inline(always)]
    pub(crate) fn end_lending(&self) {
        self.step(LENDING, RUNNABLE);
    }

    /// Notes that the ULT may run, or runs on.
    #[inline(always)]
    pub(crate) fn set_runnable(&self) {
        self.set_state(RUNNABLE);
    }

    /// Makes a sleeping ULT runnable. Returns whether it slept.
    #[inline]
    pub(crate) fn set_awake(&self) -> bool {
        let slept = matches!(self.state.load(Ordering::Relaxed) & STATE_MASK, SLEEPING | PARKED);
        if slept {
            self.set_state(RUNNABLE);
        }
        slept
    }

    /// Notes that the ULT sleeps from now on, for the reason that was set.
    #[inline(always)]
    pub(crate) fn set_sleeping(&self) {
        self.set_state(SLEEPING);
    }

    /// Notes that the ULT sleeps from now on in a park. It was running.
    #[inline(always)]
    pub(crate) fn set_parked(&self) {
        self.step(RUNNABLE, PARKED);
    }

    /// The reason of the sleep that the ULT has just requested. Called by its worker.
    pub(crate) fn what(&self) -> &'static str {
        // SAFETY: the ULT has just left its stack, and its worker has it.
        let Some(head) = (unsafe { self.head() }) else { return "" };
        let what = head.reason.what.load(Ordering::Relaxed);
        let what_bytes = head.reason.what_bytes.load(Ordering::Relaxed);
        // SAFETY: the ULT set both words before it left, from one `Reason`.
        unsafe { text(what, what_bytes) }
    }

    /// The state, and a sleeper's reason and the begin of its sleep, all at one
    /// moment.
    ///
    /// # Safety
    ///
    /// The stacks stay until this has returned.
    pub(crate) unsafe fn look(&self) -> Option<(UltState, Option<(Reason, Instant)>)> {
        // Acquire: pairs with the Release in `set_state`.
        let before = self.state.load(Ordering::Acquire);
        let parks = before & STATE_MASK == PARKED
            || before & STATE_MASK == RUNNABLE && self.park.has_sleeper();
        let state = if parks { UltState::Sleeping } else { state_of(before)? };
        // SAFETY: by the caller's contract the stacks stay, so the head of any stack
        // is valid.
        let head = unsafe { self.head_at().as_ref() };
        let (UltState::Sleeping, Some(head)) = (state, head) else { return Some((state, None)) };
        let cells = &head.reason;
        let what = cells.what.load(Ordering::Relaxed);
        let what_bytes = cells.what_bytes.load(Ordering::Relaxed);
        let at = cells.at.load(Ordering::Relaxed);
        let wanted = cells.wanted.load(Ordering::Relaxed);
        let since = Instant::from_ns(head.since.load(Ordering::Relaxed));
        // Acquire: pairs with the Release fence in `StackHead::set_reason`, and with
        // the Release of `since`.
        fence(Ordering::Acquire);
        if self.state.load(Ordering::Relaxed) != before {
            return Some((UltState::Running, None));
        }
        if parks {
            return Some((state, Some((Reason::new("park"), since))));
        }
        // SAFETY: the state did not change, so address and length are of one
        // `Reason`.
        let what = unsafe { text(what, what_bytes) };
        Some((state, Some((Reason { what, at, wanted }, since))))
    }

    /// Changes the state from a known state to the next.
    #[inline(always)]
    pub(super) fn step(&self, from: u32, to: u32) {
        let before = self.state.load(Ordering::Relaxed);
        debug_assert_eq!(before & STATE_MASK, from);
        // Release: as in `set_state`; written so that it is one instruction.
        self.state.store(before.wrapping_add(STATE_MASK + 1 + to - from), Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn set_state(&self, state: u32) {
        // There is one writer at a time, so no read-modify-write is needed.
        let count = (self.state.load(Ordering::Relaxed) & !STATE_MASK).wrapping_add(STATE_MASK + 1);
        // Release: pairs with the Acquire in `look`.
        self.state.store(count | state, Ordering::Release);
    }
}

/// The text of a reason.
///
/// # Safety
///
/// Address and length are those of one reason's text.
unsafe fn text(what: *const u8, bytes: usize) -> &'static str {
    // SAFETY: the caller promises that they are of one reason's text, a `&'static str`.
    unsafe { core::str::from_utf8_unchecked(slice::from_raw_parts(what, bytes)) }
}
