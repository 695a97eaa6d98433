//! The options of a libibverbs domain, and the errors of opening it.

use super::libraries::VerbsLibraries;
use super::sys::LoadError;
use crate::net::{AssembleError, ENDPOINTS_MAX};
use core::fmt;
use tsumugi_core::boot::CARD_BYTES_MAX;

/// The options of a domain. [`VerbsConfig::default`] takes the first device with an
/// active port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsConfig {
    /// The device, as libibverbs names it: `mlx5_0`, `rxe0`. `None`: the first
    /// device of which the port is active.
    pub device: Option<String>,
    /// The port of the device, counted from 1.
    pub port: u8,
    /// The index of the port's address to use. `None`: over Ethernet the first
    /// address of RoCE v2, IPv4 before IPv6; over InfiniBand the first.
    pub gid_index: Option<u8>,
    /// The number of queues, each with a context of its own, so that nothing is
    /// locked between them. A registration is made with each of them.
    pub endpoints: usize,
    /// The largest number of operations that one endpoint holds in flight.
    pub in_flight_max: usize,
    /// The number of packets that one endpoint sends and receives at once, each
    /// way.
    pub packets: usize,
    /// The longest packet, its header of 16 bytes included.
    pub packet_bytes_max: usize,
    /// Longer puts and gets go in pieces of this size, one after another; the
    /// device's own limit holds too.
    pub piece_bytes_max: u64,
    /// The number of queue pairs that one endpoint keeps to reach peers; about as
    /// many are kept for peers that reach it. The least recently used pair is
    /// closed for a new one.
    pub pairs_max: usize,
    /// Whether peers are reached by the dynamically connected transport, where both
    /// devices have it and all trials of it succeed: one pair answers all peers,
    /// and a connection is made without a message to its peer. This has never run on a
    /// real card.
    pub dct: bool,
    /// Puts up to this size are copied into the request (inline), as far as the
    /// device supports it.
    pub inline_bytes_max: usize,
    /// A request without an acknowledgement is sent again after 4.096 us times two
    /// to the power of this, six times.
    pub timeout: u8,
    /// The time, in milliseconds, for which peers wait to open a connection to a rank
    /// that does not poll, before they declare it lost.
    pub connect_timeout_ms: u32,
    /// Whether the completion queue has a descriptor to sleep on.
    pub event: bool,
    /// A number that all ranks of the job have and no other job has.
    pub job: u64,
    /// The libraries to call. `None`: those that are installed.
    pub libraries: Option<VerbsLibraries>,
}

impl Default for VerbsConfig {
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
            dct: false,
            inline_bytes_max: 188,
            timeout: 14,
            connect_timeout_ms: 30_000,
            event: false,
            job: 0,
            libraries: None,
        }
    }
}

/// Why a domain could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The library could not be loaded.
    Load(LoadError),
    /// A number of the configuration is out of its range.
    Number {
        /// The name of the number.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The least value that is allowed.
        min: usize,
        /// The largest value that is allowed.
        max: usize,
    },
    /// No device fits: none has the name, or none has an active port.
    NoDevice {
        /// The number of devices.
        devices: usize,
    },
    /// The port has no address that can be used.
    NoAddress,
    /// A call of libibverbs failed.
    Call {
        /// The name of the call.
        name: &'static str,
        /// Its errno.
        code: i32,
    },
    /// The trial of a put or a get within this process failed.
    Probe {
        /// The name of the operation.
        name: &'static str,
    },
    /// The addresses do not fit in a card.
    CardTooLong {
        /// The bytes of the card.
        bytes: usize,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Number { name, value, min, max } => {
                write!(f, "{name} is {value}: must be {min} to {max}")
            }
            Self::NoDevice { devices } => write!(
                f,
                "none of the {devices} devices of libibverbs has the configured name and port, \
                 with the port active"
            ),
            Self::NoAddress => {
                write!(
                    f,
                    "the port has no address (GID) that can be used, or not the configured one"
                )
            }
            Self::Call { name, code } => {
                let error = std::io::Error::from_raw_os_error(*code);
                write!(f, "{name} failed: {error}")
            }
            Self::Probe { name } => write!(f, "the trial of a {name} within this process failed"),
            Self::CardTooLong { bytes } => write!(
                f,
                "a card of {bytes} bytes: at most {CARD_BYTES_MAX} are possible, so open fewer \
                 endpoints"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<LoadError> for OpenError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<AssembleError> for OpenError {
    fn from(unfit: AssembleError) -> Self {
        match unfit {
            AssembleError::Number { name, value, min, max } => {
                Self::Number { name, value, min, max }
            }
            AssembleError::Address(code) => Self::Call { name: "ibv_query_gid", code },
            AssembleError::CardTooLong { bytes } => Self::CardTooLong { bytes },
        }
    }
}

impl VerbsConfig {
    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<(), AssembleError> {
        AssembleError::check("port", self.port.into(), 1, 255)?;
        AssembleError::check("endpoints", self.endpoints, 1, ENDPOINTS_MAX)?;
        AssembleError::check("in_flight_max", self.in_flight_max, 1, 1 << 14)?;
        AssembleError::check("packets", self.packets, 1, 1 << 12)?;
        AssembleError::check("packet_bytes_max", self.packet_bytes_max, 64, 1 << 20)?;
        AssembleError::check("pairs_max", self.pairs_max, 1, 1 << 16)?;
        AssembleError::check("inline_bytes_max", self.inline_bytes_max, 0, 1 << 12)?;
        AssembleError::check("timeout", self.timeout.into(), 1, 31)?;
        AssembleError::check("connect_timeout_ms", self.connect_timeout_ms as usize, 1, 1 << 24)?;
        AssembleError::check(
            "piece_bytes_max",
            self.piece_bytes_max.min(1 << 30) as usize,
            8,
            1 << 30,
        )
    }
}
