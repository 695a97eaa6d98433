//! ULTs that may borrow from the code that starts them.
//!
//! A scope keeps the descriptors of its ULTs until it ends, and does not end before
//! they have. So what they borrow stays valid, whatever happens to their handles, and
//! also where they have lent it to others.
//!
//! All ULTs of a scope run on one scheduler. If a ULT of that scheduler has the
//! scope, the end of the scheduler cuts off both, and the scope never ends. If
//! another thread has the scope, the scope is an outside scope of the scheduler, which
//! does not end before the scope: see [`outside_scopes`](crate::sched::outside_scopes).
//!
//! ```text
//!   Reserved ──spawn──► Kept ──the scope ends──► Reaping ──the ULT has──► Ended
//!                        └───────── join ─────► Reserved ◄──── join ───────┘
//! ```
//!
//! Only one thread can wait for the end of a ULT. So a thread that joins a ULT while
//! the scope reaps it waits until the scope has done so.

use crate::body::UltOutcome;
use crate::builder::Builder;
use crate::host::{self, catch, contain, resume};
use crate::join::{JoinHandle, ON_OS_STACK, wait_end};
use crate::join_error::JoinError;
use crate::limit::Limit;
use crate::park::{Here, ult};
use crate::sched::Spawner;
use crate::sched::assert_may_block;
use crate::sched::current;
use crate::sched::outside_scopes::OutsideScope;
use crate::sched::shared::SchedulerShared;
use crate::slab::TaskSlot;
use crate::sync::{Condvar, Mutex};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_core::wait::{Reason, Wait};

/// A scope in which ULTs are started that may borrow what lives for `'env`.
pub struct Scope<'scope, 'env: 'scope> {
    host: Host,
    members: Members,
    /// The number of panics in ULTs that were not joined.
    panics: AtomicUsize,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Owns the future result of a ULT that may borrow.
pub struct ScopedJoinHandle<'scope, T> {
    members: &'scope Members,
    panics: &'scope AtomicUsize,
    index: usize,
    result: PhantomData<T>,
}

/// The scheduler on which the ULTs of a scope run.
#[derive(Clone, Copy)]
enum Host {
    /// A scheduler that stays until the scope has ended.
    On(NonNull<SchedulerShared>),
    /// A scheduler that had ended before the scope began.
    Ended,
    /// No scheduler: the scope was begun by a thread that is no ULT.
    None,
}

// SAFETY: a scheduler's shared part is `Sync`.
unsafe impl Send for Host {}
// SAFETY: as for `Send`.
unsafe impl Sync for Host {}

struct Members {
    list: Mutex<MemberList>,
    reaped: Condvar,
}

#[derive(Default)]
struct MemberList {
    members: Vec<Member>,
    free: Vec<usize>,
}

/// The state of one ULT's descriptor in its scope.
#[derive(Clone, Copy)]
enum Member {
    /// The ULT is not started yet, or was joined.
    Reserved,
    Kept(TaskSlot),
    Reaping(TaskSlot),
    Ended(TaskSlot),
}

// SAFETY: a slot in here stands for a handle, and handles are `Send`.
unsafe impl Send for MemberList {}

/// Runs `f`, and returns when `f` has returned and all ULTs that were started on the
/// scope have ended. They run on the caller's scheduler, whichever thread spawns
/// them.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
/// # Scheduler::new(config)?.run(|| {
/// let mut halves = [1, 2, 3, 4];
/// let (left, right) = halves.split_at_mut(2);
/// tsumugi_ult::scope(|scope| {
///     scope.spawn(|| left.reverse());
///     scope.spawn(|| right.reverse());
/// });
/// assert_eq!(halves, [2, 1, 4, 3]);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// With the panic of `f`; or if a ULT panicked and its handle was not joined.
pub fn scope<'env, R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    // SAFETY: the running ULT's scheduler stays as long as the ULT, and the ULT has
    // the scope.
    let host = ult().map_or(Host::None, |slot| unsafe { Host::of(slot) });
    run(host, f)
}

