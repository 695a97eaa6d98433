//! Stakes: a sleeper that may be handed something (a lock, a permit, a value), or a
//! yielding ULT that has something, leaves a stake for the end of its scheduler.
//!
//! A waiter in a queue is handed what it waits for before it runs again: a lock, a
//! permit, a value. A ULT that is cut off in that wait has no use for it, and other
//! waiters may be behind it in the queue, on threads that live. So a sleeper that may
//! be handed something leaves a [`Stake`] on its stack. Once no worker is left, the
//! end of a scheduler goes to all stakes twice:
//!
//! ```text
//!   leave     takes each sleeper out of its queue: from here on none is handed anything
//!   pass on   gives what a sleeper was handed before to the first waiter that lives
//! ```
//!
//! Sleeps may be nested: a call that is more than one sleep has a stake of its own
//! from its begin to its end. Each stake points to the stake around it, and the end
//! of the scheduler goes to all of them.
//!
//! The stake costs a sleeper four stores, and the thread that hands over nothing. A
//! ULT that only yields is cut off as well: if it has something then (a posted
//! receive, or its turn to poll), it leaves a stake for each yield.

use core::iter;
use core::marker::PhantomData;
use core::ptr;

/// The stake of a sleeper. It lies at the beginning of a larger object on the
/// sleeper's stack.
#[derive(Clone, Copy)]
pub(crate) struct Stake {
    table: &'static StakeVtable,
    /// The stake of the call that this sleep is part of, or null.
    outer: *mut Self,
}

/// An object that begins with a stake.
///
/// # Safety
///
/// The type is `#[repr(C)]` and begins with its stake, which was made for this type.
pub(crate) unsafe trait Staked {
    /// Ends the wait: from here on the sleeper is handed nothing. Returns true if it
    /// had not been handed anything yet.
    ///
    /// # Safety
    ///
    /// The sleeper sleeps, and will never resume.
    unsafe fn leave(this: *mut Self) -> bool;

    /// Gives what the sleeper was handed to the next waiter, and wakes waiters that
    /// waited for this sleeper alone. `waited` is the result of `leave`.
    ///
    /// # Safety
    ///
    /// As for `leave`; called once, after it.
    unsafe fn pass_on(this: *mut Self, waited: bool);
}

struct StakeVtable {
    leave: unsafe fn(*mut Stake) -> bool,
    pass_on: unsafe fn(*mut Stake, bool),
}

struct Of<T>(PhantomData<T>);

impl<T: Staked> Of<T> {
    const TABLE: StakeVtable = StakeVtable { leave: Self::leave, pass_on: Self::pass_on };

    unsafe fn leave(stake: *mut Stake) -> bool {
        // SAFETY: the stake begins a `T`; the caller promises that its sleeper never
        // resumes.
        unsafe { T::leave(stake.cast()) }
    }

    unsafe fn pass_on(stake: *mut Stake, waited: bool) {
        // SAFETY: as above, and `leave` came before.
        unsafe { T::pass_on(stake.cast(), waited) }
    }
}

impl Stake {
    /// A stake at the beginning of a `T`.
    pub(crate) const fn of<T: Staked>() -> Self {
        Self { table: &Of::<T>::TABLE, outer: ptr::null_mut() }
    }

    /// Sets the stake around this one.
    ///
    /// # Safety
    ///
    /// `this` is valid, and no other thread looks at the stake around it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn set_outer(this: *mut Self, outer: *mut Self) {
        // SAFETY: the caller promises that `this` is valid.
        unsafe { (*this).outer = outer };
    }
}

/// The stake of a ULT with a function that is to run if it is cut off.
#[repr(C)]
pub(crate) struct CleanupStake<'a> {
    stake: Stake,
    leave: &'a mut dyn FnMut(),
}

impl<'a> CleanupStake<'a> {
    #[inline(always)]
    pub(crate) fn new(leave: &'a mut dyn FnMut()) -> Self {
        Self { stake: Stake::of::<CleanupStake<'_>>(), leave }
    }
}

// SAFETY: `repr(C)`, the stake is the first field, and it was made for this type.
unsafe impl Staked for CleanupStake<'_> {
    unsafe fn leave(this: *mut Self) -> bool {
        // SAFETY: the sleeper never resumes, so its closure stays on its stack.
        unsafe { ((*this).leave)() };
        true
    }

    unsafe fn pass_on(_: *mut Self, _: bool) {}
}

/// The stake of a sleeper that was cut off and has left its queue.
pub(crate) struct CutOffStake {
    stake: *mut Stake,
    waited: bool,
}

impl CutOffStake {
    /// Takes the sleeper of the stake, if there is one, out of its queue, and does
    /// the same for each stake around it.
    ///
    /// # Safety
    ///
    /// The stake comes from a stack on which no ULT runs, or ever will, and which
    /// stays.
    pub(crate) unsafe fn all(stake: *mut Stake) -> impl Iterator<Item = Self> {
        let some = |stake: *mut Stake| (!stake.is_null()).then_some(stake);
        // SAFETY: each stake around another lies on the same stack, which stays.
        let stakes = iter::successors(some(stake), move |&inner| some(unsafe { (*inner).outer }));
        stakes.map(|stake| {
            // SAFETY: the sleeper never resumes. What it waits for is borrowed by its
            // frames, which are never left.
            let waited = unsafe { ((*stake).table.leave)(stake) };
            Self { stake, waited }
        })
    }

    /// Hands on what the sleeper was handed. Called after all stakes have left.
    pub(crate) fn pass_on(self) {
        // SAFETY: as in `all`; `self` is used up, so this is called once.
        unsafe { ((*self.stake).table.pass_on)(self.stake, self.waited) }
    }
}
