//! The device of a rank, over one of the supported network libraries: one match for
//! each batch, and no other indirection.
//!
//! ```text
//!  NetDevice ─┬─ Ofi(OfiDomain)
//!             └─ Verbs(VerbsDomain)
//! ```

use super::device_queue::DeviceQueue;
use super::facts::NetworkFacts;
use super::packet::{ARRIVALS, HEADER_BYTES, PACKET_BYTES};
use crate::config::{NetworkConfig, NetworkKind, NetworkSleep};
use crate::error::NoNetwork;
use std::fmt;
use std::os::fd::RawFd;
use std::time::Duration;
use tsumugi_backends::net::ShutOut;
use tsumugi_backends::ofi::{self, CardError, OfiDomain, PacketError, ProbeReport, TrialResult};
use tsumugi_backends::verbs::{self, VerbsDomain};
use tsumugi_core::backend::Domain;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{Agent, Region, RegionKey, RegisterError};
use tsumugi_core::op::{Kind, Op};
#[cfg(any(test, feature = "testing"))]
use tsumugi_test_networks::hub::{self, Hub, HubDomain};

/// A device, by its network library. See the module.
pub enum NetDevice {
    /// A domain of libfabric.
    Ofi(OfiDomain),
    /// A device of libibverbs.
    Verbs(VerbsDomain),
    #[cfg(any(test, feature = "testing"))]
    /// A simulated network inside of the process.
    Hub(HubDomain),
}

/// Which operations a device carries out by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moves {
    /// Puts and gets.
    pub memory: bool,
    /// Puts that notify the target (with immediate data).
    pub rings: bool,
    /// Puts and gets of the bytes of exactly one word, which do not tear.
    copies_words: bool,
    /// Widths of words that never tear, as a sum.
    words: u8,
}

/// Runs the same code for each variant.
macro_rules! of_each {
    ($this:expr, $it:ident => $do:expr) => {
        match $this {
            Self::Ofi($it) => $do,
            Self::Verbs($it) => $do,
            #[cfg(any(test, feature = "testing"))]
            Self::Hub($it) => $do,
        }
    };
}

impl NetDevice {
    /// Opens the device that the configuration names.
    ///
    /// # Errors
    ///
    /// [`NoNetwork`]: the network is off, or its library reports this error.
    pub(super) fn open(config: &NetworkConfig, rank: Rank, size: u32) -> Result<Self, NoNetwork> {
        match config.kind {
            NetworkKind::Off => Err(NoNetwork::Off),
            NetworkKind::Ofi => {
                let domain = OfiDomain::open(&of_ofi(config), rank, size);
                domain.map(Self::Ofi).map_err(NoNetwork::Ofi)
            }
            NetworkKind::Verbs => {
                let domain = VerbsDomain::open(&of_verbs(config), rank, size);
                let device = || config.device.clone();
                domain.map(Self::Verbs).map_err(|why| NoNetwork::Verbs { device: device(), why })
            }
        }
    }

    /// Opens a device of a network inside of this process, with packets as of the
    /// others.
    #[cfg(any(test, feature = "testing"))]
    pub fn on_hub(hub: &Hub, config: hub::HubConfig, rank: Rank, size: u32) -> Self {
        let packets = ARRIVALS;
        let config = hub::HubConfig { packets, packet_bytes_max: WITH_HEADER, ..config };
        Self::Hub(hub.open(&config, rank, size))
    }

    /// The address of the device, for the rank's card.
    pub fn card(&self) -> &[u8] {
        of_each!(self, domain => domain.card())
    }

    /// A number that is equal on two ranks only if they can communicate; never 0.
    pub(crate) fn mark(&self) -> u32 {
        of_each!(self, domain => domain.mark())
    }

    /// Whether a rank with that card can be reached.
    pub(super) fn check(&self, card: &[u8]) -> Result<(), CardError> {
        of_each!(self, domain => domain.check(card))
    }

    pub(super) fn join(&self, job: u64) {
        of_each!(self, domain => domain.join(job));
    }

    pub(super) fn find(
        &self,
        cards: impl Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Result<Option<usize>, BootError>
        + Send
        + Sync
        + 'static,
    ) {
        of_each!(self, domain => domain.find_later(cards));
    }

    /// Bytes of the longest parcel.
    pub(super) fn parcel_bytes_max(&self) -> usize {
        self.packet_bytes_max().min(PACKET_BYTES) - 1
    }

    pub(super) fn endpoints(&self) -> usize {
        of_each!(self, domain => domain.endpoints())
    }

