//! A network inside of one process: tests of the layers above a wire run over it,
//! without a library. It makes rare behaviour of devices frequent.
//!
//! ```text
//!  put, get, word ─► under way ─ due ─► the peer's memory ─► Done
//!  send ───────────► under way ─ due ─► the peer's packets ─► Done
//!     │                  └─ Again: not done, post it once more
//!     └─ no room (EAGAIN), not yet (EINPROGRESS)
//! ```
//!
//! Operations that are under way are carried out by polls of the rank that posted
//! them, in any order. The polling thread copies memory itself, and changes words
//! by atomic instructions. An endpoint that is shut does not answer any more:
//! operations on it fail.
//!
//! Progress: nothing here waits, except for short locks.

mod plug;

pub use plug::Plug;

use self::plug::Station;
use crate::net::{
    Limits, NetDomain, NetEndpoint, Noise, Probed, Rail, Row, Sizes, Traits, Verdict, contexts_of,
};
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::Rank;
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// The network. This is a handle, cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    stations: Mutex<Vec<Arc<Station>>>,
    plan: Mutex<Plan>,
    /// How often the plan has changed.
    changes: AtomicU64,
    /// Whether no peer can be reached.
    is_cut: AtomicBool,
}

/// A rank's device on the hub.
pub type HubDomain = NetDomain<Plug>;

/// One queue of such a device.
pub type HubEndpoint<'d> = NetEndpoint<'d, Plug>;

/// The rates of faults, per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The seed of all random choices.
    pub seed: u64,
    /// Posts for which there is no room, or no connection yet.
    pub refuse: u16,
    /// Operations and packets that come back undone.
    pub again: u16,
    /// Operations and packets that wait for some polls before they are carried out.
    pub late: u16,
    /// The largest number of such polls.
    pub late_polls_max: u32,
}

impl Plan {
    /// A mix drawn from the seed; each seed exaggerates another fault.
    pub const fn drawn(seed: u64) -> Self {
        let mut draw = SplitMix64::new(seed);
        Self {
            refuse: draw.below(400) as u16,
            again: draw.below(200) as u16,
            late: draw.below(800) as u16,
            late_polls_max: 1 + draw.below(20) as u32,
            seed: draw.next(),
        }
    }
}

/// The options of a domain on the hub.
#[derive(Clone, Copy, Debug)]
pub struct Config {
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

impl Default for Config {
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
    /// Makes a hub without devices.
    pub fn new(plan: Plan) -> Self {
        let (plan, changes) = (Mutex::new(plan), AtomicU64::new(0));
        let is_cut = AtomicBool::new(false);
        Self(Arc::new(Inner { stations: Mutex::default(), plan, changes, is_cut }))
    }

    /// Continues with the faults of another plan.
    pub fn replan(&self, plan: Plan) {
        *lock(&self.0.plan) = plan;
        // Release: pairs with the Acquire of the thread that polls.
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Cuts the network, as a link that goes down: no post reaches a peer. With
    /// false, posts reach their peers again.
    pub fn cut(&self, is_cut: bool) {
        self.0.is_cut.store(is_cut, Ordering::Relaxed);
    }

    fn plan(&self) -> Plan {
        *lock(&self.0.plan)
    }

    fn stations(&self) -> MutexGuard<'_, Vec<Arc<Station>>> {
        lock(&self.0.stations)
    }
}

impl HubDomain {
    /// Opens a rank's device.
    ///
    /// # Panics
    ///
    /// If the system gives no descriptors.
    pub fn open(hub: &Hub, config: &Config, rank: Rank, size: u32) -> Self {
        let Config { in_flight_max, packets, packet_bytes_max, piece_bytes_max, .. } = *config;
        let sizes = Sizes { depth: in_flight_max, packets, packet_bytes: packet_bytes_max };
        let limits = Limits {
            inject_bytes: 0,
            give_bytes: 0,
            piece_bytes_max,
            more: true,
            rings: false,
            one_by_one: !config.moves_memory,
            word_atomics: true,
            local_mr: false,
            key_bytes: 8,
        };
        let rail = |index| {
            let contexts = contexts_of(in_flight_max, packets);
            let plug = Plug::new(hub, contexts, limits.one_by_one);
            Rail::open(
                plug,
                sizes,
                index,
                limits,
                Noise::new(u64::from(rank.0) << 8 | index as u64),
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
        let row = |name| Row { name, width: 0, verdict: Verdict::Works };
        let rows = [Probed::LANDED, Probed::SLEEPER, Probed::STALE].map(row).to_vec();
        let about = About(Probed { rows });
        let rails = (0..config.endpoints).map(rail).collect();
        Self::assemble(rails, about, traits).expect("the endpoints of a hub fit in a card")
    }

    /// The properties that other backends find out by trials; here they are fixed.
    pub fn probed(&self) -> &Probed {
        &self.about.0
    }
}

/// The description of a plug.
#[derive(Debug)]
pub struct About(Probed);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("inside of this process")
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hub({} stations, {:?})", self.stations().len(), self.plan())
    }
}
