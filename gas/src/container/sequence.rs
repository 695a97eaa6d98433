//! Bytes in a row on one rank: the common part of vectors and deques.
//!
//! ```text
//!  header   vector   body, size, capacity, 0         │ lock
//!           deque    body, offset, size, capacity    │ lock
//!
//!  body     ▒▒▒▒░░░░░░░░▒▒▒▒▒▒▒▒      a ring of `capacity` bytes
//!               ▲       ▲
//!             end     offset
//! ```
//!
//! The offset of a vector is always 0, so that its bytes are in one piece; the bytes
//! of a deque are in two pieces at most. The words of a header are those of ACP 3,
//! so programs for ACP 3 may read them. The capacity is as in ACP 3, too, while it
//! is small: the number of bytes that are needed, for a vector rounded up to whole
//! words. A body takes whole cache lines of memory, so it grows within its last line
//! without moving. From one line on it grows by at least a half, so that bytes that
//! are inserted one by one are moved a few times each. Only
//! [`Sequence::shrink_to_fit`] makes it smaller. The bytes behind an insertion or an
//! erasure are moved.

use super::data::{Data, Element};
use super::error::ContainerError;
use super::guard::lock;
use super::store::{self, Store, after, set_words, words};
use crate::address::GlobalAddr;
use crate::lock::{LOCK_BYTES, LockMode};
use body::{LINE, SequenceBody};
use tsumugi_core::mem::Rank;

mod body;
pub(super) mod held;
mod range;

/// Bytes in a row, by the address of their header. A [`Vector`](super::Vector) and a
/// [`Deque`](super::Deque) each dereference to their sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence {
    addr: GlobalAddr,
    form: Form,
}

/// The layout of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Three words: the bytes begin at the start of the body.
    Vector,
    /// Four words: the second one is the offset at which the bytes begin.
    Deque,
}

impl Form {
    const fn size_at(self) -> u64 {
        match self {
            Self::Vector => 8,
            Self::Deque => 16,
        }
    }

    /// The offset of the capacity, which follows the size.
    const fn capacity_at(self) -> u64 {
        self.size_at() + 8
    }

    /// The capacity of a small body for `bytes` bytes.
    const fn snug(self, bytes: u64) -> u64 {
        match self {
            Self::Vector => body::up_to(8, bytes),
            Self::Deque => bytes,
        }
    }

    const fn decode(self, words: [u64; 4]) -> SequenceBody {
        let [at, second, third, fourth] = words;
        let (offset, size, capacity) = match self {
            Self::Vector => (0, second, third),
            Self::Deque => (second, third, fourth),
        };
        SequenceBody { at: GlobalAddr::from_bits(at), offset, size, capacity }
    }

    const fn encode(self, body: SequenceBody) -> [u64; 4] {
        let SequenceBody { at, offset, size, capacity } = body;
        match self {
            Self::Vector => [at.to_bits(), size, capacity, 0],
            Self::Deque => [at.to_bits(), offset, size, capacity],
        }
    }
}

impl Sequence {
    /// Creates a sequence of `bytes` bytes, which are not cleared, on `rank`.
    pub(super) fn create<S: Store + ?Sized>(
        store: &S,
        form: Form,
        bytes: u64,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        let addr = store.allocate(rank, LOCK_AT + LOCK_BYTES)?;
        let capacity = form.snug(bytes);
        let at = match bytes {
            0 => GlobalAddr::NULL,
            _ => store.allocate(rank, body::room(capacity)).inspect_err(|_| {
                let _ = store.free(addr);
            })?,
        };
        let this = Self { addr, form };
        set_words(store, this.lock_at(store), [0; LOCK_BYTES as usize / 8])?;
        this.set_body(store, SequenceBody { at, offset: 0, size: bytes, capacity })?;
        Ok(this)
    }

    /// The sequence that has its header at `addr`.
    pub(super) const fn at_addr(addr: GlobalAddr, form: Form) -> Self {
        Self { addr, form }
    }

    /// The address of the header.
    pub const fn addr(self) -> GlobalAddr {
        self.addr
    }

