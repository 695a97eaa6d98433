//! The others' cards where they cannot be asked for later: all of them, packed.
//!
//! ```text
//!  ends: u32 each   addresses, one behind the other   a name for each node
//! ```

use crate::far::Cards;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Nodes;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Kept {
    ends: Vec<u32>,
    addresses: Vec<u8>,
    host_ends: Vec<u32>,
    hosts: String,
}

impl Kept {
    /// The next rank's.
    pub(super) fn push(&mut self, nodes: &Nodes, address: &[u8], host: &str) {
        let rank = Rank(self.ends.len() as u32);
        self.addresses.extend_from_slice(address);
        self.ends.push(self.addresses.len() as u32);
        // Nodes are numbered in the order of their first ranks.
        if nodes.place(rank).is_some_and(|place| place.node as usize == self.host_ends.len()) {
            self.hosts.push_str(host);
            self.host_ends.push(self.hosts.len() as u32);
        }
    }

    /// All have been pushed.
    pub(super) fn pack(mut self) -> Self {
        self.ends.shrink_to_fit();
        self.addresses.shrink_to_fit();
        self.host_ends.shrink_to_fit();
        self.hosts.shrink_to_fit();
        self
    }
}

impl Cards for Kept {
    fn look(
        &self,
        rank: Rank,
        into: &mut [u8; CARD_BYTES_MAX],
    ) -> Result<Option<usize>, BootError> {
        let range = range(&self.ends, rank.0).ok_or(BootError::NoCard { rank })?;
        let address = &self.addresses[range];
        into[..address.len()].copy_from_slice(address);
        Ok(Some(address.len()))
    }

    fn why(&self, _: Rank) -> Option<BootError> {
        None
    }

    fn host_of(&self, node: u32) -> Option<String> {
        Some(self.hosts[range(&self.host_ends, node)?].to_owned())
    }

    fn fetched(&self) -> u64 {
        0
    }
}

fn range(ends: &[u32], index: u32) -> Option<std::ops::Range<usize>> {
    let index = index as usize;
    let end = *ends.get(index)? as usize;
    Some(if index == 0 { 0 } else { ends[index - 1] as usize }..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_own_and_every_node_one_name() {
        let nodes = Nodes::new([5, 9, 5, 7]);
        let mut kept = Kept::default();
        for (address, host) in [("a", "x"), ("", "y"), ("ccc", "z"), ("dd", "w")] {
            kept.push(&nodes, address.as_bytes(), host);
        }
        let kept = kept.pack();
        let mut bytes = [0; CARD_BYTES_MAX];
        let mut look = |rank| {
            let len = kept.look(Rank(rank), &mut bytes)?.expect("it is here");
            Ok(bytes[..len].to_vec())
        };
        assert_eq!(look(0), Ok(b"a".to_vec()));
        assert_eq!(look(1), Ok(vec![]));
        assert_eq!(look(3), Ok(b"dd".to_vec()));
        assert_eq!(look(4), Err(BootError::NoCard { rank: Rank(4) }));
        let hosts: Vec<_> = (0..4).map(|node| kept.host_of(node)).collect();
        assert_eq!(hosts, [Some("x".into()), Some("y".into()), Some("w".into()), None]);
    }
}
