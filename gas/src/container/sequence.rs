//! Bytes in a row on one rank: all that a vector and a deque have in common.
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
//! A vector's offset is always 0, so that its bytes are in one piece; a
//! deque's are in two at most. The words of a header are those of ACP 3, whose
//! programs may read them. So is the capacity while it is small: as many bytes as
//! are needed, a vector's in whole words. A body takes whole lines of memory, so
//! it grows within its line without moving. From one line on it grows by half at
//! least, so that bytes that are put in one by one are moved a few times each.
//! [`Sequence::shrink_to_fit`] alone makes it smaller. What comes behind an
//! insertion or an erasure is moved.

use super::data::{Data, Element};
use super::guard::lock;
use super::store::{self, Store, after, set_words, words};
use super::{ContainerError, Mode};
use crate::address::GlobalAddr;
use crate::lock::LOCK_BYTES;
use body::Body;
use tsumugi_core::mem::Rank;

mod body;
mod range;

/// Bytes in a row, by the address of their header. A
/// [`Vector`](super::Vector) and a [`Deque`](super::Deque) each lead to theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence {
    addr: GlobalAddr,
    form: Form,
}

/// What its header looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Three words: the bytes begin where the body does.
    Vector,
    /// Four words: the second says where the bytes begin.
    Deque,
}

impl Form {
    const fn size_at(self) -> u64 {
        match self {
            Self::Vector => 8,
            Self::Deque => 16,
        }
    }

    /// The capacity follows the size.
    const fn capacity_at(self) -> u64 {
        self.size_at() + 8
    }

    /// What a small body of `bytes` bytes has room for.
    const fn snug(self, bytes: u64) -> u64 {
        match self {
            Self::Vector => body::up_to(8, bytes),
            Self::Deque => bytes,
        }
    }

    const fn decode(self, words: [u64; 4]) -> Body {
        let [at, second, third, fourth] = words;
        let (offset, size, capacity) = match self {
            Self::Vector => (0, second, third),
            Self::Deque => (second, third, fourth),
        };
        Body { at: GlobalAddr::from_bits(at), offset, size, capacity }
    }

    const fn encode(self, body: Body) -> [u64; 4] {
        let Body { at, offset, size, capacity } = body;
        match self {
            Self::Vector => [at.to_bits(), size, capacity, 0],
            Self::Deque => [at.to_bits(), offset, size, capacity],
        }
    }
}

