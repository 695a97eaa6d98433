//! Copies of bytes that this rank gets from one remote rank and puts to another one.
//!
//! ```text
//!  unlent ─► get ─► chunk ─► put ─► given back
//! ```

use tsumugi_core::mem::LocalAddr;
use tsumugi_core::mem::{AddrError, RemoteAddr};
use tsumugi_core::op::Op;

/// A copy between two remote ranks.
#[derive(Debug)]
pub(super) struct Onward {
    put: Op,
    /// The buffer through which the bytes pass, once it is lent.
    chunk: Option<LocalAddr>,
    /// The get has ended, and the put has been handed out.
    is_put: bool,
}

impl Onward {
    /// Begins a copy of the bytes at `source` by `put`. Returns also the get, which
    /// is to be posted first, after a buffer has been [lent](Self::lend).
    pub(super) fn begin(source: RemoteAddr, put: &Op) -> (Self, Op) {
        let get = Op::get(source, put.local(), put.bytes()).tagged(put.tag);
        (Self { put: *put, chunk: None, is_put: false }, get)
    }

    /// Whether the copy has no buffer yet.
    pub(super) const fn is_unlent(&self) -> bool {
        self.chunk.is_none()
    }

    /// Sets the buffer for the copy, and returns the get into it.
    pub(super) fn lend(&mut self, chunk: LocalAddr, get: &Op) -> Op {
        let Op { remote, tag, .. } = self.put;
        self.put = Op::put(chunk, remote, self.put.bytes()).tagged(tag);
        self.chunk = Some(chunk);
        Op::get(get.remote, chunk, get.bytes()).tagged(tag)
    }

    /// Returns the next operation after one has ended with `result`; `None`: the
    /// copy has ended.
    pub(super) fn next(&mut self, result: Result<u64, AddrError>) -> Option<Op> {
        let is_next = result.is_ok() && !std::mem::replace(&mut self.is_put, true);
        is_next.then_some(self.put)
    }

    /// The buffer that was lent.
    pub(super) const fn chunk(&self) -> Option<LocalAddr> {
        self.chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::mem::Rank;
    use tsumugi_core::mem::RegionKey;
    use tsumugi_core::op::Kind;
    use tsumugi_core::tag::Tag;

    fn at(rank: u32, offset: u64) -> RemoteAddr {
        RemoteAddr { offset, rank: Rank(rank), key: RegionKey::new(3, 1) }
    }

    fn local(offset: u64) -> LocalAddr {
        LocalAddr { offset, key: RegionKey::new(9, 1) }
    }

    fn begin(source: u64, target: u64, bytes: u64) -> (Onward, Op) {
        let put = Op::put(local(0), at(2, target), bytes).tagged(Tag::from_bits(77));
        Onward::begin(at(1, source), &put)
    }

    #[test]
    fn bytes_pass_through_the_lent_chunk() {
        let (mut onward, get) = begin(100, 200, 30);
        assert!(onward.is_unlent());
        let get = onward.lend(local(512), &get);
        assert_eq!((get.kind, get.remote, get.bytes()), (Kind::Get, at(1, 100), 30));
        assert_eq!((get.local(), get.tag), (local(512), Tag::from_bits(77)));
        let put = onward.next(Ok(0)).expect("the put of the bytes");
        assert_eq!((put.kind, put.remote, put.bytes()), (Kind::Put, at(2, 200), 30));
        assert_eq!((put.local(), put.tag), (local(512), Tag::from_bits(77)));
        assert!(onward.next(Ok(0)).is_none(), "the put has ended");
        assert_eq!(onward.chunk(), Some(local(512)));
    }

    #[test]
    fn a_get_that_fails_puts_nothing() {
        let lost = Err(AddrError::PeerLost { rank: Rank(1) });
        let (mut onward, get) = begin(100, 200, 30);
        onward.lend(local(0), &get);
        assert!(onward.next(lost).is_none());
        assert_eq!(onward.chunk(), Some(local(0)), "the chunk is given back with the error");
    }
}
