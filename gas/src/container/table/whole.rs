//! Calls that go through a table from slot to slot: counting, clearing, and taking
//! over elements of another table.
//!
//! Except for a swap, no two slots are locked at once: elements that are copied or
//! moved are first taken out of the one table, so that they are in no table, and
//! then inserted into the other one. So two ranks can merge two tables into each
//! other.

use super::element::set_next;
use super::*;
use crate::container::guard::lock_two;

impl HashTable {
    /// The number of elements: the sum of the counts of the slots, each read at its
    /// own moment.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn size<S: Store + ?Sized>(self, store: &S, reach: Reach) -> Result<u64, ContainerError> {
        let mut size = 0;
        self.each_slot(store, reach, (0, 0), |_, _, chain| {
            size += chain.count;
            Ok(false)
        })?;
        Ok(size)
    }

    /// Whether the table has no elements.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn is_empty<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
    ) -> Result<bool, ContainerError> {
        Ok(self.begin(store, reach)? == self.end())
    }

    /// The first element of this rank's slots, and the first element behind these
    /// slots: the elements between, in the table's order, are this rank's.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn local_range<S: Store + ?Sized>(
        self,
        store: &S,
    ) -> Result<(TableCursor, TableCursor), ContainerError> {
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

    /// Calls `each` with the key, the value and the count of each element of the slots
    /// from `from` on, a rank's index and a slot's number, slot by slot, under the shared
    /// lock of the slot. Returns the place behind the slot by which `each` had been called
    /// `count` times at least; `None`: no slot is left.
    ///
    /// A walk through a table by such calls finds each key once at most, because a key
    /// belongs to one slot, and it finds each element that is in the table all the time.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach, and those of
    /// `each`.
    pub fn visit<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        from: (u32, u32),
        count: usize,
        mut each: impl FnMut(Element, Element, u64) -> Result<(), ContainerError>,
    ) -> Result<Option<(u32, u32)>, ContainerError> {
        let (mut visited, mut behind) = (0, None);
        self.each_slot(store, reach, from, |(rank, number), slots, chain| {
            if chain.first.is_null() {
                return Ok(false);
            }
            let slot = self.slot(store, slots, number);
            let _shared = lock(store, slot.lock, LockMode::Shared)?;
            let mut addr = slot.chain(store)?.first;
            while !addr.is_null() {
                let head = self.kind.head(store, addr)?;
                each(head.key, head.value, head.times)?;
                (addr, visited) = (head.next, visited + 1);
            }
            if visited >= count {
                behind = Some((rank, number + 1));
            }
            Ok(behind.is_some())
        })?;
        Ok(behind)
    }

    /// Removes all elements.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn clear<S: Store + ?Sized>(self, store: &S, reach: Reach) -> Result<(), ContainerError> {
        self.each_chain(store, reach, |addr| Ok(store.free(addr)?))
    }

    /// Inserts copies of the elements of `other`.
    pub(in crate::container) fn merge<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        other.each_slot(store, reach, (0, 0), |(_, slot), slots, chain| {
            if chain.first.is_null() {
                return Ok(false);
            }
            let mut copies = self.copies_of(store, other.slot(store, slots, slot))?;
            while !copies.is_null() {
                let copy = self.kind.head(store, copies)?;
                let is_in = self.take_in(store, copies, copy);
                if !matches!(is_in, Ok(true)) {
                    store.free(copies)?;
                }
                is_in?;
                copies = copy.next;
            }
            Ok(false)
        })
    }

    /// Replaces the contents by copies of the elements of `other`.
    pub(in crate::container) fn assign<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        self.clear(store, Reach::All)?;
        self.merge(store, other, reach)
    }

    /// Moves the elements of `other` here.
    pub(in crate::container) fn take_all<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        other.each_chain(store, reach, |addr| self.take_over(store, other, addr))
    }

    /// Exchanges the contents with `other`: slot by slot if both have the same ranks
    /// and slots, otherwise element by element.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn swap<S: Store + ?Sized>(self, store: &S, other: Self) -> Result<(), ContainerError> {
        if self.addr == other.addr {
            return Ok(());
        }
        if !self.has_shape_of(store, other)? {
            // The own elements are put aside before those of the other table come.
            let mut aside = Aside::new();
            self.each_chain(store, Reach::All, |addr| aside.push(store, addr))?;
            self.take_all(store, other, Reach::All)?;
            let mut addr = aside.end(store)?;
            while !addr.is_null() {
                let next = self.kind.head(store, addr)?.next;
                other.take_over(store, self, addr)?;
                addr = next;
            }
            return Ok(());
        }
        for rank in 0..self.ranks {
            let (own, theirs) = (self.slots_of(store, rank)?, other.slots_of(store, rank)?);
            for slot in 0..self.slots {
                let (one, two) = (self.slot(store, own, slot), other.slot(store, theirs, slot));
                let pair = ((one.lock, LockMode::Exclusive), (two.lock, LockMode::Exclusive));
                let _both = lock_two(store, pair.0, pair.1)?;
                let chains = (one.chain(store)?, two.chain(store)?);
                one.set_chain(store, chains.1)?;
                two.set_chain(store, chains.0)?;
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

    /// Takes the chain out of each slot, and calls `each` with each of its elements,
    /// which are in no table then.
    fn each_chain<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        mut each: impl FnMut(GlobalAddr) -> Result<(), ContainerError>,
    ) -> Result<(), ContainerError> {
        self.each_slot(store, reach, (0, 0), |(_, slot), slots, chain| {
            if chain.first.is_null() {
                return Ok(false);
            }
            let slot = self.slot(store, slots, slot);
            let mut addr = {
                let _alone = lock(store, slot.lock, LockMode::Exclusive)?;
                let chain = slot.chain(store)?;
                slot.set_chain(store, Chain::EMPTY)?;
                chain.first
            };
            while !addr.is_null() {
                let next = self.kind.head(store, addr)?.next;
                each(addr)?;
                addr = next;
            }
            Ok(false)
        })
    }

    /// Copies the chain of another table's slot, each element to the rank where its
    /// key belongs in this table. Returns the first copy, from which the others are
    /// linked.
    fn copies_of<S: Store + ?Sized>(
        self,
        store: &S,
        slot: TableSlot,
    ) -> Result<GlobalAddr, ContainerError> {
        let _shared = lock(store, slot.lock, LockMode::Shared)?;
        let mut from = slot.chain(store)?.first;
        let mut copies = Aside::new();
        let mut copy_all = || {
            while !from.is_null() {
                let head = self.kind.head(store, from)?;
                copies.push(store, self.copy_of(store, from, head)?)?;
                from = head.next;
            }
            Ok(())
        };
        let copied = copy_all();
        let mut first = copies.end(store)?;
        if let Err(error) = copied {
            while !first.is_null() {
                let next = self.kind.head(store, first)?.next;
                store.free(first)?;
                first = next;
            }
            return Err(error);
        }
        Ok(first)
    }

    /// A copy of an element on the rank where its key belongs.
    fn copy_of<S: Store + ?Sized>(
        self,
        store: &S,
        from: GlobalAddr,
        head: ElementHead,
    ) -> Result<GlobalAddr, ContainerError> {
        let rank = self.rank_of(store, head)?;
        let bytes = self.kind.element_bytes(head.key.bytes, head.value.bytes);
        let copy = store.allocate(rank, bytes)?;
        store.copy(copy, from, bytes).inspect_err(|_| {
            let _ = store.free(copy);
        })?;
        Ok(copy)
    }

    /// The rank where a key belongs.
    fn rank_of<S: Store + ?Sized>(
        self,
        store: &S,
        head: ElementHead,
    ) -> Result<Rank, ContainerError> {
        let (rank, _) = self.place_of(Data::There(head.key).hash(store)?);
        Ok(store.split().rank(self.slots_of(store, rank)?).unwrap_or(Rank(u32::MAX)))
    }

    /// Inserts an element that is in no table and lies on the right rank. Returns
    /// whether the key was not there.
    fn take_in<S: Store + ?Sized>(
        self,
        store: &S,
        addr: GlobalAddr,
        head: ElementHead,
    ) -> Result<bool, ContainerError> {
        self.admit(store, Data::There(head.key), head.times, |_, links| {
            links.write(store, addr)?;
            Ok(addr)
        })
    }

    /// Inserts an element that was taken out of `other`. If there is no memory for
    /// it, it is put back.
    fn take_over<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        addr: GlobalAddr,
    ) -> Result<(), ContainerError> {
        let head = self.kind.head(store, addr)?;
        if Some(self.rank_of(store, head)?) == store.split().rank(addr) {
            if !self.take_in(store, addr, head)? {
                store.free(addr)?;
            }
            return Ok(());
        }
        match self.copy_of(store, addr, head) {
            Ok(copy) => {
                if !self.take_in(store, copy, head)? {
                    store.free(copy)?;
                }
                Ok(store.free(addr)?)
            }
            Err(error) => {
                other.take_in(store, addr, head)?;
                Err(error)
            }
        }
    }
}

/// A chain of elements that are in no table.
struct Aside {
    first: GlobalAddr,
    last: GlobalAddr,
}

impl Aside {
    const fn new() -> Self {
        Self { first: GlobalAddr::NULL, last: GlobalAddr::NULL }
    }

    fn push<S: Store + ?Sized>(
        &mut self,
        store: &S,
        addr: GlobalAddr,
    ) -> Result<(), ContainerError> {
        if self.last.is_null() {
            self.first = addr;
        } else {
            set_next(store, self.last, addr)?;
        }
        self.last = addr;
        Ok(())
    }

    /// Ends the chain, and returns its first element.
    fn end<S: Store + ?Sized>(self, store: &S) -> Result<GlobalAddr, ContainerError> {
        if !self.last.is_null() {
            set_next(store, self.last, GlobalAddr::NULL)?;
        }
        Ok(self.first)
    }
}
