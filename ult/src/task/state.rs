//! Where a ULT stands, in a word that counts its changes, and what a sleeper
//! waits for.

use super::Task;
use core::slice;
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Reason;

/// Where a ULT stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Created, never run.
    New,
    /// In a queue, waiting for a worker.
    Ready,
    /// On a worker.
    Running,
    /// Waiting to be woken.
    Sleeping,
    /// Joins a ULT that runs in its place meanwhile.
    Lending,
    /// Ended, not joined yet.
    Done,
}

impl Task {
    /// Where it stands; `None` for a free slot. Whether one that is `Ready` runs
    /// is for [`Shared::runs`](crate::sched::shared::Shared::runs) to say.
    pub(crate) fn state(&self) -> Option<State> {
        state_of(self.state.load(Ordering::Acquire))
    }

    /// Whether it never ran. By whoever spawned it, who still has its handle.
    #[inline(always)]
    pub(crate) fn is_new(&self) -> bool {
        self.state.load(Ordering::Relaxed) & STATE_MASK == NEW
    }

    /// Whether it was woken, or yielded. By whoever took it from a queue.
    pub(crate) fn is_ready(&self) -> bool {
        self.state.load(Ordering::Relaxed) & STATE_MASK == RUNNABLE
    }

    /// Changes with every change of its state, and when it leaves a worker to
    /// the hub.
    pub(crate) fn stamp(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// It waits for a child that runs in its place.
    #[inline(always)]
    pub(crate) fn begin_lending(&self) {
        self.step(RUNNABLE, LENDING);
    }

    /// The child has ended.
    #[inline(always)]
    pub(crate) fn end_lending(&self) {
        self.step(LENDING, RUNNABLE);
    }

    /// It may run, or goes on.
    #[inline(always)]
    pub(crate) fn set_runnable(&self) {
        self.set_state(RUNNABLE);
    }

    /// If it sleeps, it does so no longer: it may run. Whether it did.
    #[inline]
    pub(crate) fn set_awake(&self) -> bool {
        let slept = matches!(self.state.load(Ordering::Relaxed) & STATE_MASK, SLEEPING | PARKED);
        if slept {
            self.set_state(RUNNABLE);
        }
        slept
    }

    /// It sleeps from now on, for the reason that was set.
    #[inline(always)]
    pub(crate) fn set_sleeping(&self) {
        self.set_state(SLEEPING);
    }

    /// It sleeps from now on, and parks. It ran.
    #[inline(always)]
    pub(crate) fn set_parked(&self) {
        self.step(RUNNABLE, PARKED);
    }

    /// What the sleep that it has just asked for is for. By its worker.
    pub(crate) fn what(&self) -> &'static str {
        // SAFETY: it has just left its stack.
        let Some(head) = (unsafe { self.head() }) else { return "" };
        let what = head.reason.what.load(Ordering::Relaxed);
        let what_bytes = head.reason.what_bytes.load(Ordering::Relaxed);
        // SAFETY: set by the ULT before it left, of one `Reason`.
        unsafe { text(what, what_bytes) }
    }

    /// State, and what a sleeper waits for and since when, as of one moment.
    ///
    /// # Safety
    ///
    /// The stacks are there until this has returned.
    pub(crate) unsafe fn look(&self) -> Option<(State, Option<(Reason, Instant)>)> {
        // Acquire: pairs with `set_state`.
        let before = self.state.load(Ordering::Acquire);
        let parks = before & STATE_MASK == PARKED
            || before & STATE_MASK == RUNNABLE && self.park.has_sleeper();
        let state = if parks { State::Sleeping } else { state_of(before)? };
        // SAFETY: the caller's: whichever stack it was, its head is there.
        let head = unsafe { self.head_at().as_ref() };
        let (State::Sleeping, Some(head)) = (state, head) else { return Some((state, None)) };
        let cells = &head.reason;
        let what = cells.what.load(Ordering::Relaxed);
        let what_bytes = cells.what_bytes.load(Ordering::Relaxed);
        let at = cells.at.load(Ordering::Relaxed);
        let wanted = cells.wanted.load(Ordering::Relaxed);
        let since = Instant::from_ns(head.since.load(Ordering::Relaxed));
        // Acquire: pairs with the Release fence in `Head::set_reason`, and with
        // the Release of `since`.
        fence(Ordering::Acquire);
        if self.state.load(Ordering::Relaxed) != before {
            return Some((State::Running, None));
        }
        if parks {
            return Some((state, Some((Reason::new("park"), since))));
        }
        // SAFETY: the state did not change, so the two are of one `Reason`.
        let what = unsafe { text(what, what_bytes) };
        Some((state, Some((Reason { what, at, wanted }, since))))
    }

    /// From one known state to the next.
    #[inline(always)]
    pub(super) fn step(&self, from: u32, to: u32) {
        let before = self.state.load(Ordering::Relaxed);
        debug_assert_eq!(before & STATE_MASK, from);
        // As in `set_state`; written so that it is one instruction.
        self.state.store(before.wrapping_add(STATE_MASK + 1 + to - from), Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn set_state(&self, state: u32) {
        // One writer at a time, so no read-modify-write.
        let count = (self.state.load(Ordering::Relaxed) & !STATE_MASK).wrapping_add(STATE_MASK + 1);
        // Release: pairs with the Acquire in `look`.
        self.state.store(count | state, Ordering::Release);
    }
}

/// What a reason says.
///
/// # Safety
///
/// Address and length are of one reason's.
unsafe fn text(what: *const u8, bytes: usize) -> &'static str {
    // SAFETY: the caller's; a reason has a `&'static str`.
    unsafe { core::str::from_utf8_unchecked(slice::from_raw_parts(what, bytes)) }
}

fn state_of(word: u32) -> Option<State> {
    match word & STATE_MASK {
        NEW => Some(State::New),
        RUNNABLE => Some(State::Ready),
        SLEEPING | PARKED => Some(State::Sleeping),
        DONE => Some(State::Done),
        LENDING => Some(State::Lending),
        _ => None,
    }
}

pub(super) const FREE: u32 = 0;
pub(super) const NEW: u32 = 1;
/// In a queue, or on a worker: which of the two, the workers say.
pub(super) const RUNNABLE: u32 = 2;
pub(super) const SLEEPING: u32 = 3;
pub(super) const DONE: u32 = 4;
pub(super) const LENDING: u32 = 5;
/// Sleeps, for no reason but that it parks. One that does so on the only worker,
/// which has the park words to itself, says so there and stays `RUNNABLE` here.
pub(super) const PARKED: u32 = 6;
const STATE_MASK: u32 = 7;
