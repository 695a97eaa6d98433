//! The packed cards of all ranks, for a bootstrap that cannot be used later.
//!
//! ```text
//!  ranks: u32   nodes: u32   ends: u32 of each address, then of each host
//!  addresses, one behind the other   a host's name for each node
//! ```
//!
//! A node keeps them once: its first rank puts them into memory that all ranks of
//! the node can read, and each rank frees its own copy.

use crate::net::Cards;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Nodes;

/// The packed cards; see the module.
#[derive(Debug)]
pub(super) struct PackedCards {
    own: Mutex<Option<Arc<[u8]>>>,
    /// The copy that the ranks of the node share.
    common: OnceLock<&'static [u8]>,
}

/// Cards that are being packed.
#[derive(Debug, Default)]
pub(super) struct Packing {
    ends: Vec<u32>,
    addresses: Vec<u8>,
    host_ends: Vec<u32>,
    hosts: Vec<u8>,
}

impl Packing {
    /// Adds the card of the next rank.
    pub(super) fn push(&mut self, nodes: &Nodes, address: &[u8], host: &str) {
        let rank = Rank(self.ends.len() as u32);
        self.addresses.extend_from_slice(address);
        self.ends.push(self.addresses.len() as u32);
        // Nodes are numbered in the order of their first ranks.
        if nodes.place(rank).is_some_and(|place| place.node as usize == self.host_ends.len()) {
            self.hosts.extend_from_slice(host.as_bytes());
            self.host_ends.push(self.hosts.len() as u32);
        }
    }

    /// Packs the cards, after all have been added.
    pub(super) fn pack(self) -> PackedCards {
        let counts = [self.ends.len() as u32, self.host_ends.len() as u32];
        let words = counts.iter().chain(&self.ends).chain(&self.host_ends);
        let bytes = words.flat_map(|word| word.to_le_bytes());
        let packed = bytes.chain(self.addresses).chain(self.hosts).collect();
        PackedCards { own: Mutex::new(Some(packed)), common: OnceLock::new() }
    }
}

impl PackedCards {
    fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self.common.get() {
            Some(packed) => read(packed),
            None => {
                let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // If the own copy was freed meanwhile, the node's copy is there.
                let common = || self.common.get().copied().unwrap_or_default();
                read(own.as_deref().unwrap_or_else(common))
            }
        }
    }
}

impl Cards for PackedCards {
    fn look(
        &self,
        rank: Rank,
        into: &mut [u8; CARD_BYTES_MAX],
    ) -> Result<Option<usize>, BootError> {
        let copied = self.with(|packed| {
            let address = address(packed, rank.0)?;
            into.get_mut(..address.len())?.copy_from_slice(address);
            Some(address.len())
        });
        copied.map(Some).ok_or(BootError::NoCard { rank })
    }

    fn why(&self, _: Rank) -> Option<BootError> {
        None
    }

    fn host_of(&self, node: u32) -> Option<String> {
        self.with(|packed| Some(String::from_utf8_lossy(host(packed, node)?).into_owned()))
    }

    fn fetched(&self) -> u64 {
        0
    }

    fn packed(&self) -> Option<Arc<[u8]>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn share(&self, packed: &'static [u8]) {
        if self.common.set(packed).is_ok() {
            *self.own.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

fn address(packed: &[u8], rank: u32) -> Option<&[u8]> {
    let (ranks, nodes) = (word(packed, 0)?, word(packed, 1)?);
    let base = 4 * (2 + ranks as usize + nodes as usize);
    packed.get(base..)?.get(range(packed, 0, rank, ranks)?)
}

fn host(packed: &[u8], node: u32) -> Option<&[u8]> {
    let (ranks, nodes) = (word(packed, 0)?, word(packed, 1)?);
    let base = 4 * (2 + ranks as usize + nodes as usize);
    let addresses = range(packed, 0, ranks.checked_sub(1)?, ranks)?.end;
    packed.get(base + addresses..)?.get(range(packed, ranks as usize, node, nodes)?)
}

/// The byte range of entry `number` of a table with `count` entries; the ends of
/// its entries are stored after `before` other words.
fn range(packed: &[u8], before: usize, number: u32, count: u32) -> Option<std::ops::Range<usize>> {
    if number >= count {
        return None;
    }
    let at = 2 + before + number as usize;
    let start = if number == 0 { 0 } else { word(packed, at - 1)? };
    Some(start as usize..word(packed, at)? as usize)
}

fn word(packed: &[u8], at: usize) -> Option<u32> {
    packed.get(4 * at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> PackedCards {
        let nodes = Nodes::new([5, 9, 5, 7]);
        let mut packing = Packing::default();
        for (address, host) in [("a", "x"), ("", "y"), ("ccc", "z"), ("dd", "w")] {
            packing.push(&nodes, address.as_bytes(), host);
        }
        packing.pack()
    }

    fn is_whole(kept: &PackedCards) {
        let mut bytes = [0; CARD_BYTES_MAX];
        let mut look = |rank| {
            let len = kept.look(Rank(rank), &mut bytes)?.expect("the card is kept");
            Ok(bytes[..len].to_vec())
        };
        assert_eq!(look(0), Ok(b"a".to_vec()));
        assert_eq!(look(1), Ok(vec![]));
        assert_eq!(look(3), Ok(b"dd".to_vec()));
        assert_eq!(look(4), Err(BootError::NoCard { rank: Rank(4) }));
        let hosts: Vec<_> = (0..4).map(|node| kept.host_of(node)).collect();
        assert_eq!(hosts, [Some("x".into()), Some("y".into()), Some("w".into()), None]);
    }

    #[test]
    fn every_rank_has_its_address_and_every_node_one_host() {
        is_whole(&kept());
    }

    #[test]
    fn ranks_of_a_node_share_one_copy_of_the_cards() {
        let kept = kept();
        let packed = kept.packed().expect("the packed cards");
        kept.share(Box::leak(packed.to_vec().into_boxed_slice()));
        assert_eq!(kept.packed(), None, "the own copy is gone");
        assert_eq!(Arc::strong_count(&packed), 1);
        is_whole(&kept);
    }
}
