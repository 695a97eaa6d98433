//! What goes through a table from slot to slot: counting, emptying, and taking
//! over what another has.
//!
//! No two slots are locked at once but for a swap: what is copied or moved is
//! out of the one table, in elements of nobody's, before it comes into the
//! other. So two ranks may merge two tables into each other.

use super::*;
use crate::container::guard::lock_two;

impl Table {
    /// Elements in it: the sum of what each slot has when it is looked at.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn size<S: Store + ?Sized>(self, store: &S, reach: Reach) -> Result<u64, ContainerError> {
        let mut size = 0;
        self.each_slot(store, reach, (0, 0), |_, _, _, count| {
            size += count;
            Ok(false)
        })?;
        Ok(size)
    }

    /// Whether it has none.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn is_empty<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
    ) -> Result<bool, ContainerError> {
        Ok(self.begin(store, reach)? == self.end())
    }

    /// The first element of this rank's slots, and the first behind them: what
    /// lies between, in the order of all, is this rank's.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn local_range<S: Store + ?Sized>(
        self,
        store: &S,
    ) -> Result<(Entry, Entry), ContainerError> {
        let mut own = None;
        for rank in 0..self.ranks {
            if store.split().rank(self.slots_of(store, rank)?) == Some(store.rank()) {
                own = Some((own.map_or(rank, |(first, _)| first), rank));
            }
        }
        let Some((first, last)) = own else { return Ok((self.end(), self.end())) };
        let from = |rank| self.first_from(store, Reach::All, (rank, 0));
        Ok((from(first)?, from(last + 1)?))
    }

    /// Takes all out.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn clear<S: Store + ?Sized>(self, store: &S, reach: Reach) -> Result<(), ContainerError> {
        self.each_chain(store, reach, |addr| Ok(store.free(addr)?))
    }

    /// Takes in copies of what `other` has.
    pub(in crate::container) fn merge<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
        found: Found,
    ) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        other.each_slot(store, reach, (0, 0), |rank, slot, first, _| {
            if first.is_null() {
                return Ok(false);
            }
            let at = slot_at(store, other.slots_of(store, rank)?, slot);
            let mut copies = self.copies_of(store, at)?;
            while !copies.is_null() {
                let copy = head(store, copies)?;
                let is_in = self.take_in(store, copies, copy, found);
                if !matches!(is_in, Ok(true)) {
                    store.free(copies)?;
                }
                is_in?;
                copies = copy.next;
            }
            Ok(false)
        })
    }

    /// Becomes what `other` has.
    pub(in crate::container) fn assign<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
        found: Found,
    ) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        self.clear(store, Reach::All)?;
        self.merge(store, other, reach, found)
    }

    /// Takes over what `other` has, which has none of it after that.
    pub(in crate::container) fn take_all<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
        found: Found,
    ) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        other.each_chain(store, reach, |addr| self.take_over(store, other, addr, found))
    }

    /// Changes places with `other`: slot by slot if both have the same ranks
    /// and slots, otherwise element by element.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn swap<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        if !self.has_shape_of(store, other)? {
            // Aside, before the other's come.
            let mut aside = GlobalAddr::NULL;
            self.each_chain(store, Reach::All, |addr| {
                set_words(store, addr, [aside.to_bits()])?;
                aside = addr;
                Ok(())
            })?;
            self.take_all(store, other, Reach::All, Found::Add)?;
            while !aside.is_null() {
                let next = head(store, aside)?.next;
                other.take_over(store, self, aside, Found::Add)?;
                aside = next;
            }
            return Ok(());
        }
        for rank in 0..self.ranks {
            let (own, theirs) = (self.slots_of(store, rank)?, other.slots_of(store, rank)?);
            for slot in 0..self.slots {
                let at = (slot_at(store, own, slot), slot_at(store, theirs, slot));
                let pair = ((at.0, Mode::Exclusive), (at.1, Mode::Exclusive));
                let _both = lock_two(store, pair.0, pair.1)?;
                let at = (after(store, at.0, FIRST_AT), after(store, at.1, FIRST_AT));
                let (one, two): ([u64; 2], [u64; 2]) = (words(store, at.0)?, words(store, at.1)?);
                set_words(store, at.0, two)?;
                set_words(store, at.1, one)?;
            }
        }
        Ok(())
    }

    fn has_shape_of<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
    ) -> Result<bool, ContainerError> {
        if (self.ranks, self.slots) != (other.ranks, other.slots) {
            return Ok(false);
        }
        for rank in 0..self.ranks {
            let (own, theirs) = (self.slots_of(store, rank)?, other.slots_of(store, rank)?);
            if store.split().rank(own) != store.split().rank(theirs) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the chain out of each slot and calls with each of its elements,
    /// which are nobody's then.
    fn each_chain<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        mut each: impl FnMut(GlobalAddr) -> Result<(), ContainerError>,
    ) -> Result<(), ContainerError> {
        self.each_slot(store, reach, (0, 0), |rank, slot, first, _| {
            if first.is_null() {
                return Ok(false);
            }
            let at = slot_at(store, self.slots_of(store, rank)?, slot);
            let mut chain = {
                let _alone = lock(store, at, Mode::Exclusive)?;
                let at = after(store, at, FIRST_AT);
                let [first] = words(store, at)?;
                set_words(store, at, [0, 0])?;
                GlobalAddr::from_bits(first)
            };
            while !chain.is_null() {
                let next = head(store, chain)?.next;
                each(chain)?;
                chain = next;
            }
            Ok(false)
        })
    }

    /// Copies of the chain of another table's slot, each where it belongs here.
    fn copies_of<S: Store + ?Sized>(
        self,
        store: &S,
        slot: GlobalAddr,
    ) -> Result<GlobalAddr, ContainerError> {
        let _shared = lock(store, slot, Mode::Shared)?;
        let [first] = words(store, after(store, slot, FIRST_AT))?;
        let (mut from, mut copies) = (GlobalAddr::from_bits(first), GlobalAddr::NULL);
        let mut copy_all = || {
            while !from.is_null() {
                let head = head(store, from)?;
                let copy = self.copy_of(store, from, head)?;
                set_words(store, copy, [copies.to_bits()])?;
                (from, copies) = (head.next, copy);
            }
            Ok(())
        };
        if let Err(error) = copy_all() {
            while !copies.is_null() {
                let next = head(store, copies)?.next;
                store.free(copies)?;
                copies = next;
            }
            return Err(error);
        }
        Ok(copies)
    }

    /// A copy of an element on the rank where its key belongs.
    fn copy_of<S: Store + ?Sized>(
        self,
        store: &S,
        from: GlobalAddr,
        head: Head,
    ) -> Result<GlobalAddr, ContainerError> {
        let rank = self.rank_of(store, head)?;
        let bytes = value_offset(head.key.bytes) + head.value.bytes;
        let copy = store.allocate(rank, bytes)?;
        store.copy(copy, from, bytes).inspect_err(|_| {
            let _ = store.free(copy);
        })?;
        Ok(copy)
    }

    /// The rank where a key belongs.
    fn rank_of<S: Store + ?Sized>(self, store: &S, head: Head) -> Result<Rank, ContainerError> {
        let (rank, _) = self.place_of(Data::There(head.key).hash(store)?);
        Ok(store.split().rank(self.slots_of(store, rank)?).unwrap_or(Rank(u32::MAX)))
    }

    /// Puts an element of nobody's in, which lies where it belongs.
    fn take_in<S: Store + ?Sized>(
        self,
        store: &S,
        addr: GlobalAddr,
        head: Head,
        found: Found,
    ) -> Result<bool, ContainerError> {
        self.admit(store, Data::There(head.key), (found, head.times), |_| Ok(addr))
    }

    /// Takes an element over that was `other`'s. Where there is no memory for
    /// it, it goes back.
    fn take_over<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        addr: GlobalAddr,
        found: Found,
    ) -> Result<(), ContainerError> {
        let head = head(store, addr)?;
        if Some(self.rank_of(store, head)?) == store.split().rank(addr) {
            if !self.take_in(store, addr, head, found)? {
                store.free(addr)?;
            }
            return Ok(());
        }
        match self.copy_of(store, addr, head) {
            Ok(copy) => {
                if !self.take_in(store, copy, head, found)? {
                    store.free(copy)?;
                }
                Ok(store.free(addr)?)
            }
            Err(error) => {
                other.take_in(store, addr, head, found)?;
                Err(error)
            }
        }
    }
}
