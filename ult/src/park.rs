//! Sleeping and waking, for whoever calls: a ULT or an OS thread.
//!
//! [`Here`] is the [`Wait`] of the calling thread. On a ULT a sleep switches
//! to the worker, which commits it; in a task of a foreign scheduler it parks
//! that task; on any other thread it is a futex.
//!
//! [`park`] and [`Unparker::unpark`] carry a token as the standard library's
//! do: an unpark before the park is kept, and several are one.
//!
//! Progress: `unpark` is lock-free, but for the first time that another thread
//! unparks a ULT of a scheduler of one worker: that waits for a few of the
//! worker's instructions. `park` and `sleep` block.

#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::awake::{Counted, counted};
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::foreign;
use crate::futex::{SystemFutex, os_yield};
use crate::host::{Instant, catch, resume};
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::sched::worker::Way;
use crate::slab::Slot;
use crate::stack::{Head, Left};
use crate::stake::Stake;
use crate::task::{Request, Task};
use crate::token::{Found, ParkWord};
use alloc::sync::Arc;
use core::fmt;
use core::mem::transmute;
use core::ptr::{self, NonNull};
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Futex, Race, Reason, Wait, Waker};

/// Whoever is calling: a ULT, a task of a foreign scheduler, an OS thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here;

// SAFETY: on a ULT `commit` runs on the worker's stack, after the switch, when
// the ULT can be resumed, once per suspension; or before the switch, where nobody
// but this very worker can resume it. On an OS thread it runs before
// the wait, with a waker that only sets a word: a wake that comes early is
// found there, and the thread cannot leave `sleep` before `commit` returned.
unsafe impl Wait for Here {
    // Inlined, as all that suspends: a processor predicts where a function
    // returns to by who called it, and after a switch that is somebody else.
    #[inline(always)]
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        // SAFETY: the caller's.
        let sleep_elsewhere = |commit| unsafe { sleep_elsewhere(reason, commit) };
        let Some(worker) = current::worker() else { return sleep_elsewhere(commit) };
        // SAFETY: this thread's worker, not kept across the suspension.
        let worker = unsafe { worker.as_ref() };
        let Some(slot) = worker.current() else { return sleep_elsewhere(commit) };
        // SAFETY: the running ULT.
        let task = unsafe { slot.as_ref() };
        // SAFETY: the running ULT is on its stack.
        unsafe { task.head().unwrap_unchecked() }.set_reason(&reason);
        let way = worker.let_sleep(slot, commit);
        // SAFETY: the closure lives on this stack, which stays until it was
        // committed; the lifetime is only the type's.
        let commit =
            unsafe { transmute::<*mut (dyn FnMut(Waker) -> bool + '_), *mut Commit>(commit) };
        let mut request = Request::Sleep(commit);
        let (next, left) = match way {
            Way::On => return,
            Way::Pass(next) => (Some(next), Left::ASLEEP),
            Way::Leave => (None, Left::ASLEEP),
            Way::Ask => (None, Left::request(&raw mut request)),
        };
        // SAFETY: we run on this ULT's stack, and `let_sleep` gave us the next;
        // the request stays until we are resumed.
        unsafe { task.leave(next, left) };
    }

    #[inline(always)]
    fn yield_now(&self) {
        let Some(worker) = current::worker() else { return yield_elsewhere() };
        // SAFETY: this thread's worker, not kept across the suspension.
        let worker = unsafe { worker.as_ref() };
        let Some(slot) = worker.current() else { return yield_elsewhere() };
        // SAFETY: we run on this ULT's stack, and `let_run` gave us the next.
        unsafe { slot.as_ref().leave(worker.let_run(slot), Left::YIELD) };
    }

    unsafe fn sleep_or_leave(
        &self,
        reason: Reason,
        commit: &mut dyn FnMut(Waker) -> bool,
        leave: &mut dyn FnMut(),
    ) {
        // SAFETY: the caller's.
        unsafe { self.or_leave(leave, || self.sleep(reason, commit)) }
    }

    #[inline(always)]
    unsafe fn yield_or_leave(&self, leave: &mut dyn FnMut()) {
        // SAFETY: the caller's.
        unsafe { self.or_leave(leave, || self.yield_now()) }
    }

    fn count(&self, counter: Counter) {
        if let Some(worker) = current::worker() {
            // SAFETY: this thread's worker, not kept across a suspension.
            unsafe { worker.as_ref() }.count(counter);
        }
    }
}

/// Sleeps until somebody unparks the caller. May return without a reason.
#[inline(always)]
pub fn park() {
    let Some(worker) = current::worker() else { return park_elsewhere() };
    // SAFETY: this thread's worker, not kept across the suspension.
    let worker = unsafe { worker.as_ref() };
    let Some(slot) = worker.current() else { return park_elsewhere() };
    // SAFETY: we run on this ULT's stack, and `let_park` gave us the next.
    unsafe { slot.as_ref().leave(worker.let_park(slot), Left::PARK) };
}

#[cold]
fn park_elsewhere() {
    // Where there is a token, too: it may not be there next time.
    current::assert_no_callback("park");
    own_parker().park();
}

/// The right to unpark the calling ULT or thread.
pub fn unparker() -> Unparker {
    match ult() {
        // SAFETY: the running ULT; `take_home` counts its scheduler.
        Some(slot) => unsafe { Unparker(Who::Ult(UltRef::new(slot))) },
        None => Unparker(Who::Thread(own_parker())),
    }
}

/// Runs `f` on the worker's own stack, which is an OS thread's like any other:
/// for what must not run on a ULT's. A fork is such a thing: ULT stacks are
/// kept from children, so a child that forked on one has none. What a child
/// touches must not lie on the ULT's stack either, so let `f` own it:
/// `on_os_stack(move || command.status())`. The worker runs nothing else
/// meanwhile: `f` must wait for nothing that a ULT of this worker is to do, and
/// a [`join`](crate::JoinHandle::join) or a scope there panics rather than wait
/// for ever.
pub fn on_os_stack<T>(f: impl FnOnce() -> T) -> T {
    let Some(slot) = ult() else { return f() };
    let (mut f, mut outcome) = (Some(f), None);
    let mut call = || {
        let f = f.take().expect("called once");
        outcome = Some(catch(f));
    };
    let call: &mut dyn FnMut() = &mut call;
    // SAFETY: the closure lives on this stack, which stays until it returned.
    let call = unsafe { transmute::<*mut (dyn FnMut() + '_), *mut dyn FnMut()>(call) };
    // SAFETY: we run on this ULT's stack.
    unsafe { slot.as_ref().ask(Request::OnOsStack(call)) };
    match outcome.expect("the worker called it") {
        Ok(value) => value,
        Err(panic) => resume(panic),
    }
}

/// Unparks one ULT or OS thread; of one that has ended, nothing happens, or
/// whoever has its descriptor now parks in vain once.
#[derive(Clone)]
pub struct Unparker(Who);

#[derive(Clone)]
enum Who {
    Ult(UltRef),
    Thread(Arc<ThreadParker>),
}

impl Unparker {
    /// Ends the present park of the one it stands for, or the next.
    ///
    /// Lock-free, but for the first time that another thread unparks a ULT of a
    /// scheduler of one worker: that waits for some of its instructions. A ULT
    /// of such a scheduler that unparks another of the same uses no atomic
    /// instruction. Not async-signal-safe: a handler raises a
    /// [`Flag`](crate::sync::Flag).
    #[inline(always)]
    pub fn unpark(&self) {
        match &self.0 {
            Who::Ult(ult) => ult.unpark(),
            Who::Thread(parker) => parker.unpark(),
        }
    }
}

impl fmt::Debug for Unparker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Who::Ult(ult) => write!(f, "Unparker(ULT in slot {})", ult.task().slot()),
            Who::Thread(_) => f.write_str("Unparker(thread)"),
        }
    }
}

