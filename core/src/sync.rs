//! The one door to atomics, cells and locks of a few instructions.
//!
//! Everything in this workspace that two threads may touch takes its atomics
//! from here, so that one `cfg` puts the whole of it under a model checker:
//!
//! ```text
//!              cfg(tsumugi_loom)      otherwise
//!  Atomic*     loom::sync::atomic     core::sync::atomic
//!  UnsafeCell  loom::cell             a wrapper with loom's `with` / `with_mut`
//!  spin_loop   loom yields            core::hint::spin_loop
//!  mutant(x)   the switch of a test   false, at compile time (see below)
//!  edge(x)     a fence, unless x is   nothing
//!              the planted mutant
//! ```
//!
//! With `cfg(tsumugi_shuttle)` beside it, the checker is shuttle: random
//! schedules of larger mixes, sequentially consistent, instead of all
//! executions of small ones. Cells are then as in ordinary builds.
//!
//! With `cfg(tsumugi_delays)` the atomics are the processor's, and each may take
//! long (`sync/delayed.rs`): the tests of processes and networks meet orders of steps
//! that else come once in a thousand runs.
//!
//! With `cfg(tsumugi_tsan)` the fences are such that the thread sanitizer sees
//! (`sync/seen.rs`).
//!
//! `tests/layers.rs` refuses any other path to an atomic or a cell.
//!
//! # Mutants
//!
//! A checker that passes everything is worth nothing. Next to the orderings
//! and the order of steps that matter, the code asks [`mutant`] whether a test
//! wants them broken; each such test must fail. Otherwise the question is a
//! constant and leaves no code behind.
//!
//! The simulator has no model checker under it, so the feature `mutants` gives
//! the switch to ordinary builds too, if they have debug assertions. Without
//! that second condition the examples of a release build, which share their
//! features with the tests, would carry the questions along.
//!
//! # Sequential consistency under the checker
//!
//! loom takes a `SeqCst` load or store for no more than acquire and release;
//! only its `fence(SeqCst)` orders a store before a later load of another
//! word. Where two sides each write and then read what the other wrote, with
//! `SeqCst` accesses on both, the code therefore says [`edge`] in between:
//! the fence that loom needs and no processor does. Without it loom would
//! report executions that the language forbids; and since it can be left
//! out by name, a test shows that the order matters at that place.

pub use self::door::*;
pub use crossbeam_utils::CachePadded;
#[cfg(any(tsumugi_loom, all(feature = "mutants", debug_assertions)))]
pub use planted::{mutant, with_mutant};

/// Whether a test asked for this defect: never, in this build.
#[cfg(not(any(tsumugi_loom, all(feature = "mutants", debug_assertions))))]
#[inline(always)]
pub const fn mutant(_name: &'static str) -> bool {
    false
}

/// The processor's own atomics, for words of registered memory: they were
/// there before any model, and have the layout that a peer expects.
pub mod mapped {
    pub use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
}

/// The processor's own atomics, for what one thread alone goes by, and others
/// are only shown: no model need try each place where they may look.
pub mod shown {
    pub use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
}

#[cfg(any(not(tsumugi_loom), tsumugi_shuttle))]
mod cell {
    /// `core::cell::UnsafeCell` with the access shape of loom's.
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
        /// Lends the content for reading. What `f` does with the pointer must
        /// be free of races: that is the caller's proof.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Lends the content for writing. The same proof, with nobody else.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(tsumugi_delays)]
mod delayed;
#[cfg(tsumugi_tsan)]
mod seen;

#[cfg(not(tsumugi_loom))]
mod door {
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

    /// Between a `SeqCst` write and a `SeqCst` read that must follow it:
    /// nothing, outside loom.
    #[inline(always)]
    pub const fn edge(_name: &'static str) {}
}

/// The model's threads, locks and thread-locals, for those who start some.
#[cfg(tsumugi_loom)]
pub mod model {
    #[cfg(not(tsumugi_shuttle))]
    pub use loom::{sync, thread, thread_local};
    #[cfg(tsumugi_shuttle)]
    pub use shuttle::{sync, thread, thread_local};
}

#[cfg(tsumugi_loom)]
mod door {
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

    /// A spin that does not yield explores a single execution: here it yields.
    pub fn spin_loop() {
        super::model::thread::yield_now();
    }

    /// Between a `SeqCst` write and a `SeqCst` read that must follow it.
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
        // One thread is enough: loom runs every model thread on the OS thread
        // of the test, and the simulator has no other.
        static PLANTED: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
    }

    /// Whether a test asked for this defect.
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
