//! Who of the other nodes is still there.
//!
//! ```text
//!  first rank of a node ── beat, every 500 ms ──► first rank of each other one
//!                          (who has died here)
//!  three beats missed ─► the node is lost: all of this node are told
//! ```
//!
//! A node whose first rank has died is lost as a whole. A thread that comes
//! late itself gives the others as much more time.
//!
//! The watch may find the device's lock taken each time that it looks: on a
//! crowded machine the holder is mostly stopped while it holds it. So a beat
//! that found no room is sent by whoever has the device next. And a node that
//! is late is not silent: any packet of its first rank says that it is there.

use crate::Rank;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tsumugi_backends::ofi::Failure;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_pvas::{Member, Nodes};

/// What a rank knows of the other nodes. Only the first rank of a node beats.
pub(super) struct Beats {
    beats: bool,
    nodes: Vec<Node>,
    state: Mutex<State>,
    /// A beat is due that found no room.
    is_due: AtomicBool,
    /// A node was not heard for longer than it should be.
    is_late: AtomicBool,
}

struct Node {
    first: Rank,
    host: String,
}

struct State {
    /// When each node was heard last.
    heard: Vec<Instant>,
    /// Whom the beat that is due has been sent to.
    sent: Vec<bool>,
    next: Instant,
    looked: Instant,
}

impl Beats {
    /// `hosts` names the host of each node.
    pub(super) fn new(member: &Member, hosts: Vec<String>) -> Self {
        let first = |node| member.nodes().ranks_of(node).next().expect("a node has ranks");
        let nodes: Vec<Node> =
            (0..).zip(hosts).map(|(node, host)| Node { first: first(node), host }).collect();
        let now = Instant::now();
        let state = State {
            heard: vec![now + START; nodes.len()],
            sent: vec![false; nodes.len()],
            next: now,
            looked: now,
        };
        Self {
            beats: member.local() == Rank(0),
            nodes,
            state: Mutex::new(state),
            is_due: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
        }
    }

    /// How long until there is something to do.
    pub(super) fn until_next(&self) -> Duration {
        match self.beats {
            true => {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.next.saturating_duration_since(Instant::now()).min(LOOK)
            }
            false => LOOK,
        }
    }

    /// A beat has come. False: it makes no sense.
    pub(super) fn heard(&self, member: &Member, from: Rank, bytes: &[u8]) -> bool {
        let Some((node, dead)) = parse(member.nodes(), member.node(), from, bytes) else {
            return false;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.heard[node as usize] = Instant::now();
        drop(state);
        let news: Vec<Rank> = dead.filter(|rank| member.declare_lost(*rank)).collect();
        self.say(member, &news, None);
        true
    }

    /// A packet of that rank has come, whatever is in it.
    #[inline]
    pub(super) fn saw(&self, member: &Member, from: Rank) {
        // Relaxed: a packet that is missed here is followed by others, or by
        // a beat.
        if self.is_late.load(Ordering::Relaxed) {
            self.saw_late(member, from);
        }
    }

    #[cold]
    fn saw_late(&self, member: &Member, from: Rank) {
        let Some(place) = member.nodes().place(from) else { return };
        let node = place.node as usize;
        if self.nodes.get(node).is_some_and(|node| node.first == from) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.heard[node] = state.heard[node].max(Instant::now());
        }
    }

    /// Sends the beats that found no room, of whoever has room now.
    #[inline]
    pub(super) fn help(&self, member: &Member, send: impl FnMut(Rank, &[u8]) -> bool) {
        // Relaxed: the next one who comes sees it, and the watch tries on.
        if self.is_due.load(Ordering::Relaxed) {
            self.send_late(member, send);
        }
    }

    /// Whether a beat is due that was not sent.
    #[cfg(test)]
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    #[cold]
    fn send_late(&self, member: &Member, mut send: impl FnMut(Rank, &[u8]) -> bool) {
        if let Ok(mut state) = self.state.try_lock() {
            self.send_due(&mut state, member, &mut send);
        }
    }