/// A descriptor that may belong to somebody else by now. It holds a count of
/// its scheduler, so it is never wild.
pub(crate) struct UltRef {
    slot: Slot,
    /// Its scheduler, which the unparking thread's worker may have too.
    home: NonNull<Shared>,
}

// SAFETY: only the park word and constants of the task are touched.
unsafe impl Send for UltRef {}
// SAFETY: the same.
unsafe impl Sync for UltRef {}

impl UltRef {
    /// # Safety
    ///
    /// The task is alive.
    pub(crate) unsafe fn new(slot: Slot) -> Self {
        // SAFETY: the caller's.
        let this = unsafe { Self::uncounted(slot) };
        // SAFETY: a live task's home is alive, and in an `Arc`.
        unsafe { Arc::increment_strong_count(this.home.as_ptr()) };
        this
    }

    /// Takes over a count.
    ///
    /// # Safety
    ///
    /// The descriptor is there.
    unsafe fn uncounted(slot: Slot) -> Self {
        // SAFETY: the caller's.
        let home = unsafe { slot.as_ref() }.home().cast_mut().cast();
        Self { slot, home: NonNull::new(home).expect("a descriptor has a home") }
    }

    pub(crate) fn into_raw(self) -> *const () {
        let raw = self.slot.as_ptr().cast();
        core::mem::forget(self);
        raw
    }

