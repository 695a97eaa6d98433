//! One operation: the descriptor that a backend carries out.
//!
//! A descriptor is [`Copy`] and has at most 56 bytes, so that a descriptor and the
//! sequence number of the ring slot that holds it fit in one cache line.
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
    /// Copies local memory to the remote address. If the remote bytes are one
    /// naturally aligned word of 2, 4 or 8 bytes, the word is written once, as a
    /// whole: so a put may release a lock that an atomic took. Of other lengths or
    /// places, each byte may be written more than once, in any order.
    Put,
    /// Copies from the remote address to local memory. A naturally aligned word of
    /// 2, 4 or 8 bytes is read as a whole.
    Get,
    /// Stores a word that the descriptor carries.
    PutWord,
    /// Loads a word into the completion.
    GetWord,
    /// Adds the operand to the word, wrapping.
    FetchAdd,
    /// Replaces the word by the operand.
    Swap,
    /// Replaces the word by the operand if the word equals `compare`.
    CompareSwap,
    /// Clears the bits that the operand does not have.
    FetchAnd,
    /// Sets the bits that the operand has.
    FetchOr,
    /// Flips the bits that the operand has.
    FetchXor,
}

/// The descriptor of an operation. The constructors fill the fields that a kind
/// needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Op {
    /// The remote address.
    pub remote: RemoteAddr,
    /// For a put or get the local offset, otherwise the operand.
    word: u64,
    /// For a put or get the number of bytes, for a compare-swap the expected value.
    more: u64,
    /// The tag that the completion will carry.
    pub tag: Tag,
    local_key: RegionKey,
    /// What the operation does.
    pub kind: Kind,
    width: Width,
    /// Whether ULTs that wait for the remote word must be woken.
    pub notify: bool,
    /// A number for data that goes along with the operation; its meaning is agreed
    /// between a driver and its endpoint, and 0 means that no data goes along. An
    /// endpoint that does not use such data ignores the number.
    pub along: u8,
}

impl Op {
    /// Copies `bytes` bytes from `local` to `remote`.
    pub const fn put(local: LocalAddr, remote: RemoteAddr, bytes: u64) -> Self {
        Self::transfer(Kind::Put, local, remote, bytes)
    }

    /// Copies `bytes` bytes from `remote` to `local`.
    pub const fn get(remote: RemoteAddr, local: LocalAddr, bytes: u64) -> Self {
        Self::transfer(Kind::Get, local, remote, bytes)
    }

    /// Stores a word at `remote`.
    #[inline(always)]
    pub const fn put_word(remote: RemoteAddr, width: Width, value: u64) -> Self {
        Self::on_word(Kind::PutWord, remote, width, value, 0)
    }

    /// Loads a word from `remote`.
    #[inline(always)]
    pub const fn get_word(remote: RemoteAddr, width: Width) -> Self {
        Self::on_word(Kind::GetWord, remote, width, 0, 0)
    }

    /// An atomic of `kind` on the `T` at `remote`.
    #[inline(always)]
    pub fn atomic<T: Word>(kind: Kind, remote: RemoteAddr, operand: T) -> Self {
        Self::on_word(kind, remote, T::WIDTH, operand.to_bits(), 0)
    }

    /// Stores `new` in the `T` at `remote` if the `T` equals `expected`.
    #[inline(always)]
    pub fn compare_swap<T: Word>(remote: RemoteAddr, expected: T, new: T) -> Self {
        Self::on_word(Kind::CompareSwap, remote, T::WIDTH, new.to_bits(), expected.to_bits())
    }

    /// The same operation, which also wakes the threads that wait for the remote
    /// word.
    #[must_use]
    #[inline(always)]
    pub const fn notifying(self) -> Self {
        Self { notify: true, ..self }
    }

    /// The same operation with the tag of another completion.
    #[must_use]
    #[inline(always)]
    pub const fn tagged(self, tag: Tag) -> Self {
        Self { tag, ..self }
    }

    /// The local end of a put or get.
    #[inline(always)]
    pub const fn local(&self) -> LocalAddr {
        LocalAddr { offset: self.word, key: self.local_key }
    }

    /// The operand's bits, for word operations.
    #[inline(always)]
    pub const fn operand(&self) -> u64 {
        self.word
    }

    /// The expected value of a compare-swap.
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

    /// Whether the operation changes remote memory.
    #[inline(always)]
    pub const fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Get | Kind::GetWord)
    }

    /// The width of a word operation, which works on one naturally aligned word;
    /// `None` for a put or get.
    #[inline(always)]
    pub const fn width(&self) -> Option<Width> {
        match self.kind {
            Kind::Put | Kind::Get => None,
            _ => Some(self.width),
        }
    }

    /// Whether a put or get touches exactly one naturally aligned word of remote
    /// memory.
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
