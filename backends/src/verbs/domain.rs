//! The domain of a rank: its device opened and tried, with its endpoints.

use super::about::{About, Counts};
use super::config::{Config, OpenError};
use super::device::Facts;
use super::dynamic::support::Dynamic;
use super::line::{self, Line};
use super::probe;
use crate::net::{
    Limits, NetDomain, NetEndpoint, Noise, Probed, Rail, Sizes, Traits, contexts_of, footprint_of,
};
use tsumugi_core::mem::Rank;

/// A rank's device, opened and probed.
pub type VerbsDomain = NetDomain<Line>;

/// One queue of such a device.
pub type VerbsEndpoint<'d> = NetEndpoint<'d, Line>;

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