    /// Frees the memory of the sequence. No thread may use it any more.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn destroy<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.body(store)?.free(store)?;
        Ok(store.free(self.addr)?)
    }

    /// The number of bytes. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn size<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, after(store, self.addr, self.form.size_at()))
    }

    /// The number of bytes for which there is room without moving. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn capacity<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, after(store, self.addr, self.form.capacity_at()))
    }

    /// Whether the sequence has no bytes.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn is_empty<S: Store + ?Sized>(self, store: &S) -> Result<bool, ContainerError> {
        Ok(self.size(store)? == 0)
    }

    /// The place of the `bytes` bytes from `at` on, as far as there are any: one
    /// piece or two.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn pieces<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        bytes: u64,
    ) -> Result<[Element; 2], ContainerError> {
        let _shared = lock(store, self.lock_at(store), LockMode::Shared)?;
        let body = self.body(store)?;
        let bytes = bytes.min(body.size.saturating_sub(at));
        Ok(body.pieces(store, at, bytes))
    }

    /// Reads the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::OutOfRange`] if there are no such bytes.
    pub fn read<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), ContainerError> {
        self.hold_shared(store)?.read(at, into)
    }

    /// Overwrites the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::OutOfRange`] if there are no such bytes.
    pub fn write<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        self.hold(store)?.write(at, data)
    }

    /// Makes room for `bytes` bytes in all.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn reserve<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let mut body = self.body(store)?;
        self.grow_to(store, &mut body, (self.form.snug(bytes), 0))?;
        self.set_body(store, body)
    }

    /// Frees room that no byte needs.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn shrink_to_fit<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let mut body = self.body(store)?;
        let capacity = self.form.snug(body.size);
        if capacity < body.capacity {
            self.move_to(store, &mut body, (capacity, 0))?;
        }
        Ok(())
    }

    /// Removes all bytes; the memory stays.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn clear<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let body = self.body(store)?;
        self.set_body(store, SequenceBody { offset: 0, size: 0, ..body })
    }

    /// Inserts `data` before byte `at`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block,
    /// [`ContainerError::OutOfRange`] if `at` is larger than the size.
    pub fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let mut body = self.body(store)?;
        body.check(at, 0)?;
        self.open(store, &mut body, at, data.bytes())?;
        body.fill(store, at, data)?;
        self.set_body(store, body)
    }

    /// Inserts `data` behind the last byte, and returns the index of its first byte.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn push_back<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<u64, ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let mut body = self.body(store)?;
        let at = body.size;
        self.open(store, &mut body, at, data.bytes())?;
        body.fill(store, at, data)?;
        self.set_body(store, body)?;
        Ok(at)
    }

    /// Inserts `data` before the first byte.
    pub(super) fn push_front<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let mut body = self.body(store)?;
        let bytes = data.bytes();
        self.make_room(store, &mut body, (bytes, bytes))?;
        if body.capacity > 0 {
            body.offset = (body.offset + body.capacity - bytes) % body.capacity;
        }
        body.size += bytes;
        body.fill(store, 0, data)?;
        self.set_body(store, body)
    }

    /// Removes the last `bytes` bytes, or all if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn pop_back<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        self.hold(store)?.pop_back(bytes)
    }

    /// Reads the last bytes, as many as `into` has, and removes them. Returns false, and
    /// removes nothing, if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn take_back<S: Store + ?Sized>(
        self,
        store: &S,
        into: &mut [u8],
    ) -> Result<bool, ContainerError> {
        let held = self.hold(store)?;
        let bytes = into.len() as u64;
        let Some(at) = held.size().checked_sub(bytes) else { return Ok(false) };
        held.read(at, into)?;
        held.pop_back(bytes)?;
        Ok(true)
    }

    /// Removes the first `bytes` bytes, or all if there are fewer.
    pub(super) fn pop_front<S: Store + ?Sized>(
        self,
        store: &S,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        self.hold(store)?.pop_front(bytes)
    }

    /// Removes `bytes` bytes from `at` on, or all from there if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block,
    /// [`ContainerError::OutOfRange`] if `at` is larger than the size.
    pub fn erase<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        self.hold(store)?.erase(at, bytes)
    }

    /// Removes all but the first `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn truncate<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), LockMode::Exclusive)?;
        let mut body = self.body(store)?;
        body.size = body.size.min(bytes);
        self.set_body(store, body)
    }

    fn body<S: Store + ?Sized>(self, store: &S) -> Result<SequenceBody, ContainerError> {
        Ok(self.form.decode(words(store, self.addr)?))
    }

    fn set_body<S: Store + ?Sized>(
        self,
        store: &S,
        body: SequenceBody,
    ) -> Result<(), ContainerError> {
        set_words(store, self.addr, self.form.encode(body))
    }

    fn lock_at<S: Store + ?Sized>(self, store: &S) -> GlobalAddr {
        after(store, self.addr, LOCK_AT)
    }

    /// Makes a hole of `bytes` bytes before byte `at`.
    fn open<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut SequenceBody,
        at: u64,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        self.make_room(store, body, (bytes, 0))?;
        let size = body.size;
        body.size += bytes;
        let moved = SequenceBody { size, ..*body };
        self.shift(store, &moved, (at, at + bytes))
    }

    /// Makes room for `bytes` bytes more. If the body is moved for that, its first
    /// byte comes to offset `first`.
    fn make_room<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut SequenceBody,
        (bytes, first): (u64, u64),
    ) -> Result<(), ContainerError> {
        let wanted = body.size.saturating_add(bytes);
        if wanted <= body.capacity {
            return Ok(());
        }
        let half_more = body.capacity + body.capacity / 2;
        if wanted > LINE && half_more > wanted {
            match self.grow_to(store, body, (body::up_to(8, half_more), first)) {
                Err(ContainerError::Heap(_)) => {}
                result => return result,
            }
        }
        self.grow_to(store, body, (self.form.snug(wanted), first))
    }

    /// Makes the capacity at least `capacity` bytes, in place or by moving the body
    /// so that its first byte is at offset `first`.
    fn grow_to<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut SequenceBody,
        (capacity, first): (u64, u64),
    ) -> Result<(), ContainerError> {
        if capacity <= body.capacity {
            return Ok(());
        }
        if capacity <= body::room(body.capacity) && (body.offset, first) == (0, 0) {
            body.capacity = capacity;
            return Ok(());
        }
        self.move_to(store, body, (capacity, first))
    }

    /// Moves the body to new memory of its rank, with room for `capacity` bytes and
    /// its first byte at offset `first`.
    fn move_to<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut SequenceBody,
        (capacity, first): (u64, u64),
    ) -> Result<(), ContainerError> {
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        let at = match capacity {
            0 => GlobalAddr::NULL,
            _ => store.allocate(rank, body::room(capacity))?,
        };
        let grown = SequenceBody { at, offset: first, capacity, ..*body };
        let copied = grown.copy(store, 0, body, (0, body.size));
        copied.inspect_err(|_| {
            let _ = grown.free(store);
        })?;
        let before = core::mem::replace(body, grown);
        // A reader of the header must not find a body that is freed.
        self.set_body(store, grown)?;
        before.free(store)
    }

    /// Moves the bytes from `from` to the end, so that they begin at `to`.
    fn shift<S: Store + ?Sized>(
        self,
        store: &S,
        body: &SequenceBody,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let bytes = body.size - from;
        if bytes == 0 || from == to {
            return Ok(());
        }
        if from.abs_diff(to) >= bytes {
            return body.copy(store, to, body, (from, body.size));
        }
        // The two ranges overlap.
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        let at = store.allocate(rank, bytes)?;
        let aside = SequenceBody { at, offset: 0, size: bytes, capacity: bytes };
        let moved = aside
            .copy(store, 0, body, (from, body.size))
            .and_then(|()| body.copy(store, to, &aside, (0, bytes)));
        store.free(at)?;
        moved
    }
}

/// The lock's offset, in the line behind the header's words.
const LOCK_AT: u64 = LINE;
