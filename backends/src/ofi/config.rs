//! The options of a libfabric domain, and the errors of opening it.

use super::sys::LoadError;
use crate::net::{AssembleError, ENDPOINTS_MAX};
use core::fmt;
use tsumugi_core::boot::CARD_BYTES_MAX;

/// The options of a domain. [`OfiConfig::default`] takes the provider that libfabric
/// lists first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfiConfig {
    /// The provider, as libfabric names it: `tcp;ofi_rxm`, `verbs;ofi_rxm`,
    /// `efa`, `cxi`. `None`: the first that reaches other nodes.
    pub provider: Option<String>,
    /// The local address or interface to use; `None`: the provider's choice.
    pub source: Option<String>,
    /// The device, as libfabric names its domains; `None`: the first.
    pub device: Option<String>,
    /// The number of queues, each with a domain of its own, so that nothing is
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
    /// provider's own limit holds too.
    pub piece_bytes_max: u64,
    /// Which threads do the work of peers' operations on this rank.
    pub progress: ProgressMode,
    /// Whether the completion queue has a descriptor to sleep on. Over tcp;ofi_rxm
    /// each operation then takes 1.3 to 1.8 us longer (`ci/far_latency.sh`: polling
    /// beside looking); udp;ofi_rxd has no such descriptor. Without it a sleep
    /// needs a limit.
    pub event: bool,
    /// A number that all ranks of the job have and no other job has. Packets with
    /// another number are refused: it must be 64 random bits, or any number until
    /// `join` sets it.
    pub job: u64,
}

/// Which threads do the work of peers' operations on this rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgressMode {
    /// The threads that poll the endpoint: a worker, or the helper thread.
    #[default]
    Manual,
    /// Threads of the provider, if it has any.
    Auto,
}

impl Default for OfiConfig {
    fn default() -> Self {
        Self {
            provider: None,
            source: None,
            device: None,
            endpoints: 1,
            in_flight_max: 256,
            packets: 64,
            packet_bytes_max: 4096,
            piece_bytes_max: u64::MAX,
            progress: ProgressMode::default(),
            event: false,
            job: 0,
        }
    }
}

/// Why a domain could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The library could not be loaded.
    Load(LoadError),
    /// A text of the configuration has a zero byte inside.
    ZeroByte,
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
    /// No provider on this machine has the necessary capabilities.
    NoProvider {
        /// libfabric's error.
        code: i32,
    },
    /// A call of libfabric failed.
    Call {
        /// The name of the call.
        name: &'static str,
        /// libfabric's error.
        code: i32,
    },
    /// A table of the provider lacks a call that is needed.
    NoSuchCall {
        /// The name of the call.
        name: &'static str,
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
            Self::ZeroByte => write!(f, "the provider, source or device contains a zero byte"),
            Self::Number { name, value, min, max } => {
                write!(f, "{name} is {value}: must be {min} to {max}")
            }
            Self::NoProvider { code } => {
                write!(f, "no provider of libfabric has the required capabilities (error {code})")
            }
            Self::Call { name, code } => write!(f, "{name} failed with error {code} of libfabric"),
            Self::NoSuchCall { name } => write!(f, "the provider lacks the call {name}"),
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
            AssembleError::Address(code) => Self::Call { name: "fi_getname", code },
            AssembleError::CardTooLong { bytes } => Self::CardTooLong { bytes },
        }
    }
}

impl OfiConfig {
    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<(), AssembleError> {
        AssembleError::check("endpoints", self.endpoints, 1, ENDPOINTS_MAX)?;
        AssembleError::check("in_flight_max", self.in_flight_max, 1, 1 << 16)?;
        AssembleError::check("packets", self.packets, 1, 1 << 12)?;
        AssembleError::check("packet_bytes_max", self.packet_bytes_max, 64, 1 << 20)?;
        AssembleError::check(
            "piece_bytes_max",
            self.piece_bytes_max.min(1 << 40) as usize,
            8,
            1 << 40,
        )
    }
}
