//! What a job asks of libibverbs, and why it may not get it.

use super::sys::LoadError;
use crate::net::{ENDPOINTS_MAX, Unfit};
use core::fmt;

/// What to open. [`Config::default`] takes the first device with an active
/// port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The device, as libibverbs names it: `mlx5_0`, `rxe0`. `None`: the first
    /// whose port is active.
    pub device: Option<String>,
    /// Its port, counted from 1.
    pub port: u8,
    /// Which of the port's addresses to use. `None`: over Ethernet the first
    /// of RoCE v2, IPv4 before IPv6; over InfiniBand the first.
    pub gid_index: Option<u8>,
    /// Queues, each with a context of its own, so that nothing is locked
    /// between them. A registration costs one for each.
    pub endpoints: usize,
    /// Operations that one endpoint holds in flight, at the most.
    pub in_flight_max: usize,
    /// Packets that one endpoint sends and receives at once, each way.
    pub packets: usize,
    /// Longest packet, its header of 16 bytes included.
    pub packet_bytes_max: usize,
    /// Puts and gets that are longer go in pieces of as much, one after
    /// another; the device's own limit holds too.
    pub piece_bytes_max: u64,
    /// Queue pairs that one endpoint keeps to reach peers, and about as many
    /// to be reached by; the least used is closed for a new one.
    pub pairs_max: usize,
    /// Whether peers are reached by the dynamically connected transport, where
    /// both devices have it and it does all that is tried: one pair answers all
    /// of them, and a link is made without a word to its peer. It has never run
    /// on a card.
    pub dynamic: bool,
    /// Puts that are not longer are copied into the request, if the device
    /// grants as much.
    pub inline_bytes_max: usize,
    /// After 4.096 us times two to the power of this a request that nobody
    /// has acknowledged is sent again, six times.
    pub timeout: u8,
    /// How long a rank that does not poll keeps others waiting for their
    /// first word with it, in milliseconds, before they take it for lost.
    pub patience_ms: u32,
    /// Whether the completion queue has a descriptor to sleep on.
    pub event: bool,
    /// A number that all ranks of the job have and no other job has.
    pub job: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            device: None,
            port: 1,
            gid_index: None,
            endpoints: 1,
            in_flight_max: 256,
            packets: 64,
            packet_bytes_max: 4096,
            piece_bytes_max: u64::MAX,
            pairs_max: 64,
            dynamic: false,
            inline_bytes_max: 188,
            timeout: 14,
            patience_ms: 30_000,
            event: false,
            job: 0,
        }
    }
}

/// Why no domain was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There is no library.
    Load(LoadError),
    /// A number of the configuration is out of its range.
    Number {
        /// Which.
        name: &'static str,
        /// What it is.
        value: usize,
        /// The least that works.
        min: usize,
        /// The most.
        max: usize,
    },
    /// No device here fits: none of that name, or none with an active port.
    NoDevice {
        /// How many there are.
        devices: usize,
    },
    /// The port has no address that can be used.
    NoAddress,
    /// A call of libibverbs' failed.
    Call {
        /// Which.
        name: &'static str,
        /// Its errno.
        code: i32,
    },
    /// A put or a get to this very process did not arrive.
    Probe {
        /// Which.
        name: &'static str,
    },
    /// The addresses do not fit in a card.
    CardTooLong {
        /// Its bytes.
        bytes: usize,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Number { name, value, min, max } => {
                write!(f, "{name} is {value}, and must be {min} to {max}")
            }
            Self::NoDevice { devices } => {
                write!(f, "none of the {devices} devices of libibverbs has the name and the port")
            }
            Self::NoAddress => write!(f, "the port has no address that can be used"),
            Self::Call { name, code } => write!(f, "{name} failed with the error {code}"),
            Self::Probe { name } => write!(f, "a {name} to this very process did not arrive"),
            Self::CardTooLong { bytes } => {
                write!(f, "the addresses take {bytes} bytes, more than a card has")
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<LoadError> for OpenError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<Unfit> for OpenError {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Number { name, value, min, max } => Self::Number { name, value, min, max },
            Unfit::Address(code) => Self::Call { name: "ibv_query_gid", code },
            Unfit::CardTooLong { bytes } => Self::CardTooLong { bytes },
        }
    }
}

impl Config {
    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::check("port", self.port.into(), 1, 255)?;
        Unfit::check("endpoints", self.endpoints, 1, ENDPOINTS_MAX)?;
        Unfit::check("in_flight_max", self.in_flight_max, 1, 1 << 14)?;
        Unfit::check("packets", self.packets, 1, 1 << 12)?;
        Unfit::check("packet_bytes_max", self.packet_bytes_max, 64, 1 << 20)?;
        Unfit::check("pairs_max", self.pairs_max, 1, 1 << 16)?;
        Unfit::check("inline_bytes_max", self.inline_bytes_max, 0, 1 << 12)?;
        Unfit::check("timeout", self.timeout.into(), 1, 31)?;
        Unfit::check("patience_ms", self.patience_ms as usize, 1, 1 << 24)?;
        Unfit::check("piece_bytes_max", self.piece_bytes_max.min(1 << 30) as usize, 8, 1 << 30)
    }
}
