//! Operations on words of eight bytes, of which the page protocols are made.

use tsumugi_core::mem::{RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

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
