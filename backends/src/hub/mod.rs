//! A network inside of one process: what tests of all that stands above a wire
//! run over, without a library, and with what devices do seldom done often.
//!
//! ```text
//!  put, get, word ─► under way ─ due ─► the peer's memory ─► Done
//!  send ───────────► under way ─ due ─► the peer's packets ─► Done
//!     │                  └─ Again: not done, post it once more
//!     └─ no room (EAGAIN), not yet (EINPROGRESS)
//! ```
//!
//! What is under way is carried out by polls of the rank that posted it, in any
//! order. Memory is reached by the caller's own instructions, words by atomic
//! ones. A peer that is shut answers nothing any more: what is for it is gone.
//!
//! Progress: nothing here waits, but for short locks.

mod plug;

pub use plug::Plug;

use self::plug::Station;
use crate::net::{
    Limits, NetDomain, NetEndpoint, Noise, Probed, Rail, Row, Sizes, Traits, Verdict, contexts_of,
};
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_core::backend::Draw;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// The network. A handle: cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    stations: Mutex<Vec<Arc<Station>>>,
    plan: Mutex<Plan>,
    /// How often it has changed.
    changes: AtomicU64,
    /// Nobody is reached.
    is_cut: AtomicBool,
}

/// A rank's device on it.
pub type HubDomain = NetDomain<Plug>;

/// One queue of that.
pub type HubEndpoint<'d> = NetEndpoint<'d, Plug>;

/// How often what goes wrong. Rates are per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Draws everything below.
    pub seed: u64,
    /// Posts for which there is no room, or no way yet.
    pub refuse: u16,
    /// Operations and packets that come back undone.
    pub again: u16,
    /// Those that sit through polls before they are carried out.
    pub late: u16,
    /// How many polls at most.
    pub late_polls_max: u32,
}

impl Plan {
    /// A mix drawn from the seed: each exaggerates something else.
    pub const fn drawn(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        Self {
            refuse: draw.below(400) as u16,
            again: draw.below(200) as u16,
            late: draw.below(800) as u16,
            late_polls_max: 1 + draw.below(20) as u32,
            seed: draw.next(),
        }
    }
}

/// What a domain on the hub is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Queues of each rank.
    pub endpoints: usize,
    /// Operations that one has in flight.
    pub in_flight_max: usize,
    /// Packets of one, each way.
    pub packets: usize,
    /// Bytes of the longest, its header counted.
    pub packet_bytes_max: usize,
    /// Longer puts and gets go in pieces.
    pub piece_bytes_max: u64,
    /// Whether puts and gets may go beside packets; if not, one thing goes at
    /// a time.
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
    /// One that nobody is on.
    pub fn new(plan: Plan) -> Self {
        let (plan, changes) = (Mutex::new(plan), AtomicU64::new(0));
        let is_cut = AtomicBool::new(false);
        Self(Arc::new(Inner { stations: Mutex::default(), plan, changes, is_cut }))
    }

    /// Goes on with the faults of another plan.
    pub fn replan(&self, plan: Plan) {
        *lock(&self.0.plan) = plan;
        // Release: pairs with the Acquire of whoever polls.
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// From here on no post reaches anybody, as on a link that is down, or
    /// they do again.
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
    /// A rank's device.
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
            .expect("nothing is refused here")
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
        Self::assemble(rails, about, traits).expect("a card that is short")
    }

    /// What it does.
    pub fn probed(&self) -> &Probed {
        &self.about.0
    }
}

/// What a plug says of itself.
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
