//! libfabric: the portable way to other nodes.
//!
//! ```text
//!  OfiDomain ── shared: region table, cards, who is dead
//!     │
//!     ├─ rail 0: wire (fid_domain, av, cq, ep) + directory + operations ◄─ OfiEndpoint
//!     └─ rail 1: the same, with nothing in common but the fabric        ◄─ OfiEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `config` | what a job asks, why it may not get it |
//! | `sys` | libfabric's functions and structures |
//! | `choice` | the provider that was chosen |
//! | `wire` | its objects, opened |
//! | `card` | what ranks tell each other at start |
//! | `memory` | what peers reach, and what is known of theirs |
//! | `packet` | bells and messages |
//! | `rail`, `scratch` | what one endpoint has |
//! | `endpoint` | operations down |
//! | `poll` | completions up |
//! | `probe` | what the provider really does |
//!
//! A rail is one domain of libfabric's with one owner at a time
//! (`FI_THREAD_DOMAIN`), so that the provider takes no locks. Endpoint k of a
//! rank talks to endpoint k of its peers. Registering takes every rail for a
//! moment; an endpoint that is posted to or polled meanwhile does nothing.
//!
//! # Progress
//!
//! With [`Progress::Manual`], whoever polls moves what peers ask of this rank,
//! atomics included: a rank whose threads all compute needs a helper that
//! polls. The probe's last row says whether that is so.
//!
//! # Atomics
//!
//! They are the device's, or the provider's own on the target's processor.
//! In both cases the processor's own atomics on the same words do not mix
//! with them ([`Capabilities::device_atomics`]: the region's agent decides).
//!
//! # The process
//!
//! What libfabric does to a process, as found with Debian's 1.17:
//!
//! - Loading it loads libpsm2 and libinfinipath, which take SIGSEGV, SIGBUS,
//!   SIGILL, SIGABRT, SIGINT and SIGTERM; [`sys`] puts the handlers back.
//! - Neither loading nor manual progress over tcp and udp starts a thread;
//!   [`Progress::Auto`] does.
//! - Its sockets have no close-on-exec flag: a program that a rank starts
//!   holds them open, and peers do not see that rank's death by them.
//! - A forked child must not use, nor drop, an open domain.
//! - Providers with a registration cache (verbs, EFA) watch `mmap` and `munmap`
//!   by patching them or by userfaultfd, unless `FI_MR_CACHE_MONITOR=disabled`
//!   is in the environment when the library is loaded. Regions here are
//!   registered by hand and stay, so nothing is lost by that. Nobody sets it
//!   behind the program's back: changing the environment is not safe once there
//!   are threads.

mod card;
mod choice;
mod config;
mod endpoint;
mod memory;
mod packet;
mod poll;
mod probe;
mod rail;
mod scratch;
pub mod sys;
mod wire;

pub use card::CardError;
pub use choice::Facts;
pub use config::{Config, OpenError, Progress};
pub use endpoint::OfiEndpoint;
pub use packet::{Arrival, SendError};
pub use probe::{Probed, Row, Verdict};
pub use rail::{Cards, Failure, Failures};

use self::card::{Card, Place};
use self::choice::{Choice, Fabric};
use self::rail::{Limits, Rail, Shared};
use core::fmt;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::backend::{Capabilities, Domain};
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::mem::{
    Access, Need, Rank, Region, RegionKey, RegionTable, RegisterError, RemoteAddr,
};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A rank's device, opened and probed.
///
/// At start: [`open`](Self::open), publish [`card`](Self::card), wait for all,
/// [`find`](Self::find) the others' cards.
pub struct OfiDomain {
    rails: Vec<Mutex<Rail>>,
    /// The rails that no endpoint has.
    idle: Mutex<Vec<usize>>,
    shared: Shared,
    facts: Facts,
    probed: Probed,
    capabilities: Capabilities,
    is_device: bool,
    word_atomics: bool,
    card: Vec<u8>,
}

