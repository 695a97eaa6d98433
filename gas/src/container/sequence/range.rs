//! Calls on two sequences, or on one and a range of itself: both are locked, so that
//! the call is atomic against all others.

use super::*;
use crate::container::guard::{ContainerGuard, lock_two};

impl Sequence {
    /// Replaces the contents by the bytes of `other` from `from` up to `to`, as far
    /// as there are any.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn assign<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let (_alone, theirs, range) = self.with(store, other, LockMode::Shared, (from, to))?;
        let mut body = self.body(store)?;
        if self == other {
            // The bytes that are kept are moved to the front.
            let kept = SequenceBody { size: range.1, ..body };
            self.shift(store, &kept, (range.0, 0))?;
            body.size = range.1 - range.0;
            return self.set_body(store, body);
        }
        (body.offset, body.size) = (0, 0);
        self.open(store, &mut body, 0, range.1 - range.0)?;
        body.copy(store, 0, &theirs, range)?;
        self.set_body(store, body)
    }

    /// Inserts the bytes of `other` from `from` up to `to`, as far as there are any,
    /// before byte `at`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block,
    /// [`ContainerError::OutOfRange`] if `at` is larger than the size.
    pub fn insert_range<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        other: Self,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let (_alone, mut theirs, range) = self.with(store, other, LockMode::Shared, (from, to))?;
        let mut body = self.body(store)?;
        body.check(at, 0)?;
        let bytes = range.1 - range.0;
        self.open(store, &mut body, at, bytes)?;
        if self != other {
            body.copy(store, at, &theirs, range)?;
            return self.set_body(store, body);
        }
        // The bytes behind `at` have moved.
        theirs = body;
        let before = (range.0.min(at), range.1.min(at));
        body.copy(store, at, &theirs, before)?;
        let behind = (range.0.max(at) + bytes, range.1.max(at) + bytes);
        body.copy(store, at + before.1 - before.0, &theirs, behind)?;
        self.set_body(store, body)
    }

    /// Exchanges the contents with `other`. The bytes of each sequence lie on its
    /// own rank afterwards: they are copied if the two are on different ranks.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn swap<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        let (_alone, theirs, _) = self.with(store, other, LockMode::Exclusive, (0, 0))?;
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

    /// A body on this sequence's rank that has the same bytes, and the same
    /// capacity.
    fn copy_of<S: Store + ?Sized>(
        self,
        store: &S,
        body: &SequenceBody,
    ) -> Result<SequenceBody, ContainerError> {
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        if body.at.is_null() {
            return Ok(*body);
        }
        let at = store.allocate(rank, body::room(body.capacity))?;
        let copy = SequenceBody { at, offset: 0, ..*body };
        let copied = copy.copy(store, 0, body, (0, body.size));
        copied.inspect_err(|_| {
            let _ = copy.free(store);
        })?;
        Ok(copy)
    }

    /// Locks both sequences, and limits the range to the bytes that `other` has.
    #[allow(clippy::type_complexity, reason = "two locks, a body and a range")]
    fn with<'s, S: Store + ?Sized>(
        self,
        store: &'s S,
        other: Self,
        mode: LockMode,
        (from, to): (u64, u64),
    ) -> Result<
        ((ContainerGuard<'s, S>, Option<ContainerGuard<'s, S>>), SequenceBody, (u64, u64)),
        ContainerError,
    > {
        let own = (self.lock_at(store), LockMode::Exclusive);
        let pair = (own, (other.lock_at(store), mode));
        let guards = lock_two(store, pair.0, pair.1)?;
        let theirs = other.body(store)?;
        let from = from.min(theirs.size);
        Ok((guards, theirs, (from, to.clamp(from, theirs.size))))
    }
}
