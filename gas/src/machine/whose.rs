//! Whose memory a request is about.

use super::{Machine, Setup};
use crate::address::{GlobalAddr, Split};
use crate::error::AccessError;
use crate::request::{Copy, Request, Word};
use tsumugi_core::mem::Rank;

impl Machine<'_> {
    /// The table that an address of this job is looked up in.
    pub(super) fn table_of(&self, addr: GlobalAddr) -> Result<u32, AccessError> {
        let Setup { split, shape, .. } = self.setup;
        match split.place(addr) {
            Some(place) if place.rank.0 < shape.ranks && u32::from(place.color) < shape.colors => {
                Ok(split.table(addr))
            }
            _ => Err(AccessError::Nowhere { addr }),
        }
    }

    /// Whether the driver loads and stores the memory of that rank.
    pub(super) fn is_near(&self, rank: Option<Rank>) -> bool {
        rank.is_some_and(|rank| self.setup.near.binary_search(&rank).is_ok())
    }

    /// Whether the driver copies between these two, neither of which is this
    /// rank.
    pub(super) fn is_between_near(&self, (from, to): (Option<Rank>, Option<Rank>)) -> bool {
        self.is_near(from) && self.is_near(to)
    }

    /// Whether the driver carries that from one far rank to another: both ways
    /// are the devices', and nobody else's processor has to do with it. Not if the
    /// destination can tell of the end, which takes a trip less.
    pub(super) fn is_carried(&self, copy: &Copy) -> bool {
        let (from, to) = self.ranks_of(&Request::Copy(*copy));
        copy.is_one_block()
            && copy.bytes > self.setup.ordered_bytes_max
            && copy.bytes <= self.setup.carried_bytes_max
            && from != to
            && !self.is_near(from)
            && !self.is_near(to)
    }

    /// From whose memory to whose a request goes.
    pub(super) fn ranks_of(&self, request: &Request) -> (Option<Rank>, Option<Rank>) {
        let rank = |addr| self.setup.split.rank(addr);
        match request {
            Request::Copy(copy) => (rank(copy.src), rank(copy.dst)),
            Request::List(list) => (Some(list.from), Some(list.to)),
            Request::Word(Word { target, .. }) => (Some(self.setup.rank), rank(*target)),
            Request::Fence => (None, None),
        }
    }
}

/// Whether a request reads or changes memory of a rank.
pub(super) fn touches(split: Split, request: &Request, rank: Rank) -> bool {
    let is_its = |addr| split.rank(addr) == Some(rank);
    match request {
        Request::Copy(copy) => is_its(copy.src) || is_its(copy.dst) || is_its(copy.flag),
        Request::List(list) => list.from == rank || list.to == rank || is_its(list.entries),
        Request::Word(word) => is_its(word.target),
        Request::Fence => false,
    }
}
