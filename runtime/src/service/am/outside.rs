//! The count of events outside of the workers.

use tsumugi_core::sync::Ordering;
use tsumugi_pvas::Member;

/// A count of an outside event, not of a worker, that may wake a ULT; while it
/// lives, the rank is not quiet.
pub(crate) struct Outside<'m>(&'m Member);

impl<'m> Outside<'m> {
    pub(crate) fn new(member: &'m Member) -> Self {
        member.control().outside().fetch_add(1, Ordering::SeqCst);
        Self(member)
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        self.0.control().outside().fetch_sub(1, Ordering::SeqCst);
    }
}
