//! A stack's context: suspended, resumed, and left for another one.
//!
//! ```text
//!   hub ──resume(life)──► A ──pass(B)──► B ──suspend(left)──► hub
//! ```
//!
//! Who passes on to another leaves it its own resumer: whoever leaves next for
//! that one may be anybody. Where the processor is known, the switch is one of
//! our own, so that this takes one switch and not two; elsewhere, and for the
//! address sanitizer, which wants to hear of each, it is corosensei's. The thread
//! sanitizer hears of ours, see `fiber`.

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

pub(crate) use context::{Link, Saved, Switch};

use core::ptr;

/// What a context that leaves says to whoever resumed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Left(*mut ());

/// What a stack runs, again and again: one life at a time.
pub(crate) type Life = unsafe fn(*const ());

impl Left {
    /// It lets others run.
    pub(crate) const YIELD: Self = Self(ptr::without_provenance_mut(2));
    /// It sleeps until its park word says otherwise.
    pub(crate) const PARK: Self = Self(ptr::without_provenance_mut(1));
    /// It sleeps, and has done all that belongs to it.
    pub(crate) const ASLEEP: Self = Self(ptr::without_provenance_mut(3));
    /// Its life is over, the next can begin.
    const ENDED: Self = Self(ptr::null_mut());

    /// It asks for something; the request lies on its stack.
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

    /// The request, if it is one.
    pub(crate) fn into_request<T>(self) -> *mut T {
        self.0.cast()
    }
}