    /// # Safety
    ///
    /// `raw` is of `into_raw`, and this is the one count it stands for.
    pub(crate) unsafe fn from_raw(raw: *const ()) -> Self {
        let slot = NonNull::new(raw.cast_mut().cast()).expect("into_raw is never null");
        // SAFETY: the count keeps the scheduler, and that its descriptors.
        unsafe { Self::uncounted(slot) }
    }

    #[inline(always)]
    pub(crate) fn unpark(&self) {
        // SAFETY: our count keeps the scheduler, and that its descriptors.
        unsafe { self.home.as_ref().unpark(self.slot) };
    }

    fn task(&self) -> &Task {
        // SAFETY: descriptors stay as long as the scheduler that we count.
        unsafe { self.slot.as_ref() }
    }
}

impl Clone for UltRef {
    fn clone(&self) -> Self {
        // SAFETY: alive by our own count.
        unsafe { Self::new(self.slot) }
    }
}

impl Drop for UltRef {
    fn drop(&mut self) {
        // SAFETY: the count that `new` took.
        unsafe { Arc::decrement_strong_count(self.home.as_ptr()) };
    }
}

/// The park word of an OS thread, or of a foreign scheduler's task.
pub(crate) struct ThreadParker {
    pub(crate) word: ParkWord,
    pub(crate) waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is written before the park begins and taken by whoever ends
// it.
unsafe impl Send for ThreadParker {}
// SAFETY: the same.
unsafe impl Sync for ThreadParker {}

impl ThreadParker {
    #[cfg(feature = "std")]
    pub(crate) fn new() -> Self {
        Self { word: ParkWord::new(), waker: UnsafeCell::new(None) }
    }

    /// By its own thread or task only.
    pub(crate) fn park(&self) {
        if self.word.take() {
            return;
        }
        let mut begin = |waker| {
            // SAFETY: nobody reads it before the park has begun.
            self.waker.with_mut(|slot| unsafe { *slot = Some(waker) });
            self.word.begin()
        };
        // SAFETY: whoever ends the park takes the waker out.
        unsafe { Here.sleep(Reason::new("park"), &mut begin) };
    }

    pub(crate) fn unpark(&self) {
        if self.word.unpark() != Found::Awake {
            // SAFETY: we ended the park.
            let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
            waker.expect("a parked thread left a waker").wake();
        }
    }
}

#[cfg(all(feature = "std", not(tsumugi_loom)))]
std::thread_local! {
    pub(crate) static LOCAL: Arc<ThreadParker> = Arc::new(ThreadParker::new());
}

#[cfg(tsumugi_loom)]
tsumugi_core::sync::model::thread_local! {
    pub(crate) static LOCAL: Arc<ThreadParker> = Arc::new(ThreadParker::new());
}

/// The caller's; by whoever is no ULT.
#[cold]
pub(crate) fn own_parker() -> Arc<ThreadParker> {
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    if let Some(caller) = foreign::caller() {
        static PARKERS: foreign::ByTask<ThreadParker> = foreign::ByTask::new();
        // A token must not be forgotten.
        let is_idle = |parker: &ThreadParker| parker.word.is_idle();
        return PARKERS.of(caller, ThreadParker::new, is_idle);
    }
    #[cfg(feature = "std")]
    return LOCAL.with(|parker| parker.clone());
    #[cfg(not(feature = "std"))]
    panic!("without std only ULTs park");
}

/// The running ULT.
#[inline(always)]
pub(crate) fn ult() -> Option<Slot> {
    // SAFETY: this thread's worker, not kept.
    unsafe { current::worker()?.as_ref() }.current()
}

/// Leaves the stake for the end of the scheduler, inside of the one that is there,
/// while `body` runs, if the caller is a ULT.
///
/// # Safety
///
/// The stake is on the caller's stack, and may be used as long as this lasts.
#[inline(always)]
pub(crate) unsafe fn staked<T>(stake: *mut Stake, body: impl FnOnce() -> T) -> T {
    // SAFETY: the running ULT is on its stack, until it ends.
    let head = ult().map(|slot| unsafe { (*slot.as_ptr()).head().unwrap_unchecked() });
    // SAFETY: the caller's, and taken back before this returns.
    let _staking = head.map(|head| unsafe { Staking::new(head, stake) });
    body()
}

/// The stake of the running ULT, until this is dropped.
struct Staking<'h> {
    head: &'h Head,
    outer: *mut Stake,
}

