//! Bytes in a row on one rank: all that a vector and a deque have in common.
//!
//! ```text
//!  header   lock │ body, offset, size, capacity
//!
//!  body     ▒▒▒▒░░░░░░░░▒▒▒▒▒▒▒▒      a ring of `capacity` bytes
//!               ▲       ▲
//!             end     offset
//! ```
//!
//! A vector's offset is always 0, so that its bytes are in one piece; a
//! deque's are in two at most. The body grows by half at least, so that bytes
//! that are put in one by one are moved a few times each; nothing makes it
//! smaller. What comes behind an insertion or an erasure is moved.

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

/// Bytes in a row, by the address of their header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence {
    addr: GlobalAddr,
}

impl Sequence {
    /// Makes one of `bytes` bytes, which are not cleared, on `rank`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn create<S: Store + ?Sized>(
        store: &S,
        bytes: u64,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        let addr = store.allocate(rank, HEADER_BYTES)?;
        let at = match bytes {
            0 => GlobalAddr::NULL,
            _ => store.allocate(rank, bytes).inspect_err(|_| {
                let _ = store.free(addr);
            })?,
        };
        set_words(store, addr, [0; LOCK_BYTES as usize / 8])?;
        let this = Self { addr };
        this.set_body(store, Body { at, offset: 0, size: bytes, capacity: bytes })?;
        Ok(this)
    }

    /// The one whose header is at `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self { addr }
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
        let body = self.body(store)?;
        if !body.at.is_null() {
            store.free(body.at)?;
        }
        Ok(store.free(self.addr)?)
    }

    /// Bytes in it. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn size<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, after(store, self.addr, LOCK_BYTES + 16))
    }

    /// Bytes that it has room for without moving. One load.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn capacity<S: Store + ?Sized>(self, store: &S) -> Result<u64, ContainerError> {
        store::word(store, after(store, self.addr, LOCK_BYTES + 24))
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
        let _shared = lock(store, self.addr, Mode::Shared)?;
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
        let _shared = lock(store, self.addr, Mode::Shared)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
        let mut body = self.body(store)?;
        self.grow_to(store, &mut body, bytes)?;
        self.set_body(store, body)
    }

    /// Takes all out; the memory stays.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn clear<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.truncate(store, 0)
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
        let mut body = self.body(store)?;
        let bytes = data.bytes();
        self.make_room(store, &mut body, bytes)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
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
        let _alone = lock(store, self.addr, Mode::Exclusive)?;
        let mut body = self.body(store)?;
        body.size = body.size.min(bytes);
        self.set_body(store, body)
    }

    fn body<S: Store + ?Sized>(self, store: &S) -> Result<Body, ContainerError> {
        let [at, offset, size, capacity] = words(store, after(store, self.addr, LOCK_BYTES))?;
        Ok(Body { at: GlobalAddr::from_bits(at), offset, size, capacity })
    }

    fn set_body<S: Store + ?Sized>(self, store: &S, body: Body) -> Result<(), ContainerError> {
        let words = [body.at.to_bits(), body.offset, body.size, body.capacity];
        set_words(store, after(store, self.addr, LOCK_BYTES), words)
    }

    /// Makes a hole of `bytes` bytes before byte `at`.
    fn open<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
        at: u64,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        self.make_room(store, body, bytes)?;
        let size = body.size;
        body.size += bytes;
        let moved = Body { size, ..*body };
        self.shift(store, &moved, (at, at + bytes))
    }

    fn make_room<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
        bytes: u64,
    ) -> Result<(), ContainerError> {
        let wanted = body.size.saturating_add(bytes);
        if wanted <= body.capacity {
            return Ok(());
        }
        let generous = wanted.max(body.capacity + body.capacity / 2).next_multiple_of(8);
        match self.grow_to(store, body, generous) {
            Err(ContainerError::Heap(_)) => self.grow_to(store, body, wanted),
            result => result,
        }
    }

    /// Moves all of it to where `capacity` bytes have room.
    fn grow_to<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut Body,
        capacity: u64,
    ) -> Result<(), ContainerError> {
        if capacity <= body.capacity {
            return Ok(());
        }
        let rank = store.split().rank(self.addr).unwrap_or(Rank(u32::MAX));
        let grown = Body { at: store.allocate(rank, capacity)?, offset: 0, capacity, ..*body };
        grown.copy(store, 0, body, (0, body.size))?;
        let before = core::mem::replace(body, grown);
        if !before.at.is_null() {
            // Who looks for the body must not find what is freed.
            self.set_body(store, grown)?;
            store.free(before.at)?;
        }
        Ok(())
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

const HEADER_BYTES: u64 = LOCK_BYTES + 32;
