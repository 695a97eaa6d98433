//! What is opened before the others are known: a rank's card says where it
//! is.

use crate::config::{Config, NetworkConfig};
use std::fmt;
use tsumugi_backends::boot::card::NETWORK_BYTES_MAX;
use tsumugi_backends::ofi::{self, OfiDomain, OpenError, Verdict};
use tsumugi_core::mem::Rank;

/// A device, and who is where.
pub(crate) struct Network {
    pub(super) domain: OfiDomain,
    /// The host of each node.
    pub(super) hosts: Vec<String>,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoNetwork {
    /// It is switched off.
    Off,
    /// It could not be opened.
    Open(OpenError),
    /// The address is longer than a card may hold.
    Address {
        /// Its bytes.
        bytes: usize,
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
pub(crate) fn open(config: &NetworkConfig, rank: Rank, size: u32) -> Result<OfiDomain, NoNetwork> {
    if config.is_off {
        return Err(NoNetwork::Off);
    }
    let defaults = ofi::Config::default();
    let config = ofi::Config {
        provider: config.provider.clone(),
        source: config.source.clone(),
        device: config.device.clone(),
        endpoints: config.endpoints.unwrap_or(defaults.endpoints),
        packets: super::link::ARRIVALS,
        packet_bytes_max: super::parcel::PACKET_BYTES + 16,
        event: true,
        ..defaults
    };
    let domain = OfiDomain::open(&config, rank, size).map_err(NoNetwork::Open)?;
    match domain.card().len() {
        bytes if bytes > NETWORK_BYTES_MAX => Err(NoNetwork::Address { bytes }),
        _ => Ok(domain),
    }
}

/// What connects nodes here, as a job on several of them would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFacts {
    /// libfabric's provider, with its layers.
    pub provider: String,
    /// The device.
    pub device: String,
    /// What was tried and did not work, with what came of it.
    pub lacks: Vec<String>,
    /// What the target's processor does, asked by a parcel.
    pub errands: Vec<&'static str>,
}

impl Config {
    /// Opens the network of a rank that is alone, tries what it does, and
    /// closes it. Takes a second or two.
    ///
    /// # Errors
    ///
    /// [`NoNetwork`].
    pub fn probe_network(&self) -> Result<NetworkFacts, NoNetwork> {
        let domain = open(&self.network, Rank(0), 1)?;
        let rows = domain.probed().rows.iter();
        let lacks = rows.filter(|row| row.verdict != Verdict::Works).map(ToString::to_string);
        let mut lacks: Vec<String> = lacks.collect();
        if !domain.facts().delivery {
            lacks.push("completion at the target: not promised, a put may end before".into());
        }
        let mut errands = vec!["atomics", "signals"];
        if !domain.moves_memory() {
            errands.push("puts and gets");
        } else if !domain.moves_words(2) {
            errands.push("words of 2 bytes");
        }
        if domain.moves_memory() && !domain.moves_words(8) {
            errands.push("words of 4 and 8 bytes");
        }
        let facts = domain.facts();
        Ok(NetworkFacts {
            provider: facts.provider.clone(),
            device: facts.device.clone(),
            lacks,
            errands,
        })
    }
}

impl Network {
    /// The device, when everybody's card has come: `addresses` are the ranks'
    /// own, in order, `job` is a number that no other job has.
    ///
    /// # Errors
    ///
    /// [`NoNetwork::Peer`].
    pub(crate) fn join(
        domain: OfiDomain,
        job: u64,
        addresses: Vec<Vec<u8>>,
        hosts: Vec<String>,
    ) -> Result<Self, NoNetwork> {
        let missing = (0..).zip(&addresses).find(|(_, address)| address.is_empty());
        if let Some((rank, _)) = missing {
            return Err(NoNetwork::Peer { rank: Rank(rank) });
        }
        domain.join(job);
        domain.find(move |rank, into| {
            let address = addresses.get(rank.0 as usize)?;
            into[..address.len()].copy_from_slice(address);
            Some(address.len())
        });
        Ok(Self { domain, hosts })
    }
}

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "{} is off", crate::config::NETWORK),
            Self::Open(error) => error.fmt(f),
            Self::Address { bytes } => {
                write!(f, "an address of {bytes} bytes: {NETWORK_BYTES_MAX} fit in a card")
            }
            Self::Peer { rank } => write!(f, "{rank} has none"),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({:?})", self.domain)
    }
}
