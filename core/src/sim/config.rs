//! The properties of a simulated network.

use super::CostModel;
use crate::random::SplitMix64;

/// The properties of a network. Rates are per mille, times are in nanoseconds.
///
/// [`SimConfig::calm`] is a network without faults, and [`SimConfig::drawn`] a network
/// with faults that are drawn from the seed; a test can start from either and change
/// fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// The number of nodes.
    pub nodes: u32,
    /// The seed from which all random choices are drawn.
    pub seed: u64,
    /// The least latency of one way.
    pub latency_ns_min: u64,
    /// The greatest latency of one way: each message draws its own.
    pub latency_ns_max: u64,
    /// The rate of messages, and of second pieces of torn puts, that take longer
    /// than `latency_ns_max`.
    pub slow: u16,
    /// The greatest extra time of a slow message.
    pub slow_ns_max: u64,
    /// The time that each byte of a transfer adds, in picoseconds; 0: bytes cost
    /// nothing.
    pub byte_ps: u64,
    /// Whether a message may overtake an earlier one of the same queue to the same
    /// node. Completions come in any order either way.
    pub reorder: bool,
    /// The rate of messages that are lost, on the way to the target or back. The
    /// transport sends a lost message again, as a reliable transport does; no
    /// operation is carried out twice.
    pub drop: u16,
    /// The time after which the transport sends a lost message again.
    pub retry_ns: u64,
    /// The number of times that the transport sends again. After that the operation
    /// ends with [`PeerLost`](crate::mem::AddrError::PeerLost), although it may have
    /// been carried out.
    pub retries: u32,
    /// The rate of completions that come a second time, later.
    pub duplicate: u16,
    /// The rate of puts with local completion: the completion comes before the put
    /// lands. It only says that the put's source may be written again. The origin
    /// gets no report of the put's later result, not even of an error. Puts to the
    /// own rank have landed when they complete, because the rank's processor or
    /// device carries them out.
    pub early: u16,
    /// The rate of puts of more than 8 bytes that land in two pieces, in either
    /// order, with time between the pieces.
    pub torn: u16,
    /// The time from a death until operations to the dead node end.
    pub detect_ns: u64,
    /// The number of operations that one queue holds in flight.
    pub in_flight_max: u32,
    /// The costs of operations, for tests in which the place of origin and target
    /// matters.
    pub machine: Option<CostModel>,
}

impl SimConfig {
    /// A network in which every message takes 1 us and no fault happens.
    pub const fn calm(nodes: u32, seed: u64) -> Self {
        Self {
            nodes,
            seed,
            latency_ns_min: 1_000,
            latency_ns_max: 1_000,
            slow: 0,
            slow_ns_max: 0,
            byte_ps: 0,
            reorder: false,
            drop: 0,
            retry_ns: 100_000,
            retries: 20,
            duplicate: 0,
            early: 0,
            torn: 0,
            detect_ns: 1_000_000,
            in_flight_max: 64,
            machine: None,
        }
    }

    /// A network in which only the costs of `machine` take time.
    pub const fn big(nodes: u32, machine: CostModel) -> Self {
        let machine = Some(machine);
        let calm = Self::calm(nodes, 1);
        Self { latency_ns_min: 0, latency_ns_max: 0, reorder: true, machine, ..calm }
    }

    /// A network with latency, order, losses, duplicates and tearing drawn from the
    /// seed: each seed exaggerates other faults. No loss is final, and completions
    /// are remote; set [`early`](Self::early) for local completions.
    pub const fn drawn(nodes: u32, seed: u64) -> Self {
        // This stream of random numbers differs from the network's own.
        let mut draw = SplitMix64::new(!seed);
        let latency_ns_min = draw.between(100, 2_000);
        Self {
            latency_ns_min,
            latency_ns_max: latency_ns_min + draw.below(5_000),
            slow: draw.below(100) as u16,
            slow_ns_max: draw.below(100_000),
            byte_ps: draw.below(1_000),
            reorder: draw.chance(700),
            drop: draw.below(100) as u16,
            retries: 100,
            duplicate: draw.below(200) as u16,
            torn: draw.below(500) as u16,
            in_flight_max: draw.between(4, 64) as u32,
            ..Self::calm(nodes, seed)
        }
    }
}
