//! The exchange of cards at the start: which nodes there are, and whether one network
//! reaches all of them.

use super::exchange::card_of;
use crate::error::Error;
use crate::error::NoNetwork;
use crate::net::NetDevice;
use std::fs;
use tsumugi_backends::boot::card::CardHead;
use tsumugi_backends::boot::{RankCard, random_u64};
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::{NodeId, Nodes};

/// The information that a rank has about all other ranks after the exchange.
pub(super) struct Everybody {
    pub(super) nodes: Nodes,
    /// A random number that names the job.
    pub(super) token: u64,
    pub(super) own: CardHead,
    /// The first rank that has another network than this rank, or none.
    pub(super) unlike: Option<(Rank, CardHead)>,
}

/// Publishes this rank's card, and collects the heads of all cards.
pub(super) fn meet(
    boot: &mut dyn Bootstrap,
    device: Option<&NetDevice>,
) -> Result<Everybody, Error> {
    let refused = |error: std::io::Error| BootError::System {
        what: "random numbers",
        errno: error.raw_os_error().unwrap_or(0),
    };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let token = if boot.rank() == Rank(0) { random_u64().map_err(refused)? } else { 0 };
    let network = device.map_or(0, NetDevice::mark);
    let own = CardHead { node: NodeId::here().0, token, network };
    let address = device.map_or(&[][..], NetDevice::card).to_vec();
    let card = RankCard { head: own, host: host.trim().to_owned(), network: address };
    boot.publish(&card.to_bytes())?;
    boot.barrier()?;
    let (mut ids, mut token, mut unlike) = (Vec::new(), 0, None);
    let mut bad = None;
    boot.heads(&mut |rank, bytes| match CardHead::parse(bytes) {
        Ok(head) => {
            ids.push(head.node);
            token = if rank == Rank(0) { head.token } else { token };
            if head.network != network && unlike.is_none() {
                unlike = Some((rank, head));
            }
        }
        Err(error) => {
            let _ = bad.get_or_insert(Error::Card { rank, error });
        }
    })?;
    match bad {
        Some(error) => Err(error),
        None => Ok(Everybody { nodes: Nodes::new(ids), token, own, unlike }),
    }
}

/// Returns the device, if all ranks can be reached by it.
pub(super) fn connect(
    boot: &mut dyn Bootstrap,
    device: Result<NetDevice, NoNetwork>,
    all: &Everybody,
) -> Result<NetDevice, Error> {
    let nodes = &all.nodes;
    let why = match (device, all.unlike) {
        (Ok(device), None) => return Ok(device),
        (Err(why), _) => why,
        (Ok(_), Some((rank, CardHead { network: 0, .. }))) => NoNetwork::Peer { rank },
        (Ok(device), Some((rank, _))) => {
            let RankCard { host, network, .. } = card_of(boot, rank)?;
            device.unlike(rank, host, &network)
        }
    };
    // The names of some hosts, each once.
    let first = |node| nodes.ranks_of(node).next().expect("a node has ranks");
    let mut hosts: Vec<String> = (0..nodes.count().min(HOSTS_NAMED))
        .filter_map(|node| Some(card_of(boot, first(node)).ok()?.host))
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts = hosts.join(", ");
    Err(Error::SeveralNodes { ranks: nodes.ranks(), nodes: nodes.count(), hosts, why })
}

/// The maximum number of host names in a message.
const HOSTS_NAMED: u32 = 8;