impl OfiDomain {
    /// Loads the library, chooses a provider, tries what it does, and opens
    /// the endpoints. Blocks: for milliseconds where all works.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(config: &Config, rank: Rank, size: u32) -> Result<Self, OpenError> {
        config.check()?;
        let choice = Choice::new(config)?;
        let fabric = Fabric::open(&choice)?;
        let probed = probe::probe(&fabric, &choice)?;
        let facts = choice.facts.clone();
        let limits = limits(config, &facts, &probed);
        let rails = (0..config.endpoints)
            .map(|index| Rail::open(&fabric, &choice, config, index, limits))
            .collect::<Result<Vec<Rail>, OpenError>>()?;
        let places = rails.iter().map(place).collect::<Result<_, OpenError>>()?;
        let card = Card { job: config.job, kind: kind_of(&facts), endpoints: places };
        let bytes = card.to_bytes();
        if bytes.len() > CARD_BYTES_MAX {
            return Err(OpenError::CardTooLong { bytes: bytes.len() });
        }
        let capabilities = Capabilities {
            name: "ofi",
            load_store: false,
            device_atomics: probed.all_atomics(),
            inline_bytes_max: 0,
            in_flight_max: rails[0].flights.len(),
            in_order: false,
            remote_completion: probed.works(probe::LANDED),
        };
        let shared = Shared {
            rank,
            size,
            job: AtomicU64::new(config.job),
            table: Box::new(RegionTable::new()),
            own: OnceLock::from(card),
            cards: OnceLock::new(),
            lost: Mutex::default(),
            lost_count: AtomicUsize::new(0),
            kept: AtomicU32::new(0),
        };
        let idle = Mutex::new((0..rails.len()).rev().collect());
        let rails = rails.into_iter().map(Mutex::new).collect();
        let (is_device, word_atomics) = (is_device(&facts), limits.word_atomics);
        Ok(Self {
            rails,
            idle,
            shared,
            facts,
            probed,
            capabilities,
            is_device,
            word_atomics,
            card: bytes,
        })
    }

    /// What peers have to know of this rank: at most
    /// [`CARD_BYTES_MAX`] bytes, for [`Bootstrap::publish`].
    ///
    /// [`Bootstrap::publish`]: tsumugi_core::boot::Bootstrap::publish
    pub fn card(&self) -> &[u8] {
        &self.card
    }

    /// Says where the others' cards are. Each is asked for when its rank is
    /// first spoken to; that rank is lost if there is no card, or a bad one.
    /// Only the first call counts.
    pub fn find(
        &self,
        cards: impl Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Option<usize> + Send + Sync + 'static,
    ) {
        let _ = self.shared.cards.set(Box::new(cards));
    }

    /// Says the number that packets of the job bear, where it was not known
    /// when the cards were made: [`Config::job`](Config::job) is then the same
    /// for all. Before the first packet is sent or received.
    pub fn join(&self, job: u64) {
        // Relaxed: who uses it was told of the domain afterwards.
        self.shared.job.store(job, Ordering::Relaxed);
    }

    /// Registers memory under a key that another table of this rank has given,
    /// as [`register`](Domain::register) does under one of its own. A domain
    /// does the one or the other.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// That of [`register`](Domain::register).
    pub unsafe fn register_as(
        &self,
        key: RegionKey,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        let region = unsafe { self.shared.table.register_as(key, base, bytes, access)? };
        // SAFETY: the same.
        unsafe { self.show(region) }
    }

    /// Sends a packet of endpoint `index`, as
    /// [`OfiEndpoint::try_send`] does, whoever has the endpoint.
    ///
    /// # Errors
    ///
    /// [`SendError`]: nothing was sent.
    pub fn try_send(&self, index: usize, to: Rank, bytes: &[u8]) -> Result<(), SendError> {
        let Some(mut rail) = self.try_rail(index) else { return Err(SendError::Full) };
        rail.try_send(&self.shared, to, bytes)
    }

    /// Prepares endpoint `index` for a sleep on its
    /// [`event`](Self::event), as [`Endpoint::arm`] does.
    ///
    /// [`Endpoint::arm`]: tsumugi_core::backend::Endpoint::arm
    pub fn arm(&self, index: usize) -> bool {
        self.try_rail(index).is_some_and(|mut rail| rail.arm())
    }

    /// The descriptor of endpoint `index`; see [`OfiEndpoint::event`].
    pub fn event(&self, index: usize) -> Option<std::os::fd::RawFd> {
        self.rail(index).wire.event()
    }

    /// Bytes of the longest packet.
    pub fn packet_bytes_max(&self) -> usize {
        self.rail(0).packet_bytes_max()
    }

    /// Endpoints that there are.
    pub fn endpoints(&self) -> usize {
        self.rails.len()
    }

    /// Whether puts and gets may be under way while packets are. If not, a job
    /// is better off with packets alone.
    pub fn moves_memory(&self) -> bool {
        !self.facts.provider.contains(RXD)
    }

    /// Whether a put or get of this word, of so many bytes, never tears.
    pub fn moves_words(&self, bytes: u64) -> bool {
        bytes == 1 || self.is_device || (bytes >= 4 && self.word_atomics)
    }

    /// Says which region gets may still write to when they have ended because
    /// their peer is lost: its owner keeps it as long as the domain, and does
    /// not use what such a get was given again.
    pub fn keep(&self, region: RegionKey) {
        // Relaxed: the operations that use the region come after this.
        self.shared.kept.store(region.to_bits(), Ordering::Relaxed);
    }

    /// Makes a rank dead. Operations on it end with
    /// [`PeerLost`](tsumugi_core::mem::AddrError::PeerLost): those that come,
    /// at once; those under way, at the next poll, but for gets, which end
    /// when the device gives their buffers up, unless these are
    /// [kept](Self::keep).
    pub fn strike(&self, rank: Rank) {
        let mut lost = self.shared.lost.lock().expect("nothing panics under it");
        if !lost.contains(&rank) {
            lost.push(rank);
            // Release: pairs with the Acquire in `Rail::see_losses`.
            self.shared.lost_count.store(lost.len(), Ordering::Release);
        }
    }

    /// What the provider says of itself.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What it was seen to do.
    pub fn probed(&self) -> &Probed {
        &self.probed
    }

    /// An endpoint, if one is left.
    pub fn try_endpoint(&self) -> Option<OfiEndpoint<'_>> {
        let index = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(OfiEndpoint::new(self, index))
    }

    fn give_back(&self, index: usize) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }

    /// Shows a region of the own table to the devices.
    ///
    /// # Safety
    ///
    /// The memory is as `register` demands.
    unsafe fn show(&self, region: Region) -> Result<Region, RegisterError> {
        let Region { key, base, bytes, access } = region;
        if access == Access::Local && self.facts.mr_mode & sys::FI_MR_LOCAL == 0 {
            return Ok(region);
        }
        for index in 0..self.rails.len() {
            // SAFETY: the caller's.
            let registered = unsafe { self.rail(index).register(key, base, bytes, access) };
            if let Err(code) = registered {
                self.rail(index).failures.add(Failure::new(Some(self.shared.rank), None, code, 0));
                self.unregister(key);
                return Err(RegisterError::OutOfReach { base: base.as_ptr() as usize, bytes });
            }
        }
        Ok(region)
    }

    fn try_rail(&self, index: usize) -> Option<MutexGuard<'_, Rail>> {
        self.rails[index].try_lock().ok()
    }

    fn rail(&self, index: usize) -> MutexGuard<'_, Rail> {
        self.rails[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Domain for OfiDomain {
    type Endpoint<'d> = OfiEndpoint<'d>;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn rank(&self) -> Rank {
        self.shared.rank
    }

    fn size(&self) -> u32 {
        self.shared.size
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        let region = unsafe { self.shared.table.register(base, bytes, access)? };
        // SAFETY: the same.
        unsafe { self.show(region) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        // The devices first: the slot must not be somebody else's meanwhile.
        let place = RemoteAddr { rank: self.shared.rank, key, offset: 0 };
        let is_for = |need| self.shared.table.resolve(place, 0, need).is_ok();
        if !is_for(Need::Local) {
            return false;
        }
        let is_shown = self.facts.mr_mode & sys::FI_MR_LOCAL != 0 || is_for(Need::Read);
        for index in (0..self.rails.len()).filter(|_| is_shown) {
            self.rail(index).unregister(key);
        }
        self.shared.table.unregister(key)
    }

    /// # Panics
    ///
    /// If all are in use: [`try_endpoint`](Self::try_endpoint) asks.
    fn endpoint(&self) -> OfiEndpoint<'_> {
        self.try_endpoint().expect("an endpoint that is not in use")
    }
}

impl fmt::Debug for OfiDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { provider, device, .. } = &self.facts;
        write!(f, "OfiDomain({provider} on {device}, {} endpoints)", self.rails.len())
    }
}

