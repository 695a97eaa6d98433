//! The queue of waiters under everything in this module: first-in first-out,
//! linked through nodes on the waiters' own stacks.
//!
//! ```text
//!   first ─► node ⇄ node ⇄ node ◄─ last        each: a waker, and what it wants
//! ```
//!
//! The thread that takes a node out, under the lock of the queue, decides what
//! happens. If it is a thread that wakes, the waiter has what it waited for when
//! it is woken. If it is the waiter itself, because its limit has passed, no
//! other thread has served it. So what a queue stands for is handed over exactly
//! once, to the first waiter.

use crate::cleanup::{CleanupRecord, HasCleanup};
use crate::host::contain;
use crate::limit::Limit;
use crate::lock::Lock;
use crate::park::Here;
use crate::sched::batch::Batch;
use core::marker::PhantomData;
use core::ptr;
use tsumugi_core::mutate;
use tsumugi_core::wait::{Interrupted, Reason, Waker};

/// One waiter. It stays where it is from `push` until it is woken or removed.
#[repr(C)]
pub(super) struct WaitNode {
    cleanup: CleanupRecord,
    /// The place where it waits, of the type that the cleanup record is for.
    place: *const (),
    next: *mut WaitNode,
    prev: *mut WaitNode,
    wake: Option<Wake>,
    /// The queue's epoch when the node was pushed.
    epoch: u32,
    queued: bool,
    /// How much it waits for: the type that has the queue defines the meaning.
    pub(super) amount: usize,
    /// Where a value for the waiter goes, or comes from.
    pub(super) slot: *mut (),
}

/// A type with a queue of sleepers.
pub(super) trait WaitSite {
    /// Takes this waiter out. False: another thread has taken it out and served it.
    ///
    /// # Safety
    ///
    /// The node is there, and was pushed to this queue if to any.
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool;

    /// Called for a waiter that was cut off. If it was served, passes on what it
    /// was handed. If it still `waited`, serves the waiters that had to wait only
    /// because of it.
    ///
    /// # Safety
    ///
    /// The node is there, and in no queue.
    unsafe fn pass_on(&self, node: *mut WaitNode, waited: bool);
}

/// A node that waits at a place of type `P`.
#[repr(transparent)]
struct NodeAt<P>(WaitNode, PhantomData<P>);

/// How to wake a waiter that has been served.
pub(super) enum Wake {
    Sleeper(Waker),
    Future(core::task::Waker),
}

/// A list of waiters. The caller of each function holds the lock of the list.
pub(super) struct WaitQueue {
    first: *mut WaitNode,
    last: *mut WaitNode,
    /// How often all waiters were taken at once. Those are no longer in the
    /// queue, but their nodes still have `queued` set.
    epoch: u32,
}

/// The waiters that were taken at once. Their nodes stay until they are woken.
#[must_use = "taken waiters must be woken"]
pub(super) struct Taken(*mut WaitNode);

// SAFETY: nodes are accessed only through a queue, by the thread that holds its
// lock.
unsafe impl Send for WaitQueue {}

// SAFETY: a node begins with its cleanup record, and `WaitNode::at` gives it this one.
unsafe impl<P: WaitSite> HasCleanup for NodeAt<P> {
    unsafe fn leave(this: *mut Self) -> bool {
        let node = this.cast::<WaitNode>();
        // SAFETY: a node with this cleanup record waits at a `P`, which the cut-off
        // sleeper's frames borrow.
        unsafe { (*(*node).place.cast::<P>()).take_out(node) }
    }

    unsafe fn pass_on(this: *mut Self, waited: bool) {
        let node = this.cast::<WaitNode>();
        // SAFETY: as in `leave`.
        unsafe { (*(*node).place.cast::<P>()).pass_on(node, waited) }
    }
}

/// The place of a future's node. The cleanup record of such a node is never used: the
/// future takes its node out when it is dropped.
enum Nowhere {}

