//! The context of a stack: suspended, resumed, and left for another context.
//!
//! ```text
//!   hub ──resume(life)──► A ──pass(B)──► B ──suspend(left)──► hub
//!
//!   hub ──resume(life)──► A ──enter(C)──► C's life ──its end──► A ──suspend(left)──► hub
//! ```
//!
//! A context that passes to another leaves its own resumer to the other. The context
//! that leaves to that resumer may therefore be a different one from the context that
//! was resumed. A context may also begin a life on another stack, and that life may end
//! by a switch to any context, see `enter`. On x86-64 the switch is this crate's own, so that a pass takes one
//! switch and not two. Elsewhere, and under the address sanitizer, which must be
//! informed of each switch, the switch is corosensei's. The thread sanitizer is
//! informed of this crate's switches, see `fiber`.

#[cfg_attr(
    all(target_arch = "x86_64", target_os = "linux", not(tsumugi_asan)),
    path = "switch/x86_64.rs"
)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux", not(tsumugi_asan))),
    path = "switch/portable.rs"
)]
mod context;

#[cfg(tsumugi_tsan)]
mod fiber;

pub(crate) use context::{ENTERS, ResumeLink, Saved, Switch};

use core::ptr;

/// The message of a context that leaves, for its resumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Left(*mut ());

/// The functions that a stack runs again and again, one life at a time.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Lives {
    /// A life that was resumed, and whose end leaves to the resumer.
    pub(crate) run: unsafe fn(*const ()),
    /// A life that was entered. It returns the place of the context to which its end
    /// switches; null: its end leaves to the resumer.
    pub(crate) run_entered: unsafe fn(*const ()) -> *const Saved,
}

impl Left {
    /// The ULT yields.
    pub(crate) const YIELD: Self = Self(ptr::without_provenance_mut(2));
    /// The ULT sleeps until its park word changes.
    pub(crate) const PARK: Self = Self(ptr::without_provenance_mut(1));
    /// The ULT sleeps, and has done all that belongs to the sleep.
    pub(crate) const ASLEEP: Self = Self(ptr::without_provenance_mut(3));
    /// The life is over, and the next can begin.
    const ENDED: Self = Self(ptr::null_mut());

    /// The ULT has a request, which lies on its stack.
    pub(crate) fn request<T>(request: *mut T) -> Self {
        Self(request.cast())
    }

    #[inline(always)]
    pub(crate) fn is_yield(self) -> bool {
        self == Self::YIELD
    }

    #[inline(always)]
    pub(crate) fn is_end(self) -> bool {
        self == Self::ENDED
    }

    #[inline(always)]
    pub(crate) fn is_park(self) -> bool {
        self == Self::PARK
    }

    #[inline(always)]
    pub(crate) fn is_asleep(self) -> bool {
        self == Self::ASLEEP
    }

    /// The request, if the message is one.
    pub(crate) fn into_request<T>(self) -> *mut T {
        self.0.cast()
    }
}
