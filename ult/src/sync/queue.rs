//! Waiters in the order in which they came, linked on their own stacks: the
//! one queue under everything in this module.
//!
//! ```text
//!   first ─► node ⇄ node ⇄ node ◄─ last        each: a waker, and what it wants
//! ```
//!
//! Who takes a node out, under the lock that the queue is in, has decided: if
//! it was a waker's side, the waiter has what it waited for when it is woken;
//! if it was the waiter itself, whose limit had passed, nobody else ever saw
//! it. So whatever a queue stands for is handed over exactly once, to the
//! first.

use crate::limit::Limit;
use crate::lock::Lock;
use crate::park::Here;
use crate::sched::batch::Batch;
use core::ptr;
use tsumugi_core::sync::mutant;
use tsumugi_core::wait::{Interrupted, Reason, Waker};

/// One waiter; stays where it is from `push` until it is woken or removed.
pub(super) struct Node {
    next: *mut Node,
    prev: *mut Node,
    wake: Option<Wake>,
    /// The queue's when the node came.
    epoch: u32,
    queued: bool,
    /// What it waits for: the queue's owner says what that means.
    pub(super) amount: usize,
    /// Where a value for the waiter goes, or comes from.
    pub(super) slot: *mut (),
}

/// How to tell a waiter that it has been served.
pub(super) enum Wake {
    Sleeper(Waker),
    Future(core::task::Waker),
}

/// A list that its holder locks.
pub(super) struct Queue {
    first: *mut Node,
    last: *mut Node,
    /// How often all were taken at once: they are no longer in the queue, but
    /// nobody has been to each of them to say so.
    epoch: u32,
}

/// Those who were taken at once. They stay until they are woken.
#[must_use = "taken waiters must be woken"]
pub(super) struct Taken(*mut Node);

// SAFETY: nodes are reached only through a queue, by whoever locked it.
unsafe impl Send for Queue {}

impl Node {
    pub(super) const fn new() -> Self {
        Self {
            next: ptr::null_mut(),
            prev: ptr::null_mut(),
            wake: None,
            epoch: 0,
            queued: false,
            amount: 0,
            slot: ptr::null_mut(),
        }
    }

