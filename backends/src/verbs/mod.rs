//! libibverbs: InfiniBand and RoCE, without a further layer.
//!
//! ```text
//!  VerbsDomain
//!     ├─ rail 0: line (context, cq, srq, door, pairs)          ◄─ VerbsEndpoint
//!     └─ rail 1: the same, with nothing in common but the card ◄─ VerbsEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `config` | the options of a domain, and the errors of opening it |
//! | `sys` | libibverbs' functions and structures |
//! | `address` | the address of a rank, as it crosses the network |
//! | `device` | a device, opened |
//! | `dynamic` | the dynamically connected transport: many peers by few pairs |
//! | `pair` | queue pairs, from state to state |
//! | `door` | the connection manager: calls between ranks about their pairs |
//! | `link` | connections to peers: made on first use, bounded in number, remade |
//! | `guest` | the passive side of connections |
//! | `talk` | the handling of calls |
//! | `line` | requests down, completions up |
//! | `probe` | trials of the device |
//! | `sim` | libibverbs inside of the process, for tests |
//!
//! A batch that is posted at once goes out with one doorbell for each peer. Short
//! puts and packets are copied into their requests. A put that must notify its
//! target is one request with immediate data: the word's region and offset, where
//! they fit in 32 bits.
//!
//! # Progress
//!
//! Puts, gets and atomics need no thread at the target once the link is open. To
//! open the link, the target has to poll once: a rank that never does keeps others
//! waiting, for at most [`Config::patience_ms`]. Packets wait for receive buffers
//! at the target, and then the requests to the same peer after them wait too.
//!
//! # Atomics
//!
//! A device does fetch-and-add and compare-and-swap on words of 8 bytes. They are
//! atomic among its own requests alone ([`Atomics::Device`]): the device and the
//! processor lose each other's updates of the same word. Therefore
//! [`Capabilities::device_atomics`] is false, every word has one agent, and an
//! operation that this device does not support ([`AddrError::Unsupported`]) is
//! emulated by the target's processor (an *errand*).
//!
//! [`Capabilities::device_atomics`]: tsumugi_core::backend::Capabilities
//! [`AddrError::Unsupported`]: tsumugi_core::mem::AddrError::Unsupported
//!
//! # The process
//!
//! - Registered memory is locked: `ulimit -l` bounds it.
//! - A forked child must not use, nor drop, an open domain.
//! - When a registration ends, requests of peers on it that are under way fail, and
//!   each failure ends the link of the request, which is then made again.

mod address;
mod config;
mod device;
mod door;
mod dynamic;
mod guest;
mod line;
mod link;
mod pair;
mod probe;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod sys;
mod talk;

pub use crate::net::{
    Arrival, CardError, Cards, Failure, Failures, Probed, Row, SendError, Verdict,
};
pub use config::{Config, OpenError};
pub use device::{Atomics, Facts};
pub use dynamic::Dynamic;
pub use line::Line;

use crate::net::{
    Limits, NetDomain, NetEndpoint, Noise, Rail, Sizes, Traits, contexts_of, footprint_of,
};
use core::fmt;
use tsumugi_core::mem::Rank;

/// A rank's device, opened and probed.
pub type VerbsDomain = NetDomain<Line>;

/// One queue of such a device.
pub type VerbsEndpoint<'d> = NetEndpoint<'d, Line>;

/// The properties that a device reports, and the results of the trials.
#[derive(Debug)]
pub struct About {
    facts: Facts,
    probed: Probed,
}

/// The counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often requests were given to the device.
    pub doorbells: u64,
    /// How many pairs that reach peers were made.
    pub pairs_made: u64,
    /// How many of them were ended.
    pub pairs_closed: u64,
    /// How many of them were ended by an error.
    pub pairs_broken: u64,
    /// How many calls about pairs were received.
    pub calls: u64,
    /// How many completions and calls were not for this endpoint.
    pub strays: u64,
}

impl VerbsDomain {
    /// Loads the library, chooses a device, makes the trials, and opens the
    /// endpoints. Blocks: for milliseconds where all works.
    ///
    /// # Errors
    ///
    /// - [`OpenError::Number`]: a number in `config` is out of its range.
    /// - [`OpenError::Load`]: libibverbs is missing, or lacks a function.
    /// - [`OpenError::NoDevice`]: no device has the configured name and an active port.
    /// - [`OpenError::NoAddress`]: the port has no address that can be used.
    /// - [`OpenError::Call`]: a call of libibverbs or of the system failed.
    /// - [`OpenError::Probe`]: the trial of a put or a get within this process failed.
    /// - [`OpenError::CardTooLong`]: the addresses of the endpoints do not fit in a
    ///   card.
    pub fn open(config: &Config, rank: Rank, size: u32) -> Result<Self, OpenError> {
        config.check()?;
        let is_asked = config.dynamic;
        let (config, probed) = probe::settle(config)?;
        let failed = |code| OpenError::Call { name: "getrandom", code };
        let mut noise = Noise::of_system().map_err(failed)?;
        let mut rails = Vec::new();
        let mut facts = None;
        for index in 0..config.endpoints {
            let rail = open_rail(&config, rank, index, probed.works(probe::RINGS), noise.split())?;
            facts = Some(rail.wire.device.facts.clone());
            rails.push(rail);
        }
        let mut facts = facts.expect("the configuration has at least one endpoint");
        if is_asked && facts.dynamic == Dynamic::Possible {
            facts.dynamic = Dynamic::Refused;
        }
        let traits = Traits {
            rank,
            size,
            job: config.job,
            kind: u64::from(facts.ethernet) + 1,
            device_atomics: false,
            is_device: !facts.software,
            remote_completion: probed.works(Probed::LANDED),
        };
        Ok(Self::assemble(rails, About { facts, probed }, traits)?)
    }

    /// The properties that the device reports.
    pub fn facts(&self) -> &Facts {
        &self.about.facts
    }

    /// The results of the trials.
    pub fn probed(&self) -> &Probed {
        &self.about.probed
    }
}

impl VerbsEndpoint<'_> {
    /// The counters of this endpoint.
    pub fn counts(&self) -> Counts {
        self.with_wire(|line| line.counts).unwrap_or_default()
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.facts.device, self.facts.port)
    }
}

/// The bytes of the tables of a rank with one endpoint of the default size and
/// `packets` packets each way, without libibverbs' own memory and without pairs.
pub fn footprint(packets: usize) -> usize {
    let config = Config::default();
    let (depth, packet_bytes) = (config.in_flight_max, config.packet_bytes_max);
    let contexts = contexts_of(depth, packets);
    footprint_of(Sizes { depth, packets, packet_bytes }) + line::footprint(contexts)
}

fn open_rail(
    config: &Config,
    rank: Rank,
    index: usize,
    rings: bool,
    noise: Noise,
) -> Result<Rail<Line>, OpenError> {
    let sizes = Sizes {
        depth: config.in_flight_max,
        packets: config.packets,
        packet_bytes: config.packet_bytes_max,
    };
    let contexts = contexts_of(sizes.depth, sizes.packets);
    let line = Line::open(config, rank, contexts, config.packets)?;
    let limits = Limits {
        inject_bytes: 0,
        give_bytes: 0,
        piece_bytes_max: config.piece_bytes_max.min(line.device.facts.message_bytes_max),
        more: false,
        rings,
        one_by_one: false,
        word_atomics: false,
        local_mr: true,
        key_bytes: 8,
    };
    let failed = |code| OpenError::Call { name: "ibv_reg_mr", code };
    Rail::open(line, sizes, index, limits, noise).map_err(failed)
}
