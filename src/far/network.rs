//! What is opened before the others are known: a rank's card says where it
//! is.

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

/// A device, and where the others' cards are.
pub(crate) struct Network {
    pub(super) device: Device,
    pub(super) cards: Arc<dyn Cards>,
    /// What is to go wrong.
    pub(super) faults: Option<Faults>,
}

/// What ranks of other nodes have told, for whoever needs it. Nothing here
/// waits.
pub(crate) trait Cards: Send + Sync + fmt::Debug {
    /// Copies the network's card of a rank and returns its length; `None`: it
    /// has been asked for, and is to be looked for again.
    ///
    /// # Errors
    ///
    /// [`BootError`]: it is not to be had.
    fn look(&self, rank: Rank, into: &mut [u8; CARD_BYTES_MAX])
    -> Result<Option<usize>, BootError>;

    /// Why a rank's card was not to be had, if it was not.
    fn why(&self, rank: Rank) -> Option<BootError>;

    /// The host of a node, if one of its ranks was ever looked for.
    fn host_of(&self, node: u32) -> Option<String>;

    /// Cards that were asked for so far.
    fn fetched(&self) -> u64;

    /// All of them, if they are here already.
    fn packed(&self) -> Option<Arc<[u8]>> {
        None
    }

    /// The node has these for all of its ranks: the own copy may go.
    fn share(&self, _packed: &'static [u8]) {}
}

/// Nodes whose hosts are known by name, of those that were spoken to.
pub(crate) const HOSTS_MAX: usize = 1024;
/// Bytes that each of them takes, in a tree that is at least half full.
pub(super) const HOST_BYTES: usize = 2 * size_of::<(u32, Box<str>)>() + HOST_NAME_BYTES;
/// As long as a card has room for.
const HOST_NAME_BYTES: usize = 64;

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoNetwork {
    /// It is switched off.
    Off,
    /// libfabric could not be opened.
    Ofi(ofi::OpenError),
    /// libibverbs could not be opened.
    Verbs {
        /// The device that was asked for; `None`: whichever.
        device: Option<String>,
        /// What came of it.
        why: verbs::OpenError,
    },
    /// The address is longer than a card may hold.
    Address {
        /// Its bytes.
        bytes: usize,
    },
    /// Another rank is not on the same network, or does not speak as this one.
    Unlike {
        /// Which.
        rank: Rank,
        /// Where that is.
        host: Box<str>,
        /// What each of the two goes by.
        why: Box<ofi::CardError>,
    },
    /// Another rank has none.
    Peer {
        /// Which.
        rank: Rank,
    },
}

/// Opens the device of a rank; the others are to be found later.
///
/// # Errors
///
/// [`NoNetwork`].
pub(crate) fn open(config: &NetworkConfig, rank: Rank, size: u32) -> Result<Device, NoNetwork> {
    // Where it stays as it was, fewer strangers do harm.
    let _ = descriptors::take_all();
    let device = Device::open(config, rank, size)?;
    match device.card().len() {
        bytes if bytes > NETWORK_BYTES_MAX => Err(NoNetwork::Address { bytes }),
        _ => Ok(device),
    }
}

/// What connects nodes here, as a job on several of them would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFacts {
    /// The library, and libfabric's provider with its layers, or what kind of
    /// network it is.
    pub provider: String,
    /// The device.
    pub device: String,
    /// What was tried and did not work, with what came of it.
    pub lacks: Vec<String>,
    /// What the target's processor does, asked by a parcel.
    pub errands: Vec<&'static str>,
}

/// What a rank's network has done so far, as
/// [`Runtime::network_counts`](crate::Runtime::network_counts) tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounts {
    /// Operations that were given to it: puts, gets, atomics.
    pub operations: u64,
    /// Times that it was given some: one for each batch.
    pub doorbells: u64,
    /// Cards of other ranks that were asked for: each when its rank was first
    /// spoken to. 0 where all came at start.
    pub cards: u64,
    /// Bytes of puts and gets that were copied once more here, since nobody had
    /// registered their memory.
    pub bounced: u64,
    /// Pieces of such memory that the device was shown instead.
    pub shown: u64,
    /// Operations of other nodes' ranks that processors of this one have carried
    /// out: what the device does not do.
    pub served: u64,
}

impl Config {
    /// Opens the network of a rank that is alone, tries what it does, and
    /// closes it. Takes a second or two.
    ///
    /// # Errors
    ///
    /// [`NoNetwork`].
    pub fn probe_network(&self) -> Result<NetworkFacts, NoNetwork> {
        open(&self.network, Rank(0), 1).map(|device| device.facts())
    }
}

impl Network {
    /// The device, when all have been told of each other; `job` is a number
    /// that no other job has.
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
    /// The others' cards, where all have come: what a node need have but once.
    pub(crate) fn packed(&self) -> Option<Arc<[u8]>> {
        self.cards.packed()
    }

    /// The node has them.
    pub(crate) fn share(&self, packed: &'static [u8]) {
        self.cards.share(packed);
    }
}

impl Device {
    /// Why a rank that goes by another network cannot be spoken to.
    pub(crate) fn unlike(&self, rank: Rank, host: String, card: &[u8]) -> NoNetwork {
        match self.check(card) {
            Err(why) => NoNetwork::Unlike { rank, host: host.into(), why: Box::new(why) },
            // It says one thing of itself to all, and another to who asks.
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
                write!(f, "an address of {bytes} bytes: {NETWORK_BYTES_MAX} fit in a card")
            }
            Self::Unlike { rank, host, why } => write!(f, "{rank} on {host}: {why}"),
            Self::Peer { rank } => write!(f, "{rank} has none"),
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
    use tsumugi_backends::hub::{Config, Hub, HubDomain, Plan};

    #[test]
    fn a_rank_on_another_network_is_named_with_both() {
        let hub = Hub::new(Plan::default());
        let open = |rank| Device::Hub(HubDomain::open(&hub, &Config::default(), Rank(rank), 2));
        let card = open(1).card().to_vec();
        let unlike = |change: fn(&mut Vec<u8>)| {
            let mut card = card.clone();
            change(&mut card);
            open(0).unlike(Rank(1), "there".into(), &card)
        };
        // The kind of its addresses, and the version of the protocol.
        let kind = unlike(|card| card[16] ^= 1).to_string();
        let hub = "hub inside of this process";
        assert_eq!(kind, format!("rank 1 on there: it goes by {hub}, this rank by {hub}"));
        let version = unlike(|card| card[4] += 1).to_string();
        assert!(version.starts_with("rank 1 on there: it speaks version 3"), "{version}");
        assert_eq!(unlike(|_| ()), NoNetwork::Peer { rank: Rank(1) });
    }
}
