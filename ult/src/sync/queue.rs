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
use crate::stake::{Stake, Staked};
use core::marker::PhantomData;
use core::ptr;
use tsumugi_core::sync::mutant;
use tsumugi_core::wait::{Interrupted, Reason, Waker};

/// One waiter; stays where it is from `push` until it is woken or removed.
#[repr(C)]
pub(super) struct Node {
    stake: Stake,
    /// What it waits at, of the type that the stake is for.
    place: *const (),
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

/// Something with a queue of sleepers.
pub(super) trait Place {
    /// Takes this waiter out. False: somebody else has, and has served it.
    ///
    /// # Safety
    ///
    /// The node is there, and was pushed here if anywhere.
    unsafe fn take_out(&self, node: *mut Node) -> bool;

    /// The waiter was cut off. If it was served, gives on what it was handed; if
    /// it still `waited`, sees to those who waited for it alone.
    ///
    /// # Safety
    ///
    /// The node is there, and in no queue.
    unsafe fn pass_on(&self, node: *mut Node, waited: bool);
}

/// A node that waits at a `P`.
#[repr(transparent)]
struct At<P>(Node, PhantomData<P>);

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

// SAFETY: a node begins with its stake, and `Node::at` gives it this one.
unsafe impl<P: Place> Staked for At<P> {
    unsafe fn leave(this: *mut Self) -> bool {
        let node = this.cast::<Node>();
        // SAFETY: a node with this stake waits at a `P`, which the cut-off
        // sleeper's frames borrow.
        unsafe { (*(*node).place.cast::<P>()).take_out(node) }
    }

    unsafe fn pass_on(this: *mut Self, waited: bool) {
        let node = this.cast::<Node>();
        // SAFETY: the same.
        unsafe { (*(*node).place.cast::<P>()).pass_on(node, waited) }
    }
}

/// Of a future: who drops it takes it out.
enum Nowhere {}

impl Place for Nowhere {
    unsafe fn take_out(&self, _: *mut Node) -> bool {
        match *self {}
    }

    unsafe fn pass_on(&self, _: *mut Node, _: bool) {
        match *self {}
    }
}

impl Node {
    /// A future's.
    pub(super) const fn new() -> Self {
        Self::waiting(ptr::null::<Nowhere>())
    }

    /// A sleeper's.
    #[inline(always)]
    pub(super) const fn at<P: Place>(place: &P) -> Self {
        Self::waiting(ptr::from_ref(place))
    }

    #[inline(always)]
    const fn waiting<P: Place>(place: *const P) -> Self {
        Self {
            stake: Stake::of::<At<P>>(),
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

    /// The same, that waits for so much.
    pub(super) fn with_amount(self, amount: usize) -> Self {
        Self { amount, ..self }
    }

    /// The same, with a place for a value.
    pub(super) fn with_slot(self, slot: *mut ()) -> Self {
        Self { slot, ..self }
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

/// Waits at `place`, in a queue of its `state`, until somebody takes the caller
/// out of it. `enter` looks once more, under the lock, whether there is anything
/// to wait for.
pub(super) fn wait<P: Place, S>(
    place: &P,
    state: &Lock<S>,
    reason: Reason,
    limit: Limit,
    node: impl FnOnce(Node) -> Node,
    queue: fn(&mut S) -> &mut Queue,
    mut enter: impl FnMut(&mut S) -> bool,
) -> Result<(), Interrupted> {
    let mut node = node(Node::at(place));
    let node = &raw mut node;
    let mut publish = |waker| {
        let lock = state;
        lock.with(|state| {
            let waits = enter(state);
            if waits {
                // SAFETY: the node stays until we are woken or removed it. Once
                // the lock is released, nothing of ours is touched.
                unsafe { queue(state).push(node, Wake::Sleeper(waker)) };
            }
            waits
        })
    };
    // SAFETY: who takes the node out uses the waker, unless we do, or the end of
    // our scheduler. The node is here.
    unsafe { sleep(reason, limit, node, &mut publish, &mut || place.take_out(node)) }
}

/// Sleeps, with a node's stake.
///
/// # Safety
///
/// As for [`Here::sleep_within`]; the node is on the caller's stack.
#[inline(always)]
pub(super) unsafe fn sleep(
    reason: Reason,
    limit: Limit,
    node: *mut Node,
    publish: &mut dyn FnMut(Waker) -> bool,
    withdraw: &mut dyn FnMut() -> bool,
) -> Result<(), Interrupted> {
    // SAFETY: the caller's; a node begins with its stake.
    unsafe { Here.sleep_staked(reason, limit, publish, withdraw, node.cast()) }
}

/// Takes a waiter out of a queue under its lock; `left` undoes then what its
/// entry did. Whether it was there.
///
/// # Safety
///
/// As for [`Queue::remove`].
pub(super) unsafe fn take_out<S>(
    state: &Lock<S>,
    node: *mut Node,
    queue: fn(&mut S) -> &mut Queue,
    left: impl FnOnce(&mut S),
) -> bool {
    state.with(|state| {
        // SAFETY: the caller's.
        let removed = unsafe { queue(state).remove(node) };
        if removed {
            left(state);
        }
        removed
    })
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
