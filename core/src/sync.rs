//! The only source of atomics, cells and locks of a few instructions.
//!
//! All data in this workspace that two threads may touch takes its atomics from this
//! module, so that one `cfg` puts all of it under a model checker:
//!
//! ```text
//!              cfg(tsumugi_loom)      otherwise
//!  Atomic*     loom::sync::atomic     core::sync::atomic
//!  UnsafeCell  loom::cell             a wrapper with the methods of loom's
//!  spin_loop   loom yields            core::hint::spin_loop
//!  mutate!(x:  the wrong code, if x   the right code, at compile time
//!   a => b)    is the planted mutant  (see below)
//!  edge(x)     a fence, unless x is   nothing
//!              the planted mutant
//! ```
//!
//! With `cfg(tsumugi_shuttle)` as well, the checker is shuttle: random schedules of
//! larger programs, sequentially consistent, instead of all executions of small
//! programs. Cells are then as in ordinary builds.
//!
//! Each checker also needs the feature of its name, `loom` or `shuttle`, which the
//! package of the conformance suites switches on for all tests. The dependency of a
//! `cfg` alone would be in the lock file of every user.
//!
//! With `cfg(tsumugi_delays)` the atomics are the processor's, and each access may
//! take long (`sync/delayed.rs`). The tests of processes and networks then meet
//! orders of steps that otherwise occur once in a thousand runs.
//!
//! With `cfg(tsumugi_tsan)` the fences have a form that the thread sanitizer
//! understands (`sync/seen.rs`).
//!
//! `tests/layers/tests/layers.rs` refuses any other path to an atomic or a cell.
//!
//! # Mutants
//!
//! A checker that passes everything is worth nothing. At the orderings and the order
//! of steps that matter, [`mutate!`](crate::mutate) puts wrong code beside the right
//! code: a test plants the defect by its name ([`mutant`]), and must then fail. In
//! builds without the switch the macro is the right code and leaves nothing else
//! behind.
//!
//! The simulator does not run under a model checker, so the feature `mutants` gives
//! the switch to ordinary builds too, if they have debug assertions. The second
//! condition is needed because the examples of a release build share their features
//! with the tests, and would otherwise contain the checks of the switch.
//!
//! # Sequential consistency under the checker
//!
//! loom treats a `SeqCst` load or store as acquire or release only; its
//! `fence(SeqCst)` alone orders a store before a later load of another word. Where
//! two sides each write a word and then read the other side's word (the Dekker
//! pattern), with `SeqCst` accesses on both sides, the code therefore calls [`edge`]
//! between the two accesses. It is the fence that loom needs and a processor does
//! not. Without it loom would report executions that the language forbids; and since
//! a test can leave the fence out by its name, the test shows that the order matters
//! at that place.

#[cfg(all(tsumugi_loom, not(tsumugi_shuttle), not(feature = "loom")))]
compile_error!("a build with cfg(tsumugi_loom) needs the feature `loom` of tsumugi-core");
#[cfg(all(tsumugi_shuttle, not(feature = "shuttle")))]
compile_error!("a build with cfg(tsumugi_shuttle) needs the feature `shuttle` of tsumugi-core");

pub use self::atomics::*;
pub use crossbeam_utils::CachePadded;
#[cfg(any(tsumugi_loom, all(feature = "mutants", debug_assertions)))]
pub use planted::{mutant, with_mutant};

/// Whether a test planted this defect: never, in this build.
#[cfg(not(any(tsumugi_loom, all(feature = "mutants", debug_assertions))))]
#[inline(always)]
pub const fn mutant(_name: &'static str) -> bool {
    false
}

/// An expression with a planted defect beside it: `mutate!("name": right => wrong)` is
/// `right`, unless a test has planted `name`.
///
/// ```
/// use tsumugi_core::mutate;
///
/// let (taken, size) = (1, 2);
/// assert!(mutate!("always_full": taken < size => false));
/// ```
#[macro_export]
macro_rules! mutate {
    ($name:literal: $right:expr => $wrong:expr) => {
        if $crate::sync::mutant($name) { $wrong } else { $right }
    };
    ($name:literal: $right:block => $wrong:expr) => {
        if $crate::sync::mutant($name) { $wrong } else $right
    };
}

/// The processor's own atomics, for words of registered memory. This memory exists
/// outside of any model, and has the layout that a peer expects.
pub mod mapped {
    pub use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
}

