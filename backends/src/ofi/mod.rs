//! libfabric: the portable backend for other nodes.
//!
//! ```text
//!  OfiDomain
//!     ├─ nic 0: wire (fid_domain, av, cq, ep)                    ◄─ OfiEndpoint
//!     └─ nic 1: the same, with nothing in common but the fabric  ◄─ OfiEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `config` | the options of a domain, and the errors of opening it |
//! | `sys` | libfabric's functions and structures |
//! | `choice` | the provider that was chosen |
//! | `fabric` | the opened network |
//! | `endpoint` | libfabric's objects, opened |
//! | `wire` | the interface of a NIC endpoint, implemented with libfabric |
//! | `probe` | trials of the provider |
//! | `stranger` | a test: a client that is no rank |
//!
//! A NIC endpoint is one domain of libfabric with one owner at a time
//! (`FI_THREAD_DOMAIN`), so that the provider takes no locks.
//!
//! # Progress
//!
//! With [`ProgressMode::Manual`], the threads that poll do the work of peers'
//! operations on this rank, atomics included: a rank in which all threads compute
//! needs a helper that polls. The trial `SLEEPER`
//! shows whether that is so.
//!
//! # Atomics
//!
//! Atomics are done by the device, or by the provider on the target's processor. In
//! both cases the processor's own atomics on the same words are not atomic with
//! respect to them ([`device_atomics`]: the region's agent decides).
//!
//! [`device_atomics`]: tsumugi_core::backend::Capabilities::device_atomics
//!
//! # Programs that are no rank
//!
//! Traffic is neither encrypted nor signed. A program on the network that is no
//! rank of the job is kept out because it cannot guess these numbers:
//!
//! | provider | keys of memory | number in each packet |
//! |---|---|---|
//! | takes keys of 8 bytes (tcp, udp) | 64 random bits each | 64 random bits |
//! | takes keys of 4 to 7 bytes | 32 bits, veiled by one random number | the same |
//! | takes shorter ones | small numbers | the same |
//! | makes keys itself (`FI_MR_PROV_KEY`: verbs, EFA) | as its device draws them, most often by counting | the same |
//!
//! In the first row such a program, though it knows the addresses and the form of
//! packets, neither reads nor writes a rank's memory nor passes for a rank (tested
//! with libfabric over tcp and udp: `stranger`; over udp `ofi_rxd` reports success
//! to a client that is refused, or nothing, and writes nothing). In the second row
//! it must try 2^31 keys on average, and in the others it finds them soon: there
//! only the network keeps it out (partition keys, a VLAN, a VNI). The caller must
//! choose a random number for packets ([`OfiConfig::job`], [`NetDomain::join`]). A
//! program that reads the traffic, or the card of a rank, sees all these numbers.
//!
//! # The process
//!
//! Effects of libfabric on a process, as found with Debian's 1.17:
//!
//! - Loading it loads libpsm2 and libinfinipath, which take SIGSEGV, SIGBUS,
//!   SIGILL, SIGABRT, SIGINT and SIGTERM; [`sys`] restores the handlers.
//! - Neither loading nor manual progress over tcp and udp starts a thread;
//!   [`ProgressMode::Auto`] does.
//! - Its sockets have no close-on-exec flag: a program that a rank starts holds
//!   them open, and then peers do not see that rank's death by a closed connection.
//! - A forked child must not use, nor drop, an open domain.
//! - Providers with a registration cache (verbs, EFA) watch `mmap` and `munmap` by
//!   patching them or by userfaultfd, unless `FI_MR_CACHE_MONITOR=disabled` is in
//!   the environment when the library is loaded. Regions here are registered by
//!   hand and stay, so that setting loses nothing. This code does not set the
//!   variable, because changing the environment is not safe in a process with
//!   threads.

mod choice;
mod config;
mod fabric;
mod fencing;
mod notice;
mod sockets;
mod wire;
mod probe;
#[cfg(test)]
mod stranger;
pub mod sys;
mod endpoint;

pub use crate::net::{
    Arrival, CardError, CardSource, DeviceFailure, DeviceFailures, PacketError, ProbeReport,
    TrialResult, TrialRow,
};
pub use choice::Facts;
pub use config::{OfiConfig, OpenError, ProgressMode};
pub use wire::{OfiDescription, OfiWire};

use self::choice::Choice;
use self::fabric::Fabric;
use crate::net::{
    Limits, NetDomain, NetEndpoint, NicEndpoint, SecretRng, Sizes, Traits, contexts_of,
    footprint_of,
};
use tsumugi_core::mem::Rank;

/// A rank's device, opened and probed.
pub type OfiDomain = NetDomain<OfiWire>;

/// One queue of such a device.
pub type OfiEndpoint<'d> = NetEndpoint<'d, OfiWire>;

