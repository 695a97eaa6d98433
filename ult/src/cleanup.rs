//! Cleanup records: a sleeper that may be handed something (a lock, a permit, a value),
//! or a yielding ULT that has something, leaves a cleanup record for the end of its
//! scheduler.
//!
//! A waiter in a queue is handed what it waits for before it runs again: a lock, a
//! permit, a value. A ULT that is cut off in that wait has no use for it, and other
//! waiters may be behind it in the queue, on threads that live. So a sleeper that may
//! be handed something leaves a [`CleanupRecord`] on its stack. Once no worker is left,
//! the end of a scheduler goes to all cleanup records twice:
//!
//! ```text
//!   leave     takes each sleeper out of its queue: from here on none is handed anything
//!   pass on   gives what a sleeper was handed before to the first waiter that lives
//! ```
//!
//! Sleeps may be nested: a call that is more than one sleep has a cleanup record of its
//! own from its begin to its end. Each cleanup record points to the cleanup record
//! around it, and the end of the scheduler goes to all of them.
//!
//! The cleanup record costs a sleeper four stores, and the thread that hands over
//! nothing. A ULT that only yields is cut off as well: if it has something then (a
//! posted receive, or its turn to poll), it leaves a cleanup record for each yield.

use core::iter;
use core::marker::PhantomData;
use core::ptr;

/// The cleanup record of a sleeper. It lies at the beginning of a larger object on the
/// sleeper's stack.
#[derive(Clone, Copy)]
pub(crate) struct CleanupRecord {
    table: &'static CleanupVtable,
    /// The cleanup record of the call that this sleep is part of, or null.
    outer: *mut Self,
}

/// An object that begins with a cleanup record.
///
/// # Safety
///
/// The type is `#[repr(C)]` and begins with its cleanup record, which was made for this
/// type.
pub(crate) unsafe trait HasCleanup {
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

struct CleanupVtable {
    leave: unsafe fn(*mut CleanupRecord) -> bool,
    pass_on: unsafe fn(*mut CleanupRecord, bool),
}

struct Of<T>(PhantomData<T>);

impl<T: HasCleanup> Of<T> {
    const TABLE: CleanupVtable = CleanupVtable { leave: Self::leave, pass_on: Self::pass_on };

    unsafe fn leave(cleanup: *mut CleanupRecord) -> bool {
        // SAFETY: the cleanup record begins a `T`; the caller promises that its sleeper
        // never resumes.
        unsafe { T::leave(cleanup.cast()) }
    }

    unsafe fn pass_on(cleanup: *mut CleanupRecord, waited: bool) {
        // SAFETY: as above, and `leave` came before.
        unsafe { T::pass_on(cleanup.cast(), waited) }
    }
}

impl CleanupRecord {
    /// A cleanup record at the beginning of a `T`.
    pub(crate) const fn of<T: HasCleanup>() -> Self {
        Self { table: &Of::<T>::TABLE, outer: ptr::null_mut() }
    }

    /// Sets the cleanup record around this one.
    ///
    /// # Safety
    ///
    /// `this` is valid, and no other thread looks at the cleanup record around it
    /// meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn set_outer(this: *mut Self, outer: *mut Self) {
        // SAFETY: the caller promises that `this` is valid.
        unsafe { (*this).outer = outer };
    }
}

/// The cleanup record of a ULT with a function that is to run if it is cut off.
#[repr(C)]
pub(crate) struct CallCleanup<'a> {
    cleanup: CleanupRecord,
    leave: &'a mut dyn FnMut(),
}

impl<'a> CallCleanup<'a> {
    #[inline(always)]
    pub(crate) fn new(leave: &'a mut dyn FnMut()) -> Self {
        Self { cleanup: CleanupRecord::of::<CallCleanup<'_>>(), leave }
    }
}

// SAFETY: `repr(C)`, the cleanup record is the first field, and it was made for this
// type.
unsafe impl HasCleanup for CallCleanup<'_> {
    unsafe fn leave(this: *mut Self) -> bool {
        // SAFETY: the sleeper never resumes, so its closure stays on its stack.
        unsafe { ((*this).leave)() };
        true
    }

    unsafe fn pass_on(_: *mut Self, _: bool) {}
}

/// The cleanup record of a sleeper that was cut off and has left its queue.
pub(crate) struct CutOffCleanup {
    cleanup: *mut CleanupRecord,
    waited: bool,
}

impl CutOffCleanup {
    /// Takes the sleeper of the cleanup record, if there is one, out of its queue, and
    /// does the same for each cleanup record around it.
    ///
    /// # Safety
    ///
    /// The cleanup record comes from a stack on which no ULT runs, or ever will, and
    /// which stays.
    pub(crate) unsafe fn all(cleanup: *mut CleanupRecord) -> impl Iterator<Item = Self> {
        let some = |cleanup: *mut CleanupRecord| (!cleanup.is_null()).then_some(cleanup);
        // SAFETY: each cleanup record around another lies on the same stack, which
        // stays.
        let records =
            iter::successors(some(cleanup), move |&inner| some(unsafe { (*inner).outer }));
        records.map(|cleanup| {
            // SAFETY: the sleeper never resumes. What it waits for is borrowed by its
            // frames, which are never left.
            let waited = unsafe { ((*cleanup).table.leave)(cleanup) };
            Self { cleanup, waited }
        })
    }

    /// Hands on what the sleeper was handed. Called after all cleanup records have
    /// left.
    pub(crate) fn pass_on(self) {
        // SAFETY: as in `all`; `self` is used up, so this is called once.
        unsafe { ((*self.cleanup).table.pass_on)(self.cleanup, self.waited) }
    }
}