impl Spawner {
    /// As [`scope`], for a thread that is no ULT. The ULTs run on this scheduler,
    /// which does not end before the scope: its [`run`](crate::Scheduler::run) and
    /// its drop wait for the scope's end.
    ///
    /// # Panics
    ///
    /// As [`scope`]; and inside of [`on_os_stack`](crate::on_os_stack) on a worker of
    /// this scheduler, because the worker would wait for ULTs that it keeps from
    /// running.
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        let shared = &*self.shared;
        let host = Host::On(NonNull::from(shared));
        // SAFETY: this thread's worker, used only here.
        let worker = current::worker().map(|worker| unsafe { worker.as_ref() });
        if let Some(worker) = worker.filter(|worker| ptr::eq(&raw const **worker.shared(), shared))
        {
            assert!(worker.current().is_some(), "scope: {ON_OS_STACK}");
            return run(host, f);
        }
        let outside = OutsideScope::new();
        // SAFETY: the outside scope stays on this stack, and leaves below.
        if !unsafe { shared.enter(&outside) } {
            return run(Host::Ended, f);
        }
        let outcome = catch(|| run(host, f));
        // SAFETY: the outside scope has entered above.
        unsafe { shared.leave(&outside) };
        outcome.unwrap_or_else(|panic| resume(panic))
    }

    /// Waits until no thread, and no ULT of another scheduler, is inside of a scope
    /// on this scheduler. Only one thread may wait at a time.
    #[doc(hidden)]
    pub fn wait_for_scopes(&self) {
        let reason = Reason::new("scopes");
        // SAFETY: the last outside scope to leave takes the waker out and uses it.
        unsafe { Here.sleep(reason, &mut |waker| self.shared.outside_scopes.wait(waker)) };
    }
}

fn run<'env, R>(host: Host, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    assert_may_block("scope");
    let scope = Scope {
        host,
        members: Members { list: Mutex::new(MemberList::default()), reaped: Condvar::new() },
        panics: AtomicUsize::new(0),
        scope: PhantomData,
        env: PhantomData,
    };
    let outcome = catch(|| f(&scope));
    let unwinding = AbortOnUnwind;
    scope.members.reap();
    core::mem::forget(unwinding);
    scope.members.drop_results();
    match outcome {
        Err(panic) => resume(panic),
        Ok(result) if scope.panics.load(Ordering::Relaxed) > 0 => {
            // Before the panic, because a second one in the result's destructor would
            // abort the process.
            contain(|| drop(result));
            panic!("a ULT of the scope panicked, and its handle was not joined")
        }
        Ok(result) => result,
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a ULT that may borrow what outlives the scope. The rules for what must
    /// not live across its suspensions are at [`spawn`](crate::spawn#suspension).
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn); and in a spawner's scope, if its scheduler has
    /// ended.
    pub fn spawn<T, F>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Builder::new().spawn_scoped(self, f)
    }
}

impl Builder {
    /// As [`Scope::spawn`], with these options.
    ///
    /// # Panics
    ///
    /// As [`Scope::spawn`]; if there is no stack of the requested size, or if the ULT is
    /// pinned to a worker that does not exist.
    pub fn spawn_scoped<'scope, T, F>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let panics = &scope.panics;
        let body = move || {
            let outcome = catch(f).map_err(JoinError::of_panic);
            if outcome.is_err() {
                panics.fetch_add(1, Ordering::Relaxed);
            }
            outcome
        };
        let shared = match scope.host {
            // SAFETY: the scheduler stays until the scope has ended.
            Host::On(shared) => unsafe { shared.as_ref() },
            Host::Ended => panic!("spawn: the scheduler has ended"),
            Host::None => panic!("scope: the calling thread is not a ULT: use Spawner::scope"),
        };
        // First an entry for the ULT: after the ULT has started, nothing may fail.
        let index = scope.members.list.lock().reserve();
        // SAFETY: the scope ends after the ULT has, and after its result is dropped
        // or taken. If the ULT is cut off, so is the ULT that has the scope, and then
        // the scope never ends.
        let handle = unsafe { self.spawn_unbounded(shared, body) };
        scope.members.list.lock().members[index] = Member::Kept(handle.into_slot());
        ScopedJoinHandle { members: &scope.members, panics, index, result: PhantomData }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// As [`JoinHandle::join`].
    ///
    /// # Errors
    ///
    /// [`JoinError`](crate::JoinError), if the ULT has panicked, or if its scheduler ended first.
    pub fn join(self) -> UltOutcome<T> {
        // The checks that may panic come before the member is taken out, because the
        // scope does not wait for a member that was taken out.
        assert_may_block("join");
        self.look(JoinHandle::assert_may_wait);
        let slot = self.members.take(self.index);
        // SAFETY: the slot stands for the handle that `spawn_scoped` had.
        let handle = unsafe { JoinHandle::<UltOutcome<T>>::from_slot(slot) };
        // The ULT catches each panic of its function, and counts it: an error here says
        // that the ULT was cut off.
        let outcome = handle.join()?;
        if outcome.is_err() {
            // The caller has the panic now, so the scope does not count it.
            self.panics.fetch_sub(1, Ordering::Relaxed);
        }
        outcome
    }