    /// Beats if it is time, and gives up nodes that were not heard. What has
    /// arrived was taken before.
    pub(super) fn round(&self, member: &Member, mut send: impl FnMut(Rank, &[u8]) -> bool) {
        if !self.beats {
            return;
        }
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let late = now.duration_since(state.looked).saturating_sub(LOOK);
        state.looked = now;
        state.heard.iter_mut().for_each(|heard| *heard += late);
        if now >= state.next {
            state.next = now + BEAT;
            state.sent.fill(false);
        }
        self.send_due(&mut state, member, &mut send);
        let silence = |node: u32| now.saturating_duration_since(state.heard[node as usize]);
        let nodes = || self.others(member).map(|(node, _)| node);
        let lost: Vec<u32> = nodes().filter(|node| silence(*node) > MISSED).collect();
        let is_late = nodes().any(|node| silence(node) > LATE);
        self.is_late.store(is_late, Ordering::Relaxed);
        drop(state);
        for node in lost {
            let ranks: Vec<Rank> =
                member.nodes().ranks_of(node).filter(|rank| member.is_alive(*rank)).collect();
            if member.declare_node_lost(node) {
                self.say(member, &ranks, None);
            }
        }
    }

    /// The other nodes that are there, and the first rank of each.
    fn others(&self, member: &Member) -> impl Iterator<Item = (u32, Rank)> {
        let all = (0..).zip(&self.nodes).map(|(node, other)| (node, other.first));
        all.filter(|(node, first)| *node != member.node() && member.is_alive(*first))
    }

    /// Sends what is due and was not sent.
    fn send_due(
        &self,
        state: &mut State,
        member: &Member,
        send: &mut impl FnMut(Rank, &[u8]) -> bool,
    ) {
        let mut dead = Vec::new();
        for rank in member.neighbours().filter(|rank| !member.is_alive(*rank)).take(DEAD_MAX) {
            dead.extend(rank.0.to_le_bytes());
        }
        let mut is_due = false;
        for (node, first) in self.others(member) {
            let sent = &mut state.sent[node as usize];
            *sent = *sent || send(first, &dead);
            is_due |= !*sent;
        }
        self.is_due.store(is_due, Ordering::Relaxed);
    }

    /// Names ranks of another node that are lost.
    pub(super) fn say(&self, member: &Member, ranks: &[Rank], failure: Option<Failure>) {
        let Some(first) = ranks.first() else { return };
        let node = member.nodes().place(*first).map_or(0, |place| place.node as usize);
        let names: Vec<String> = ranks.iter().take(NAMES_MAX).map(Rank::to_string).collect();
        let more = if ranks.len() > NAMES_MAX { ", ..." } else { "" };
        let host = self.nodes.get(node).map_or("?", |node| &node.host);
        // One write, so that it does not mix with what ranks print.
        let why = failure.map_or(String::new(), |failure| format!(" ({failure})"));
        let line = format!("tsumugi: {}{more} on {host}: no answer, lost{why}\n", names.join(", "));
        eprint!("{line}");
    }
}

/// Which node a beat is of, and who has died there; `None`: it makes no sense
/// on node `own`.
pub(super) fn parse<'b>(
    nodes: &Nodes,
    own: u32,
    from: Rank,
    bytes: &'b [u8],
) -> Option<(u32, impl Iterator<Item = Rank> + use<'b>)> {
    let (words, []) = bytes.as_chunks::<4>() else { return None };
    let node = nodes.place(from)?.node;
    let dead = words.iter().map(|word| Rank(u32::from_le_bytes(*word)));
    let is_of = |rank| nodes.place(rank).is_some_and(|place| place.node == node);
    let makes_sense = node != own && words.len() <= DEAD_MAX && dead.clone().all(is_of);
    makes_sense.then_some((node, dead))
}

