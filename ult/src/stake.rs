//! What a sleeper may be handed, for whoever ends its scheduler; and what one
//! that yields has and others want.
//!
//! Who waits in a queue is given what it waits for before it runs again: a
//! lock, a permit, a value. A ULT that is cut off in that wait has no use for
//! it, and others may be behind it in the queue, on threads that live. So a
//! sleeper that can be handed something leaves a [`Stake`] on its stack, and
//! the end of a scheduler, once no worker is left, goes to all of them twice:
//!
//! ```text
//!   leave     out of each queue: from here on none of them is handed anything
//!   pass on   what one had been handed before, to the first who lives
//! ```
//!
//! Of sleeps inside of one another (a call that is more than one sleep has a stake
//! of its own from its begin to its end), each stake knows the one around it, and
//! the end goes to all.
//!
//! The stake costs a sleeper four stores, and whoever hands over nothing. A ULT
//! that only lets others run is cut off as well: one that has something then (a
//! receive that is posted, the turn to look) leaves a stake for each yield.

use core::iter;
use core::marker::PhantomData;
use core::ptr;

/// What a sleeper may be handed. Lies at the beginning of what it is part of, on
/// the sleeper's stack.
#[derive(Clone, Copy)]
pub(crate) struct Stake {
    table: &'static Table,
    /// That of the call that this sleep is part of, or null.
    outer: *mut Self,
}

/// What a stake is part of.
///
/// # Safety
///
/// It is `#[repr(C)]` and begins with its stake, which is of its own type.
pub(crate) unsafe trait Staked {
    /// Is handed nothing any more; whether it had not been yet.
    ///
    /// # Safety
    ///
    /// Its sleeper sleeps, and will never go on.
    unsafe fn leave(this: *mut Self) -> bool;

    /// Gives what it was handed to the next, and sees to those who waited for
    /// it alone. `waited` is what `leave` answered.
    ///
    /// # Safety
    ///
    /// The same; after `leave`, once.
    unsafe fn pass_on(this: *mut Self, waited: bool);
}

struct Table {
    leave: unsafe fn(*mut Stake) -> bool,
    pass_on: unsafe fn(*mut Stake, bool),
}

struct Of<T>(PhantomData<T>);

impl<T: Staked> Of<T> {
    const TABLE: Table = Table { leave: Self::leave, pass_on: Self::pass_on };

    unsafe fn leave(stake: *mut Stake) -> bool {
        // SAFETY: the stake begins a `T`; the caller's.
        unsafe { T::leave(stake.cast()) }
    }

    unsafe fn pass_on(stake: *mut Stake, waited: bool) {
        // SAFETY: the same.
        unsafe { T::pass_on(stake.cast(), waited) }
    }
}

impl Stake {
    /// The stake of a `T`.
    pub(crate) const fn of<T: Staked>() -> Self {
        Self { table: &Of::<T>::TABLE, outer: ptr::null_mut() }
    }

    /// Says which stake is around it.
    ///
    /// # Safety
    ///
    /// `this` is valid, and nobody else looks at what is around it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn set_outer(this: *mut Self, outer: *mut Self) {
        // SAFETY: the caller's.
        unsafe { (*this).outer = outer };
    }
}

/// What is left by a ULT that says what to run if it is cut off.
#[repr(C)]
pub(crate) struct Place<'a> {
    stake: Stake,
    leave: &'a mut dyn FnMut(),
}

impl<'a> Place<'a> {
    #[inline(always)]
    pub(crate) fn new(leave: &'a mut dyn FnMut()) -> Self {
        Self { stake: Stake::of::<Place<'_>>(), leave }
    }
}

// SAFETY: the stake is its first, and of this type.
unsafe impl Staked for Place<'_> {
    unsafe fn leave(this: *mut Self) -> bool {
        // SAFETY: the caller's: the sleeper's closure is on its stack.
        unsafe { ((*this).leave)() };
        true
    }

    unsafe fn pass_on(_: *mut Self, _: bool) {}
}

/// A stake whose sleeper was cut off.
pub(crate) struct Left {
    stake: *mut Stake,
    waited: bool,
}

impl Left {
    /// Takes the sleeper that left the stake, if there is one, out of where it
    /// waits, and so for each stake around it.
    ///
    /// # Safety
    ///
    /// Taken from a stack on which no ULT runs, or ever will, and which stays.
    pub(crate) unsafe fn all(stake: *mut Stake) -> impl Iterator<Item = Self> {
        let some = |stake: *mut Stake| (!stake.is_null()).then_some(stake);
        // SAFETY: on a stack that stays, as is all below.
        let stakes = iter::successors(some(stake), move |&inner| some(unsafe { (*inner).outer }));
        stakes.map(|stake| {
            // SAFETY: of a sleeper that never goes on. What it waits for is
            // borrowed by its frames, which are never left.
            let waited = unsafe { ((*stake).table.leave)(stake) };
            Self { stake, waited }
        })
    }

    /// Hands on what it had been handed. After all others have left.
    pub(crate) fn pass_on(self) {
        // SAFETY: as in `all`, and once.
        unsafe { ((*self.stake).table.pass_on)(self.stake, self.waited) }
    }
}
