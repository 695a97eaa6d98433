//! Sleeping and waking, for each kind of caller: a ULT, a foreign task or an OS
//! thread.
//!
//! [`Here`] is the [`Wait`] of the calling thread. On a ULT a sleep switches to the
//! worker, which commits the sleep; in a task of a foreign scheduler it parks that
//! task; on any other thread it is a futex.
//!
//! [`park`] and [`Unparker::unpark`] carry a token, as the standard library's do: an
//! unpark before the park is kept, and several unparks are one.
//!
//! Progress: `unpark` is lock-free, except the first time that another thread unparks
//! a ULT of a scheduler of one worker; that call waits for a few of the worker's
//! instructions. `park` and `sleep` block.

#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::awake::{Counted, counted};
use crate::cleanup::CleanupRecord;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use crate::foreign;
use crate::futex::{SystemFutex, os_yield};
use crate::host::{Instant, catch, resume};
use crate::sched::current;
use crate::sched::shared::SchedulerShared;
use crate::sched::worker::SleepOutcome;
use crate::slab::TaskSlot;
use crate::stack::{Left, StackHead};
use crate::task::{SuspendRequest, Task};
use crate::token::{FoundSleeper, ParkWord};
use alloc::sync::Arc;
use core::fmt;
use core::mem::transmute;
use core::ptr::{self, NonNull};
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Futex, Race, Reason, Wait, Waker};

/// The caller: a ULT, a task of a foreign scheduler, or an OS thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here;

