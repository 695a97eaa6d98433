//! One operation: what is asked of a backend.
//!
//! A descriptor is [`Copy`] and at most 56 bytes, so that it and the sequence
//! number of the ring slot that holds it are one cache line.
//!
//! ```text
//!  Put, Get          memory ↔ memory       local, bytes
//!  PutWord, GetWord  1, 2, 4, 8 bytes      value in the descriptor / completion
//!  FetchAdd .. Xor   4 or 8 bytes          operand; the old value is the result
//!  CompareSwap       4 or 8 bytes          operand replaces `compare`
//! ```

use crate::mem::{LocalAddr, RegionKey, RemoteAddr, Width, Word};
use crate::tag::Tag;

/// What an operation does at the remote address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Copies local memory there. 2, 4 or 8 bytes that lie there as a word of as
    /// many are written once, whole: a put may give back a lock that an atomic
    /// took. Of others each may be written more than once, in any order.
    Put,
    /// Copies it to local memory. Such a word is read whole.
    Get,
    /// Stores a word that the descriptor carries.
    PutWord,
    /// Loads a word into the completion.
    GetWord,
    /// Adds the operand, wrapping.
    FetchAdd,
    /// Stores the operand.
    Swap,
    /// Stores the operand if the word is `compare`.
    CompareSwap,
    /// Keeps the bits of the operand.
    FetchAnd,
    /// Sets the bits of the operand.
    FetchOr,
    /// Flips the bits of the operand.
    FetchXor,
}

/// A descriptor. Made by the constructors, which fill what a kind needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Op {
    /// Where.
    pub remote: RemoteAddr,
    /// Put, get: the local offset. Otherwise the operand.
    word: u64,
    /// Put, get: how many bytes. Compare-swap: what is compared.
    more: u64,
    /// Whom the completion is for.
    pub tag: Tag,
    local_key: RegionKey,
    /// What to do.
    pub kind: Kind,
    width: Width,
    /// Whether ULTs that wait for the remote word are to be woken.
    pub notify: bool,
    /// What a driver and its endpoint have agreed on for what goes along; 0:
    /// nothing does. Endpoints that know of none do without it.
    pub along: u8,
}

impl Op {
    /// `bytes` bytes from `local` to `remote`.
    pub const fn put(local: LocalAddr, remote: RemoteAddr, bytes: u64) -> Self {
        Self::transfer(Kind::Put, local, remote, bytes)
    }

    /// `bytes` bytes from `remote` to `local`.
    pub const fn get(remote: RemoteAddr, local: LocalAddr, bytes: u64) -> Self {
        Self::transfer(Kind::Get, local, remote, bytes)
    }

    /// A word to `remote`.
    #[inline(always)]
    pub const fn put_word(remote: RemoteAddr, width: Width, value: u64) -> Self {
        Self::on_word(Kind::PutWord, remote, width, value, 0)
    }

    /// A word from `remote`.
    #[inline(always)]
    pub const fn get_word(remote: RemoteAddr, width: Width) -> Self {
        Self::on_word(Kind::GetWord, remote, width, 0, 0)
    }

    /// An atomic of `kind` on the `T` at `remote`.
    #[inline(always)]
    pub fn atomic<T: Word>(kind: Kind, remote: RemoteAddr, operand: T) -> Self {
        Self::on_word(kind, remote, T::WIDTH, operand.to_bits(), 0)
    }

    /// Stores `new` in the `T` at `remote` if it is `expected`.
    #[inline(always)]
    pub fn compare_swap<T: Word>(remote: RemoteAddr, expected: T, new: T) -> Self {
        Self::on_word(Kind::CompareSwap, remote, T::WIDTH, new.to_bits(), expected.to_bits())
    }

    /// The same, and whoever waits for the remote word is woken.
    #[must_use]
    #[inline(always)]
    pub const fn notifying(self) -> Self {
        Self { notify: true, ..self }
    }

    /// The same, for another completion.
    #[must_use]
    #[inline(always)]
    pub const fn tagged(self, tag: Tag) -> Self {
        Self { tag, ..self }
    }

    /// Put, get: the local end.
    #[inline(always)]
    pub const fn local(&self) -> LocalAddr {
        LocalAddr { offset: self.word, key: self.local_key }
    }

    /// Word operations: the operand's bits.
    #[inline(always)]
    pub const fn operand(&self) -> u64 {
        self.word
    }

    /// Compare-swap: what is compared.
    #[inline(always)]
    pub const fn compare(&self) -> u64 {
        self.more
    }

    /// How many bytes of remote memory the operation touches.
    #[inline(always)]
    pub const fn bytes(&self) -> u64 {
        match self.kind {
            Kind::Put | Kind::Get => self.more,
            _ => self.width as u64,
        }
    }

    /// Whether remote memory changes.
    #[inline(always)]
    pub const fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Get | Kind::GetWord)
    }

    /// Word operations, which are on one naturally aligned word: its width.
    #[inline(always)]
    pub const fn width(&self) -> Option<Width> {
        match self.kind {
            Kind::Put | Kind::Get => None,
            _ => Some(self.width),
        }
    }

    /// Put, get: whether what it touches there is one word.
    #[inline]
    pub const fn is_on_one_word(&self) -> bool {
        let bytes = self.bytes();
        self.width().is_none()
            && matches!(bytes, 2 | 4 | 8)
            && self.remote.offset.is_multiple_of(bytes)
    }

    const fn transfer(kind: Kind, local: LocalAddr, remote: RemoteAddr, bytes: u64) -> Self {
        Self {
            remote,
            word: local.offset,
            more: bytes,
            tag: Tag::NONE,
            local_key: local.key,
            kind,
            width: Width::W1,
            notify: false,
            along: 0,
        }
    }

    #[inline(always)]
    const fn on_word(
        kind: Kind,
        remote: RemoteAddr,
        width: Width,
        operand: u64,
        compare: u64,
    ) -> Self {
        Self {
            remote,
            word: operand,
            more: compare,
            tag: Tag::NONE,
            local_key: RegionKey::from_bits(0),
            kind,
            width,
            notify: false,
            along: 0,
        }
    }
}

const _: () = assert!(size_of::<Op>() <= 56);