impl<'h> Staking<'h> {
    /// # Safety
    ///
    /// By the ULT whose stack has the head. The stake is on that stack, and may be
    /// used until this is dropped there.
    #[inline(always)]
    unsafe fn new(head: &'h Head, stake: *mut Stake) -> Self {
        // SAFETY: we are on it.
        let outer = unsafe { head.set_stake(stake) };
        // SAFETY: the caller's; nobody else looks at it before it is left here.
        unsafe { Stake::set_outer(stake, outer) };
        Self { head, outer }
    }
}

impl Drop for Staking<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: we are on it again.
        unsafe { self.head.set_stake(self.outer) };
    }
}

/// A sleep of whoever is no ULT: a foreign task, or an OS thread.
///
/// # Safety
///
/// As for [`Wait::sleep`].
#[cold]
unsafe fn sleep_elsewhere(reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
    current::assert_no_callback(reason.what);
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    if let Some(caller) = foreign::caller() {
        // SAFETY: the caller's.
        return unsafe { caller.sleep(reason, commit) };
    }
    // SAFETY: the caller's.
    unsafe { sleep_os(commit, None) };
}

#[cold]
fn yield_elsewhere() {
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    if let Some(caller) = foreign::caller() {
        caller.scheduler.yield_now();
    }
    os_yield();
}

/// A sleep on an OS thread: a word of its own for each sleep. When its limit
/// passes the race is interrupted, which wakes this very thread, unless the
/// event came first and is about to.
///
/// # Safety
///
/// As for [`Wait::sleep`].
#[cold]
pub(crate) unsafe fn sleep_os(
    commit: &mut dyn FnMut(Waker) -> bool,
    mut limit: Option<(Instant, &Race)>,
) {
    // One that wakes by itself counts all the time.
    let counted = if limit.is_none() { counted() } else { Counted::NONE };
    let bed = Bed { word: AtomicU32::new(ASLEEP), counted };
    // SAFETY: it stays until its word is no longer ASLEEP.
    let waker = unsafe { Waker::new(ptr::from_ref(&bed).cast(), wake_os) };
    if !commit(waker) {
        return;
    }
    bed.counted.sleeps();
    let word = &bed.word;
    // Acquire: pairs with `wake_os`.
    while word.load(Ordering::Acquire) == ASLEEP {
        let left = limit.map(|(until, _)| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let (_, race) = limit.take().expect("there is a limit");
            race.time_out();
            continue;
        }
        SystemFutex.wait(word, ASLEEP, left);
    }
}

/// What an OS thread sleeps on.
struct Bed {
    word: AtomicU32,
    counted: Counted,
}

unsafe fn wake_os(bed: *const ()) {
    let bed = bed.cast::<Bed>();
    // SAFETY: it is there until the store below.
    let (counted, word) = unsafe { ((*bed).counted, &raw const (*bed).word) };
    counted.wakes();
    // SAFETY: the sleeper waits for this very store. Release: what came
    // before the wake is seen after the sleep.
    unsafe { (*word).store(AWAKE, Ordering::Release) };
    // The word may be gone by now: the address alone is used, and a sleeper on
    // whatever is there now wakes early, which every futex user expects.
    // SAFETY: an address-only system call.
    unsafe { wake_address(word) };
}

#[cfg(not(tsumugi_loom))]
unsafe fn wake_address(word: *const AtomicU32) {
    crate::host::wake(word, 1);
}

#[cfg(tsumugi_loom)]
unsafe fn wake_address(_word: *const AtomicU32) {}

/// Nothing else than ULTs is counted without std.
#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
#[derive(Clone, Copy)]
struct Counted;

#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
impl Counted {
    const NONE: Self = Self;

    fn sleeps(self) {}

    fn wakes(self) {}
}

#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
fn counted() -> Counted {
    Counted
}

type Commit = dyn FnMut(Waker) -> bool;

const ASLEEP: u32 = 0;
const AWAKE: u32 = 1;
