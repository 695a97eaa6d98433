//! The ranks of which a request reads or changes the memory.

use super::rank::GlobalMachine;
use super::traffic::MachineSetup;
use crate::address::GlobalAddr;
use crate::request::{Copy, GlobalRequest, WordRequest};
use tsumugi_core::mem::{AddrError, Rank};

impl GlobalMachine<'_> {
    /// The table in which an address of this job is looked up.
    pub(super) fn table_of(&self, addr: GlobalAddr) -> Result<u32, AddrError<GlobalAddr>> {
        let MachineSetup { split, shape, .. } = self.setup;
        match split.place(addr) {
            Some(place) if place.rank.0 < shape.ranks && u32::from(place.color) < shape.colors => {
                Ok(split.table(addr))
            }
            _ => Err(AddrError::Nowhere { addr }),
        }
    }

    /// Whether the driver can load and store the memory of that rank.
    pub(super) fn is_near(&self, rank: Option<Rank>) -> bool {
        rank.is_some_and(|rank| self.setup.near.binary_search(&rank).is_ok())
    }

    /// Whether the driver copies between these two ranks, neither of which is this
    /// rank.
    pub(super) fn is_between_near(&self, (from, to): (Option<Rank>, Option<Rank>)) -> bool {
        self.is_near(from) && self.is_near(to)
    }

    /// Whether the driver carries the copy from one far rank to another one. Both
    /// transfers are the devices' work, and no other processor takes part. Not if
    /// the destination can report the end, which takes a trip less.
    pub(super) fn is_carried(&self, copy: &Copy) -> bool {
        let (from, to) = self.ranks_of(&GlobalRequest::Copy(*copy));
        copy.is_one_block()
            && copy.bytes > self.setup.ordered_bytes_max
            && copy.bytes <= self.setup.carried_bytes_max
            && from != to
            && !self.is_near(from)
            && !self.is_near(to)
    }

    /// The source rank and the destination rank of a request.
    pub(super) fn ranks_of(&self, request: &GlobalRequest) -> (Option<Rank>, Option<Rank>) {
        let rank = |addr| self.setup.split.rank(addr);
        match request {
            GlobalRequest::Copy(copy) => (rank(copy.src), rank(copy.dst)),
            GlobalRequest::List(list) => (Some(list.from), Some(list.to)),
            GlobalRequest::Word(WordRequest { target, .. }) => {
                (Some(self.setup.rank), rank(*target))
            }
            GlobalRequest::Fence => (None, None),
        }
    }
}
