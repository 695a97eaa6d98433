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
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_pvas::{Member, Nodes};

/// What a rank knows of the other nodes. Only the first rank of a node beats,
/// and has tables for it.
pub(super) struct Beats {
    beats: bool,
    /// The first rank of each node.
    firsts: Box<[Rank]>,
    begun: Instant,
    state: Mutex<State>,
    /// A beat is due that found no room.
    is_due: AtomicBool,
    /// A node was not heard for longer than it should be.
    is_late: AtomicBool,
}

struct State {
    /// When each node was heard last, or may be heard first: milliseconds since
    /// the beginning.
    heard: Box<[u32]>,
    /// Whom the beat that is due has been sent to.
    sent: Box<[bool]>,
    next: Instant,
    looked: Instant,
}

impl Beats {
    pub(super) fn new(member: &Member) -> Self {
        let beats = member.local() == Rank(0);
        let nodes = member.nodes();
        let firsts: Box<[Rank]> = if beats { nodes.firsts().collect() } else { Box::default() };
        let begun = Instant::now();
        let state = State {
            heard: vec![START.as_millis() as u32; firsts.len()].into(),
            sent: vec![false; firsts.len()].into(),
            next: begun,
            looked: begun,
        };
        Self {
            beats,
            firsts,
            begun,
            state: Mutex::new(state),
            is_due: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
        }
    }

    /// Bytes of it that the first rank of a node has for each node.
    pub(super) const NODE_BYTES: usize = size_of::<Rank>() + size_of::<u32>() + size_of::<bool>();

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

    /// A beat has come: who of that node is lost that was not known to be.
    /// `None`: it makes no sense.
    pub(super) fn heard(&self, member: &Member, from: Rank, bytes: &[u8]) -> Option<Vec<Rank>> {
        let (node, dead) = parse(member.nodes(), member.node(), from, bytes)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heard) = state.heard.get_mut(node as usize) {
            *heard = millis(self.begun.elapsed());
        }
        drop(state);
        Some(dead.filter(|rank| member.declare_lost(*rank)).collect())
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
        if self.firsts.get(node) == Some(&from) {
            let now = millis(self.begun.elapsed());
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            // One that may be heard first later stays so.
            if now.wrapping_sub(state.heard[node]).cast_signed() > 0 {
                state.heard[node] = now;
            }
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

    /// Beats if it is time, and gives up nodes that were not heard: the ranks
    /// of each. What has arrived was taken before.
    pub(super) fn round(
        &self,
        member: &Member,
        mut send: impl FnMut(Rank, &[u8]) -> bool,
    ) -> Vec<Vec<Rank>> {
        if !self.beats {
            return Vec::new();
        }
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let late = now.duration_since(state.looked).saturating_sub(LOOK);
        state.looked = now;
        let late = millis(late);
        if late > 0 {
            state.heard.iter_mut().for_each(|heard| *heard = heard.wrapping_add(late));
        }
        if now >= state.next {
            state.next = now + BEAT;
            state.sent.fill(false);
        }
        self.send_due(&mut state, member, &mut send);
        let at_now = millis(now.duration_since(self.begun));
        // The numbers wrap after some weeks; those to come are negative.
        let silence = |node: u32| at_now.wrapping_sub(state.heard[node as usize]).cast_signed();
        let nodes = || self.others(member).map(|(node, _)| node);
        let longer = |node: u32, than: Duration| silence(node) >= than.as_millis() as i32;
        let lost: Vec<u32> = nodes().filter(|node| longer(*node, MISSED)).collect();
        let is_late = nodes().any(|node| longer(node, LATE));
        self.is_late.store(is_late, Ordering::Relaxed);
        drop(state);
        let of_node = |node: u32| {
            let ranks: Vec<Rank> =
                member.nodes().ranks_of(node).filter(|rank| member.is_alive(*rank)).collect();
            member.declare_node_lost(node).then_some(ranks)
        };
        lost.into_iter().filter_map(of_node).collect()
    }

    /// The other nodes that are there, and the first rank of each.
    fn others(&self, member: &Member) -> impl Iterator<Item = (u32, Rank)> {
        let all = (0..).zip(self.firsts.iter().copied());
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
}

fn millis(time: Duration) -> u32 {
    time.as_millis() as u32
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
        Beats::new(member)
    }

    /// As if so much time had gone by without a beat.
    fn age(beats: &Beats, by: Duration) {
        let mut state = beats.state.lock().unwrap();
        state.heard.iter_mut().for_each(|heard| *heard = heard.wrapping_sub(millis(by)));
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
        assert_eq!(beats.heard(&members[0], Rank(2), &[]), Some(vec![]));
        beats.round(&members[0], |_, _| true);
        assert!(members[1].is_alive(Rank(3)), "it was heard");
        age(&beats, MISSED);
        let lost = beats.round(&members[0], |_, _| true);
        assert_eq!(lost, [[Rank(2), Rank(3)]]);
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
        let news = beats.heard(&members[0], Rank(2), &3_u32.to_le_bytes());
        assert_eq!(news, Some(vec![Rank(3)]));
        assert!(!members[1].is_alive(Rank(3)) && members[1].is_alive(Rank(2)));
        for bad in [&[0, 0, 0][..], &0_u32.to_le_bytes(), &9_u32.to_le_bytes(), &[3; 4 * 65]] {
            assert_eq!(beats.heard(&members[0], Rank(2), bad), None, "{bad:?}");
        }
        assert_eq!(beats.heard(&members[0], Rank(1), &[]), None, "of this very node");
    }
}