    /// Opens the next endpoint, if one is left.
    pub(super) fn try_endpoint(&self) -> Option<DeviceQueue<'_>> {
        match self {
            Self::Ofi(domain) => domain.try_endpoint().map(DeviceQueue::Ofi),
            Self::Verbs(domain) => domain.try_endpoint().map(DeviceQueue::Verbs),
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(domain) => domain.try_endpoint().map(DeviceQueue::Hub),
        }
    }

    /// Whether the device has fetch-and-add and compare-and-swap of its own.
    pub(super) fn has_atomics(&self) -> bool {
        match self {
            Self::Ofi(_) => false,
            Self::Verbs(domain) => domain.facts().atomics != verbs::Atomics::None,
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(domain) => domain.moves_memory(),
        }
    }

    pub(super) fn moves(&self) -> Moves {
        let memory = of_each!(self, domain => domain.moves_memory());
        let whole = |width: &u8| of_each!(self, domain => domain.moves_words((*width).into()));
        let rings = memory && of_each!(self, domain => domain.rings());
        Moves {
            memory,
            rings,
            copies_words: memory && of_each!(self, domain => domain.copies_words()),
            words: if memory { WIDTHS.into_iter().filter(whole).sum() } else { 0 },
        }
    }

    /// Whether registering memory pins its pages.
    pub(super) fn pins(&self) -> bool {
        of_each!(self, domain => domain.pins())
    }

    /// Whether an operation on a lost peer ends only after the device has released
    /// its memory, and soon. (A queue pair in the error state releases all that it
    /// had; a provider of libfabric may keep a get for minutes.)
    pub(super) fn lets_go(&self) -> bool {
        !matches!(self, Self::Ofi(_))
    }

    pub(super) fn packet_bytes_max(&self) -> usize {
        of_each!(self, domain => domain.packet_bytes_max())
    }

    pub(super) fn try_send(&self, index: usize, to: Rank, bytes: &[u8]) -> Result<(), PacketError> {
        of_each!(self, domain => domain.try_send(index, to, bytes))
    }

    /// Sends a packet by the first endpoint to a rank that was marked as dead, if
    /// the connection to it is still open.
    pub(super) fn notify_dead(&self, to: Rank, bytes: &[u8]) -> Result<(), PacketError> {
        of_each!(self, domain => domain.notify_dead(0, to, bytes))
    }

    /// Takes a notice to the first endpoint that has come beside the packets.
    pub(super) fn take_notice(&self, into: &mut [u8]) -> Option<(Rank, usize)> {
        of_each!(self, domain => domain.take_notice(0, into))
    }

    pub(super) fn arm(&self, index: usize) -> bool {
        of_each!(self, domain => domain.arm(index))
    }

    pub(super) fn event(&self, index: usize) -> Option<RawFd> {
        of_each!(self, domain => domain.event(index))
    }

    pub(super) fn keep(&self, region: RegionKey) {
        of_each!(self, domain => domain.keep(region));
    }

    pub(super) fn mark_dead(&self, rank: Rank) {
        of_each!(self, domain => domain.mark_dead(rank));
    }

    pub(super) fn give_up(&self, rank: Rank, shut_out: ShutOut) {
        of_each!(self, domain => domain.give_up(rank, shut_out));
    }

    /// Registers a region, for its peers, under the key that it has.
    ///
    /// # Safety
    ///
    /// That of [`Domain::register`].
    pub(super) unsafe fn register(&self, region: &Region) -> Result<(), RegisterError> {
        let Region { key, base, bytes, access } = *region;
        // SAFETY: the caller's promise, which is that of [`Domain::register`].
        of_each!(self, domain => unsafe { domain.register_as(key, base, bytes, access) }).map(drop)
    }

    pub(super) fn unregister(&self, key: RegionKey) {
        of_each!(self, domain => domain.unregister(key));
    }

    /// Whether a completed put is in the target's memory (remote completion).
    pub(super) fn remote_completion(&self) -> bool {
        of_each!(self, domain => domain.capabilities().remote_completion)
    }

    /// Whether a packet arrives after the puts, of at most `bytes` bytes each, that
    /// the same caller posted before it and that the queue does not
    /// [hold](DeviceQueue::holds), and after they have landed.
    pub(super) fn keeps_order(&self, bytes: u64) -> bool {
        // Each of several endpoints keeps an order of its own only; and the pieces
        // of a long put go one after another.
        let is_one = of_each!(self, domain => domain.piece_bytes_max()) >= bytes;
        let promises = match self {
            Self::Ofi(domain) => domain.facts().sends_after_writes(),
            // On one reliable queue pair: the InfiniBand specification, 9.5.
            Self::Verbs(_) => true,
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(_) => false,
        };
        promises && is_one && self.endpoints() == 1 && self.moves().memory
    }

    /// Describes the device and its capabilities, for diagnostics.
    pub(super) fn facts(&self) -> NetworkFacts {
        let (provider, device) = match self {
            Self::Ofi(domain) => {
                let facts = domain.facts();
                (format!("libfabric: {}", facts.provider), facts.device.clone())
            }
            Self::Verbs(domain) => {
                let facts = domain.facts();
                let kind = match (facts.software, facts.ethernet) {
                    (true, _) => "Soft-RoCE",
                    (false, true) => "RoCE",
                    (false, false) => "InfiniBand",
                };
                let port = format!("{}, port {}", facts.device, facts.port);
                (format!("libibverbs: {kind}"), port)
            }
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(_) => ("hub".into(), "this process".into()),
        };
        let ProbeReport { rows } = of_each!(self, domain => domain.probed());
        // A target that sleeps is tried with a limit of milliseconds, which says as much
        // about a busy machine as about the provider; the provider's own word counts.
        let lacks = rows.iter().filter(|row| {
            row.verdict != TrialResult::Works
                && (row.name, row.verdict) != (ProbeReport::SLEEPER, TrialResult::Silent)
        });
        let mut lacks: Vec<String> = lacks.map(ToString::to_string).collect();
        if matches!(self, Self::Ofi(domain) if !domain.facts().auto_progress) {
            lacks.push("automatic progress: not reported, a thread of each rank polls".into());
        }
        if matches!(self, Self::Ofi(domain) if !domain.facts().delivery) {
            let lack = "completion at the target: not promised, so a put may end before it lands";
            lacks.push(lack.into());
        }
        if let Self::Verbs(domain) = self {
            lacks.push(format!("dynamically connected transport: {}", domain.facts().dct));
        }
        let moves = self.moves();
        let mut emulated = vec!["atomics", "signals"];
        if !moves.memory {
            emulated.push("puts and gets");
        } else if !moves.word(2) {
            emulated.push("words of 2 bytes");
        }
        if moves.memory && !moves.word(8) {
            emulated.push("words of 4 and 8 bytes");
        }
        if moves.memory && !moves.copies_words {
            emulated.push("puts and gets of one word");
        }
        NetworkFacts { provider, device, lacks, emulated }
    }
}

