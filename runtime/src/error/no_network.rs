//! The reasons why a job has no network.

use crate::variable::NETWORK;
use std::fmt;
use tsumugi_backends::boot::card::NETWORK_BYTES_MAX;
use tsumugi_backends::{ofi, verbs};
use tsumugi_core::mem::Rank;

/// Why a job has no network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

impl std::error::Error for NoNetwork {}

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "{} is off", NETWORK),
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