impl Sequence {
    /// Makes one of `bytes` bytes, which are not cleared, on `rank`.
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
        this.set_body(store, Body { at, offset: 0, size: bytes, capacity })?;
        Ok(this)
    }

    /// The one whose header is at `addr`.
    pub(super) const fn at_addr(addr: GlobalAddr, form: Form) -> Self {
        Self { addr, form }
    }

    /// Where its header is.
    pub const fn addr(self) -> GlobalAddr {
        self.addr
    }

    /// Gives its memory back. Nobody uses it any more.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn destroy<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.body(store)?.free(store)?;
        Ok(store.free(self.addr)?)
    }

    /// Bytes in it. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn size<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, after(store, self.addr, self.form.size_at()))
    }

    /// Bytes that it has room for without moving. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn capacity<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, after(store, self.addr, self.form.capacity_at()))
    }

    /// Whether it has none.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn is_empty<S: Store + ?Sized>(self, store: &S) -> Result<bool, ContainerError> {
        Ok(self.size(store)? == 0)
    }

    /// Where the `bytes` bytes from `at` on are, as far as there are any: in
    /// one piece, or in two.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn pieces<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        bytes: u64,
    ) -> Result<[Element; 2], ContainerError> {
        let _shared = lock(store, self.lock_at(store), Mode::Shared)?;
        let body = self.body(store)?;
        let bytes = bytes.min(body.size.saturating_sub(at));
        Ok(body.pieces(store, at, bytes))
    }

    /// Reads the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn read<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), ContainerError> {
        let _shared = lock(store, self.lock_at(store), Mode::Shared)?;
        let body = self.body(store)?;
        body.check(at, into.len() as u64)?;
        let mut into = into;
        for piece in body.pieces(store, at, into.len() as u64) {
            let (first, rest) = into.split_at_mut(piece.bytes as usize);
            if !first.is_empty() {
                store.read(piece.addr, first)?;
            }
            into = rest;
        }
        Ok(())
    }

    /// Writes over the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn write<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let body = self.body(store)?;
        body.check(at, data.bytes())?;
        body.fill(store, at, data)
    }

    /// Makes room for `bytes` bytes in all.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn reserve<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        self.grow_to(store, &mut body, (self.form.snug(bytes), 0))?;
        self.set_body(store, body)
    }

    /// Gives back what room there is that no byte is in.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn shrink_to_fit<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        let capacity = self.form.snug(body.size);
        if capacity < body.capacity {
            self.move_to(store, &mut body, (capacity, 0))?;
        }
        Ok(())
    }

    /// Takes all out; the memory stays.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn clear<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let body = self.body(store)?;
        self.set_body(store, Body { offset: 0, size: 0, ..body })
    }

    /// Puts `data` in before byte `at`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        body.check(at, 0)?;
        self.open(store, &mut body, at, data.bytes())?;
        body.fill(store, at, data)?;
        self.set_body(store, body)
    }

    /// Puts `data` in behind the last; the byte that it begins at.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn push_back<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<u64, ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        let at = body.size;
        self.open(store, &mut body, at, data.bytes())?;
        body.fill(store, at, data)?;
        self.set_body(store, body)?;
        Ok(at)
    }

    /// Puts `data` in before the first.
    pub(super) fn push_front<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
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

    /// Takes the last bytes out, as many as there are of `bytes`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn pop_back<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        body.size = body.size.saturating_sub(bytes);
        self.set_body(store, body)
    }

    /// The same at the front.
    pub(super) fn pop_front<S: Store + ?Sized>(
        self,
        store: &S,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        let bytes = bytes.min(body.size);
        if body.capacity > 0 {
            body.offset = (body.offset + bytes) % body.capacity;
        }
        body.size -= bytes;
        self.set_body(store, body)
    }

    /// Takes the bytes from `at` on out, as many as there are of `bytes`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn erase<S: Store + ?Sized>(
        self,
        store: &S,
        at: u64,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        body.check(at, 0)?;
        let bytes = bytes.min(body.size - at);
        self.shift(store, &body, (at + bytes, at))?;
        body.size -= bytes;
        self.set_body(store, body)
    }

    /// Takes all out but the first `bytes`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn truncate<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        let _alone = lock(store, self.lock_at(store), Mode::Exclusive)?;
        let mut body = self.body(store)?;
        body.size = body.size.min(bytes);
        self.set_body(store, body)
    }

    fn body<S: Store + ?Sized>(self, store: &S) -> Result<Body, ContainerError> {
        Ok(self.form.decode(words(store, self.addr)?))
    }

    fn set_body<S: Store + ?Sized>(self, store: &S, body: Body) -> Result<(), ContainerError> {
        set_words(store, self.addr, self.form.encode(body))
    }

    fn lock_at<S: Store + ?Sized>(self, store: &S) -> GlobalAddr {
        after(store, self.addr, LOCK_AT)
    }

    /// Makes a hole of `bytes` bytes before byte `at`.
    fn open<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
        at: u64,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        self.make_room(store, body, (bytes, 0))?;
        let size = body.size;
        body.size += bytes;
        let moved = Body { size, ..*body };
        self.shift(store, &moved, (at, at + bytes))
    }

    /// Makes room for `bytes` bytes more; where that moves it, its first byte
    /// comes to `first`.
    fn make_room<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
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

    /// Makes it as large as `capacity` bytes, where it is or elsewhere, with its
    /// first byte at `first`.
    fn grow_to<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
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

    /// Moves it to memory of its own rank where `capacity` bytes have room, its
    /// first byte to `first`.
    fn move_to<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
        (capacity, first): (u64, u64),
    ) -> Result<(), ContainerError> {
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        let at = match capacity {
            0 => GlobalAddr::NULL,
            _ => store.allocate(rank, body::room(capacity))?,
        };
        let grown = Body { at, offset: first, capacity, ..*body };
        let copied = grown.copy(store, 0, body, (0, body.size));
        copied.inspect_err(|_| {
            let _ = grown.free(store);
        })?;
        let before = core::mem::replace(body, grown);
        // Who looks for the body must not find what is freed.
        self.set_body(store, grown)?;
        before.free(store)
    }

    /// Moves the bytes from `from` to the end, so that they begin at `to`.
    fn shift<S: Store + ?Sized>(
        self,
        store: &S,
        body: &Body,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let bytes = body.size - from;
        if bytes == 0 || from == to {
            return Ok(());
        }
        if from.abs_diff(to) >= bytes {
            return body.copy(store, to, body, (from, body.size));
        }
        // The two overlap.
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        let at = store.allocate(rank, bytes)?;
        let aside = Body { at, offset: 0, size: bytes, capacity: bytes };
        let moved = aside
            .copy(store, 0, body, (from, body.size))
            .and_then(|()| body.copy(store, to, &aside, (0, bytes)));
        store.free(at)?;
        moved
    }
}

/// Behind the line of the header's words.
const LOCK_AT: u64 = LINE;
/// What memory comes in, and as large as a body is that grows by half.
const LINE: u64 = 64;
