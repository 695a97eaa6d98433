//! Starting ULTs and waiting for their end.
//!
//! A ULT's value, or the panic that ended it, waits in its descriptor until
//! [`JoinHandle::join`] takes it. Dropping the handle lets the ULT go on by
//! itself. Small closures and results (up to 112 bytes) lie in the descriptor,
//! so that neither spawn nor join allocates.
//!
//! Progress: `spawn` is lock-free but for growth of a queue or of the
//! descriptors (a short lock); `join` blocks.

use crate::body::Outcome;
use crate::park::Here;
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::sched::{Spawner, UltId};
use crate::slab::Slot;
use crate::task::Joiner;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use tsumugi_core::wait::{Reason, Spawn, Wait};

/// Owns a ULT's result to be.
pub struct JoinHandle<T> {
    slot: Slot,
    result: PhantomData<T>,
}

/// Particulars of a ULT.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: Option<Box<str>>,
}

// SAFETY: a handle is the right to take one `T`, or to drop it.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle only tells whether the ULT has ended.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Starts a ULT on the caller's scheduler. The caller goes on at once.
///
/// # Panics
///
/// On a thread that is no ULT: use [`Spawner::spawn`].
#[inline]
pub fn spawn<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_here(f, None)
}

/// Lets other ULTs, or threads, run.
#[inline]
pub fn yield_now() {
    Here.yield_now();
}

impl Builder {
    /// No particulars.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the ULT, for whoever looks at [`Spawner::dump`] or reads that it
    /// overflowed its stack.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// As [`spawn`].
    ///
    /// # Panics
    ///
    /// As [`spawn`].
    pub fn spawn<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_here(f, self.name)
    }

    /// As [`Spawner::try_spawn`].
    ///
    /// # Errors
    ///
    /// As [`Spawner::try_spawn`].
    pub fn try_spawn_on<T, F>(self, spawner: &Spawner, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = &*spawner.shared;
        let Some(_visit) = shared.visit() else { return Err(f) };
        let slot = shared.slab.take_shared(shared.home());
        // SAFETY: the slot is free and ours; everything is 'static.
        unsafe {
            slot.as_ref().fill(f, self.name);
            shared.inject.push(slot.as_ptr());
        }
        shared.notify();
        Ok(JoinHandle { slot, result: PhantomData })
    }
}

impl Spawner {
    /// Starts a ULT, from any thread.
    ///
    /// # Panics
    ///
    /// If the scheduler has ended.
    pub fn spawn<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.try_spawn(f) {
            Ok(handle) => handle,
            Err(_) => panic!("the scheduler has ended"),
        }
    }

    /// Starts a ULT, from any thread.
    ///
    /// # Errors
    ///
    /// The closure, if the scheduler has ended.
    pub fn try_spawn<T, F>(&self, f: F) -> Result<JoinHandle<T>, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Builder::new().try_spawn_on(self, f)
    }
}

impl Spawn for Spawner {
    unsafe fn spawn_detached(&self, run: unsafe fn(*mut ()), data: *mut ()) -> bool {
        struct Call(unsafe fn(*mut ()), *mut ());
        // SAFETY: `spawn_detached` demands it.
        unsafe impl Send for Call {}
        let call = Call(run, data);
        self.try_spawn(move || {
            let call = call;
            // SAFETY: `spawn_detached` demands it.
            unsafe { (call.0)(call.1) }
        })
        .is_ok()
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the ULT's end. From a ULT, this one sleeps meanwhile; from
    /// any other thread, that thread does.
    ///
    /// # Errors
    ///
    /// The ULT's panic, or [`Cancelled`](crate::Cancelled).
    pub fn join(self) -> Outcome<T> {
        // SAFETY: a handle keeps its task.
        let task = unsafe { self.slot.as_ref() };
        if !task.has_finished() {
            let joiner = Joiner::new();
            let reason = Reason { what: "join", at: task.slot.into(), wanted: 0 };
            Here.sleep(reason, &mut |waker| {
                let (task, joiner) = (self.slot, &joiner as *const Joiner);
                // SAFETY: the joiner stays until we are woken. From here on
                // nothing of the sleeper's is touched.
                unsafe { task.as_ref().join(joiner, waker) }
            });
        }
        // SAFETY: finished; the handle is used up; `T` is what it was made for.
        let outcome = unsafe { task.take_result() };
        // SAFETY: the ULT has ended and the handle goes.
        unsafe { Shared::release(self.slot) };
        mem::forget(self);
        outcome
    }

    /// Whether the ULT has ended, so that `join` would not wait.
    pub fn is_finished(&self) -> bool {
        // SAFETY: a handle keeps its task.
        unsafe { self.slot.as_ref() }.has_finished()
    }

    /// The ULT's number.
    pub fn id(&self) -> UltId {
        UltId::of(self.slot)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: a handle keeps its task.
        let task = unsafe { self.slot.as_ref() };
        if task.detach() {
            task.drop_result();
            // SAFETY: the ULT has ended and the handle goes.
            unsafe { Shared::release(self.slot) };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.id())
    }
}

#[inline]
fn spawn_here<T, F>(f: F, name: Option<Box<str>>) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some(worker) = current::worker() else {
        panic!("spawn: this thread is no ULT; use a Spawner");
    };
    // SAFETY: this thread's worker; nothing suspends below.
    let worker = unsafe { worker.as_ref() };
    let slot = worker.slot();
    // SAFETY: the slot is free and ours; everything is 'static.
    unsafe { slot.as_ref().fill(f, name) };
    worker.spawned(slot);
    JoinHandle { slot, result: PhantomData }
}