/// Bytes of the tables of a rank with one endpoint of the default size and so
/// many packets each way; libfabric's own not counted.
pub fn footprint(packets: usize) -> usize {
    let config = Config::default();
    let regions = size_of::<RegionTable<{ memory::REGIONS_MAX }>>() + memory::Directory::BYTES;
    let flights = config.in_flight_max * (size_of::<endpoint::Flight>() + 64);
    regions + flights + 2 * packets * config.packet_bytes_max + memory::Cache::BYTES
}

fn limits(config: &Config, facts: &Facts, probed: &Probed) -> Limits {
    let local_mr = facts.mr_mode & sys::FI_MR_LOCAL != 0;
    Limits {
        inject_bytes: if probed.works(probe::INJECT) { facts.inject_bytes as u64 } else { 0 },
        piece_bytes_max: config.piece_bytes_max.min(facts.message_bytes_max),
        more: probed.works(probe::MORE) && !facts.provider.contains(RXD),
        one_by_one: facts.provider.contains(RXD),
        word_atomics: !is_device(facts)
            && probed.works(probe::WORD_GET)
            && probed.works(probe::WORD_PUT),
        local_mr,
        key_bytes: facts.key_bytes,
    }
}

/// Devices write and read aligned words whole; a stream of bytes does not.
fn is_device(facts: &Facts) -> bool {
    DEVICES.iter().any(|name| facts.provider.starts_with(name))
}

fn place(rail: &Rail) -> Result<Place, OpenError> {
    let address =
        rail.wire.address().map_err(|code| OpenError::Call { name: "fi_getname", code })?;
    let (origin, key) = rail.directory_place();
    Ok(Place { address, origin, key })
}

/// Ranks understand each other if these are the same.
fn kind_of(facts: &Facts) -> u64 {
    let start = u64::from(facts.address_format) ^ (facts.mr_mode as u64) << 32;
    facts.provider.bytes().fold(start, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3).rotate_left(5)
    })
}

/// A layer that, in libfabric 1.17, stalls or crashes when several things are
/// in flight from one endpoint at once: gets, atomics, puts beside packets. No
/// trial survives that, so it goes by the name.
const RXD: &str = "ofi_rxd";

/// Providers whose data path is a device's.
const DEVICES: [&str; 6] = ["verbs", "efa", "cxi", "psm", "opx", "usnic"];
