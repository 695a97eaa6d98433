//! What two sequences do together, or one with a range of its own: both locked,
//! so that it is atomic against all others.

use super::*;
use crate::container::guard::{Guard, lock_two};

impl Sequence {
    /// Becomes what `other` has from byte `from` up to byte `to`, as far as
    /// that is.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn assign<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let (_alone, theirs, range) = self.with_range(store, other, (from, to))?;
        let mut body = self.body(store)?;
        if self == other {
            // What is kept comes to the front.
            let kept = Body { size: range.1, ..body };
            self.shift(store, &kept, (range.0, 0))?;
            body.size = range.1 - range.0;
            return self.set_body(store, body);
        }
        body.size = 0;
        self.open(store, &mut body, 0, range.1 - range.0)?;
        body.copy(store, 0, &theirs, range)?;
        self.set_body(store, body)
    }

    /// Puts what `other` has from byte `from` up to byte `to`, as far as that
    /// is, in before byte `at`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn insert_range<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        other: Self,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let (_alone, mut theirs, range) = self.with_range(store, other, (from, to))?;
        let mut body = self.body(store)?;
        body.check(at, 0)?;
        let bytes = range.1 - range.0;
        self.open(store, &mut body, at, bytes)?;
        if self != other {
            body.copy(store, at, &theirs, range)?;
            return self.set_body(store, body);
        }
        // What lay behind `at` has moved on.
        theirs = body;
        let before = (range.0.min(at), range.1.min(at));
        body.copy(store, at, &theirs, before)?;
        let behind = (range.0.max(at) + bytes, range.1.max(at) + bytes);
        body.copy(store, at + before.1 - before.0, &theirs, behind)?;
        self.set_body(store, body)
    }

    /// Changes places with `other`, which is on the same rank; otherwise the
    /// bytes lie on each other's ranks from then on.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn swap<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        let pair = ((self.addr, Mode::Exclusive), (other.addr, Mode::Exclusive));
        let _alone = lock_two(store, pair.0, pair.1)?;
        let (own, theirs) = (self.body(store)?, other.body(store)?);
        self.set_body(store, theirs)?;
        other.set_body(store, own)
    }

    /// Locks both, and cuts the range to what there is.
    #[allow(clippy::type_complexity, reason = "two locks, a body and a range")]
    fn with_range<'s, S: Store + ?Sized>(
        self,
        store: &'s S,
        other: Self,
        (from, to): (u64, u64),
    ) -> Result<((Guard<'s, S>, Option<Guard<'s, S>>), Body, (u64, u64)), ContainerError> {
        let pair = ((self.addr, Mode::Exclusive), (other.addr, Mode::Shared));
        let guards = lock_two(store, pair.0, pair.1)?;
        let theirs = other.body(store)?;
        let from = from.min(theirs.size);
        Ok((guards, theirs, (from, to.clamp(from, theirs.size))))
    }
}
