//! Many nodes in one thread, from one seed: the same code as on a real
//! network, on one that does its worst and does it again when asked.
//!
//! A [`Net`] is nodes with memory and what is under way between them. Each
//! [`Node`] is a [`Domain`] with [`Endpoint`]s, for the engine and whatever
//! stands on it; or an [`Actor`], for state machines that do no IO themselves:
//!
//! ```text
//!                     ┌──── Event: Completed, Bell, Timer, PeerLost ◄──┐
//!   Actor ────────────┘                                                │
//!     └─► node.post(op), node.wake_at(time) ─► [ what is due, by time ]┘
//!                                                       ▲
//!   engine ─► endpoint.post(op) ────────────────────────┘ step()
//!          ◄─ endpoint.poll(..) ◄─ completions
//! ```
//!
//! Time moves by [`Net::step`] and [`Net::run_until`] alone. What is due at
//! the same time happens in the order in which it was decided; nothing else,
//! no address and no hash, has a say. What the network may do is in [`Config`]:
//! delay, reorder, lose and send again, tear puts, complete early, complete
//! twice; [`Net::kill`], [`Net::cut`] and [`Net::give_up`] do the rest, and a
//! [`Parting`] is a story of the three.
//!
//! An operation that finds a full queue is refused. One that was taken ends
//! exactly once or, with `duplicate`, at least once; never with
//! nothing. A node that is dead learns nothing any more; what it had posted
//! may still take effect.
//!
//! Cost: O(log n) for each event, and no allocation once buffers have grown;
//! some 650 bytes for each node.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::mem::{Access, Rank, RemoteAddr, Width};
//! use tsumugi_core::op::{Kind, Op};
//! use tsumugi_core::sim::{Config, Event, Net, Node};
//!
//! let net = Net::new(Config::drawn(5, 7));
//! let sum = net.node(Rank(0)).allocate(8, Access::ReadWrite).unwrap();
//! let at = RemoteAddr { rank: Rank(0), key: sum.key, offset: 0 };
//! // Every node adds 1 to a word of node 0.
//! net.run(&mut [|node: &Node<'_>, event: Event| {
//!     if event == Event::Start {
//!         node.post(&Op::atomic(Kind::FetchAdd, at, 1u64));
//!     }
//! }; 5]);
//! assert_eq!(net.node(Rank(0)).load(sum.key, 0), Ok(5));
//! ```

mod config;
mod flight;
mod machine;
mod memory;
mod net;
mod node;
mod parting;
mod router;
#[cfg(feature = "std")]
mod seed;
#[cfg(feature = "std")]
mod shrink;
mod solo;

pub use config::Config;
pub use machine::Machine;
pub use node::{Node, NodeEndpoint};
pub use parting::Parting;
#[cfg(feature = "std")]
pub use seed::{Seeds, check};
#[cfg(feature = "std")]
pub use shrink::few;

use crate::backend::{Completion, Log, Record};
#[cfg(doc)]
use crate::backend::{Domain, Endpoint};
use crate::mem::{Rank, RegionTable, RemoteAddr};
use crate::time::{Clock, Instant};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use net::State;
use solo::Solo;

/// Nodes, their memory, and what is under way.
pub struct Net {
    tables: Vec<RegionTable<REGIONS>>,
    state: Solo<State>,
}

/// What a node is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has just started. Only actors are told.
    Start,
    /// An operation that it posted itself has ended.
    Completed(Completion),
    /// A notifying operation has changed this word of its memory.
    Bell(RemoteAddr),
    /// A time that it asked for has come; the token that it gave.
    Timer(u64),
    /// That node has died, or this one has given it up.
    PeerLost(Rank),
    /// An endpoint that it had armed has completions.
    Interrupt,
    /// Something moved, and no node could tell.
    Nothing,
}

/// A state machine that runs as one node.
///
/// A closure `FnMut(&Node, Event)` is one, too.
pub trait Actor {
    /// Something happened at `node`, which is also where to post operations.
    fn on_event(&mut self, node: &Node<'_>, event: Event);
}

impl<F: FnMut(&Node<'_>, Event)> Actor for F {
    fn on_event(&mut self, node: &Node<'_>, event: Event) {
        self(node, event);
    }
}

impl Net {
    /// A network with nothing under way, at time zero.
    ///
    /// # Panics
    ///
    /// If it has no nodes, or the least latency is above the most.
    pub fn new(config: Config) -> Self {
        assert!(config.nodes > 0, "a network of no nodes");
        #[cfg(feature = "std")]
        let config = shrink::calmed(config);
        let Config { latency_ns_min, latency_ns_max, .. } = config;
        assert!(latency_ns_min <= latency_ns_max, "{latency_ns_min} ns to {latency_ns_max} ns");
        let tables = (0..config.nodes).map(|_| RegionTable::new()).collect();
        let net = Self { tables, state: Solo::new(State::new(config)) };
        #[cfg(feature = "std")]
        if seed::is_replay() {
            net.keep_log(seed::RECORDS);
        }
        net
    }

    /// What the network is like.
    pub fn config(&self) -> Config {
        self.state.with(|state| state.config)
    }

    /// One of the nodes.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn node(&self, rank: Rank) -> Node<'_> {
        assert!((rank.0 as usize) < self.tables.len(), "{rank} of {}", self.tables.len());
        Node::new(self, rank)
    }