impl OfiDomain {
    /// Loads the library, chooses a provider, makes the trials, and opens the
    /// endpoints. Blocks: for milliseconds where all works.
    ///
    /// # Errors
    ///
    /// - [`OpenError::Number`]: a number in `config` is out of its range.
    /// - [`OpenError::ZeroByte`]: a text in `config` contains a zero byte.
    /// - [`OpenError::Load`]: libfabric is missing, too old, or lacks a function.
    /// - [`OpenError::NoProvider`]: no provider has the required capabilities.
    /// - [`OpenError::NoSuchCall`]: the provider lacks a call that is needed.
    /// - [`OpenError::Call`]: a call of libfabric or of the system failed.
    /// - [`OpenError::Probe`]: the trial of a put or a get within this process failed.
    /// - [`OpenError::CardTooLong`]: the addresses of the endpoints do not fit in a
    ///   card.
    pub fn open(config: &OfiConfig, rank: Rank, size: u32) -> Result<Self, OpenError> {
        config.check()?;
        let choice = Choice::new(config)?;
        let fabric = Fabric::open(&choice)?;
        let probed = probe::probe(&fabric, &choice)?;
        let facts = choice.facts.clone();
        let limits = limits(config, &facts, &probed);
        let depth = config.in_flight_max.min(facts.depth.max(1));
        let (packets, packet_bytes) = (config.packets, config.packet_bytes_max);
        let sizes = Sizes { depth, packets, packet_bytes };
        let failed = |code| OpenError::Call { name: "getrandom", code };
        let mut rng = SecretRng::of_system().map_err(failed)?;
        let nic = |index| {
            let contexts = contexts_of(depth, packets);
            let wire = OfiWire::open(&fabric, &choice, contexts, config.event)?;
            let failed = |code| OpenError::Call { name: "fi_mr_reg", code };
            NicEndpoint::open(wire, sizes, index, limits, rng.split()).map_err(failed)
        };
        let nics = (0..config.endpoints).map(nic).collect::<Result<_, OpenError>>()?;
        let traits = Traits {
            rank,
            size,
            job: config.job,
            kind: kind_of(&facts),
            device_atomics: probe::all_atomics(&probed),
            is_device: is_device(&facts),
            remote_completion: probed.works(ProbeReport::LANDED),
        };
        Ok(Self::assemble(nics, OfiDescription { facts }, probed, traits)?)
    }

    /// The properties that the provider reports.
    pub fn facts(&self) -> &Facts {
        &self.description.facts
    }
}

/// The bytes of the tables of a rank with one endpoint of the default size and
/// `packets` packets each way, without libfabric's own memory.
pub fn footprint(packets: usize) -> usize {
    let config = OfiConfig::default();
    let (depth, packet_bytes) = (config.in_flight_max, config.packet_bytes_max);
    footprint_of(Sizes { depth, packets, packet_bytes })
}

fn limits(config: &OfiConfig, facts: &Facts, probed: &ProbeReport) -> Limits {
    let local_mr = facts.mr_mode & sys::FI_MR_LOCAL != 0;
    Limits {
        inject_bytes: if probed.works(probe::INJECT) { facts.inject_bytes as u64 } else { 0 },
        inject_packet_bytes: match probed.works(probe::GIVEN) && !facts.provider.contains(RXD) {
            true => facts.inject_bytes.min(GIVEN_BYTES_MAX),
            false => 0,
        },
        piece_bytes_max: config.piece_bytes_max.min(facts.message_bytes_max),
        more: probed.works(probe::BATCH) && !facts.provider.contains(RXD),
        rings: false,
        one_by_one: facts.provider.contains(RXD),
        word_atomics: !is_device(facts)
            && probed.works(probe::WORD_GET)
            && probed.works(probe::WORD_PUT),
        local_mr,
        key_bytes: facts.key_bytes,
    }
}

/// Whether the data path is a device's: devices write and read aligned words whole,
/// which a stream of bytes does not.
fn is_device(facts: &Facts) -> bool {
    DEVICES.iter().any(|name| facts.provider.starts_with(name))
}

/// A number that is equal on ranks that can communicate.
fn kind_of(facts: &Facts) -> u64 {
    let start = u64::from(facts.address_format) ^ (facts.mr_mode as u64) << 32;
    facts.provider.bytes().fold(start, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3).rotate_left(5)
    })
}

/// A layer that, in libfabric 1.17, stalls or crashes when several operations are
/// in flight from one endpoint at once: gets, atomics, puts beside packets. A trial
/// would crash, too, so the layer is recognized by its name.
const RXD: &str = "ofi_rxd";

/// Longer packets are not injected, because an injection copies them once more.
const GIVEN_BYTES_MAX: usize = 256;

/// Providers that use a device for their data path.
const DEVICES: [&str; 6] = ["verbs", "efa", "cxi", "psm", "opx", "usnic"];
