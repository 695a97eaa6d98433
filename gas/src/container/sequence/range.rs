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
        let (_alone, theirs, range) = self.with(store, other, Mode::Shared, (from, to))?;
        let mut body = self.body(store)?;
        if self == other {
            // What is kept comes to the front.
            let kept = Body { size: range.1, ..body };
            self.shift(store, &kept, (range.0, 0))?;
            body.size = range.1 - range.0;
            return self.set_body(store, body);
        }
        (body.offset, body.size) = (0, 0);
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
        let (_alone, mut theirs, range) = self.with(store, other, Mode::Shared, (from, to))?;
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

    /// Changes places with `other`. The bytes of each lie on its own rank after
    /// that: they are copied if the two are on different ranks.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn swap<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        let (_alone, theirs, _) = self.with(store, other, Mode::Exclusive, (0, 0))?;
        let own = self.body(store)?;
        if store.split().rank(self.addr) == store.split().rank(other.addr) {
            self.set_body(store, theirs)?;
            return other.set_body(store, own);
        }
        let (to_self, to_other) = (self.copy_of(store, &theirs)?, other.copy_of(store, &own));
        let to_other = to_other.inspect_err(|_| {
            let _ = to_self.free(store);
        })?;
        self.set_body(store, to_self)?;
        other.set_body(store, to_other)?;
        own.free(store)?;
        theirs.free(store)
    }

    /// A body on this one's rank that has the same bytes, and as much room.
    fn copy_of<S: Store + ?Sized>(self, store: &S, body: &Body) -> Result<Body, ContainerError> {
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        if body.at.is_null() {
            return Ok(*body);
        }
        let at = store.allocate(rank, body::room(body.capacity))?;
        let copy = Body { at, offset: 0, ..*body };
        let copied = copy.copy(store, 0, body, (0, body.size));
        copied.inspect_err(|_| {
            let _ = copy.free(store);
        })?;
        Ok(copy)
    }

    /// Locks both, and cuts the range to what there is.
    #[allow(clippy::type_complexity, reason = "two locks, a body and a range")]
    fn with<'s, S: Store + ?Sized>(
        self,
        store: &'s S,
        other: Self,
        mode: Mode,
        (from, to): (u64, u64),
    ) -> Result<((Guard<'s, S>, Option<Guard<'s, S>>), Body, (u64, u64)), ContainerError> {
        let own = (self.lock_at(store), Mode::Exclusive);
        let pair = (own, (other.lock_at(store), mode));
        let guards = lock_two(store, pair.0, pair.1)?;
        let theirs = other.body(store)?;
        let from = from.min(theirs.size);
        Ok((guards, theirs, (from, to.clamp(from, theirs.size))))
    }
}
