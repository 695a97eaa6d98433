//! What a simulated network is like.

use super::Machine;
use crate::backend::Draw;

/// A network. Rates are per mille, times are in nanoseconds.
///
/// [`Config::calm`] is a network on which nothing goes wrong and
/// [`Config::drawn`] one whose faults are drawn from the seed; change what you
/// like from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many.
    pub nodes: u32,
    /// Draws all that is left to chance.
    pub seed: u64,
    /// One way, at least.
    pub latency_ns_min: u64,
    /// One way, at most: each message draws its own.
    pub latency_ns_max: u64,
    /// Messages, and second pieces of torn ones, that take longer than that.
    pub slow: u16,
    /// By how much, at most.
    pub slow_ns_max: u64,
    /// What a byte of a transfer adds, in picoseconds; 0: bytes cost nothing.
    pub byte_ps: u64,
    /// Whether a message overtakes an earlier one of the same queue to the
    /// same node. Completions come in any order either way.
    pub reorder: bool,
    /// Messages that are lost, on the way there or on the way back. The
    /// transport sends a lost message again, as a reliable one does: nothing
    /// is carried out twice.
    pub drop: u16,
    /// After how long it does.
    pub retry_ns: u64,
    /// How often it does. After that the operation ends with
    /// [`PeerLost`](crate::mem::AddrError::PeerLost), although it may have
    /// been carried out.
    pub retries: u32,
    /// Completions that come a second time, later.
    pub duplicate: u16,
    /// Puts whose completion is local: it comes before they land. Their source
    /// may be written again, and that is all it says. What becomes of them
    /// later, an error too, nobody is told. Those to the own rank have landed when
    /// they complete, as its processor or its device sees to them.
    pub early: u16,
    /// Puts of more than 8 bytes that land in two pieces, in either order,
    /// with time between them.
    pub torn: u16,
    /// How long after a death operations to the dead node end.
    pub detect_ns: u64,
    /// Operations that one queue holds in flight.
    pub in_flight_max: u32,
    /// What operations cost, where it matters who does them and to whom.
    pub machine: Option<Machine>,
}

impl Config {
    /// Every message takes 1 us, and nothing goes wrong.
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

    /// A machine on which nothing but its costs takes time.
    pub const fn big(nodes: u32, machine: Machine) -> Self {
        let machine = Some(machine);
        let calm = Self::calm(nodes, 1);
        Self { latency_ns_min: 0, latency_ns_max: 0, reorder: true, machine, ..calm }
    }

    /// Latency, order, losses, duplicates and tearing drawn from the seed:
    /// each seed exaggerates something else. No loss is for good, and
    /// completions are remote; set [`early`](Self::early) for others.
    pub const fn drawn(nodes: u32, seed: u64) -> Self {
        // Not the stream of the network itself.
        let mut draw = Draw::new(!seed);
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
