//! The part of the network layer that is opened before the other ranks are known:
//! the address of the device goes into the rank's card.

use super::descriptors;
use super::device::NetDevice;
use super::facts::NetworkFacts;
use super::fault::Faults;
use crate::config::NetworkConfig;
use crate::error::NoNetwork;
use std::fmt;
use std::sync::Arc;
use tsumugi_backends::boot::card::NETWORK_BYTES_MAX;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;

/// An opened device, and the source of the other ranks' cards.
pub struct Network {
    pub(super) device: NetDevice,
    pub(super) cards: Arc<dyn Cards>,
    /// Faults that are to be injected, if any.
    pub(super) faults: Option<Faults>,
}

/// The cards (endpoint information) of the ranks of other nodes. No function here
/// waits.
pub trait Cards: Send + Sync + fmt::Debug {
    /// Copies the network's card of a rank and returns its length; `None`: the card
    /// was requested, and the caller is to look again later.
    ///
    /// # Errors
    ///
    /// [`BootError`]: the card could not be got.
    fn look(&self, rank: Rank, into: &mut [u8; CARD_BYTES_MAX])
    -> Result<Option<usize>, BootError>;

    /// Why a rank's card could not be got, if that failed.
    fn why(&self, rank: Rank) -> Option<BootError>;

    /// The host of a node, if the card of one of its ranks was ever looked for.
    fn host_of(&self, node: u32) -> Option<String>;

    /// How many cards were requested so far.
    fn fetched(&self) -> u64;

    /// All cards, if they are here already.
    fn packed(&self) -> Option<Arc<[u8]>> {
        None
    }

    /// The node has `packed` for all of its ranks: this rank's own copy may be
    /// freed.
    fn share(&self, _packed: &'static [u8]) {}
}

/// How many nodes' host names are kept, of the nodes with which the rank has
/// communicated.
pub const HOSTS_MAX: usize = 1024;
/// Bytes that each of them takes, in a tree that is at least half full.
pub(super) const HOST_BYTES: usize = 2 * size_of::<(u32, Box<str>)>() + HOST_NAME_BYTES;
/// The longest name for which a card has room.
const HOST_NAME_BYTES: usize = 64;

/// Opens the device of a rank; the other ranks are found later.
///
/// # Errors
///
/// [`NoNetwork`]: the device cannot be opened, or its address is too long for a
/// card.
pub(crate) fn open(config: &NetworkConfig, rank: Rank, size: u32) -> Result<NetDevice, NoNetwork> {
    // If the limit cannot be raised, fewer connections of strangers do harm.
    let _ = descriptors::take_all();
    let device = NetDevice::open(config, rank, size)?;
    match device.card().len() {
        bytes if bytes > NETWORK_BYTES_MAX => Err(NoNetwork::Address { bytes }),
        _ => Ok(device),
    }
}

/// Opens the network of a rank that is alone, probes its capabilities, and closes it.
/// Takes a second or two.
///
/// # Errors
///
/// [`NoNetwork`]: the library or the device cannot be opened, or the network is off.
pub fn probe(config: &NetworkConfig) -> Result<NetworkFacts, NoNetwork> {
    open(config, Rank(0), 1).map(|device| device.facts())
}

impl Network {
    /// Joins the device to a job, after the ranks have exchanged their cards; `job`
    /// is a number that no other job has.
    pub fn join(
        device: NetDevice,
        job: u64,
        cards: Arc<dyn Cards>,
        faults: Option<Faults>,
    ) -> Self {
        device.join(job);
        let found = cards.clone();
        device.find(move |rank, into| found.look(rank, into));
        Self { device, cards, faults }
    }
}

impl Network {
    /// The other ranks' cards, where all have come: a node needs one copy of them
    /// only.
    pub(crate) fn packed(&self) -> Option<Arc<[u8]>> {
        self.cards.packed()
    }

    /// Replaces this rank's copy of the cards by that of the node.
    pub(crate) fn share(&self, packed: &'static [u8]) {
        self.cards.share(packed);
    }
}

impl NetDevice {
    /// The reason why a rank on another network cannot be reached.
    pub(crate) fn unlike(&self, rank: Rank, host: String, card: &[u8]) -> NoNetwork {
        match self.check(card) {
            Err(why) => NoNetwork::Unlike { rank, host: host.into(), why: Box::new(why) },
            // The head of the rank's card names another network, but the card itself
            // fits.
            Ok(()) => NoNetwork::Peer { rank },
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({:?})", self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_test_networks::hub::{FaultPlan, Hub, HubConfig};

    #[test]
    fn a_rank_on_another_network_is_named_with_both() {
        let hub = Hub::new(FaultPlan::default());
        let open = |rank| NetDevice::Hub(hub.open(&HubConfig::default(), Rank(rank), 2));
        let card = open(1).card().to_vec();
        let unlike = |change: fn(&mut Vec<u8>)| {
            let mut card = card.clone();
            change(&mut card);
            open(0).unlike(Rank(1), "there".into(), &card)
        };
        // The kind of its addresses, and the version of the protocol.
        let kind = unlike(|card| card[16] ^= 1).to_string();
        let hub = "hub inside of this process";
        assert_eq!(
            kind,
            format!(
                "rank 1 on there: its network is {hub}, this rank's is {hub}: they must be the same"
            )
        );
        let version = unlike(|card| card[4] += 1).to_string();
        assert!(version.starts_with("rank 1 on there: it uses version 3"), "{version}");
        assert_eq!(unlike(|_| ()), NoNetwork::Peer { rank: Rank(1) });
    }
}
