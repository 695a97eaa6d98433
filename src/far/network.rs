//! What is opened before the others are known: a rank's card says where it
//! is.

use super::bad::Faults;
use super::device::Device;
use crate::config::{Config, NetworkConfig};
use std::fmt;
use tsumugi_backends::boot::card::NETWORK_BYTES_MAX;
use tsumugi_backends::{ofi, verbs};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Nodes;

/// A device, and who is where.
pub(crate) struct Network {
    pub(super) device: Device,
    /// The host of each node.
    pub(super) hosts: Vec<String>,
    /// What is to go wrong.
    pub(super) faults: Option<Faults>,
}

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
    /// The device, when everybody's card has come: `addresses` are the ranks'
    /// own, in order, `job` is a number that no other job has.
    ///
    /// # Errors
    ///
    /// [`NoNetwork::Peer`], [`NoNetwork::Unlike`].
    pub(crate) fn join(
        device: Device,
        job: u64,
        addresses: Vec<Vec<u8>>,
        nodes: &Nodes,
        hosts: Vec<String>,
        faults: Option<Faults>,
    ) -> Result<Self, NoNetwork> {
        let missing = (0..).zip(&addresses).find(|(_, address)| address.is_empty());
        if let Some((rank, _)) = missing {
            return Err(NoNetwork::Peer { rank: Rank(rank) });
        }
        let unlike = (0..)
            .zip(&addresses)
            .find_map(|(rank, address)| device.check(address).err().map(|why| (Rank(rank), why)));
        if let Some((rank, why)) = unlike {
            let node = nodes.place(rank).map_or(0, |place| place.node as usize);
            let host = hosts.get(node).cloned().unwrap_or_default();
            let (host, why) = (host.into_boxed_str(), Box::new(why));
            return Err(NoNetwork::Unlike { rank, host, why });
        }
        device.join(job);
        device.find(move |rank, into| {
            let address = addresses.get(rank.0 as usize)?;
            into[..address.len()].copy_from_slice(address);
            Some(address.len())
        });
        Ok(Self { device, hosts, faults })
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
        let cards = [0, 1].map(|rank| open(rank).card().to_vec());
        let join = |change: fn(&mut Vec<u8>)| {
            let mut cards = cards.to_vec();
            change(&mut cards[1]);
            let hosts = vec!["here".into(), "there".into()];
            Network::join(open(0), 1, cards, &Nodes::new([1, 2]), hosts, None).map(drop)
        };
        assert_eq!(join(|_| ()), Ok(()));
        // The kind of its addresses, and the version of the protocol.
        let kind = join(|card| card[16] ^= 1).unwrap_err().to_string();
        let hub = "hub inside of this process";
        assert_eq!(kind, format!("rank 1 on there: it goes by {hub}, this rank by {hub}"));
        let version = join(|card| card[4] += 1).unwrap_err().to_string();
        assert!(version.starts_with("rank 1 on there: it speaks version 3"), "{version}");
        assert_eq!(join(Vec::clear).unwrap_err(), NoNetwork::Peer { rank: Rank(1) });
    }
}