// SAFETY: on a ULT `commit` runs once per suspension: on the worker's stack, after
// the switch, when the ULT can be resumed; or before the switch, where only this
// worker can resume the ULT. On an OS thread it runs before the wait, with a waker
// that only sets a word: a wake that comes early is found there, and the thread
// cannot leave `sleep` before `commit` has returned.
unsafe impl Wait for Here {
    // Inlined, as all functions that suspend: a processor predicts the target of a
    // return by the last call, and after a switch that call was made by another ULT.
    #[inline(always)]
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        // SAFETY: the caller keeps the contract of [`Wait::sleep`].
        let sleep_elsewhere = |commit| unsafe { sleep_elsewhere(reason, commit) };
        let Some(worker) = current::worker() else { return sleep_elsewhere(commit) };
        // SAFETY: this thread's worker, not kept across the suspension.
        let worker = unsafe { worker.as_ref() };
        let Some(slot) = worker.current() else { return sleep_elsewhere(commit) };
        // SAFETY: the running ULT is alive.
        let task = unsafe { slot.as_ref() };
        // SAFETY: the running ULT is on its stack, so it has a head.
        unsafe { task.head().unwrap_unchecked() }.set_reason(&reason);
        let way = worker.let_sleep(slot, commit);
        // SAFETY: the closure lives on this stack, which stays until the sleep is
        // committed; the transmute changes only the type's lifetime.
        let commit =
            unsafe { transmute::<*mut (dyn FnMut(Waker) -> bool + '_), *mut Commit>(commit) };
        let mut request = SuspendRequest::Sleep(commit);
        let (next, left) = match way {
            SleepOutcome::On => return,
            SleepOutcome::Pass(next) => (Some(next), Left::ASLEEP),
            SleepOutcome::Leave => (None, Left::ASLEEP),
            SleepOutcome::Ask => (None, Left::request(&raw mut request)),
        };
        // SAFETY: we run on this ULT's stack, and `let_sleep` gave us the next ULT;
        // the request stays until we are resumed.
        unsafe { task.leave(next, left) };
    }

    #[inline(always)]
    fn yield_now(&self) {
        let Some(worker) = current::worker() else { return yield_elsewhere() };
        // SAFETY: this thread's worker, not kept across the suspension.
        let worker = unsafe { worker.as_ref() };
        let Some(slot) = worker.current() else { return yield_elsewhere() };
        // SAFETY: we run on this ULT's stack, and `let_run` gave us the next ULT.
        unsafe { slot.as_ref().leave(worker.let_run(slot), Left::YIELD) };
    }

    unsafe fn sleep_or_leave(
        &self,
        reason: Reason,
        commit: &mut dyn FnMut(Waker) -> bool,
        leave: &mut dyn FnMut(),
    ) {
        // SAFETY: the caller keeps the contracts of the sleep and of `leave`.
        unsafe { self.or_leave(leave, || self.sleep(reason, commit)) }
    }

    #[inline(always)]
    unsafe fn yield_or_leave(&self, leave: &mut dyn FnMut()) {
        // SAFETY: the caller promises that `leave` may be called if it is cut off.
        unsafe { self.or_leave(leave, || self.yield_now()) }
    }

    fn count(&self, counter: Counter) {
        if let Some(worker) = current::worker() {
            // SAFETY: this thread's worker, not kept across a suspension.
            unsafe { worker.as_ref() }.count(counter);
        }
    }
}

/// Sleeps until another thread or ULT unparks the caller. May return without an
/// unpark.
#[inline(always)]
pub fn park() {
    let Some(worker) = current::worker() else { return park_elsewhere() };
    // SAFETY: this thread's worker, not kept across the suspension.
    let worker = unsafe { worker.as_ref() };
    let Some(slot) = worker.current() else { return park_elsewhere() };
    // SAFETY: we run on this ULT's stack, and `let_park` gave us the next ULT.
    unsafe { slot.as_ref().leave(worker.let_park(slot), Left::PARK) };
}

#[cold]
fn park_elsewhere() {
    // Checked even if there is a token now, because there may be none next time.
    current::assert_no_callback("park");
    own_parker().park();
}

/// The right to unpark the calling ULT or thread.
pub fn unparker() -> Unparker {
    match ult() {
        // SAFETY: the running ULT is alive, and so is its scheduler, of which this
        // takes a count.
        Some(slot) => unsafe { Unparker(Who::Ult(UltRef::new(slot))) },
        None => Unparker(Who::Thread(own_parker())),
    }
}

/// Runs `f` on the worker's own stack, an ordinary stack of an OS thread, for code
/// that must not run on a ULT's stack. A fork is such code: ULT stacks are kept from
/// children, so a child that was forked on a ULT stack has no stack. The memory that
/// a child touches must not lie on the ULT's stack either, so let `f` own it:
/// `on_os_stack(move || command.status())`. The worker runs nothing else meanwhile.
/// So `f` must not wait for a ULT of this worker; a [`join`](crate::JoinHandle::join)
/// or a scope there panics, because it would wait for ever.
///
/// `f` runs as the OS thread, not as the ULT: the values of [`ult_local!`] in it are
/// the thread's. So what goes in and what comes back must be `Send`. An `Rc` out of a
/// value of the thread would go with the ULT to other threads:
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// tsumugi_ult::ult_local! { static NAME: Rc<str> = Rc::from("a name"); }
///
/// let of_the_thread = tsumugi_ult::on_os_stack(|| NAME.with(Rc::clone));
/// ```
///
/// And an `Rc` of the ULT would stay behind in such a value:
///
/// ```compile_fail,E0277
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// tsumugi_ult::ult_local! { static NAMES: RefCell<Vec<Rc<str>>> = RefCell::default(); }
///
/// let of_the_ult: Rc<str> = Rc::from("a name");
/// tsumugi_ult::on_os_stack(move || NAMES.with(|names| names.borrow_mut().push(of_the_ult)));
/// ```
///
/// [`ult_local!`]: crate::ult_local
pub fn on_os_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let Some(slot) = ult() else { return f() };
    let (mut f, mut outcome) = (Some(f), None);
    let mut call = || {
        let f = f.take().expect("the worker calls it once");
        outcome = Some(catch(f));
    };
    let call: &mut dyn FnMut() = &mut call;
    // SAFETY: the closure lives on this stack, which stays until the worker has
    // called it.
    let call = unsafe { transmute::<*mut (dyn FnMut() + '_), *mut dyn FnMut()>(call) };
    // SAFETY: we run on this ULT's stack.
    unsafe { slot.as_ref().ask(SuspendRequest::OnOsStack(call)) };
    match outcome.expect("the worker has called it") {
        Ok(value) => value,
        Err(panic) => resume(panic),
    }
}

/// The right to unpark one ULT or OS thread. If it has ended, an unpark does nothing,
/// or the ULT that has its descriptor now returns from a park once without a reason.
#[derive(Clone)]
pub struct Unparker(Who);

#[derive(Clone)]
enum Who {
    Ult(UltRef),
    Thread(Arc<ThreadParker>),
}

impl Unparker {
    /// Ends the present park of its ULT or thread, or the next one.
    ///
    /// Lock-free, except the first time that another thread unparks a ULT of a
    /// scheduler of one worker; that call waits for some of the worker's
    /// instructions. A ULT of such a scheduler that unparks another ULT of it uses no
    /// atomic instruction. Not async-signal-safe: a handler raises a
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

/// A descriptor that may belong to another ULT by now. It holds a count of its
/// scheduler, so the descriptor's memory stays valid.
pub(crate) struct UltRef {
    slot: TaskSlot,
    /// The ULT's scheduler, which may also be that of the unparking thread's worker.
    home: NonNull<SchedulerShared>,
}

// SAFETY: only the park word and constants of the task are used, on any thread.
unsafe impl Send for UltRef {}
// SAFETY: as for `Send`.
unsafe impl Sync for UltRef {}

impl UltRef {
    /// Takes a count of the scheduler of a ULT.
    ///
    /// # Safety
    ///
    /// The task is alive.
    pub(crate) unsafe fn new(slot: TaskSlot) -> Self {
        // SAFETY: the caller promises that the task is alive.
        let this = unsafe { Self::uncounted(slot) };
        // SAFETY: the scheduler of a live task is alive, and in an `Arc`.
        unsafe { Arc::increment_strong_count(this.home.as_ptr()) };
        this
    }

    /// Takes over a count that the caller has.
    ///
    /// # Safety
    ///
    /// The descriptor's memory is valid.
    unsafe fn uncounted(slot: TaskSlot) -> Self {
        // SAFETY: the caller promises that the descriptor is valid.
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
    /// `raw` comes from `into_raw`, and its one count is given up to this call.
    pub(crate) unsafe fn from_raw(raw: *const ()) -> Self {
        let slot = NonNull::new(raw.cast_mut().cast()).expect("into_raw is never null");
        // SAFETY: the count keeps the scheduler, and the scheduler its descriptors.
        unsafe { Self::uncounted(slot) }
    }

    #[inline(always)]
    pub(crate) fn unpark(&self) {
        // SAFETY: our count keeps the scheduler, and the scheduler its descriptors.
        unsafe { self.home.as_ref().unpark(self.slot) };
    }

    fn task(&self) -> &Task {
        // SAFETY: descriptors stay as long as the scheduler, of which we hold a
        // count.
        unsafe { self.slot.as_ref() }
    }
}

impl Clone for UltRef {
    fn clone(&self) -> Self {
        // SAFETY: our own count keeps the scheduler alive.
        unsafe { Self::new(self.slot) }
    }
}

impl Drop for UltRef {
    fn drop(&mut self) {
        // SAFETY: this gives up the count that `new` took.
        unsafe { Arc::decrement_strong_count(self.home.as_ptr()) };
    }
}

/// The park word of an OS thread, or of a foreign scheduler's task.
pub(crate) struct ThreadParker {
    pub(crate) word: ParkWord,
    pub(crate) waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is written before the park begins, and taken by the thread that
// ends the park.
unsafe impl Send for ThreadParker {}
// SAFETY: as for `Send`.
unsafe impl Sync for ThreadParker {}

impl ThreadParker {
    #[cfg(feature = "std")]
    pub(crate) fn new() -> Self {
        Self { word: ParkWord::new(), waker: UnsafeCell::new(None) }
    }

    /// Called by the parker's own thread or task only.
    pub(crate) fn park(&self) {
        if self.word.take() {
            return;
        }
        let mut begin = |waker| {
            // SAFETY: no other thread reads the waker before the park has begun.
            self.waker.with_mut(|slot| unsafe { *slot = Some(waker) });
            self.word.begin()
        };
        // SAFETY: the thread that ends the park takes the waker out, once.
        unsafe { Here.sleep(Reason::new("park"), &mut begin) };
    }

    pub(crate) fn unpark(&self) {
        if self.word.unpark() != FoundSleeper::Awake {
            // SAFETY: this thread has ended the park, so it alone may take the waker.
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

/// The caller's parker; the caller is no ULT.
#[cold]
pub(crate) fn own_parker() -> Arc<ThreadParker> {
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    if let Some(caller) = foreign::caller() {
        static PARKERS: foreign::ByTask<ThreadParker> = foreign::ByTask::new();
        // A parker with a token must not be forgotten.
        let is_idle = |parker: &ThreadParker| parker.word.is_idle();
        return PARKERS.of(caller, ThreadParker::new, is_idle);
    }
    #[cfg(feature = "std")]
    return LOCAL.with(|parker| parker.clone());
    #[cfg(not(feature = "std"))]
    panic!("without std only ULTs can park: the caller is not a ULT");
}

/// The running ULT.
#[inline(always)]
pub(crate) fn ult() -> Option<TaskSlot> {
    // SAFETY: this thread's worker, used only here.
    unsafe { current::worker()?.as_ref() }.current()
}

/// Sets the cleanup record of the calling ULT while `body` runs, inside of the cleanup
/// record that is there; the end of the scheduler uses it. Only runs `body` if the
/// caller is no ULT.
///
/// # Safety
///
/// The cleanup record is on the caller's stack, and may be used as long as this call
/// lasts.
#[inline(always)]
pub(crate) unsafe fn with_cleanup<T>(cleanup: *mut CleanupRecord, body: impl FnOnce() -> T) -> T {
    // SAFETY: the running ULT is on its stack until it ends, so it has a head.
    let head = ult().map(|slot| unsafe { (*slot.as_ptr()).head().unwrap_unchecked() });
    // SAFETY: the caller promises that the cleanup record may be used; it is removed
    // before this returns.
    let _scope = head.map(|head| unsafe { CleanupScope::new(head, cleanup) });
    body()
}

/// Keeps a cleanup record set as that of the running ULT, until this is dropped.
struct CleanupScope<'h> {
    head: &'h StackHead,
    outer: *mut CleanupRecord,
}

impl<'h> CleanupScope<'h> {
    /// Sets the cleanup record, inside of the cleanup record that is there.
    ///
    /// # Safety
    ///
    /// Called by the ULT on the head's stack. The cleanup record is on that stack, and
    /// may be used until this is dropped there.
    #[inline(always)]
    unsafe fn new(head: &'h StackHead, cleanup: *mut CleanupRecord) -> Self {
        // SAFETY: we run on the head's stack.
        let outer = unsafe { head.set_cleanup(cleanup) };
        // SAFETY: the caller promises that the cleanup record may be used; the end of
        // the scheduler looks at it only when this ULT is suspended.
        unsafe { CleanupRecord::set_outer(cleanup, outer) };
        Self { head, outer }
    }
}

impl Drop for CleanupScope<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: we run on the head's stack again.
        unsafe { self.head.set_cleanup(self.outer) };
    }
}

/// Sleeps if the caller is no ULT, but a foreign task or an OS thread.
///
/// # Safety
///
/// As for [`Wait::sleep`].
#[cold]
unsafe fn sleep_elsewhere(reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
    current::assert_no_callback(reason.what);
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    if let Some(caller) = foreign::caller() {
        // SAFETY: the caller keeps the contract of [`Wait::sleep`].
        return unsafe { caller.sleep(reason, commit) };
    }
    // SAFETY: as above.
    unsafe { sleep_os(reason, commit, None) };
}

#[cold]
fn yield_elsewhere() {
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    if let Some(caller) = foreign::caller() {
        caller.scheduler.yield_now();
    }
    os_yield();
}

/// Sleeps on an OS thread, with a word of its own for each sleep. When the limit
/// passes, this interrupts the race. That wakes this very thread, unless the event
/// came first and is about to wake it.
///
/// # Safety
///
/// As for [`Wait::sleep`].
#[cold]
pub(crate) unsafe fn sleep_os(
    reason: Reason,
    commit: &mut dyn FnMut(Waker) -> bool,
    mut limit: Option<(Instant, &Race)>,
) {
    // A thread that wakes by itself is counted all the time.
    let counted = if limit.is_none() { counted() } else { Counted::NONE };
    let bed = Bed { word: AtomicU32::new(ASLEEP), counted };
    // SAFETY: `bed` stays until its word is no longer ASLEEP.
    let waker = unsafe { Waker::new(ptr::from_ref(&bed).cast(), wake_os) };
    if !commit(waker) {
        return;
    }
    bed.counted.sleeps(reason);
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
    counted.has_woken();
}

/// The word that an OS thread sleeps on, and the count that it leaves meanwhile.
struct Bed {
    word: AtomicU32,
    counted: Counted,
}

unsafe fn wake_os(bed: *const ()) {
    let bed = bed.cast::<Bed>();
    // SAFETY: the sleeper stays, and with it `bed`, until the store below.
    let (counted, word) = unsafe { ((*bed).counted, &raw const (*bed).word) };
    counted.wakes();
    // SAFETY: the sleeper waits for this very store. Release: the sleeper sees after
    // the sleep what came before the wake.
    unsafe { (*word).store(AWAKE, Ordering::Release) };
    // The word may be gone by now. Only its address is used, and a sleeper on a new
    // word at that address wakes early, which every futex user expects. SAFETY: the
    // system call uses the address alone.
    unsafe { wake_address(word) };
}

#[cfg(not(tsumugi_loom))]
unsafe fn wake_address(word: *const AtomicU32) {
    crate::host::wake(word, 1);
}

#[cfg(tsumugi_loom)]
unsafe fn wake_address(_word: *const AtomicU32) {}

/// Without std only ULTs are counted, so this count does nothing.
#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
#[derive(Clone, Copy)]
struct Counted;

#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
impl Counted {
    const NONE: Self = Self;

    fn sleeps(self, _: Reason) {}

    fn wakes(self) {}

    fn has_woken(self) {}
}

#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
fn counted() -> Counted {
    Counted
}

type Commit = dyn FnMut(Waker) -> bool;

const ASLEEP: u32 = 0;
const AWAKE: u32 = 1;
