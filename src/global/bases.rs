//! One address for each rank, known to all ranks.

use super::{AddressParts, Global, GlobalAddr};
use crate::{Error, Rank};

/// The address at which each rank has an object.
#[derive(Debug)]
pub enum Bases {
    /// All ranks have the object at the same place of their memory.
    Same(AddressParts),
    /// Each rank has the object at a place of its own.
    Each(Box<[GlobalAddr]>),
}

impl Bases {
    /// Publishes the address at which this rank has the object. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`].
    pub fn tell(global: &Global, own: GlobalAddr) -> Result<Self, Error> {
        let split = global.split();
        let place = split.place(own).map(|place| AddressParts { rank: Rank(0), ..place });
        let same = place.and_then(|place| split.addr(place).ok()).unwrap_or_default();
        Ok(match (global.runtime.handle().agree(same.to_bits())?, place) {
            (Some(_), Some(place)) => Self::Same(place),
            _ => Self::Each(global.tell(own)?.into()),
        })
    }

    /// The address at which `rank` has the object; `None` if there is no such rank.
    pub fn of(&self, global: &Global, rank: Rank) -> Option<GlobalAddr> {
        match self {
            _ if rank.0 >= global.runtime.size() => None,
            Self::Same(place) => global.split().addr(AddressParts { rank, ..*place }).ok(),
            Self::Each(bases) => bases.get(rank.0 as usize).copied(),
        }
    }
}
