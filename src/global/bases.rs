//! One address on each rank, told to all.

use super::{Global, GlobalAddr, Place};
use crate::{Error, Rank};

/// Where each rank has something.
#[derive(Debug)]
pub(crate) enum Bases {
    /// At the same place of it.
    Same(Place),
    /// At one of their own.
    Each(Box<[GlobalAddr]>),
}

impl Bases {
    /// Tells all ranks where this one has it. Collective.
    pub(crate) fn tell(global: &Global, own: GlobalAddr) -> Result<Self, Error> {
        let split = global.split();
        let place = split.place(own).map(|place| Place { rank: Rank(0), ..place });
        let same = place.and_then(|place| split.addr(place).ok()).unwrap_or_default();
        Ok(match (global.runtime.agree(same.to_bits())?, place) {
            (Some(_), Some(place)) => Self::Same(place),
            _ => Self::Each(global.tell(own)?.into()),
        })
    }

    /// Where `rank` has it; `None` if there is no such rank.
    pub(crate) fn of(&self, global: &Global, rank: Rank) -> Option<GlobalAddr> {
        match self {
            _ if rank.0 >= global.runtime.size() => None,
            Self::Same(place) => global.split().addr(Place { rank, ..*place }).ok(),
            Self::Each(bases) => bases.get(rank.0 as usize).copied(),
        }
    }
}