    /// As [`JoinHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.look(JoinHandle::is_finished)
    }

    /// As [`JoinHandle::cancel`].
    pub fn cancel(&self) {
        self.look(JoinHandle::cancel);
    }

    fn look<R>(&self, look: impl FnOnce(&JoinHandle<UltOutcome<T>>) -> R) -> R {
        let list = self.members.list.lock();
        let slot = list.members[self.index].slot().expect("the member is not joined yet");
        // SAFETY: the members keep the slot while the list is locked; the handle is
        // not dropped.
        let handle = unsafe { JoinHandle::<UltOutcome<T>>::from_slot(slot) };
        look(&core::mem::ManuallyDrop::new(handle))
    }
}

/// Aborts the process on unwinding, because a scope must not end before its ULTs.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        host::say(b"tsumugi: a scope cannot wait for its ULTs: the process is aborted\n");
        host::abort();
    }
}

impl Host {
    /// The scheduler of a ULT.
    ///
    /// # Safety
    ///
    /// The ULT is alive.
    unsafe fn of(slot: TaskSlot) -> Self {
        // SAFETY: the caller promises that the ULT is alive.
        let home = unsafe { slot.as_ref() }.home().cast_mut().cast();
        Self::On(NonNull::new(home).expect("a descriptor has a home"))
    }
}

impl Members {
    /// Waits until all ULTs have ended. A ULT that still runs may start more.
    fn reap(&self) {
        let mut start = 0;
        loop {
            let mut list = self.list.lock();
            let kept = |index: &usize| matches!(list.members[*index], Member::Kept(_));
            let count = list.members.len();
            let Some(index) = (start..count).chain(0..start).find(kept) else { return };
            start = index;
            let slot = list.members[index].slot().expect("a kept member has a slot");
            list.members[index] = Member::Reaping(slot);
            drop(list);
            // SAFETY: the slot stands for a handle, and the ULT's scoped handle waits
            // for us before it joins. Without a limit nothing interrupts the wait.
            let _ = unsafe { wait_end(slot, Limit::NONE) };
            self.list.lock().members[index] = Member::Ended(slot);
            self.reaped.notify_all();
        }
    }

    /// Drops the results that were not joined. All ULTs have ended, so none is joined
    /// any more.
    fn drop_results(&self) {
        for member in self.list.lock().members.drain(..) {
            let Some(slot) = member.slot() else { continue };
            // SAFETY: the slot stands for a handle; to drop the ULT's result, the
            // handle's type is not needed.
            unsafe {
                slot.as_ref().drop_result();
                SchedulerShared::release(slot);
            }
        }
    }

    /// Takes a member out, to join it.
    fn take(&self, index: usize) -> TaskSlot {
        let mut list = self.list.lock();
        self.reaped.wait_while(&mut list, |list| matches!(list.members[index], Member::Reaping(_)));
        list.free.push(index);
        let member = core::mem::replace(&mut list.members[index], Member::Reserved);
        member.slot().expect("the member is not joined yet")
    }
}

impl MemberList {
    fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.members.push(Member::Reserved);
            self.members.len() - 1
        })
    }
}

impl Member {
    fn slot(self) -> Option<TaskSlot> {
        match self {
            Self::Reserved => None,
            Self::Kept(slot) | Self::Reaping(slot) | Self::Ended(slot) => Some(slot),
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope")
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopedJoinHandle({})", self.index)
    }
}
