//! Heartbeats: which of the other nodes are still alive.
//!
//! ```text
//!  first rank of a node ── heartbeat, every 250 ms, and at once ──► first rank of
//!                          when a rank of it has died               each other one
//!                          (with the dead ranks)
//!  nothing for 1.5 times the limit ─► the node is given up: its death is declared
//!                                    on this node, and it is sent a notice, see
//!                                    `silence`
//! ```
//!
//! Each second heartbeat is as long as a packet may be. A path that loses long packets
//! silently, where one hop has a smaller maximum than the ends assume, would let
//! short heartbeats pass while no data arrive. A packet that the network has lost holds
//! up all later packets to the same peer, so the loss of a long heartbeat makes its
//! node silent.
//!
//! When the first rank of a node has died, the whole node is lost; the next rank of
//! it that is alive sends the heartbeat that reports this. Packets from a rank that was
//! declared lost are ignored, except for the notice that its node has given this
//! node up.
//!
//! The poller may find the device's lock taken at each look: on a crowded machine the
//! holder of the lock is mostly preempted while it holds it. So a heartbeat that found
//! no room is sent by the next thread that has the device. And a node with a late
//! heartbeat is not yet silent: any packet of its first rank shows that the node is
//! alive, and it is not given up before the device was found empty some times.

