//! The part of the network layer that is opened before the other ranks are known:
//! the address of the device goes into the rank's card.

use super::bad::Faults;
use super::descriptors;
use super::device::Device;
use crate::config::{Config, NetworkConfig};
use std::fmt;
use std::sync::Arc;
use tsumugi_backends::boot::card::NETWORK_BYTES_MAX;
use tsumugi_backends::{ofi, verbs};
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;

/// An opened device, and the source of the other ranks' cards.
pub(crate) struct Network {
    pub(super) device: Device,
    pub(super) cards: Arc<dyn Cards>,
    /// Faults that are to be injected, if any.
    pub(super) faults: Option<Faults>,
}

/// The cards (endpoint information) of the ranks of other nodes. No function here
/// waits.
pub(crate) trait Cards: Send + Sync + fmt::Debug {
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
pub(crate) const HOSTS_MAX: usize = 1024;
/// Bytes that each of them takes, in a tree that is at least half full.
pub(super) const HOST_BYTES: usize = 2 * size_of::<(u32, Box<str>)>() + HOST_NAME_BYTES;
/// The longest name for which a card has room.
const HOST_NAME_BYTES: usize = 64;

/// Why a job has no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoNetwork {
    /// The network is switched off.
    Off,
    /// libfabric could not be opened.
    Ofi(ofi::OpenError),
    /// libibverbs could not be opened.
    Verbs {
        /// The device that was configured; `None`: any device.
        device: Option<String>,
        /// The error of opening it.
        why: verbs::OpenError,
    },
    /// The address is longer than a card may hold.
    Address {
        /// The length of the address in bytes.
        bytes: usize,
    },
    /// Another rank is not on the same network, or has another version of the
    /// protocol.
    Unlike {
        /// That rank.
        rank: Rank,
        /// The host of that rank.
        host: Box<str>,
        /// The difference between the two ranks.
        why: Box<ofi::CardError>,
    },
    /// Another rank has no network, or has published the mark of another one.
    Peer {
        /// That rank.
        rank: Rank,
    },
}

/// Opens the device of a rank; the other ranks are found later.
///
/// # Errors
///
/// [`NoNetwork`]: the device cannot be opened, or its address is too long for a
/// card.
pub(crate) fn open(config: &NetworkConfig, rank: Rank, size: u32) -> Result<Device, NoNetwork> {
    // If the limit cannot be raised, fewer connections of strangers do harm.
    let _ = descriptors::take_all();
    let device = Device::open(config, rank, size)?;
    match device.card().len() {
        bytes if bytes > NETWORK_BYTES_MAX => Err(NoNetwork::Address { bytes }),
        _ => Ok(device),
    }
}

/// The network between nodes, as a job on several of them would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFacts {
    /// The library, with the provider and its layers for libfabric, or else the kind
    /// of the network.
    pub provider: String,
    /// The device.
    pub device: String,
    /// The capabilities that were tried and did not work, with the result of each.
    pub lacks: Vec<String>,
    /// The operations that the target's processor carries out, on request by a
    /// parcel.
    pub errands: Vec<&'static str>,
}

/// How much a rank's network has done so far, as
/// [`Runtime::network_counts`](crate::Runtime::network_counts) returns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounts {
    /// Operations that were posted to it: puts, gets, atomics.
    pub operations: u64,
    /// Batches in which they were posted: one doorbell for each.
    pub doorbells: u64,
    /// Cards of other ranks that were requested, each at the first operation on its
    /// rank. 0 where all came at start.
    pub cards: u64,
    /// Bytes of puts and gets that were copied through bounce buffers, because their
    /// memory was not registered.
    pub bounced: u64,
    /// Pieces of such memory that were registered instead.
    pub shown: u64,
    /// Operations of other nodes' ranks that processors of this rank have carried
    /// out, because the device does not do them.
    pub served: u64,
}

impl Config {
    /// Opens the network of a rank that is alone, probes its capabilities, and
    /// closes it. Takes a second or two.
    ///
    /// # Errors
    ///
    /// [`NoNetwork::Off`] if [`NetworkConfig::kind`] is
    /// [`NetworkKind::Off`](crate::NetworkKind::Off); [`NoNetwork::Ofi`] or
    /// [`NoNetwork::Verbs`], with the library's error, if the library or the device
    /// cannot be opened; [`NoNetwork::Address`] if the device's address is too long.
    pub fn probe_network(&self) -> Result<NetworkFacts, NoNetwork> {
        open(&self.network, Rank(0), 1).map(|device| device.facts())
    }
}

impl Network {
    /// Joins the device to a job, after the ranks have exchanged their cards; `job`
    /// is a number that no other job has.
    pub(crate) fn join(
        device: Device,
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

impl Device {
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

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "{} is off", crate::config::NETWORK),
            Self::Ofi(error) => error.fmt(f),
            Self::Verbs { device: Some(device), why } => write!(f, "{device}: {why}"),
            Self::Verbs { device: None, why } => why.fmt(f),
            Self::Address { bytes } => {
                write!(
                    f,
                    "the address of the device has {bytes} bytes, {NETWORK_BYTES_MAX} is the \
                     maximum"
                )
            }
            Self::Unlike { rank, host, why } => write!(f, "{rank} on {host}: {why}"),
            Self::Peer { rank } => write!(f, "{rank} has no network, or another one"),
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
        let open = |rank| Device::Hub(hub.open(&HubConfig::default(), Rank(rank), 2));
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
