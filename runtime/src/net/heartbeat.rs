//! Heartbeats: which of the other nodes are still alive.
//!
//! ```text
//!  first rank of a node ── beat, every 250 ms, and at once ──► first rank of
//!                          when a rank of it has died          each other one
//!                          (with the dead ranks)
//!  nothing for 1.5 times the limit ─► the node is given up: its death is declared
//!                                    on this node, and it is sent a notice, see
//!                                    `silence`
//! ```
//!
//! Each second beat is as long as a packet may be. A path that loses long packets
//! silently, where one hop has a smaller maximum than the ends assume, would let
//! short beats pass while no data arrive. A packet that the network has lost holds
//! up all later packets to the same peer, so the loss of a long beat makes its node
//! silent.
//!
//! When the first rank of a node has died, the whole node is lost; the next rank of
//! it that is alive sends the beat that reports this. Packets from a rank that was
//! declared lost are ignored, except for the notice that its node has given this
//! node up.
//!
//! The poller may find the device's lock taken at each look: on a crowded machine the
//! holder of the lock is mostly preempted while it holds it. So a beat that found no
//! room is sent by the next thread that has the device. And a node with a late beat
//! is not yet silent: any packet of its first rank shows that the node is alive, and
//! it is not given up before the device was found empty some times.

use super::silence::{LOOK, Rule, Silence, SilenceVerdict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tsumugi_core::mem::LocalRank;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_pvas::{Member, Nodes};

/// The state of a rank about the other nodes. Only the first rank of a node sends
/// beats, and only it has tables for them.
pub(super) struct Heartbeats {
    is_first: bool,
    begun: Instant,
    limit: Duration,
    /// Bytes of a long beat.
    long: usize,
    state: Mutex<HeartbeatState>,
    /// A beat that is due found no room, or no packet of a node has come for longer
    /// than normal.
    needs_look: AtomicBool,
}

struct HeartbeatState {
    /// The first rank of each node; empty on ranks that do not send beats.
    firsts: Box<[Rank]>,
    silence: Silence,
    /// For each node, whether the current beat was sent to it.
    sent: Box<[bool]>,
    is_due: bool,
    /// How many beats were begun so far.
    count: u32,
    is_late: bool,
    /// Nodes that are given up and to which the notice of that was not sent yet.
    untold: Vec<u32>,
    /// How many dead ranks of this node the last beat named.
    named: usize,
}

/// The payload of a packet between first ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeartbeatPacket<'b> {
    /// A beat, to a node that is alive.
    Beat(&'b [u8]),
    /// A notice to a node that it was given up.
    GivenUp(&'b [u8]),
}

impl Heartbeats {
    /// Makes the heartbeats of a rank. A long beat has at most `long` bytes; 0: all
    /// beats are short.
    pub(super) fn new(member: &Member, limit: Duration, long: usize) -> Self {
        let is_first = member.local() == LocalRank(0);
        let beats = Self {
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
            }),
            needs_look: AtomicBool::new(false),
        };
        if is_first {
            beats.begin(&mut beats.lock(), member);
        }
        beats
    }

    /// Bytes that the first rank of a node keeps for each node.
    pub(super) const NODE_BYTES: usize =
        size_of::<Rank>() + Silence::NODE_BYTES + size_of::<bool>();

    fn begin(&self, state: &mut HeartbeatState, member: &Member) {
        state.firsts = member.nodes().firsts().collect();
        let count = state.firsts.len();
        state.sent = vec![false; count].into();
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

    /// Handles a beat. Returns the ranks of the sender's node that are newly lost;
    /// `None`: the beat is malformed.
    pub(super) fn heard(&self, member: &Member, from: Rank, bytes: &[u8]) -> Option<Vec<Rank>> {
        let (node, dead) = parse(member.nodes(), member.node(), from, bytes)?;
        let mut state = self.lock();
        state.silence.hears_beat(node, self.now());
        let (mut dead, culprit) = (dead.peekable(), member.culprit());
        // A beat that names no dead rank declares no rank lost: the first rank may
        // have sent it before it died. Otherwise the launcher reports which rank has
        // died first; the next beat names the dead ranks again.
        let is_news = dead.peek().is_some();
        if !is_news || culprit.rank().is_some() || culprit.is_awaited() {
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

    /// Whether other nodes tell this rank that they have given its node up.
    pub(super) fn is_told(&self) -> bool {
        self.is_first
    }

    /// Whether the notice of a node that was given up for its silence matters to this
    /// rank: of two nodes that have given each other up, the one with the higher number
    /// ends.
    pub(super) fn is_told_of(&self, member: &Member, node: u32) -> bool {
        self.is_first && node < member.node()
    }

    /// Records that a packet of that rank has come, whatever it contains.
    #[inline]
    pub(super) fn saw(&self, member: &Member, from: Rank) {
        // Relaxed: if this packet is missed, others follow, or a beat.
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

    /// Sends beats that found no room before. The thread that has the device calls
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

    /// Whether a beat is due that was not sent. Notices to nodes that were given up
    /// do not count: such a node may never take its notice.
    pub(super) fn is_due(&self) -> bool {
        self.lock().is_due
    }

    /// Sends a beat if it is time, and gives up nodes that were silent for too long.
    /// Returns the ranks of each node that was given up. The caller has taken all
    /// arrivals before.
    pub(super) fn round(
        &self,
        member: &Member,
        mut send: impl FnMut(Rank, HeartbeatPacket<'_>) -> bool,
    ) -> Vec<Vec<Rank>> {
        let dead = || member.neighbours().filter(|rank| !member.is_alive(*rank));
        if !self.is_first {
            let is_heir = || member.neighbours().find(|rank| member.is_alive(*rank));
            let first = member.neighbours().next();
            if first.is_none_or(|first| member.is_alive(first)) || is_heir() != Some(member.rank())
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
        if round.is_beat {
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

    /// Sends beats and notices that are due and were not sent.
    fn send_due(
        &self,
        state: &mut HeartbeatState,
        member: &Member,
        send: &mut impl FnMut(Rank, HeartbeatPacket<'_>) -> bool,
    ) {
        if state.is_due {
            let mut dead = Vec::new();
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
                *sent = *sent || send(*first, HeartbeatPacket::Beat(&dead));
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

/// Parses a beat into the sender's node and the ranks that have died there; `None`:
/// the beat is malformed, or comes from node `own` itself.
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
/// One of this many beats is long.
const LONG_EVERY: u32 = 2;
/// The filling of a long beat; no rank has this number.
const FILL: u8 = 0xff;

#[cfg(test)]
mod tests {
    use super::super::silence::LOOKS;
    use super::*;
    use std::sync::Arc;
    use tsumugi_pvas::SpaceConfig;

    /// The ranks of the first of two nodes, which have two ranks each.
    fn members() -> Vec<Member> {
        let config = SpaceConfig {
            exposed_bytes: 16 << 20,
            heap_bytes: 64 << 20,
            stack_bytes: 16 << 20,
            ..SpaceConfig::default()
        };
        let nodes = Arc::new(Nodes::new([1, 1, 2, 2]));
        let members = Member::threads(2, &config).unwrap();
        let among = |(rank, member): (u32, Member)| member.among(nodes.clone(), Rank(rank));
        (0..).zip(members).map(among).collect()
    }

    const LIMIT: Duration = Duration::from_secs(5);
    const LONG: usize = 4000;

    fn beats(member: &Member) -> Heartbeats {
        Heartbeats::new(member, LIMIT, LONG + 3)
    }

    /// Moves the clock as if `by` milliseconds had passed without a beat.
    fn age(beats: &Heartbeats, by: u32) {
        beats.lock().silence.age(by);
    }

    /// Looks as if the device had been found empty often enough.
    fn look(beats: &Heartbeats, member: &Member) {
        (0..LOOKS).for_each(|_| beats.help(member, |_, _| true));
    }

    fn rule() -> Rule {
        Rule::new(LIMIT)
    }

    #[test]
    fn only_the_first_rank_of_a_node_sends_beats_and_to_first_ranks() {
        let members = members();
        let mut sent = Vec::new();
        for member in &members {
            beats(member).round(member, |to, bytes| {
                sent.push((member.rank(), to, bytes == HeartbeatPacket::Beat(&[])));
                true
            });
        }
        assert_eq!(sent, [(Rank(0), Rank(2), true)]);
    }

    #[test]
    fn a_beat_without_room_is_sent_later_and_once() {
        let member = &members()[0];
        let (beats, mut tries) = (beats(member), 0);
        for _ in 0..5 {
            beats.round(member, |_, _| {
                tries += 1;
                tries == 3
            });
        }
        assert_eq!(tries, 3);
    }

    #[test]
    fn a_beat_without_room_is_sent_by_the_thread_with_the_device() {
        let member = &members()[0];
        let (beats, mut sent) = (beats(member), 0);
        let mut send = |_: Rank, _: HeartbeatPacket<'_>| {
            sent += 1;
            true
        };
        beats.help(member, &mut send);
        beats.round(member, |_, _| false);
        beats.help(member, &mut send);
        beats.help(member, &mut send);
        beats.round(member, &mut send);
        assert_eq!(sent, 1, "the beat is sent once, when it is due");
    }

    #[test]
    fn a_packet_of_its_first_rank_keeps_a_node_alive() {
        let members = members();
        let (beats, Rule { late, given_up, start, .. }) = (beats(&members[0]), rule());
        age(&beats, start - given_up + late);
        beats.round(&members[0], |_, _| true);
        age(&beats, given_up - late);
        beats.saw(&members[0], Rank(2));
        look(&beats, &members[0]);
        beats.round(&members[0], |_, _| true);
        assert!(members[1].is_alive(Rank(2)), "rank 2 has sent a packet");
        age(&beats, late);
        beats.round(&members[0], |_, _| true);
        age(&beats, given_up - late);
        beats.saw(&members[0], Rank(3));
        look(&beats, &members[0]);
        beats.round(&members[0], |_, _| true);
        assert!(!members[1].is_alive(Rank(2)), "only packets of its first rank count");
    }

    #[test]
    fn a_silent_node_is_declared_lost_and_notified() {
        let members = members();
        let (beats, Rule { late, given_up, start, .. }) = (beats(&members[0]), rule());
        age(&beats, start - given_up + late);
        beats.round(&members[0], |_, _| true);
        assert!(members[1].is_alive(Rank(3)), "the node may start late");
        assert_eq!(beats.heard(&members[0], Rank(2), &[]), Some(vec![]));
        age(&beats, late);
        beats.round(&members[0], |_, _| true);
        age(&beats, given_up - late);
        assert_eq!(beats.round(&members[0], |_, _| true), [[Rank(0); 0]; 0], "no poll yet");
        look(&beats, &members[0]);
        let mut told = Vec::new();
        let lost = beats.round(&members[0], |to, word| {
            told.push((to, word == HeartbeatPacket::GivenUp(&given_up.to_le_bytes())));
            true
        });
        assert_eq!((lost, told), (vec![vec![Rank(2), Rank(3)]], vec![(Rank(2), true)]));
        assert!(!members[1].is_alive(Rank(2)) && !members[1].is_alive(Rank(3)));
        assert!(members[1].is_alive(Rank(0)));
    }

    #[test]
    fn a_rank_that_ends_does_not_wait_for_a_rank_that_was_given_up() {
        let members = members();
        let (beats, Rule { start, .. }) = (beats(&members[0]), rule());
        age(&beats, start);
        beats.round(&members[0], |_, _| false);
        look(&beats, &members[0]);
        let lost = beats.round(&members[0], |_, _| false);
        assert_eq!(lost, [[Rank(2), Rank(3)]]);
        beats.round(&members[0], |_, _| false);
        assert!(!beats.is_due());
    }

    #[test]
    fn a_rank_ends_if_a_first_rank_has_given_it_up() {
        let members = members();
        let beats = beats(&members[0]);
        let after = 7500_u32.to_le_bytes();
        assert_eq!(beats.told(&members[0], Rank(2), &after), Some(SilenceVerdict::Ends));
        assert_eq!(beats.told(&members[0], Rank(3), &after), None, "rank 3 is not a first rank");
        assert_eq!(beats.told(&members[0], Rank(1), &after), None, "rank 1 is on the own node");
        assert_eq!(beats.told(&members[0], Rank(2), &after[1..]), None);
        members[0].declare_lost(Rank(2));
        beats.lock().silence.leaves(1);
        assert_eq!(beats.told(&members[0], Rank(2), &after), Some(SilenceVerdict::Stays));
    }

    #[test]
    fn deaths_on_the_own_node_are_sent_at_once() {
        let members = members();
        // No beat is long.
        let beats = Heartbeats::new(&members[0], LIMIT, 0);
        let mut told = Vec::new();
        for _ in 0..3 {
            beats.round(&members[0], |_, word| {
                told.push(format!("{word:?}"));
                true
            });
            members[0].declare_lost(Rank(1));
        }
        assert_eq!(told, ["Beat([])", "Beat([1, 0, 0, 0])"], "the next beat is not due yet");
    }

    #[test]
    fn each_second_beat_is_long_and_has_the_same_content() {
        let members = members();
        let ours = beats(&members[0]);
        members[0].declare_lost(Rank(1));
        let mut lengths = Vec::new();
        for _ in 0..4 {
            let now = ours.now();
            ours.lock().silence.hurry(now);
            ours.round(&members[0], |_, word| {
                let HeartbeatPacket::Beat(bytes) = word else { panic!("{word:?}") };
                lengths.push(bytes.len());
                let nodes = members[0].nodes();
                let (node, mut dead) = parse(nodes, 1, Rank(0), bytes).expect("a valid beat");
                assert_eq!((node, dead.next(), dead.next()), (0, Some(Rank(1)), None));
                true
            });
        }
        assert_eq!(lengths, [4, LONG, 4, LONG]);
    }

    #[test]
    fn the_next_rank_sends_the_death_of_the_first_rank_of_its_node() {
        let members = members();
        let beats = beats(&members[1]);
        members[1].declare_lost(Rank(0));
        let mut told = Vec::new();
        beats.round(&members[1], |to, word| {
            told.push((to, format!("{word:?}")));
            true
        });
        assert_eq!(told, [(Rank(2), "Beat([0, 0, 0, 0])".to_owned())]);
    }

    #[test]
    fn deaths_of_another_node_are_marked() {
        let members = members();
        let beats = beats(&members[0]);
        let news = beats.heard(&members[0], Rank(2), &3_u32.to_le_bytes());
        assert_eq!(news, Some(vec![Rank(3)]));
        assert!(!members[1].is_alive(Rank(3)) && members[1].is_alive(Rank(2)));
        let filled_in_front = [[FILL; 4], 3_u32.to_le_bytes()].concat();
        for bad in [
            &filled_in_front[..],
            &[0, 0, 0],
            &0_u32.to_le_bytes(),
            &9_u32.to_le_bytes(),
            &[3; 4 * 65],
        ] {
            assert_eq!(beats.heard(&members[0], Rank(2), bad), None, "{bad:?}");
        }
        assert_eq!(beats.heard(&members[0], Rank(1), &[]), None, "rank 1 is on the own node");
    }

    #[test]
    fn a_beat_that_names_no_rank_loses_none() {
        let members = members();
        members[0].declare_lost(Rank(2));
        assert_eq!(beats(&members[0]).heard(&members[0], Rank(2), &[]), Some(vec![]));
        assert!(members[0].is_alive(Rank(3)), "the beat was sent before its rank died");
    }

    #[test]
    fn a_node_whose_first_rank_has_died_is_lost_and_the_first_rank_is_named_first() {
        let members = members();
        let news = beats(&members[0]).heard(&members[0], Rank(3), &2_u32.to_le_bytes());
        assert_eq!(news, Some(vec![Rank(2), Rank(3)]));
        assert!(!members[1].is_alive(Rank(3)));
    }
}
