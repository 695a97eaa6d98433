//! A rank's device on the network.

use super::network::Hub;
use super::wire::{HubDescription, HubWire};
use tsumugi_backends::net::{
    Limits, NetDomain, NetEndpoint, NicEndpoint, ProbeReport, SecretRng, Sizes, Traits,
    TrialResult, TrialRow, contexts_of,
};
use tsumugi_core::mem::Rank;

/// A rank's device on the hub.
pub type HubDomain = NetDomain<HubWire>;

/// One queue of such a device.
pub type HubEndpoint<'d> = NetEndpoint<'d, HubWire>;

/// The options of a domain on the hub.
#[derive(Clone, Copy, Debug)]
pub struct HubConfig {
    /// The number of queues of each rank.
    pub endpoints: usize,
    /// The number of operations that one queue has in flight.
    pub in_flight_max: usize,
    /// The number of packets of one queue, each way.
    pub packets: usize,
    /// The bytes of the longest packet, its header included.
    pub packet_bytes_max: usize,
    /// Longer puts and gets go in pieces of this size.
    pub piece_bytes_max: u64,
    /// Whether puts and gets may be in flight together with packets; if not, only
    /// one operation or packet is in flight at a time.
    pub moves_memory: bool,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            endpoints: 1,
            in_flight_max: 64,
            packets: 16,
            packet_bytes_max: 512,
            piece_bytes_max: u64::MAX,
            moves_memory: true,
        }
    }
}

impl Hub {
    /// Opens a rank's device.
    ///
    /// # Panics
    ///
    /// If the system gives no descriptors.
    pub fn open(&self, config: &HubConfig, rank: Rank, size: u32) -> HubDomain {
        let HubConfig { in_flight_max, packets, packet_bytes_max, piece_bytes_max, .. } = *config;
        let sizes = Sizes { depth: in_flight_max, packets, packet_bytes: packet_bytes_max };
        let limits = Limits {
            inject_bytes: 0,
            inject_packet_bytes: 0,
            piece_bytes_max,
            more: true,
            rings: false,
            one_by_one: !config.moves_memory,
            word_atomics: true,
            local_mr: false,
            key_bytes: 8,
        };
        let nic = |index| {
            let contexts = contexts_of(in_flight_max, packets);
            let wire = HubWire::new(self, contexts, limits.one_by_one);
            NicEndpoint::open(
                wire,
                sizes,
                index,
                limits,
                SecretRng::new(u64::from(rank.0) << 8 | index as u64),
            )
            .expect("a hub refuses no registration")
        };
        let traits = Traits {
            rank,
            size,
            job: 0,
            kind: 0,
            device_atomics: true,
            is_device: true,
            remote_completion: true,
        };
        let row = |name| TrialRow { name, width: 0, verdict: TrialResult::Works };
        let rows =
            [ProbeReport::LANDED, ProbeReport::SLEEPER, ProbeReport::STALE].map(row).to_vec();
        let nics = (0..config.endpoints).map(nic).collect();
        NetDomain::assemble(nics, HubDescription, ProbeReport { rows }, traits)
            .expect("the endpoints of a hub fit in a card")
    }
}