impl WaitSite for Nowhere {
    unsafe fn take_out(&self, _: *mut WaitNode) -> bool {
        match *self {}
    }

    unsafe fn pass_on(&self, _: *mut WaitNode, _: bool) {
        match *self {}
    }
}

impl WaitNode {
    /// Makes the node of a future.
    pub(super) const fn new() -> Self {
        Self::waiting(ptr::null::<Nowhere>())
    }

    /// Makes the node of a sleeper.
    #[inline(always)]
    pub(super) const fn at<P: WaitSite>(place: &P) -> Self {
        Self::waiting(ptr::from_ref(place))
    }

    #[inline(always)]
    const fn waiting<P: WaitSite>(place: *const P) -> Self {
        Self {
            cleanup: CleanupRecord::of::<NodeAt<P>>(),
            place: place.cast(),
            next: ptr::null_mut(),
            prev: ptr::null_mut(),
            wake: None,
            epoch: 0,
            queued: false,
            amount: 0,
            slot: ptr::null_mut(),
        }
    }

    /// Sets how much the node waits for.
    pub(super) fn with_amount(self, amount: usize) -> Self {
        Self { amount, ..self }
    }

    /// Sets the place for a value.
    pub(super) fn with_slot(self, slot: *mut ()) -> Self {
        Self { slot, ..self }
    }
}