use super::silence::{LOOK, Rule, Silence, SilenceVerdict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tsumugi_core::mem::LocalRank;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_pvas::{Member, Nodes};

/// The state of a rank about the other nodes. Only the first rank of a node sends
/// heartbeats, and only it has tables for them.
pub(super) struct Heartbeats {
    is_first: bool,
    begun: Instant,
    limit: Duration,
    /// Bytes of a long heartbeat.
    long: usize,
    state: Mutex<HeartbeatState>,
    /// A heartbeat that is due found no room, or no packet of a node has come for
    /// longer than normal.
    needs_look: AtomicBool,
}

struct HeartbeatState {
    /// The first rank of each node; empty on ranks that do not send heartbeats.
    firsts: Box<[Rank]>,
    silence: Silence,
    /// For each node, whether the current heartbeat was sent to it.
    sent: Box<[bool]>,
    is_due: bool,
    /// How many heartbeats were begun so far.
    count: u32,
    is_late: bool,
    /// Nodes that are given up and to which the notice of that was not sent yet.
    untold: Vec<u32>,
    /// How many dead ranks of this node the last heartbeat named.
    named: usize,
    /// Room for the bytes of a heartbeat.
    bytes: Vec<u8>,
}

/// The payload of a packet between first ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeartbeatPacket<'b> {
    /// A heartbeat, to a node that is alive.
    Heartbeat(&'b [u8]),
    /// A notice to a node that it was given up.
    GivenUp(&'b [u8]),
}

impl Heartbeats {
    /// Makes the heartbeats of a rank. A long heartbeat has at most `long` bytes; 0:
    /// all heartbeats are short.
    pub(super) fn new(member: &Member, limit: Duration, long: usize) -> Self {
        let is_first = member.local() == LocalRank(0);
        let heartbeats = Self {
            is_first,
            begun: Instant::now(),
            limit,
            long: long / 4 * 4,
            state: Mutex::new(HeartbeatState {
                firsts: Box::default(),
                silence: Silence::new(member.node(), 0, Rule::new(limit), 0),
                sent: Box::default(),
                is_due: false,
                count: 0,
                is_late: false,
                untold: Vec::new(),
                named: 0,
                bytes: Vec::new(),
            }),
            needs_look: AtomicBool::new(false),
        };
        if is_first {
            heartbeats.begin(&mut heartbeats.lock(), member);
        }
        heartbeats
    }

    /// Bytes that the first rank of a node keeps for each node.
    pub(super) const NODE_BYTES: usize =
        size_of::<Rank>() + Silence::NODE_BYTES + size_of::<bool>();

    fn begin(&self, state: &mut HeartbeatState, member: &Member) {
        state.firsts = member.nodes().firsts().collect();
        let count = state.firsts.len();
        state.sent = vec![false; count].into();
        state.bytes.reserve(self.long.max(DEAD_MAX * size_of::<Rank>()));
        let rule = Rule::new(self.limit);
        state.silence = Silence::new(member.node(), count, rule, self.now());
    }

    fn lock(&self) -> MutexGuard<'_, HeartbeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the start; the count wraps.
    fn now(&self) -> u32 {
        self.begun.elapsed().as_millis() as u32
    }

    /// How long a rank may be stopped before it is given up.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// The length of a silence after which a node is given up.
    pub(super) fn given_up_after(&self) -> Duration {
        Duration::from_millis(Rule::new(self.limit).given_up.into())
    }

    /// How long until the next round is due.
    pub(super) fn until_next(&self) -> Duration {
        let next = if self.is_first { self.lock().silence.until_next(self.now()) } else { LOOK };
        Duration::from_millis(next.into())
    }

    /// Handles a heartbeat. Returns the ranks of the sender's node that are newly lost;
    /// `None`: the heartbeat is malformed.
    pub(super) fn heard(&self, member: &Member, from: Rank, bytes: &[u8]) -> Option<Vec<Rank>> {
        let (node, dead) = parse(member.nodes(), member.node(), from, bytes)?;
        let mut state = self.lock();
        state.silence.hears_heartbeat(node, self.now());
        let (mut dead, first_failure) = (dead.peekable(), member.first_failure());
        // A heartbeat that names no dead rank declares no rank lost: the first rank may
        // have sent it before it died. Otherwise the launcher reports which rank has
        // died first; the next heartbeat names the dead ranks again.
        let is_news = dead.peek().is_some();
        if !is_news || first_failure.rank().is_some() || first_failure.is_awaited() {
            return Some(Vec::new());
        }
        let first = member.nodes().ranks_of(node).next();
        let mut lost: Vec<Rank> = dead.filter(|rank| member.declare_lost(*rank)).collect();
        // No rank is left that could report further deaths on that node.
        if first.is_some_and(|first| !member.is_alive(first)) {
            let others = member.nodes().ranks_of(node).filter(|rank| member.is_alive(*rank));
            lost.extend(others);
            member.declare_node_lost(node);
            state.silence.leaves(node);
        }
        Some(lost)
    }

    /// Handles a notice from the node of `from` that it has given this node up.
    /// `None`: the notice is malformed; else whether this rank ends.
    pub(super) fn told(&self, member: &Member, from: Rank, bytes: &[u8]) -> Option<SilenceVerdict> {
        let node = member.nodes().place(from)?.node;
        let is_first = member.nodes().ranks_of(node).next() == Some(from);
        let makes_sense = is_first && node != member.node() && parse_told(bytes).is_some();
        makes_sense.then(|| self.lock().silence.is_told_by(node))
    }

    /// Records that a packet of that rank has come, whatever it contains.
    #[inline]
    pub(super) fn saw(&self, member: &Member, from: Rank) {
        // Relaxed: if this packet is missed, others follow, or a heartbeat.
        if self.needs_look.load(Ordering::Relaxed) {
            self.saw_late(member, from);
        }
    }

    /// Records a packet of a rank while a node is late, or of a rank that was
    /// declared lost.
    #[cold]
    pub(super) fn saw_late(&self, member: &Member, from: Rank) {
        let Some(place) = member.nodes().place(from) else { return };
        let mut state = self.lock();
        if state.firsts.get(place.node as usize) == Some(&from) {
            let now = self.now();
            state.silence.hears(place.node, now);
        }
    }

    /// Sends heartbeats that found no room before. The thread that has the device calls
    /// this, when no more packets have come.
    #[inline]
    pub(super) fn help(
        &self,
        member: &Member,
        send: impl FnMut(Rank, HeartbeatPacket<'_>) -> bool,
    ) {
        // Relaxed: the next thread that polls sees the flag, and the poller tries
        // again.
        if self.needs_look.load(Ordering::Relaxed) {
            self.help_late(member, send);
        }
    }

    #[cold]
    fn help_late(&self, member: &Member, mut send: impl FnMut(Rank, HeartbeatPacket<'_>) -> bool) {
        if let Ok(mut state) = self.state.try_lock() {
            state.silence.looks(self.now());
            self.send_due(&mut state, member, &mut send);
        }
    }

    /// Whether a heartbeat is due that was not sent. Notices to nodes that were given
    /// up do not count: such a node may never take its notice.
    pub(super) fn is_due(&self) -> bool {
        self.lock().is_due
    }

    /// Sends a heartbeat if it is time, and gives up nodes that were silent for too
    /// long. Returns the ranks of each node that was given up. The caller has taken all
    /// arrivals before.
    pub(super) fn round(
        &self,
        member: &Member,
        mut send: impl FnMut(Rank, HeartbeatPacket<'_>) -> bool,
    ) -> Vec<Vec<Rank>> {
        let dead = || member.neighbours().filter(|rank| !member.is_alive(*rank));
        if !self.is_first {
            let successor = || member.neighbours().find(|rank| member.is_alive(*rank));
            let first = member.neighbours().next();
            if first.is_none_or(|first| member.is_alive(first))
                || successor() != Some(member.rank())
            {
                return Vec::new();
            }
        }
        let mut state = self.lock();
        if state.firsts.is_empty() {
            self.begin(&mut state, member);
        }
        let now = self.now();
        let named = dead().count();
        if std::mem::replace(&mut state.named, named) != named {
            state.silence.hurry(now);
        }
        let round = state.silence.round(now);
        if round.is_heartbeat {
            state.sent.fill(false);
            state.is_due = true;
            state.count = state.count.wrapping_add(1);
        }
        state.is_late = round.is_late;
        for node in round.told {
            if !state.untold.contains(&node) {
                state.untold.push(node);
            }
        }
        let mut lost = Vec::new();
        for node in round.given_up {
            let ranks = member.nodes().ranks_of(node).filter(|rank| member.is_alive(*rank));
            let ranks: Vec<Rank> = ranks.collect();
            if member.declare_node_lost(node) {
                lost.push(ranks);
            } else {
                state.silence.leaves(node);
            }
        }
        self.send_due(&mut state, member, &mut send);
        lost
    }

    /// Sends heartbeats and notices that are due and were not sent.
    fn send_due(
        &self,
        state: &mut HeartbeatState,
        member: &Member,
        send: &mut impl FnMut(Rank, HeartbeatPacket<'_>) -> bool,
    ) {
        if state.is_due {
            let dead = &mut state.bytes;
            dead.clear();
            for rank in member.neighbours().filter(|rank| !member.is_alive(*rank)).take(DEAD_MAX) {
                dead.extend(rank.0.to_le_bytes());
            }
            if state.count.is_multiple_of(LONG_EVERY) {
                dead.resize(self.long.max(dead.len()), FILL);
            }
            let all = state.firsts.iter().zip(&mut state.sent).zip(0..);
            let others =
                all.filter(|((first, _), node)| *node != member.node() && member.is_alive(**first));
            state.is_due = false;
            for ((first, sent), _) in others {
                *sent = *sent || send(*first, HeartbeatPacket::Heartbeat(dead));
                state.is_due |= !*sent;
            }
        }
        let after = Rule::new(self.limit).given_up.to_le_bytes();
        let firsts = &state.firsts;
        state.untold.retain(|node| !send(firsts[*node as usize], HeartbeatPacket::GivenUp(&after)));
        let needs_look = state.is_due || state.is_late || !state.untold.is_empty();
        self.needs_look.store(needs_look, Ordering::Relaxed);
    }
}

/// Parses a heartbeat into the sender's node and the ranks that have died there;
/// `None`: the heartbeat is malformed, or comes from node `own` itself.
pub(super) fn parse<'b>(
    nodes: &Nodes,
    own: u32,
    from: Rank,
    bytes: &'b [u8],
) -> Option<(u32, impl Iterator<Item = Rank> + use<'b>)> {
    let (words, []) = bytes.as_chunks::<4>() else { return None };
    let filled = words.iter().rev().take_while(|word| **word == [FILL; 4]).count();
    let words = &words[..words.len() - filled];
    let node = nodes.place(from)?.node;
    let dead = words.iter().map(|word| Rank(u32::from_le_bytes(*word)));
    let is_of = |rank| nodes.place(rank).is_some_and(|place| place.node == node);
    let makes_sense = node != own && words.len() <= DEAD_MAX && dead.clone().all(is_of);
    makes_sense.then_some((node, dead))
}

/// Parses a notice that this node was given up: milliseconds of silence after which
/// that happened.
pub(super) fn parse_told(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

const DEAD_MAX: usize = 64;
/// One of this many heartbeats is long.
const LONG_EVERY: u32 = 2;
/// The filling of a long heartbeat; no rank has this number.
const FILL: u8 = 0xff;

#[cfg(test)]
mod tests;