const BEAT: Duration = Duration::from_millis(500);
/// Three beats and half of one.
const MISSED: Duration = Duration::from_millis(1750);
/// Two of them: then every packet counts.
const LATE: Duration = Duration::from_millis(1000);
/// Nodes start at different times.
const START: Duration = Duration::from_secs(8);
/// Whoever is there looks as often.
const LOOK: Duration = Duration::from_millis(100);
const DEAD_MAX: usize = 64;
const NAMES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tsumugi_pvas::Config;

    /// The ranks of the first of two nodes, of two each.
    fn members() -> Vec<Member> {
        let config = Config {
            exposed_bytes: 16 << 20,
            heap_bytes: 64 << 20,
            stack_bytes: 16 << 20,
            ..Config::default()
        };
        let nodes = Arc::new(Nodes::new([1, 1, 2, 2]));
        let members = Member::threads(2, &config).unwrap();
        let among = |(rank, member): (u32, Member)| member.among(nodes.clone(), Rank(rank));
        (0..).zip(members).map(among).collect()
    }

    fn beats(member: &Member) -> Beats {
        Beats::new(member, vec!["here".into(), "there".into()])
    }

    /// As if so much time had gone by without a beat.
    fn age(beats: &Beats, by: Duration) {
        beats.state.lock().unwrap().heard.iter_mut().for_each(|heard| *heard -= by);
    }

    #[test]
    fn only_the_first_of_a_node_beats_and_to_the_first() {
        let members = members();
        let mut sent = Vec::new();
        for member in &members {
            beats(member).round(member, |to, bytes| {
                sent.push((member.rank(), to, bytes.to_vec()));
                true
            });
        }
        assert_eq!(sent, [(Rank(0), Rank(2), vec![])]);
    }

    #[test]
    fn what_found_no_room_is_sent_later_and_once() {
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
    fn what_the_watch_found_no_room_for_is_sent_by_whoever_has_the_device() {
        let member = &members()[0];
        let (beats, mut sent) = (beats(member), 0);
        let mut send = |_: Rank, _: &[u8]| {
            sent += 1;
            true
        };
        beats.help(member, &mut send);
        beats.round(member, |_, _| false);
        beats.help(member, &mut send);
        beats.help(member, &mut send);
        beats.round(member, &mut send);
        assert_eq!(sent, 1, "when it is due, and once");
    }

    #[test]
    fn any_packet_of_its_first_rank_says_that_a_node_is_there() {
        let members = members();
        let beats = beats(&members[0]);
        age(&beats, START + LATE);
        beats.round(&members[0], |_, _| true);
        age(&beats, MISSED - LATE);
        beats.saw(&members[0], Rank(2));
        beats.round(&members[0], |_, _| true);
        assert!(members[1].is_alive(Rank(2)), "it has sent something");
        age(&beats, LATE);
        beats.round(&members[0], |_, _| true);
        age(&beats, MISSED - LATE);
        beats.saw(&members[0], Rank(3));
        beats.round(&members[0], |_, _| true);
        assert!(!members[1].is_alive(Rank(2)), "another one's is no sign of the first's");
    }

    #[test]
    fn a_node_that_is_not_heard_is_lost() {
        let members = members();
        let beats = beats(&members[0]);
        age(&beats, START);
        beats.round(&members[0], |_, _| true);
        assert!(members[1].is_alive(Rank(3)), "it may only start now");
        assert!(beats.heard(&members[0], Rank(2), &[]));
        beats.round(&members[0], |_, _| true);
        assert!(members[1].is_alive(Rank(3)), "it was heard");
        age(&beats, MISSED);
        beats.round(&members[0], |_, _| true);
        assert!(!members[1].is_alive(Rank(2)) && !members[1].is_alive(Rank(3)));
        assert!(members[1].is_alive(Rank(0)));
    }

    #[test]
    fn the_dead_of_a_node_are_told() {
        let members = members();
        members[0].declare_lost(Rank(1));
        let mut told = Vec::new();
        beats(&members[0]).round(&members[0], |_, bytes| {
            told = bytes.to_vec();
            true
        });
        assert_eq!(told, 1_u32.to_le_bytes());
        let beats = beats(&members[0]);
        assert!(beats.heard(&members[0], Rank(2), &3_u32.to_le_bytes()));
        assert!(!members[1].is_alive(Rank(3)) && members[1].is_alive(Rank(2)));
        for bad in [&[0, 0, 0][..], &0_u32.to_le_bytes(), &9_u32.to_le_bytes(), &[3; 4 * 65]] {
            assert!(!beats.heard(&members[0], Rank(2), bad), "{bad:?}");
        }
        assert!(!beats.heard(&members[0], Rank(1), &[]), "of this very node");
    }
}