impl Moves {
    /// Whether the device carries out `op` by itself. An operation on one word must
    /// not tear, however the caller has posted it. A put of a word that notifies is
    /// one parcel as an emulated operation, but two packets on a device with puts that
    /// cannot notify.
    pub(super) fn carries(self, op: &Op) -> bool {
        if op.along != 0 {
            return false;
        }
        if op.remote.key.agent() == Agent::Device {
            return true;
        }
        if !self.memory {
            return false;
        }
        match (op.kind, op.width()) {
            (Kind::PutWord | Kind::GetWord, Some(width)) => {
                (!op.notify || self.rings) && self.word(width as u8)
            }
            (Kind::Put | Kind::Get, _) => self.copies_words || !op.is_on_one_word(),
            _ => false,
        }
    }

    /// Whether the device carries out puts and gets of a word of `bytes` bytes
    /// without tearing.
    #[inline]
    fn word(self, bytes: u8) -> bool {
        self.words & bytes != 0
    }
}

impl fmt::Debug for NetDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_each!(self, domain => domain.fmt(f))
    }
}

/// Bytes of the tables of one endpoint, of the network library that takes more.
pub fn footprint() -> usize {
    let packets = ARRIVALS;
    ofi::footprint(packets).max(verbs::footprint(packets))
}

fn of_ofi(config: &NetworkConfig) -> ofi::OfiConfig {
    let defaults = ofi::OfiConfig::default();
    ofi::OfiConfig {
        provider: config.provider.clone(),
        source: config.source.clone(),
        device: config.device.clone(),
        endpoints: config.endpoints.unwrap_or(defaults.endpoints),
        packets: ARRIVALS,
        packet_bytes_max: WITH_HEADER,
        event: config.sleep == NetworkSleep::Called,
        ..defaults
    }
}

fn of_verbs(config: &NetworkConfig) -> verbs::VerbsConfig {
    let defaults = verbs::VerbsConfig::default();
    let (device, port) = match config.device.as_deref().map(with_port) {
        Some((device, port)) => (Some(device.to_owned()), port),
        None => (None, None),
    };
    verbs::VerbsConfig {
        device,
        port: port.unwrap_or(defaults.port),
        endpoints: config.endpoints.unwrap_or(defaults.endpoints),
        packets: ARRIVALS,
        packet_bytes_max: WITH_HEADER,
        timeout: timeout_for(config.silence_limit()),
        dct: config.dynamic,
        event: config.sleep == NetworkSleep::Called,
        ..defaults
    }
}

/// Splits a device's name from a port after a colon.
fn with_port(name: &str) -> (&str, Option<u8>) {
    let split = name.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    split.map_or((name, None), |(name, port)| (name, Some(port)))
}

const WIDTHS: [u8; 4] = [1, 2, 4, 8];

/// The shortest retransmission timeout, as an exponent of 4.096 us, with which the
/// device does not give up before the heartbeats do. The device sends a request eight
/// times; an operation that it gives up is lost for good, because the target may
/// have carried it out.
fn timeout_for(silence: Duration) -> u8 {
    let tries = |exponent: &u8| 8 * (4096_u64 << exponent);
    (17..31)
        .find(|exponent| u128::from(tries(exponent)) >= 3 * silence.as_nanos() / 2)
        .unwrap_or(31)
}

/// Bytes of a packet with its header.
const WITH_HEADER: usize = PACKET_BYTES + HEADER_BYTES;

#[cfg(test)]
mod tests;
