//! The settings by which a rank runs: every one is chosen. The facade's `Config` reads
//! them from the environment and chooses those that are not set.

use crate::inside::Inside;
use std::fmt;
use std::time::Duration;
use tsumugi_core::coll::schedule::CollForced;
use tsumugi_core::msg::MatchingDesign;
use tsumugi_pvas::distance::ByHand;
use tsumugi_ult::SuspensionCheck;

/// How operations between ranks of a node are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Path {
    /// By loads and stores of the caller.
    #[default]
    Direct,
    /// By delegation: through a queue that any calling thread works off.
    Delegate,
    /// Through a queue that a communication thread works off.
    Offload,
}

/// The cores on which workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bind {
    /// Each worker runs on a core of its own, among those that the process may use;
    /// if there are fewer cores than workers, the cores are assigned in turn. OS
    /// threads that a ULT starts begin on its worker's core.
    Cores,
    /// The system chooses the cores.
    None,
}

/// How long an idle communication thread stays awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idleness {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

/// The network of a job on several nodes.
///
/// Over libfabric, atomics between nodes are carried out by the target's processor,
/// with every provider: they are atomic with those of the target's own node, and a
/// region cannot be given to the device's atomics instead (over libibverbs it can,
/// see `MemoryOptions::agent` of the facade). A put completes when its
/// bytes are in the target's memory, if the provider guarantees that. If it does
/// not, the put may complete earlier, no fence compensates for that, and
/// `Config::probe_network` lists it among the missing features.
///
/// Traffic is neither encrypted nor signed. Packets carry a random number of 64
/// bits that is secret to the job; over libfabric, memory keys are random and as
/// long where the caller chooses them. A program that has seen neither the traffic
/// nor a rank's card can neither write to a rank nor impersonate one. A program
/// that can read the traffic can do both. Where the device itself chooses the keys
/// (verbs, EFA), a program that guesses a key can write; there the network must
/// keep other programs out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NetworkConfig {
    /// The library for the network.
    pub kind: NetworkKind,
    /// The provider of libfabric.
    pub provider: Option<String>,
    /// The local address or interface for libfabric.
    pub source: Option<String>,
    /// The device; for libibverbs, a port may follow after a colon.
    pub device: Option<String>,
    /// The number of endpoints on the device.
    pub endpoints: Option<usize>,
    /// How a sleeping rank notices events of the network.
    pub sleep: NetworkSleep,
    /// Whether libibverbs reaches many peers by few queue pairs that change their
    /// peers (the dynamically connected transport), where both devices have it and
    /// a test of all its operations succeeds. It has never run on a card.
    pub dynamic: bool,
    /// How long a rank may be kept from running, or be cut off from the network, at
    /// least 100 ms: 5 s if not set. If the ranks of another node
    /// have received nothing from a rank for half as long again, they give it up:
    /// their operations on it end with [`PeerLost`](tsumugi_core::mem::AddrError::PeerLost),
    /// packets from it are refused, and when it is back, it is notified and ends.
    /// The death of a process is noticed sooner, by its node. The value must be the
    /// same on all ranks.
    pub silence: Option<Duration>,
    /// Injects network faults: from this seed, operations, their completions and
    /// packets are delayed, reordered and refused, and some come as late as if they
    /// had been lost and sent again.
    pub faults: Option<u64>,
}

/// How a rank notices events of the network while all its threads sleep or compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkSleep {
    /// The device wakes it.
    #[default]
    Called,
    /// A thread polls, at growing intervals of up to a millisecond, which takes one
    /// or two hundredths of a core; and without pause while bytes are being
    /// transferred. Over tcp;ofi_rxm, an operation on a rank that polls takes 1.3
    /// to 1.8 us less, and an operation on a rank that sleeps up to a millisecond
    /// more. This suits ranks that have cores of their own and never sleep.
    Looks,
}

/// The library for the network of a job on several nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkKind {
    /// libfabric.
    #[default]
    Ofi,
    /// libibverbs.
    Verbs,
    /// None: a job on several nodes does not start.
    Off,
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ofi => "libfabric",
            Self::Verbs => "libibverbs",
            Self::Off => "off",
        })
    }
}

/// The settings of a rank; the facade's `Config` with every setting chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The number of worker threads of a rank.
    pub workers: usize,
    /// The size of a ULT's stack.
    pub stack_bytes: usize,
    /// The size of the main ULT's stack.
    pub main_stack_bytes: usize,
    /// Workers of the node's ranks for each core, rounded up; more than 1 is a crowd.
    pub workers_per_core: u32,
    /// The number of rounds that an idle worker searches for work before it sleeps.
    pub spin: u32,
    /// The cores on which the workers of a launcher's ranks run.
    pub bind: Bind,
    /// How operations within a node are carried out.
    pub path: Path,
    /// The action when a ULT suspends where it must not.
    pub suspension: SuspensionCheck,
    /// The reports and traces of a rank.
    pub inside: Inside,
    /// How a sender finds the receive into which it may write a message directly.
    pub messages: MatchingDesign,
    /// Whether a launcher's job measures the thresholds of messages.
    pub calibrate: bool,
    /// Thresholds that are set and not measured.
    pub thresholds: ByHand,
    /// Algorithms of collectives that are forced.
    pub collectives: CollForced,
    /// How long a rank may be kept from running before ranks of other nodes give it
    /// up.
    pub silence: Duration,
    /// The memory of a rank for containers.
    pub pool_bytes: usize,
}

impl NetworkConfig {
    /// How long a rank may be kept from running, as set or by default.
    pub fn silence_limit(&self) -> Duration {
        self.silence.unwrap_or(SILENCE_DEFAULT)
    }
}

impl Chosen {
    /// Whether the ranks of the node have more workers than there are cores.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.workers_per_core > 1
    }

    pub(crate) fn idleness(&self) -> Idleness {
        Idleness { spins: self.spin.saturating_mul(10), yields: 10 }
    }
}

/// The default of [`NetworkConfig::silence`].
pub const SILENCE_DEFAULT: Duration = Duration::from_secs(5);
