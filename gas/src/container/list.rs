//! Lists: elements in a doubly linked chain, each on a rank of its own.
//!
//! ```text
//!  header   first, last, count │ lock
//!  element  next, before, bytes │ the bytes
//! ```
//!
//! The chain is a ring through the header's first two words, so that its ends need
//! no special treatment. A [`Cursor`] is a word: the address of an element, or of
//! those two words, which stand for the end. A cursor is valid until its element is
//! removed.

use super::data::{Data, Element};
use super::error::ContainerError;
use super::guard::{lock, lock_two};
use super::store::{self, Store, after, set_words, words};
use crate::address::GlobalAddr;
use crate::lock::{LOCK_BYTES, LockMode};
use core::cmp::Ordering;
use tsumugi_core::mem::Rank;

mod arrange;

/// A list, by the address of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct List {
    addr: GlobalAddr,
}

/// An element of a list, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(GlobalAddr);

/// An end of a list. The enum is exhaustive: a list has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListEnd {
    /// The first element.
    Front,
    /// The last element.
    Back,
}

impl Cursor {
    /// The cursor with the address `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self(addr)
    }

    /// The address.
    pub const fn addr(self) -> GlobalAddr {
        self.0
    }
}

impl List {
    /// Creates an empty list, with its header on `rank`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn create<S: Store + ?Sized>(store: &S, rank: Rank) -> Result<Self, ContainerError> {
        let addr = store.allocate(rank, LOCK_AT + LOCK_BYTES)?;
        set_words(store, addr, [addr.to_bits(), addr.to_bits(), 0])?;
        set_words(store, after(store, addr, LOCK_AT), [0; LOCK_BYTES as usize / 8])?;
        Ok(Self { addr })
    }

    /// The list that has its header at `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self { addr }
    }

    /// The address of the header.
    pub const fn addr(self) -> GlobalAddr {
        self.addr
    }

    /// Frees all memory of the list. No thread may use it any more.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn destroy<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.clear(store)?;
        Ok(store.free(self.addr)?)
    }

    /// The number of elements. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn size<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, self.count_at(store))
    }

    /// Whether the list has no elements.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn is_empty<S: Store + ?Sized>(self, store: &S) -> Result<bool, ContainerError> {
        Ok(self.size(store)? == 0)
    }

    /// The first element, or the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn begin<S: Store + ?Sized>(self, store: &S) -> Result<Cursor, ContainerError> {
        self.next(store, self.end(store))
    }

    /// The end: the place behind the last element.
    pub fn end<S: Store + ?Sized>(self, _: &S) -> Cursor {
        Cursor(self.addr)
    }

    /// The cursor after `at`: after the end comes the first element.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn next<S: Store + ?Sized>(self, store: &S, at: Cursor) -> Result<Cursor, ContainerError> {
        let _shared = lock(store, self.lock_at(store), LockMode::Shared)?;
        Ok(Cursor(links(store, at.0)?[0]))
    }

    /// The cursor before `at`: before the first element comes the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn before<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
    ) -> Result<Cursor, ContainerError> {
        let _shared = lock(store, self.lock_at(store), LockMode::Shared)?;
        Ok(Cursor(links(store, at.0)?[1]))
    }

    /// The cursor `count` elements after `at`, or before it; it does not go past the
    /// end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn advance<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
        count: i64,
    ) -> Result<Cursor, ContainerError> {
        let _shared = lock(store, self.lock_at(store), LockMode::Shared)?;
        let (end, mut at) = (self.end(store).0, at.0);
        for _ in 0..count.unsigned_abs() {
            let [next, before] = links(store, at)?;
            match (count > 0, at == end) {
                (true, true) => break,
                (true, false) => at = next,
                (false, _) if before == end => break,
                (false, _) => at = before,
            }
        }
        Ok(Cursor(at))
    }

    /// The number of steps from `first` to `last`; `None` if `last` does not come
    /// before the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn distance<S: Store + ?Sized>(
        self,
        store: &S,
        first: Cursor,
        last: Cursor,
    ) -> Result<Option<u64>, ContainerError> {
        let _shared = lock(store, self.lock_at(store), LockMode::Shared)?;
        let (end, mut at, mut count) = (self.end(store), first, 0);
        while at != last {
            if at == end {
                return Ok(None);
            }
            at = Cursor(links(store, at.0)?[0]);
            count += 1;
        }
        Ok(Some(count))
    }

    /// The bytes of an element; no bytes at the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn element<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
    ) -> Result<Element, ContainerError> {
        if at == self.end(store) { Ok(Element::NONE) } else { element_of(store, at.0) }
    }

    /// Inserts `data` before `at`, in `rank`'s memory.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        at: Cursor,
        data: Data<'_>,
        rank: Rank,
    ) -> Result<Cursor, ContainerError> {
        let element = make(store, data, rank)?;
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        link(store, at.0, element)?;
        self.count(store, 1)?;
        Ok(Cursor(element))
    }

    /// Inserts `data` behind the last element.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn push_back<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
        rank: Rank,
    ) -> Result<Cursor, ContainerError> {
        self.insert(store, self.end(store), data, rank)
    }

    /// Inserts `data` before the first element.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn push_front<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
        rank: Rank,
    ) -> Result<Cursor, ContainerError> {
        let element = make(store, data, rank)?;
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        link(store, links(store, self.end(store).0)?[0], element)?;
        self.count(store, 1)?;
        Ok(Cursor(element))
    }

    /// Removes an element, and returns the cursor after it.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn erase<S: Store + ?Sized>(self, store: &S, at: Cursor) -> Result<Cursor, ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        self.take_out(store, at.0).map(Cursor)
    }

    /// Removes the elements from `first` up to `last`, and returns `last`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn erase_range<S: Store + ?Sized>(
        self,
        store: &S,
        first: Cursor,
        last: Cursor,
    ) -> Result<Cursor, ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let (end, mut at) = (self.end(store).0, first.0);
        while at != last.0 && at != end {
            at = self.take_out(store, at)?;
        }
        Ok(Cursor(at))
    }

    /// Removes the first element, if there is one.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn pop_front<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.take(store, ListEnd::Front, |_| Ok(())).map(drop)
    }

    /// Removes the last element, if there is one.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn pop_back<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.take(store, ListEnd::Back, |_| Ok(())).map(drop)
    }

    /// Calls `with` with the bytes of the first or the last element, and removes the
    /// element; returns what `with` has returned, or `None` if there is no element. If
    /// `with` fails, the element stays.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block, and those of `with`.
    pub fn take<S: Store + ?Sized, T>(
        self,
        store: &S,
        end: ListEnd,
        with: impl FnOnce(Element) -> Result<T, ContainerError>,
    ) -> Result<Option<T>, ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let [first, last] = links(store, self.end(store).0)?;
        let at = if end == ListEnd::Front { first } else { last };
        if at == self.end(store).0 {
            return Ok(None);
        }
        let taken = with(element_of(store, at)?)?;
        self.take_out(store, at)?;
        Ok(Some(taken))
    }

    /// Calls `each` with the bytes of one element after the other, all of them in the
    /// state of one moment: the list is locked meanwhile, and shared with other readers.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach, and those of
    /// `each`.
    pub fn visit<S: Store + ?Sized>(
        self,
        store: &S,
        mut each: impl FnMut(Element) -> Result<(), ContainerError>,
    ) -> Result<(), ContainerError> {
        let _shared = lock(store, self.lock_at(store), LockMode::Shared)?;
        let end = self.end(store).0;
        let [mut at, _] = links(store, end)?;
        while at != end {
            let [next, _, bytes] = words(store, at)?;
            each(Element { addr: after(store, at, HEAD_BYTES), bytes })?;
            at = GlobalAddr::from_bits(next);
        }
        Ok(())
    }

    /// Removes all elements.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn clear<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        self.empty(store)
    }

    fn lock_at<S: Store + ?Sized>(self, store: &S) -> GlobalAddr {
        after(store, self.addr, LOCK_AT)
    }

    fn count_at<S: Store + ?Sized>(self, store: &S) -> GlobalAddr {
        after(store, self.addr, 16)
    }

    /// Adds `more` to the count of elements.
    fn count<S: Store + ?Sized>(self, store: &S, more: i64) -> Result<(), ContainerError> {
        let [count] = words(store, self.count_at(store))?;
        set_words(store, self.count_at(store), [count.wrapping_add_signed(more)])
    }

    /// Removes the element at `at`, unless `at` is the end, and returns the cursor
    /// after it.
    fn take_out<S: Store + ?Sized>(
        self,
        store: &S,
        at: GlobalAddr,
    ) -> Result<GlobalAddr, ContainerError> {
        if at == self.end(store).0 {
            return Ok(at);
        }
        let next = unlink(store, at)?;
        self.count(store, -1)?;
        store.free(at)?;
        Ok(next)
    }

    fn empty<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let end = self.end(store).0;
        let [mut at, _] = links(store, end)?;
        set_words(store, end, [end.to_bits(), end.to_bits(), 0])?;
        while at != end {
            let [next, _] = links(store, at)?;
            store.free(at)?;
            at = next;
        }
        Ok(())
    }
}

