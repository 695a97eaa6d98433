//! The join word: the joiner of a ULT, or what has become of its handle.

use tsumugi_core::sync::UnsafeCell;
use tsumugi_core::wait::Waker;

/// The waker of the ULT or thread that waits for a ULT's end; it lies on the joiner's
/// stack.
pub(crate) struct Joiner(pub(super) UnsafeCell<Option<Waker>>);

/// The content of the join word at the end of a ULT.
pub(crate) enum HandleState {
    /// The handle is alive and has no joiner yet.
    Alone,
    /// The handle is gone, so the caller of `end` drops the result and frees the
    /// slot.
    Detached,
    /// There is a joiner, which owns the slot now. The caller wakes it as its last
    /// step.
    Joined(Waker),
}

impl Joiner {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(None))
    }
}

// Words that are no pointers to a `Joiner`, which is aligned.
pub(super) const ALONE: usize = 0;
pub(super) const FINISHED: usize = 1;
pub(super) const DETACHED: usize = 2;