    pub(super) fn with(amount: usize, slot: *mut ()) -> Self {
        Self { amount, slot, ..Self::new() }
    }
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), epoch: 0 }
    }

    /// Adds a waiter.
    ///
    /// # Safety
    ///
    /// The node is in no queue, and stays until it is woken or removed.
    pub(super) unsafe fn push(&mut self, node: *mut Node, wake: Wake) {
        // SAFETY: the caller's; the last node waits, so it is there.
        unsafe {
            (*node).next = ptr::null_mut();
            (*node).prev = self.last;
            // In no queue it has no waker that were to be dropped.
            (&raw mut (*node).wake).write(Some(wake));
            (*node).epoch = self.epoch;
            (*node).queued = true;
            if self.last.is_null() {
                self.first = node;
            } else {
                (*self.last).next = node;
            }
        }
        self.last = node;
    }

    /// The first waiter. What is written through it is for the one who is
    /// woken by the `pop` that follows.
    pub(super) fn first(&mut self) -> Option<&mut Node> {
        // SAFETY: a queued node is there, and the queue's holder's.
        unsafe { self.first.as_mut() }
    }

    /// Takes the first waiter out.
    pub(super) fn pop(&mut self) -> Option<Wake> {
        let node = self.first;
        if node.is_null() {
            return None;
        }
        // SAFETY: a queued node is there, and is ours to take out.
        unsafe {
            self.unlink(node);
            (*node).wake.take()
        }
    }

    /// Takes this waiter out. False: somebody else has, and wakes it.
    ///
    /// # Safety
    ///
    /// The node is there, and was pushed here if anywhere.
    pub(super) unsafe fn remove(&mut self, node: *mut Node) -> bool {
        // SAFETY: the caller's.
        unsafe {
            let queued = (*node).queued && (*node).epoch == self.epoch;
            if queued {
                self.unlink(node);
                (*node).wake = None;
            }
            queued || mutant("queue_remove_blind")
        }
    }

    /// Whether this waiter is still here; if so, it is told by `wake` from now.
    ///
    /// # Safety
    ///
    /// As for [`remove`](Self::remove).
    pub(super) unsafe fn renew(&mut self, node: *mut Node, wake: Wake) -> bool {
        // SAFETY: the caller's.
        unsafe {
            let queued = (*node).queued && (*node).epoch == self.epoch;
            if queued {
                (*node).wake = Some(wake);
            }
            queued
        }
    }

    /// Takes all of them out, all sleepers.
    pub(super) fn take(&mut self) -> Taken {
        let first = self.first;
        *self = Self { epoch: self.epoch.wrapping_add(1), ..Self::new() };
        Taken(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// # Safety
    ///
    /// The node is in this queue.
    unsafe fn unlink(&mut self, node: *mut Node) {
        // SAFETY: the caller's; its neighbours are there.
        unsafe {
            let (prev, next) = ((*node).prev, (*node).next);
            match prev.as_mut() {
                Some(prev) => prev.next = next,
                None => self.first = next,
            }
            match next.as_mut() {
                Some(next) => next.prev = prev,
                None => self.last = prev,
            }
            (*node).queued = false;
        }
    }
}

impl Taken {
    /// Wakes them, ULTs all at once; how many.
    pub(super) fn wake_all(self) -> usize {
        let (mut node, mut woken) = (self.0, 0);
        let mut batch = Batch::new();
        while !node.is_null() {
            // SAFETY: a waiter stays until its waker is used; read before.
            let wake = unsafe {
                let wake = (*node).wake.take();
                node = (*node).next;
                wake
            };
            wake.expect("a waiter has a waker").wake_in(&mut batch);
            woken += 1;
        }
        batch.send();
        woken
    }
}

impl Wake {
    pub(super) fn wake(self) {
        match self {
            Self::Sleeper(waker) => waker.wake(),
            Self::Future(waker) => waker.wake(),
        }
    }

    /// The same, of a ULT when the batch is sent.
    fn wake_in(self, batch: &mut Batch) {
        match self {
            Self::Sleeper(waker) => batch.wake(waker),
            Self::Future(waker) => {
                // That may run anybody's code: nobody waits for it.
                core::mem::replace(batch, Batch::new()).send();
                waker.wake();
            }
        }
    }
}

/// Tells whoever was taken out, if anybody was.
pub(super) fn tell(served: Option<Wake>) {
    if let Some(wake) = served {
        wake.wake();
    }
}

/// Waits in a queue of `state` until somebody takes the caller out of it.
/// `enter` looks once more, under the lock, whether there is anything to wait
/// for; `left` undoes what it did, in the moment in which a limit takes the
/// caller out of the queue.
pub(super) fn wait<S>(
    state: &Lock<S>,
    reason: Reason,
    limit: Limit,
    node: Node,
    queue: fn(&mut S) -> &mut Queue,
    mut enter: impl FnMut(&mut S) -> bool,
    mut left: impl FnMut(&mut S),
) -> Result<(), Interrupted> {
    let mut node = node;
    let node = &raw mut node;
    Here.sleep_within(
        reason,
        limit,
        &mut |waker| {
            let lock = state;
            lock.with(|state| {
                let waits = enter(state);
                if waits {
                    // SAFETY: the node stays until we are woken or removed it.
                    // Once the lock is released, nothing of ours is touched.
                    unsafe { queue(state).push(node, Wake::Sleeper(waker)) };
                }
                waits
            })
        },
        &mut || {
            state.with(|state| {
                // SAFETY: the node is here.
                let removed = unsafe { queue(state).remove(node) };
                if removed {
                    left(state);
                }
                removed
            })
        },
    )
}

/// Wakes all whom `step` takes out under the lock, so many at a time.
pub(super) fn wake_each<S>(state: &Lock<S>, mut step: impl FnMut(&mut S) -> Option<Wake>) {
    loop {
        let mut taken: [Option<Wake>; AT_ONCE] = [const { None }; AT_ONCE];
        let more = state.with(|state| {
            taken.iter_mut().all(|wake| {
                *wake = step(state);
                wake.is_some()
            })
        });
        let mut batch = Batch::new();
        taken.into_iter().flatten().for_each(|wake| wake.wake_in(&mut batch));
        batch.send();
        if !more {
            return;
        }
    }
}

const AT_ONCE: usize = 16;