/// Creates an element that is in no list yet.
fn make<S: Store + ?Sized>(
    store: &S,
    data: Data<'_>,
    rank: Rank,
) -> Result<GlobalAddr, ContainerError> {
    let at = store.allocate(rank, HEAD_BYTES.saturating_add(data.bytes()))?;
    set_words(store, after(store, at, 16), [data.bytes()])?;
    data.write(store, after(store, at, HEAD_BYTES))?;
    Ok(at)
}

fn element_of<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<Element, ContainerError> {
    let [bytes] = words(store, after(store, at, 16))?;
    Ok(Element { addr: after(store, at, HEAD_BYTES), bytes })
}

/// The cursors after and before `at`.
fn links<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<[GlobalAddr; 2], ContainerError> {
    Ok(words(store, at)?.map(GlobalAddr::from_bits))
}

/// Links an element in before `at`.
fn link<S: Store + ?Sized>(
    store: &S,
    at: GlobalAddr,
    element: GlobalAddr,
) -> Result<(), ContainerError> {
    let [_, before] = links(store, at)?;
    set_words(store, element, [at.to_bits(), before.to_bits()])?;
    set_words(store, before, [element.to_bits()])?;
    set_words(store, after(store, at, 8), [element.to_bits()])
}

/// Takes an element out of its chain, and returns the cursor after it.
fn unlink<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<GlobalAddr, ContainerError> {
    let [next, before] = links(store, at)?;
    set_words(store, before, [next.to_bits()])?;
    set_words(store, after(store, next, 8), [before.to_bits()])?;
    Ok(next)
}

const HEAD_BYTES: u64 = 24;
/// The lock's offset in a header.
const LOCK_AT: u64 = 24;
