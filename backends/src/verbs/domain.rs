//! The domain of a rank: its device opened and tried, with its endpoints.

use super::config::{OpenError, VerbsConfig};
use super::dct::support::DctSupport;
use super::description::{QpCounters, VerbsDescription};
use super::device::Facts;
use super::probe;
use super::wire::{self, VerbsWire};
use crate::net::{
    Limits, NetDomain, NetEndpoint, NicEndpoint, ProbeReport, SecretRng, Sizes, Traits,
    contexts_of, footprint_of,
};
use tsumugi_core::mem::Rank;

/// A rank's device, opened and probed.
pub type VerbsDomain = NetDomain<VerbsWire>;

/// One queue of such a device.
pub type VerbsEndpoint<'d> = NetEndpoint<'d, VerbsWire>;

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
    pub fn open(config: &VerbsConfig, rank: Rank, size: u32) -> Result<Self, OpenError> {
        config.check()?;
        let is_asked = config.dct;
        let (config, probed) = probe::choose_transport(config)?;
        let failed = |code| OpenError::Call { name: "getrandom", code };
        let mut rng = SecretRng::of_system().map_err(failed)?;
        let mut nics = Vec::new();
        let mut facts = None;
        for index in 0..config.endpoints {
            let nic = open_nic(&config, rank, index, probed.works(probe::RINGS), rng.split())?;
            facts = Some(nic.wire.device.facts.clone());
            nics.push(nic);
        }
        let mut facts = facts.expect("the configuration has at least one endpoint");
        if is_asked && facts.dct == DctSupport::Possible {
            facts.dct = DctSupport::Refused;
        }
        let traits = Traits {
            rank,
            size,
            job: config.job,
            kind: u64::from(facts.ethernet) + 1,
            device_atomics: false,
            is_device: !facts.software,
            remote_completion: probed.works(ProbeReport::LANDED),
        };
        Ok(Self::assemble(nics, VerbsDescription { facts }, probed, traits)?)
    }

    /// The properties that the device reports.
    pub fn facts(&self) -> &Facts {
        &self.description.facts
    }
}

impl VerbsEndpoint<'_> {
    /// The counters of this endpoint.
    pub fn counters(&self) -> QpCounters {
        self.with_wire(|wire| wire.counters).unwrap_or_default()
    }
}

/// The bytes of the tables of a rank with one endpoint of the default size and
/// `packets` packets each way, without libibverbs' own memory and without pairs.
pub fn footprint(packets: usize) -> usize {
    let config = VerbsConfig::default();
    let (depth, packet_bytes) = (config.in_flight_max, config.packet_bytes_max);
    let contexts = contexts_of(depth, packets);
    footprint_of(Sizes { depth, packets, packet_bytes }) + wire::footprint(contexts)
}

fn open_nic(
    config: &VerbsConfig,
    rank: Rank,
    index: usize,
    rings: bool,
    rng: SecretRng,
) -> Result<NicEndpoint<VerbsWire>, OpenError> {
    let sizes = Sizes {
        depth: config.in_flight_max,
        packets: config.packets,
        packet_bytes: config.packet_bytes_max,
    };
    let contexts = contexts_of(sizes.depth, sizes.packets);
    let wire = VerbsWire::open(config, rank, contexts, config.packets)?;
    let limits = Limits {
        inject_bytes: 0,
        inject_packet_bytes: 0,
        piece_bytes_max: config.piece_bytes_max.min(wire.device.facts.message_bytes_max),
        more: false,
        rings,
        one_by_one: false,
        word_atomics: false,
        local_mr: true,
        key_bytes: 8,
    };
    let failed = |code| OpenError::Call { name: "ibv_reg_mr", code };
    NicEndpoint::open(wire, sizes, index, limits, rng).map_err(failed)
}
