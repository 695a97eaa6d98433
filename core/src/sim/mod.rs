//! Deterministic simulation: many nodes in one thread, from one seed. The code is
//! the same as on a real network; the simulated network does its worst, and repeats
//! it when the seed is run again.
//!
//! A [`Net`] consists of nodes with memory and of the operations in flight between
//! them. Each [`Node`] is a [`Domain`] with [`Endpoint`]s, for the engine and the
//! layers above it, or an [`Actor`], for state machines that do no IO themselves:
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
//! Only [`Net::step`] and [`Net::run_until`] move time. Events that are due at the
//! same time happen in the order in which they were scheduled; their order depends
//! on nothing else, so on no address and no hash. [`Config`] says what the network
//! may do: delay, reorder, lose and send again, tear puts, complete early, complete
//! twice. [`Net::kill`], [`Net::cut`] and [`Net::give_up`] do the rest, and a
//! [`Parting`] is a sequence of the three.
//!
//! An operation that finds a full queue is refused. An operation that was taken ends
//! exactly once or, with `duplicate`, at least once; it always ends. A dead node
//! receives no events any more, but the operations that it had posted may still take
//! effect.
//!
//! Cost: O(log n) for each event, and no allocation once buffers have grown; some
//! 650 bytes for each node.
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

/// Nodes, their memory, and the operations in flight.
pub struct Net {
    tables: Vec<RegionTable<REGIONS>>,
    state: Solo<State>,
}

/// An event at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The node has just started. Only actors receive it.
    Start,
    /// An operation that the node itself posted has ended.
    Completed(Completion),
    /// A notifying operation has changed this word of the node's memory.
    Bell(RemoteAddr),
    /// A time that the node has set has come; the token is the node's own.
    Timer(u64),
    /// This peer has died, or the node has given it up.
    PeerLost(Rank),
    /// An endpoint that the node had armed has completions.
    Interrupt,
    /// Something happened that no node could observe.
    Nothing,
}

/// A state machine that runs as one node.
///
/// A closure `FnMut(&Node, Event)` is an actor, too.
pub trait Actor {
    /// Handles an event at `node`, to which the actor also posts its operations.
    fn on_event(&mut self, node: &Node<'_>, event: Event);
}

impl<F: FnMut(&Node<'_>, Event)> Actor for F {
    fn on_event(&mut self, node: &Node<'_>, event: Event) {
        self(node, event);
    }
}

impl Net {
    /// A network without operations in flight, at time zero.
    ///
    /// # Panics
    ///
    /// If the network has no nodes, or the least latency is above the greatest.
    pub fn new(config: Config) -> Self {
        assert!(config.nodes > 0, "a network needs at least one node");
        #[cfg(feature = "std")]
        let config = shrink::calmed(config);
        let Config { latency_ns_min, latency_ns_max, .. } = config;
        assert!(
            latency_ns_min <= latency_ns_max,
            "latency_ns_min ({latency_ns_min}) is above latency_ns_max ({latency_ns_max})"
        );
        let tables = (0..config.nodes).map(|_| RegionTable::new()).collect();
        let net = Self { tables, state: Solo::new(State::new(config)) };
        #[cfg(feature = "std")]
        if seed::is_replay() {
            net.keep_log(seed::RECORDS);
        }
        net
    }

    /// The properties of the network.
    pub fn config(&self) -> Config {
        self.state.with(|state| state.config)
    }

    /// One of the nodes.
    ///
    /// # Panics
    ///
    /// If the network has no such node.
    pub fn node(&self, rank: Rank) -> Node<'_> {
        let nodes = self.tables.len();
        assert!((rank.0 as usize) < nodes, "{rank} does not exist: the network has {nodes} nodes");
        Node::new(self, rank)
    }

    /// Moves time to the next event, lets it happen, and returns the event and its
    /// node. `None`: no operation is in flight and no timer is set.
    pub fn step(&self) -> Option<(Rank, Event)> {
        self.state.with(|state| state.step(&self.tables))
    }

    /// Starts an actor on each node and runs until no operation is in flight and no
    /// timer is set. Returns the number of steps.
    ///
    /// # Panics
    ///
    /// If there are more actors than nodes.
    pub fn run(&self, actors: &mut [impl Actor]) -> u64 {
        self.start(actors);
        self.run_until(Instant::from_ns(u64::MAX), actors)
    }

    /// Gives each actor the event [`Start`](Event::Start).
    ///
    /// # Panics
    ///
    /// If there are more actors than nodes.
    pub fn start(&self, actors: &mut [impl Actor]) {
        for (rank, actor) in actors.iter_mut().enumerate() {
            actor.on_event(&self.node(Rank(rank as u32)), Event::Start);
        }
    }

    /// Runs until nothing is due any more, or the next event is later than `until`.
    /// Nodes without an actor are passive memory. Returns the number of steps.
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

    /// Runs until nothing is due any more, or until `progress` has not changed for
    /// `patience`: this stops actors that retry in vain, but not actors that are
    /// only slow.
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

    /// The time of the next event.
    pub fn next_due(&self) -> Option<Instant> {
        self.state.with(|state| state.calendar.peek())
    }

    /// Kills a node: its memory is gone, it receives no events any more, and
    /// operations to it end with [`PeerLost`](crate::mem::AddrError::PeerLost) when
    /// the other nodes have detected the death.
    pub fn kill(&self, rank: Rank) {
        self.state.with(|state| state.kill(rank));
        self.tables[rank.0 as usize].strike();
    }

    /// Whether a node was killed.
    pub fn is_dead(&self, rank: Rank) -> bool {
        self.state.with(|state| state.is_dead(rank))
    }

    /// Cuts the network in two: no message passes between the nodes for which `side`
    /// is true and the others, until [`heal`](Self::heal). Lost messages are sent
    /// again; see [`Config::retries`].
    pub fn cut(&self, side: impl Fn(Rank) -> bool) {
        self.state.with(|state| state.cut(side));
    }

    /// Ends the cut.
    pub fn heal(&self) {
        self.state.with(|state| state.heal());
    }

    /// Node `by` gives node `whom` up, which may be alive; `by` receives the event
    /// of a death. From here on nothing from the other node is accepted at `by`,
    /// whenever it was sent: none of its operations takes effect there or is
    /// answered. Operations in flight from `by` to the other node end with
    /// [`PeerLost`](crate::mem::AddrError::PeerLost) soon, and may still take
    /// effect. Operations that `by` posts to it from here on end so at once, and are
    /// not sent.
    ///
    /// Operations in flight from the other node to `by` end when the other node has
    /// given `by` up, too. If it never learns that it was given up, they stay in
    /// flight.
    pub fn give_up(&self, by: Rank, whom: Rank) {
        self.state.with(|state| state.give_up(&self.tables, by, whom));
    }

    /// Whether node `whom` has died, or node `by` has [given it up](Self::give_up).
    pub fn is_lost(&self, by: Rank, whom: Rank) -> bool {
        self.state.with(|state| state.is_lost(by, whom))
    }

    /// The number of operations in flight in any form, duplicates included.
    pub fn in_flight(&self) -> usize {
        self.state.with(|state| state.flights.len())
    }

    /// Keeps a log of the last `records` records from here on.
    pub fn keep_log(&self, records: usize) {
        let log = Log::new(vec![Record::EMPTY; records]);
        self.state.with(|state| state.log = Some(log));
    }

    /// Calls `look` with the log, if one is kept.
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
    /// Always true: this build does not make failing runs smaller.
    pub(super) fn strikes(_number: u64) -> bool {
        true
    }
}

/// The number of registrations that a node can have at a time.
const REGIONS: usize = 16;