    /// Moves time to what is due next and lets it happen: who is told what.
    /// `None`: nothing is under way, and no timer is set.
    pub fn step(&self) -> Option<(Rank, Event)> {
        self.state.with(|state| state.step(&self.tables))
    }

    /// Starts an actor on each node and runs until nothing is under way.
    /// Returns how many events there were.
    ///
    /// # Panics
    ///
    /// If there are more actors than nodes.
    pub fn run(&self, actors: &mut [impl Actor]) -> u64 {
        self.start(actors);
        self.run_until(Instant::from_ns(u64::MAX), actors)
    }

    /// Tells each actor that it starts.
    ///
    /// # Panics
    ///
    /// If there are more actors than nodes.
    pub fn start(&self, actors: &mut [impl Actor]) {
        for (rank, actor) in actors.iter_mut().enumerate() {
            actor.on_event(&self.node(Rank(rank as u32)), Event::Start);
        }
    }

    /// Runs until nothing is under way or what is due next is later than
    /// `until`. Nodes that have no actor are passive memory. Returns how many
    /// steps there were.
    pub fn run_until(&self, until: Instant, actors: &mut [impl Actor]) -> u64 {
        let mut steps = 0;
        while self.next_due().is_some_and(|at| at <= until)
            && let Some((rank, event)) = self.step()
        {
            steps += 1;
            if event != Event::Nothing
                && let Some(actor) = actors.get_mut(rank.0 as usize)
            {
                actor.on_event(&self.node(rank), event);
            }
        }
        if until.as_ns() != u64::MAX {
            self.state.with(|state| state.calendar.advance(until));
        }
        steps
    }

    /// Runs until nothing is under way, or `progress` has stayed what it was for
    /// `patience`: actors that try again and again in vain are stopped, and those
    /// that are only slow are not.
    pub fn settle<A: Actor>(
        &self,
        patience: Duration,
        actors: &mut [A],
        progress: impl Fn(&[A]) -> u64,
    ) {
        let mut was = None;
        while self.next_due().is_some() && was.replace(progress(actors)) != Some(progress(actors)) {
            let until = self.now() + patience;
            self.run_until(until, actors);
        }
    }

    /// When something happens next.
    pub fn next_due(&self) -> Option<Instant> {
        self.state.with(|state| state.calendar.peek())
    }

    /// Kills a node: its memory is gone, it is told nothing any more, and
    /// operations to it end with [`PeerLost`](crate::mem::AddrError::PeerLost)
    /// when the others have noticed.
    pub fn kill(&self, rank: Rank) {
        self.state.with(|state| state.kill(rank));
        self.tables[rank.0 as usize].strike();
    }

    /// Whether a node was killed.
    pub fn is_dead(&self, rank: Rank) -> bool {
        self.state.with(|state| state.is_dead(rank))
    }

    /// Cuts the network in two: no message goes from the nodes of which
    /// `side` is true to the others or back, until [`heal`](Self::heal).
    /// Those that are lost are sent again; see [`Config::retries`].
    pub fn cut(&self, side: impl Fn(Rank) -> bool) {
        self.state.with(|state| state.cut(side));
    }

    /// Mends the cut.
    pub fn heal(&self) {
        self.state.with(|state| state.heal());
    }

    /// Node `by` gives `whom` up, which may live, and is told so as of a death.
    /// From here on nothing of it is let in at `by`, whenever it was sent: no
    /// operation of it takes effect there or is answered. What `by` has under way
    /// to it ends with [`PeerLost`](crate::mem::AddrError::PeerLost) soon, and may
    /// yet take effect; what it posts from here on ends so at once, and goes
    /// nowhere.
    ///
    /// What the other has under way to `by` ends when it has given `by` up, too:
    /// one that is never told waits.
    pub fn give_up(&self, by: Rank, whom: Rank) {
        self.state.with(|state| state.give_up(&self.tables, by, whom));
    }

    /// Whether a node has died, or was [given up](Self::give_up) by that one.
    pub fn is_lost(&self, by: Rank, whom: Rank) -> bool {
        self.state.with(|state| state.is_lost(by, whom))
    }

    /// How many operations are under way, in any way: duplicates too.
    pub fn in_flight(&self) -> usize {
        self.state.with(|state| state.flights.len())
    }

    /// Keeps a log of the last `records` records from here on.
    pub fn keep_log(&self, records: usize) {
        let log = Log::new(vec![Record::EMPTY; records]);
        self.state.with(|state| state.log = Some(log));
    }

    /// Lends the log, if one is kept.
    pub fn with_log<R>(&self, look: impl FnOnce(&Log<Vec<Record>>) -> R) -> Option<R> {
        self.state.with(|state| state.log.as_ref().map(look))
    }
}

impl Clock for Net {
    fn now(&self) -> Instant {
        self.state.with(|state| state.calendar.now())
    }
}

#[cfg(feature = "std")]
impl Drop for Net {
    fn drop(&mut self) {
        self.with_log(seed::leave);
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Net({} nodes)", self.tables.len())
    }
}

#[cfg(not(feature = "std"))]
mod shrink {
    /// No run is made smaller here.
    pub(super) fn strikes(_number: u64) -> bool {
        true
    }
}

/// Registrations that a node can have at a time.
const REGIONS: usize = 16;
