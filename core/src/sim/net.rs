//! The network as a program uses it: its time, its faults and its log.

use super::config::SimConfig;
use super::event::SimEvent;
use super::exclusive::ExclusiveCell;
use super::memory::REGIONS;
#[cfg(feature = "std")]
use super::seed;
#[cfg(feature = "std")]
use super::shrink;
use super::state::NetState;
use crate::backend::{TraceLog, TraceRecord};
use crate::mem::{Rank, RegionTable};
use crate::time::{Clock, Instant};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Nodes, their memory, and the operations in flight.
pub struct Net {
    pub(super) tables: Vec<RegionTable<REGIONS>>,
    pub(super) state: ExclusiveCell<NetState>,
}

impl Net {
    /// A network without operations in flight, at time zero.
    ///
    /// # Panics
    ///
    /// If the network has no nodes, or the least latency is above the greatest.
    pub fn new(config: SimConfig) -> Self {
        assert!(config.nodes > 0, "a network needs at least one node");
        #[cfg(feature = "std")]
        let config = shrink::calmed(config);
        let SimConfig { latency_ns_min, latency_ns_max, .. } = config;
        assert!(
            latency_ns_min <= latency_ns_max,
            "latency_ns_min ({latency_ns_min}) is above latency_ns_max ({latency_ns_max})"
        );
        let tables = (0..config.nodes).map(|_| RegionTable::new()).collect();
        let net = Self { tables, state: ExclusiveCell::new(NetState::new(config)) };
        #[cfg(feature = "std")]
        if seed::is_replay() {
            net.keep_log(seed::RECORDS);
        }
        net
    }

    /// The properties of the network.
    pub fn config(&self) -> SimConfig {
        self.state.with(|state| state.config)
    }

    /// Moves time to the next event, lets it happen, and returns the event and its
    /// node. `None`: no operation is in flight and no timer is set.
    pub fn step(&self) -> Option<(Rank, SimEvent)> {
        self.state.with(|state| state.step(&self.tables))
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
        self.tables[rank.0 as usize].mark_dead();
    }

    /// Whether a node was killed.
    pub fn is_dead(&self, rank: Rank) -> bool {
        self.state.with(|state| state.is_dead(rank))
    }

    /// Cuts the network in two: no message passes between the nodes for which `side`
    /// is true and the others, until [`heal`](Self::heal). Lost messages are sent
    /// again; see [`SimConfig::retries`].
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
        let log = TraceLog::new(vec![TraceRecord::EMPTY; records]);
        self.state.with(|state| state.log = Some(log));
    }

    /// Calls `look` with the log, if one is kept.
    pub fn with_log<R>(&self, look: impl FnOnce(&TraceLog<Vec<TraceRecord>>) -> R) -> Option<R> {
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