/// The processor's own atomics, for words on which only one thread's decisions
/// depend and which other threads read for display only: a model does not have to
/// explore the moments of these reads.
pub mod shown {
    pub use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
}

#[cfg(any(not(tsumugi_loom), tsumugi_shuttle))]
mod cell {
    /// `core::cell::UnsafeCell` with the access methods of loom's.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// A cell that holds `value`.
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        /// Takes the value out.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Calls `f` with the content for reading. The caller must prove that the
        /// accesses of `f` are free of races.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with the content for writing. The caller must prove that no
        /// other access takes place meanwhile.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }

        /// The content for writing, for as long as the pointer lives.
        #[inline(always)]
        pub fn get_mut(&self) -> MutPtr<'_, T> {
            MutPtr(&self.0)
        }
    }

    /// A pointer to the content of an [`UnsafeCell`]; under loom each one is an access.
    #[derive(Debug)]
    pub struct MutPtr<'c, T: ?Sized>(&'c core::cell::UnsafeCell<T>);

    impl<T: ?Sized> MutPtr<'_, T> {
        /// The content.
        ///
        /// # Safety
        ///
        /// No other access takes place while the reference lives, neither by another
        /// thread nor by another reference from this pointer.
        #[inline(always)]
        #[expect(clippy::mut_from_ref, reason = "the name and the form are loom's")]
        pub unsafe fn deref(&self) -> &mut T {
            // SAFETY: the caller's promise.
            unsafe { &mut *self.0.get() }
        }
    }
}

#[cfg(tsumugi_delays)]
mod delayed;
#[cfg(tsumugi_tsan)]
mod seen;

#[cfg(not(tsumugi_loom))]
mod atomics {
    pub use super::cell::UnsafeCell;
    #[cfg(tsumugi_delays)]
    pub use super::delayed::{
        AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, compiler_fence, fence,
    };
    #[cfg(tsumugi_tsan)]
    pub use super::seen::fence;
    pub use core::hint::spin_loop;
    #[cfg(not(any(tsumugi_delays, tsumugi_tsan)))]
    pub use core::sync::atomic::fence;
    #[cfg(not(tsumugi_delays))]
    pub use core::sync::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, compiler_fence,
    };

    /// Stands between a `SeqCst` write and a `SeqCst` read that must follow it; does
    /// nothing outside loom.
    #[inline(always)]
    pub const fn edge(_name: &'static str) {}
}

/// The model's threads, locks and thread-locals, for code that starts threads.
#[cfg(tsumugi_loom)]
pub mod model {
    #[cfg(not(tsumugi_shuttle))]
    pub use loom::{sync, thread, thread_local};
    #[cfg(tsumugi_shuttle)]
    pub use shuttle::{sync, thread, thread_local};
}

#[cfg(tsumugi_loom)]
mod atomics {
    extern crate std;
    #[cfg(tsumugi_shuttle)]
    pub use super::cell::UnsafeCell;
    #[cfg(not(tsumugi_shuttle))]
    pub use loom::cell::UnsafeCell;
    #[cfg(not(tsumugi_shuttle))]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, fence,
    };
    #[cfg(tsumugi_shuttle)]
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, fence,
    };
    pub use std::sync::atomic::compiler_fence;

    /// Yields. Under a model checker a spin that does not yield explores a single
    /// execution only.
    pub fn spin_loop() {
        super::model::thread::yield_now();
    }

    /// A fence between a `SeqCst` write and a `SeqCst` read that must follow it.
    pub fn edge(name: &'static str) {
        if !super::mutant(name) {
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(any(tsumugi_loom, all(feature = "mutants", debug_assertions)))]
mod planted {
    extern crate std;

    std::thread_local! {
        // A thread-local is enough: loom runs every model thread on the OS thread of
        // the test, and the simulator has only one thread.
        static PLANTED: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
    }

    /// Whether a test planted this defect.
    pub fn mutant(name: &'static str) -> bool {
        PLANTED.with(|planted| planted.get() == Some(name))
    }

    /// Runs `body` with the defect `name` planted on this thread.
    pub fn with_mutant<R>(name: &'static str, body: impl FnOnce() -> R) -> R {
        struct Unplant;
        impl Drop for Unplant {
            fn drop(&mut self) {
                PLANTED.with(|planted| planted.set(None));
            }
        }
        PLANTED.with(|planted| planted.set(Some(name)));
        let _unplant = Unplant;
        body()
    }
}
