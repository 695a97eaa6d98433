//! What the protocols by remote atomics alone ask for.

use super::Entry;
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// What comes next.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// This operation on a word, with remote completion; what was there is the
    /// answer.
    Do(Op),
    /// Some time, so that others get on, of this rank and of others. If it is
    /// for that rank and that rank is dead, the answer is
    /// [`AddrError::PeerLost`].
    Pause(Option<Rank>),
    /// A read of the page's header, the eight bytes before the page's own, and
    /// of what is wanted of these: by one operation, or by several in any
    /// order. The header is the answer.
    Read(Entry),
    /// All bytes of a page, to a frame of the own rank.
    Copy {
        /// Its bytes.
        from: RemoteAddr,
        /// The frame's.
        to: RemoteAddr,
    },
    /// The caller's turn: the page stays there until it says that it is done.
    Ready(Entry),
    /// It is over.
    Over,
    /// No frame is left at this rank.
    Full,
    /// It cannot be done.
    Failed(AddrError),
}

/// Operations on words of eight bytes.
pub(super) struct Word;

impl Word {
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
