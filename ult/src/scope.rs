//! ULTs that may borrow from whoever starts them.
//!
//! A scope keeps the descriptors of its ULTs until it ends, and does not end
//! before they have: so what they borrow is there, whatever becomes of their
//! handles.
//!
//! ```text
//!   Reserved ──spawn──► Kept ──the scope ends──► Reaping ──the ULT has──► Ended
//!                        └───────── join ─────► Reserved ◄──── join ───────┘
//! ```
//!
//! One waits for the end of a ULT, so whoever joins one that is being reaped
//! waits for the scope to have done so.

use crate::body::Outcome;
use crate::builder::Builder;
use crate::host::{catch, resume};
use crate::join::{JoinHandle, wait_end};
use crate::limit::Limit;
use crate::sched::Spawner;
use crate::sched::shared::Shared;
use crate::slab::Slot;
use crate::sync::{Condvar, Mutex};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use tsumugi_core::sync::{AtomicUsize, Ordering};

/// Where ULTs are started that borrow what lives for `'env`.
pub struct Scope<'scope, 'env: 'scope> {
    spawner: Option<Spawner>,
    members: Members,
    /// Panics that nobody has joined.
    panics: AtomicUsize,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Owns the result to be of a ULT that borrows.
pub struct ScopedJoinHandle<'scope, T> {
    members: &'scope Members,
    panics: &'scope AtomicUsize,
    index: usize,
    result: PhantomData<T>,
}

struct Members {
    list: Mutex<List>,
    reaped: Condvar,
}

#[derive(Default)]
struct List {
    members: Vec<Member>,
    free: Vec<usize>,
}

/// One ULT's descriptor.
#[derive(Clone, Copy)]
enum Member {
    /// Not started yet, or joined.
    Reserved,
    Kept(Slot),
    Reaping(Slot),
    Ended(Slot),
}

// SAFETY: a slot in here stands for a handle.
unsafe impl Send for List {}

/// Runs `f`, and returns when it has and all ULTs that it started on the scope
/// have ended.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
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
/// With `f`; or if a ULT panicked whose handle was not joined.
pub fn scope<'env, R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    run(None, f)
}

impl Spawner {
    /// As [`scope`], for a thread that is no ULT: the ULTs run on this
    /// scheduler. If it ends meanwhile, those that had begun are cut off, and
    /// do not touch again what they borrowed.
    ///
    /// # Panics
    ///
    /// As [`scope`].
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        run(Some(self.clone()), f)
    }
}

fn run<'env, R>(
    spawner: Option<Spawner>,
    f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
) -> R {
    let scope = Scope {
        spawner,
        members: Members { list: Mutex::new(List::default()), reaped: Condvar::new() },
        panics: AtomicUsize::new(0),
        scope: PhantomData,
        env: PhantomData,
    };
    let outcome = catch(|| f(&scope));
    scope.members.reap();
    scope.members.drop_results();
    match outcome {
        Err(panic) => resume(panic),
        Ok(_) if scope.panics.load(Ordering::Relaxed) > 0 => panic!("a ULT of the scope panicked"),
        Ok(result) => result,
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a ULT that may borrow what outlives the scope.
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn); of a spawner's scope, if its scheduler has
    /// ended.
    pub fn spawn<T, F>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_with(Builder::new(), f)
    }

    /// As [`spawn`](Self::spawn), with particulars.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with<T, F>(&'scope self, builder: Builder, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let panics = &self.panics;
        let body = move || {
            let outcome = catch(f);
            if outcome.is_err() {
                panics.fetch_add(1, Ordering::Relaxed);
            }
            outcome
        };
        // Room first: nothing may fail once the ULT runs.
        let index = self.members.list.lock().reserve();
        // SAFETY: the scope ends after the ULT has, and after its result is
        // dropped or taken.
        let handle = unsafe { builder.spawn_unbounded(self.spawner.as_ref(), body) };
        self.members.list.lock().members[index] = Member::Kept(handle.into_slot());
        ScopedJoinHandle { members: &self.members, panics, index, result: PhantomData }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// As [`JoinHandle::join`].
    ///
    /// # Errors
    ///
    /// The ULT's panic, or [`Cancelled`](crate::Cancelled).
    pub fn join(self) -> Outcome<T> {
        let slot = self.members.take(self.index);
        // SAFETY: the slot stands for the handle that `spawn_with` had.
        let handle = unsafe { JoinHandle::<Outcome<T>>::from_slot(slot) };
        let outcome = handle.join().flatten();
        if outcome.as_ref().is_err_and(|panic| !panic.is::<crate::Cancelled>()) {
            // The caller has it now.
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

    fn look<R>(&self, look: impl FnOnce(&JoinHandle<Outcome<T>>) -> R) -> R {
        let list = self.members.list.lock();
        let slot = list.members[self.index].slot().expect("a ULT that is not joined");
        // SAFETY: the members keep the slot while we are here; not dropped.
        let handle = unsafe { JoinHandle::<Outcome<T>>::from_slot(slot) };
        look(&core::mem::ManuallyDrop::new(handle))
    }
}

impl Members {
    /// Waits until all have ended. Those that still run may start more.
    fn reap(&self) {
        let mut start = 0;
        loop {
            let mut list = self.list.lock();
            let kept = |index: &usize| matches!(list.members[*index], Member::Kept(_));
            let count = list.members.len();
            let Some(index) = (start..count).chain(0..start).find(kept) else { return };
            start = index;
            let slot = list.members[index].slot().expect("a ULT that is kept");
            list.members[index] = Member::Reaping(slot);
            drop(list);
            // SAFETY: the slot stands for a handle, and whoever has that waits
            // for us. Without a limit nothing interrupts.
            let _ = unsafe { wait_end(slot, Limit::NONE) };
            self.list.lock().members[index] = Member::Ended(slot);
            self.reaped.notify_all();
        }
    }

    /// Drops what nobody joined. All have ended, so nobody joins any more.
    fn drop_results(&self) {
        for member in self.list.lock().members.drain(..) {
            let Some(slot) = member.slot() else { continue };
            // SAFETY: the slot stands for a handle, whose type is not needed
            // to drop what the ULT left.
            unsafe {
                slot.as_ref().drop_result();
                Shared::release(slot);
            }
        }
    }

    /// Takes a member out, to join it.
    fn take(&self, index: usize) -> Slot {
        let mut list = self.list.lock();
        self.reaped.wait_while(&mut list, |list| matches!(list.members[index], Member::Reaping(_)));
        list.free.push(index);
        let member = core::mem::replace(&mut list.members[index], Member::Reserved);
        member.slot().expect("a ULT that is not joined")
    }
}

impl List {
    fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.members.push(Member::Reserved);
            self.members.len() - 1
        })
    }
}

impl Member {
    fn slot(self) -> Option<Slot> {
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
