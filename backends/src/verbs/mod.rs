//! libibverbs: InfiniBand and RoCE, without a layer between.
//!
//! ```text
//!  VerbsDomain
//!     ├─ rail 0: line (context, cq, srq, door, pairs)          ◄─ VerbsEndpoint
//!     └─ rail 1: the same, with nothing in common but the card ◄─ VerbsEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `config` | what a job asks, why it may not get it |
//! | `sys` | libibverbs' functions and structures |
//! | `address` | where a rank is, as it crosses the network |
//! | `device` | a device, opened |
//! | `dynamic` | many peers by few pairs, where a device has that |
//! | `pair` | queue pairs, from state to state |
//! | `door` | calls between ranks about their pairs |
//! | `link` | whom this rank reaches: made on first use, bounded, remade |
//! | `guest` | who reaches this rank |
//! | `talk` | what ranks say to each other about pairs |
//! | `line` | requests down, completions up |
//! | `probe` | what the device really does |
//! | `sim` | libibverbs inside of the process, for tests |
//!
//! A batch that is posted at once goes out with one doorbell for each peer.
//! Short puts and packets are copied into their requests. A put that is to tell
//! its target is one request with an immediate number: the word's region and
//! place, where they fit in 32 bits.
//!
//! # Progress
//!
//! Puts, gets and atomics need nobody at the target once the link is open. To
//! open it, the target has to poll once: a rank that never does keeps others
//! waiting, for [`Config::patience_ms`] at the most. Packets wait for buffers
//! at the target, and what was posted to the same peer after them waits too.
//!
//! # Atomics
//!
//! A device adds and compares words of 8 bytes, among its own requests alone
//! ([`Atomics::Device`]): it and the processor lose each other's updates of the
//! same word. So [`Capabilities::device_atomics`] is false, every word has one
//! agent, and whatever this device does not do ([`AddrError::Unsupported`]) is
//! an errand for the target's processor.
//!
//! [`Capabilities::device_atomics`]: tsumugi_core::backend::Capabilities
//! [`AddrError::Unsupported`]: tsumugi_core::mem::AddrError::Unsupported
//!
//! # The process
//!
//! - Registered memory is locked: `ulimit -l` bounds it.
//! - A forked child must not use, nor drop, an open domain.
//! - A registration that ends makes requests fail that peers have under way on
//!   it, and with each the link that it was on, which is made again.

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

/// One queue of it.
pub type VerbsEndpoint<'d> = NetEndpoint<'d, Line>;

/// What a device says, and what it does.
#[derive(Debug)]
pub struct About {
    facts: Facts,
    probed: Probed,
}

/// What an endpoint has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times that requests were given to the device.
    pub doorbells: u64,
    /// Pairs to reach peers by: made, ended, and ended by an error.
    pub pairs_made: u64,
    /// See `pairs_made`.
    pub pairs_closed: u64,
    /// See `pairs_made`.
    pub pairs_broken: u64,
    /// Calls about pairs that were heard.
    pub calls: u64,
    /// Completions and calls that were not for this endpoint.
    pub strays: u64,
}

impl VerbsDomain {
    /// Loads the library, chooses a device, tries what it does, and opens the
    /// endpoints. Blocks: for milliseconds where all works.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
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
        let mut facts = facts.expect("one endpoint at least");
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

    /// What the device says of itself.
    pub fn facts(&self) -> &Facts {
        &self.about.facts
    }

    /// What it was seen to do.
    pub fn probed(&self) -> &Probed {
        &self.about.probed
    }
}

impl VerbsEndpoint<'_> {
    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        self.with_wire(|line| line.counts).unwrap_or_default()
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.facts.device, self.facts.port)
    }
}

/// Bytes of the tables of a rank with one endpoint of the default size and so
/// many packets each way; libibverbs' own, and pairs, not counted.
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
