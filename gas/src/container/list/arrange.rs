//! Calls that change a list as a whole, or two lists: ranges and orders. Each call
//! is atomic against all others.

use super::*;

impl List {
    /// Replaces the contents by copies of the elements of `other`: each copy on the
    /// rank of its original.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn assign<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        if self == other {
            return Ok(());
        }
        let _both = self.with(store, other, LockMode::Shared)?;
        self.empty(store)?;
        let (end, theirs) = (self.end(store).0, other.end(store).0);
        self.copy_in(store, end, (links(store, theirs)?[0], theirs)).map(drop)
    }

    /// Replaces the contents by copies of the elements of `other` from `first` up to
    /// `last`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn assign_range<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        (first, last): (Cursor, Cursor),
    ) -> Result<(), ContainerError> {
        let _both = self.with(store, other, LockMode::Shared)?;
        let end = self.end(store).0;
        let [mut at, _] = links(store, end)?;
        let before = store::word(store, self.count_at(store))?;
        self.copy_in(store, end, (first.0, last.0))?;
        // The elements that were there before are removed.
        for _ in 0..before {
            at = self.take_out(store, at)?;
        }
        Ok(())
    }

    /// Inserts copies of the elements of `other` from `first` up to `last` before
    /// `at`, and returns the first copy.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn insert_range<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
        other: Self,
        (first, last): (Cursor, Cursor),
    ) -> Result<Cursor, ContainerError> {
        let _both = self.with(store, other, LockMode::Shared)?;
        self.copy_in(store, at.0, (first.0, last.0)).map(Cursor)
    }

    /// Moves the element `from` of `other` to before `at`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn splice<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
        other: Self,
        from: Cursor,
    ) -> Result<(), ContainerError> {
        let _both = self.with(store, other, LockMode::Exclusive)?;
        if from == other.end(store) || from == at {
            return Ok(());
        }
        self.take_over(store, at.0, other, from.0)
    }

    /// Moves the elements of `other` from `first` up to `last` to before `at`, which
    /// must not be one of them.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn splice_range<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
        other: Self,
        (first, last): (Cursor, Cursor),
    ) -> Result<(), ContainerError> {
        let _both = self.with(store, other, LockMode::Exclusive)?;
        let (end, mut from) = (other.end(store).0, first.0);
        while from != last.0 && from != end {
            let [next, _] = links(store, from)?;
            if from != at.0 {
                self.take_over(store, at.0, other, from)?;
            }
            from = next;
        }
        Ok(())
    }

    /// Exchanges the contents with `other`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn swap<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        if self == other {
            return Ok(());
        }
        let _both = self.with(store, other, LockMode::Exclusive)?;
        let (own, theirs) = (self.end(store).0, other.end(store).0);
        let own_words: [u64; 3] = words(store, own)?;
        let their_words: [u64; 3] = words(store, theirs)?;
        adopt(store, own, theirs, their_words)?;
        adopt(store, theirs, own, own_words)
    }

    /// Removes all elements with bytes equal to `data`, and returns their number.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn remove<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<u64, ContainerError> {
        self.remove_if(store, |store, element, _| data.equals(store, element))
    }

    /// Removes each element with bytes equal to those of the element before, and
    /// returns the number of removed elements.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn unique<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        self.remove_if(store, |store, element, before| match before {
            Some(before) => Data::There(before).equals(store, element),
            None => Ok(false),
        })
    }

    /// Reverses the order.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn reverse<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let end = self.end(store).0;
        let mut at = end;
        loop {
            let [next, before] = links(store, at)?;
            set_words(store, at, [before.to_bits(), next.to_bits()])?;
            at = next;
            if at == end {
                return Ok(());
            }
        }
    }

    /// Sorts the elements; equal elements keep their order. The list is locked while
    /// `compare` is called.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn sort<S: Store + ?Sized>(
        self,
        store: &S,
        mut compare: impl FnMut(Element, Element) -> Ordering,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let (end, count) = (self.end(store).0, store::word(store, self.count_at(store))?);
        // Merges sorted runs, each twice as long as before.
        let mut run = 1;
        while run < count {
            let [mut at, _] = links(store, end)?;
            while at != end {
                let (mut left, mut right) = (run, at);
                for _ in 0..run {
                    right = if right == end { end } else { links(store, right)?[0] };
                }
                let mut to_come = run;
                while left > 0 && to_come > 0 && right != end {
                    if self.is_after(store, at, right, &mut compare)? {
                        let next = unlink(store, right)?;
                        link(store, at, right)?;
                        (right, to_come) = (next, to_come - 1);
                    } else {
                        at = links(store, at)?[0];
                        left -= 1;
                    }
                }
                for _ in 0..to_come {
                    right = if right == end { end } else { links(store, right)?[0] };
                }
                at = right;
            }
            run *= 2;
        }
        Ok(())
    }

    /// Moves all elements of `other` here; if both lists are sorted, the result is
    /// sorted. Of equal elements, those of this list come first. Both lists are
    /// locked while `compare` is called.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn merge<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        mut compare: impl FnMut(Element, Element) -> Ordering,
    ) -> Result<(), ContainerError> {
        if self == other {
            return Ok(());
        }
        let _both = self.with(store, other, LockMode::Exclusive)?;
        let (end, theirs) = (self.end(store).0, other.end(store).0);
        let [mut at, _] = links(store, end)?;
        let [mut from, _] = links(store, theirs)?;
        while from != theirs {
            if at == end || self.is_after(store, at, from, &mut compare)? {
                let [next, _] = links(store, from)?;
                self.take_over(store, at, other, from)?;
                from = next;
            } else {
                at = links(store, at)?[0];
            }
        }
        Ok(())
    }

    fn is_after<S: Store + ?Sized>(
        self,
        store: &S,
        one: GlobalAddr,
        other: GlobalAddr,
        compare: &mut impl FnMut(Element, Element) -> Ordering,
    ) -> Result<bool, ContainerError> {
        let (one, other) = (element_of(store, one)?, element_of(store, other)?);
        Ok(compare(one, other) == Ordering::Greater)
    }

    /// Locks both lists, this one exclusively.
    fn with<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        mode: LockMode,
    ) -> Result<impl Sized + use<'_, S>, ContainerError> {
        let pair = ((self.lock_at(store), LockMode::Exclusive), (other.lock_at(store), mode));
        lock_two(store, pair.0, pair.1)
    }

    fn remove_if<S: Store + ?Sized>(
        self,
        store: &S,
        mut is_out: impl FnMut(&S, Element, Option<Element>) -> Result<bool, ContainerError>,
    ) -> Result<u64, ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let end = self.end(store).0;
        let ([mut at, _], mut before, mut count) = (links(store, end)?, None, 0);
        while at != end {
            let element = element_of(store, at)?;
            if is_out(store, element, before)? {
                at = self.take_out(store, at)?;
                count += 1;
            } else {
                before = Some(element);
                at = links(store, at)?[0];
            }
        }
        Ok(count)
    }

    /// Inserts copies of a range before `at`, and returns the first copy, or `at`. A
    /// range of this list ends before the copies.
    fn copy_in<S: Store + ?Sized>(
        self,
        store: &S,
        at: GlobalAddr,
        (first, last): (GlobalAddr, GlobalAddr),
    ) -> Result<GlobalAddr, ContainerError> {
        // The elements are counted first, because the copies may lie inside the
        // range.
        let (mut from, mut first_copy) = (first, None);
        let mut left = span(store, (first, last))?;
        while left > 0 {
            let rank = store.split().rank(from).unwrap_or(Rank(u32::MAX));
            let copy = make(store, element_of(store, from)?.into(), rank)?;
            // Read before the copy is linked behind the element.
            let [next, _] = links(store, from)?;
            link(store, at, copy)?;
            self.count(store, 1)?;
            first_copy.get_or_insert(copy);
            from = next;
            left -= 1;
        }
        Ok(first_copy.unwrap_or(at))
    }

    /// Moves an element of `other` to before `at`.
    fn take_over<S: Store + ?Sized>(
        self,
        store: &S,
        at: GlobalAddr,
        other: Self,
        from: GlobalAddr,
    ) -> Result<(), ContainerError> {
        unlink(store, from)?;
        other.count(store, -1)?;
        link(store, at, from)?;
        self.count(store, 1)
    }
}

/// The number of elements of a range.
fn span<S: Store + ?Sized>(
    store: &S,
    (first, last): (GlobalAddr, GlobalAddr),
) -> Result<u64, ContainerError> {
    let (mut at, mut count) = (first, 0);
    while at != last {
        at = links(store, at)?[0];
        count += 1;
    }
    Ok(count)
}

/// Links the ring that went through the header `before` through the header `end`.
fn adopt<S: Store + ?Sized>(
    store: &S,
    end: GlobalAddr,
    before: GlobalAddr,
    [first, last, count]: [u64; 3],
) -> Result<(), ContainerError> {
    if count == 0 {
        return set_words(store, end, [end.to_bits(), end.to_bits(), 0]);
    }
    debug_assert!(first != before.to_bits(), "a list with elements has a first element");
    set_words(store, end, [first, last, count])?;
    set_words(store, after(store, GlobalAddr::from_bits(first), 8), [end.to_bits()])?;
    set_words(store, GlobalAddr::from_bits(last), [end.to_bits()])
}
