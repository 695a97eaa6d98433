//! The operations that the page protocols by remote atomics request from their
//! driver.

use super::DirectoryEntry;
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// The next step of a page protocol.
#[derive(Clone, Copy, Debug)]
pub enum PageAction {
    /// Carry out this operation on a word, with remote completion. The answer is the
    /// old value of the word.
    Do(Op),
    /// Wait some time, so that other threads of this rank and of other ranks go on.
    /// If a rank is named and that rank is dead, the answer is
    /// [`AddrError::PeerLost`].
    Pause(Option<Rank>),
    /// Read the page's header, the eight bytes before the page's own, and the bytes
    /// of the page that the caller needs, by one operation or by several in any
    /// order. The header is the answer.
    Read(DirectoryEntry),
    /// Copy all bytes of a page to a frame of the own rank.
    Copy {
        /// Address of the page's bytes.
        from: RemoteAddr,
        /// Address of the frame's bytes.
        to: RemoteAddr,
    },
    /// The caller may access the page: the page stays there until the caller
    /// releases it.
    Ready(DirectoryEntry),
    /// The protocol has ended.
    Over,
    /// The protocol has ended, because no frame is left at this rank.
    Full,
    /// The protocol has failed.
    Failed(AddrError),
}

/// Operations on words of eight bytes.
pub(super) struct WordOp;

impl WordOp {
    #[inline]
    pub const fn load(at: RemoteAddr) -> Op {
        Op::get_word(at, Width::W8)
    }

    #[inline]
    pub const fn store(at: RemoteAddr, value: u64) -> Op {
        Op::put_word(at, Width::W8, value)
    }

    #[inline]
    pub fn exchange(at: RemoteAddr, old: u64, new: u64) -> Op {
        Op::compare_swap(at, old, new)
    }

    #[inline]
    pub fn add(at: RemoteAddr, value: u64) -> Op {
        Op::atomic(Kind::FetchAdd, at, value)
    }

    #[inline]
    pub fn or(at: RemoteAddr, bits: u64) -> Op {
        Op::atomic(Kind::FetchOr, at, bits)
    }

    pub fn and(at: RemoteAddr, bits: u64) -> Op {
        Op::atomic(Kind::FetchAnd, at, bits)
    }
}