impl WaitQueue {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), epoch: 0 }
    }

    /// Adds a waiter at the end.
    ///
    /// # Safety
    ///
    /// The node is in no queue, and stays until it is woken or removed.
    pub(super) unsafe fn push(&mut self, node: *mut WaitNode, wake: Wake) {
        // SAFETY: by the caller's contract the node is there; the last node
        // waits, so it is there, too.
        unsafe {
            (*node).next = ptr::null_mut();
            (*node).prev = self.last;
            // A node that is pushed has no waker that would have to be dropped.
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

    /// Returns the first waiter. What is written through it is seen by the waiter
    /// that the `pop` after this wakes.
    pub(super) fn first(&mut self) -> Option<&mut WaitNode> {
        // SAFETY: a queued node is there, and the holder of the queue's lock may
        // access it.
        unsafe { self.first.as_mut() }
    }

    /// Takes the first waiter out.
    pub(super) fn pop(&mut self) -> Option<Wake> {
        let node = self.first;
        if node.is_null() {
            return None;
        }
        // SAFETY: a queued node is there, and the holder of the queue's lock
        // takes it out.
        unsafe {
            self.unlink(node);
            (*node).wake.take()
        }
    }

    /// Takes the first waiter with this amount out.
    pub(super) fn pop_amount(&mut self, amount: usize) -> Option<Wake> {
        let mut node = self.first;
        // SAFETY: queued nodes are there, and the holder of the queue's lock takes one
        // out.
        unsafe {
            while !node.is_null() && (*node).amount != amount {
                node = (*node).next;
            }
            let node = node.as_mut()?;
            self.unlink(node);
            node.wake.take()
        }
    }

    /// Takes this waiter out. False: another thread has taken it out, and wakes it. Its
    /// waker stays in the node, to be dropped with it: the drop of a future's waker may
    /// run any code, which must not run under the lock.
    ///
    /// # Safety
    ///
    /// The node is there, and was pushed to this queue if to any. A future's node is
    /// not pushed again.
    pub(super) unsafe fn remove(&mut self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there; a queued one's
        // neighbours are, too.
        unsafe {
            let queued = (*node).queued && (*node).epoch == self.epoch;
            if queued {
                self.unlink(node);
            }
            mutate!("queue_remove_blind": queued => true)
        }
    }

    /// Whether this waiter is still in the queue. If so, `wake` wakes it from now
    /// on, and the caller gets the previous one, to be dropped after the lock.
    ///
    /// # Safety
    ///
    /// As for [`remove`](Self::remove).
    pub(super) unsafe fn renew(&mut self, node: *mut WaitNode, wake: &mut Option<Wake>) -> bool {
        // SAFETY: by the caller's contract the node is there.
        unsafe {
            let queued = (*node).queued && (*node).epoch == self.epoch;
            if queued {
                core::mem::swap(&mut (*node).wake, wake);
            }
            queued
        }
    }

    /// Takes all waiters out. All of them must be sleepers.
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
    unsafe fn unlink(&mut self, node: *mut WaitNode) {
        // SAFETY: by the caller's contract the node is in this queue, so its
        // neighbours are there.
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
    /// Wakes the waiters, all ULTs of one scheduler at once. Returns how many
    /// there were.
    pub(super) fn wake_all(self) -> usize {
        let (mut node, mut woken) = (self.0, 0);
        let mut batch = Batch::new();
        while !node.is_null() {
            // SAFETY: a waiter stays until its waker is used; both fields are
            // read before that.
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

    /// Does what `wake` does, but a ULT is woken when the batch is sent.
    fn wake_in(self, batch: &mut Batch) {
        match self {
            Self::Sleeper(waker) => batch.wake(waker),
            Self::Future(waker) => {
                // This waker may run any code, for any time: the batch must not
                // wait for it. A panic of it must not keep the others from waking.
                core::mem::replace(batch, Batch::new()).send();
                contain(|| waker.wake());
            }
        }
    }
}

/// Wakes the waiter that was taken out, if there is one.
pub(super) fn tell(served: Option<Wake>) {
    if let Some(wake) = served {
        wake.wake();
    }
}

/// Waits at `place`, in a queue of its `state`, until another thread takes the
/// caller out of it. `enter` is called under the lock, and returns whether the
/// caller must still wait.
pub(super) fn wait<P: WaitSite, S>(
    place: &P,
    state: &Lock<S>,
    reason: Reason,
    limit: Limit,
    node: impl FnOnce(WaitNode) -> WaitNode,
    queue: fn(&mut S) -> &mut WaitQueue,
    mut enter: impl FnMut(&mut S) -> bool,
) -> Result<(), Interrupted> {
    let mut node = node(WaitNode::at(place));
    let node = &raw mut node;
    let mut publish = |waker| {
        let lock = state;
        lock.with(|state| {
            let waits = enter(state);
            if waits {
                // SAFETY: the node stays until this waiter is woken or has removed
                // it. Once the lock is released, nothing of this frame is accessed.
                unsafe { queue(state).push(node, Wake::Sleeper(waker)) };
            }
            waits
        })
    };
    // SAFETY: the thread that takes the node out uses the waker, unless this call
    // takes it out, or the end of our scheduler does. The node is on this frame.
    unsafe { sleep(reason, limit, node, &mut publish, &mut || place.take_out(node)) }
}

/// Sleeps, with the cleanup record of a node.
///
/// # Safety
///
/// As for [`Here::sleep_within`]; the node is on the caller's stack.
#[inline(always)]
pub(super) unsafe fn sleep(
    reason: Reason,
    limit: Limit,
    node: *mut WaitNode,
    publish: &mut dyn FnMut(Waker) -> bool,
    withdraw: &mut dyn FnMut() -> bool,
) -> Result<(), Interrupted> {
    // SAFETY: by the caller's contract; a node begins with its cleanup record.
    unsafe { Here.sleep_with_cleanup(reason, limit, publish, withdraw, node.cast()) }
}

/// Takes a waiter out of a queue under its lock; then `left` undoes what the
/// waiter's entry did. Returns whether it was in the queue.
///
/// # Safety
///
/// As for [`WaitQueue::remove`].
pub(super) unsafe fn take_out<S>(
    state: &Lock<S>,
    node: *mut WaitNode,
    queue: fn(&mut S) -> &mut WaitQueue,
    left: impl FnOnce(&mut S),
) -> bool {
    state.with(|state| {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        let removed = unsafe { queue(state).remove(node) };
        if removed {
            left(state);
        }
        removed
    })
}

/// Wakes all waiters that `step` takes out under the lock, up to [`AT_ONCE`] at a
/// time.
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
