//! Design Mirror: the sender matches in its own copy of the posts.
//!
//! One FIFO for each ordered pair carries messages one way and posts the other; the return
//! line carries the count of taken messages and can be read at any time. A post carries the
//! count of messages that were taken when it was published, so that the sender knows which of
//! its messages were taken before.
//!
//! ```text
//!  receiver                                    sender
//!  open ──Publish{k}── reverse lane ─────────► log: earliest seq >= k that
//!    ▲                                         │    matches? forget both
//!    │ lowest post that matches                └─► else: mirror
//!    └──── lane ◄── Message (logged) ◄── none ◄── earliest in the mirror?
//!               ◄── Message, Delivered ◄── yes, and it is out of the mirror
//! ```
//!
//! Whether a message that found a post is copied at once or goes by the lane (too short, out
//! of reach) is a free choice at each send: both are explored.

use crate::program::{
    self, End, Judged, Message, Op, Outcome, PeerIndex, Program, Tag, accepts, overlap, sender,
    waiting,
};
use crate::search::Model;
use heapless::Vec;

mod step;

pub use step::Step;

/// The design with at most one of its rules broken.
pub struct Mirror<'p> {
    pub judged: Judged<'p>,
    pub mutant: &'static str,
    /// The receiver's handling of a direct copy that is under way.
    pub place: Place,
}

/// The receiver's handling of a message whose copy is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The receiver takes nothing behind it before it is done.
    Held,
    /// The message is taken, its receive waits for the end, and other messages pass.
    Announced,
}

/// All mutants; each breaks one rule.
pub const MUTANTS: &[&str] = &[
    "k_ignored",
    "k_when_posted",
    "log_dropped_by_the_return_line_alone",
    "log_dropped_after_an_earlier_look",
    "log_not_searched",
    "log_searched_from_the_end",
    "log_kept_after_its_match",
    "logged_though_mirrored",
    "mirror_searched_from_the_end",
    "mirror_kept_for_a_message_by_lane",
    "wildcard_not_held_back",
    "any_tag_not_held_back",
    "cancel_without_handshake",
    "cancel_believes_itself",
    "cancelled_post_matches_no_more",
    "ack_overtakes_the_copy",
    "delivered_at_the_end_of_the_copy",
    "delivered_not_counted",
    "exact_before_wildcard",
    "unexpected_not_searched",
    "lost_before_the_lane_is_empty",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Packet {
    /// `expects`: the post that the sender's mirror assigned to the message. It is not in the
    /// packet, and is used to check that both sides agree.
    Message {
        message: Message,
        tag: Tag,
        expects: Option<u8>,
    },
    Delivered {
        message: Message,
        post: u8,
    },
    Post {
        post: u8,
        tag: Option<Tag>,
        k: u8,
    },
    Cancel {
        post: u8,
    },
    Ack {
        post: u8,
        was_open: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Post {
    from: Option<PeerIndex>,
    tag: Option<Tag>,
    end: End,
    published: bool,
    cancelling: bool,
    /// The message is being copied, and this rank knows it.
    claimed: bool,
    /// Messages taken from its source when it was posted.
    k_posted: u8,
}

/// The knowledge of a rank about another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Peer {
    taken: u8,
    sent: u8,
    mirror: Vec<(u8, Option<Tag>), 3>,
    log: Vec<(u8, Tag), 3>,
    /// The count of the return line, which counts only when the lane is empty.
    returned: u8,
    pending: Option<u8>,
    is_lost: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    done: u8,
    sends: u8,
    posts: Vec<Post, 3>,
    unexpected: Vec<(Message, Tag), 3>,
    peers: [Peer; 3],
    is_dead: bool,
}

/// A direct copy under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Copying {
    message: Message,
    to: PeerIndex,
    post: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    nodes: [Node; 3],
    /// Indexed by sender, then receiver.
    lanes: [[Vec<Packet, 8>; 3]; 3],
    /// The return line of the receiver for the sender.
    returned: [[u8; 3]; 3],
    copies: Vec<Copying, 3>,
}

impl<'p> Mirror<'p> {
    pub fn new(program: &'p Program, place: Place, mutant: &'static str) -> Self {
        Self { judged: Judged::new(program), mutant, place }
    }

    fn is(&self, mutant: &str) -> bool {
        self.mutant == mutant
    }

    fn next(&self, state: &State, rank: PeerIndex) -> Option<Op> {
        self.judged.next(rank, state.nodes[usize::from(rank)].done)
    }

    /// The post of the mirror that a message finds.
    fn mirrored(&self, peer: &Peer, tag: Tag) -> Option<usize> {
        let matching = |entry: &(u8, Option<Tag>)| accepts(entry.1, tag);
        if self.is("mirror_searched_from_the_end") {
            peer.mirror.iter().rposition(matching)
        } else {
            peer.mirror.iter().position(matching)
        }
    }

    /// Whether an earlier open post that the source does not know could take
    /// the same message.
    fn is_held_back(&self, node: &Node, index: usize) -> bool {
        let post = &node.posts[index];
        node.posts[..index].iter().any(|earlier| {
            let any_tag = earlier.tag.is_none() || post.tag.is_none();
            earlier.end == End::Open
                && !earlier.published
                && (earlier.from == post.from
                    || earlier.from.is_none() && !self.is("wildcard_not_held_back"))
                && overlap(earlier.tag, post.tag)
                && !(any_tag && self.is("any_tag_not_held_back"))
        })
    }

    fn end(&self, state: &mut State, rank: PeerIndex, post: u8, end: End) -> Result<(), String> {
        let entry = &mut state.nodes[usize::from(rank)].posts[usize::from(post)];
        program::end(&mut entry.end, rank, post, end)?;
        entry.cancelling = false;
        entry.claimed = false;
        Ok(())
    }

    fn send(&self, state: &mut State, rank: PeerIndex, to: PeerIndex, tag: Tag, direct: bool) {
        let node = &mut state.nodes[usize::from(rank)];
        let message = rank << 4 | node.sends;
        node.sends += 1;
        let peer = &mut node.peers[usize::from(to)];
        let found = self.mirrored(peer, tag);
        let seq = peer.sent;
        peer.sent += 1;
        let expects = found.map(|index| peer.mirror[index].0);
        if let Some(index) = found
            && (direct || !self.is("mirror_kept_for_a_message_by_lane"))
        {
            peer.mirror.remove(index);
        }
        if found.is_none() || self.is("logged_though_mirrored") {
            peer.log.push((seq, tag)).unwrap();
        }
        let lane = &mut state.lanes[usize::from(rank)][usize::from(to)];
        if direct {
            let post = expects.expect("a claim is of a post");
            if !self.is("delivered_at_the_end_of_the_copy") {
                lane.push(Packet::Delivered { message, post }).unwrap();
            }
            state.copies.push(Copying { message, to, post }).unwrap();
        } else {
            lane.push(Packet::Message { message, tag, expects }).unwrap();
        }
    }

    fn post(&self, state: &mut State, rank: PeerIndex, from: Option<PeerIndex>, tag: Option<Tag>) {
        let node = &mut state.nodes[usize::from(rank)];
        let found = waiting(&node.unexpected, from, tag);
        let found = found.filter(|_| !self.is("unexpected_not_searched"));
        let is_lost = from.is_some_and(|from| node.peers[usize::from(from)].is_lost);
        let end = match found {
            Some(index) => End::Got(node.unexpected.remove(index).0),
            None if is_lost => End::Lost,
            None => End::Open,
        };
        let k_posted = from.map_or(0, |from| node.peers[usize::from(from)].taken);
        let post =
            Post { from, tag, end, published: false, cancelling: false, claimed: false, k_posted };
        node.posts.push(post).unwrap();
    }

    fn cancel(&self, state: &mut State, rank: PeerIndex, post: u8) -> Result<(), String> {
        let entry = &mut state.nodes[usize::from(rank)].posts[usize::from(post)];
        if entry.end != End::Open || entry.claimed {
            return Ok(());
        }
        let Some(from) = entry.from.filter(|_| entry.published) else {
            return self.end(state, rank, post, End::Cancelled);
        };
        entry.cancelling = true;
        let lane = &mut state.lanes[usize::from(rank)][usize::from(from)];
        lane.push(Packet::Cancel { post }).unwrap();
        if self.is("cancel_without_handshake") {
            return self.end(state, rank, post, End::Cancelled);
        }
        Ok(())
    }

    fn publish(&self, state: &mut State, rank: PeerIndex, post: u8) {
        let node = &mut state.nodes[usize::from(rank)];
        let entry = &mut node.posts[usize::from(post)];
        entry.published = true;
        let from = usize::from(entry.from.expect("only exact receives are published"));
        let taken = node.peers[from].taken;
        let k = if self.is("k_when_posted") { entry.k_posted } else { taken };
        let packet = Packet::Post { post, tag: entry.tag, k };
        state.lanes[usize::from(rank)][from].push(packet).unwrap();
    }

    fn is_copying(&self, state: &State, to: PeerIndex, message: Message) -> bool {
        state.copies.iter().any(|copy| copy.message == message && copy.to == to)
    }

    fn take(&self, state: &mut State, rank: PeerIndex, from: PeerIndex) -> Result<(), String> {
        let packet = state.lanes[usize::from(from)][usize::from(rank)].remove(0);
        let node = &mut state.nodes[usize::from(rank)];
        let peer = &mut node.peers[usize::from(from)];
        match packet {
            Packet::Message { message, tag, expects } => {
                peer.taken += 1;
                self.arrive(state, rank, message, tag, expects)
            }
            Packet::Delivered { message, post } => {
                if !self.is("delivered_not_counted") {
                    peer.taken += 1;
                }
                if !self.is_copying(state, rank, message) {
                    return self.end(state, rank, post, End::Got(message));
                }
                // With `Held`, only the death of the sender leads here.
                let is_lost = state.nodes[usize::from(from)].is_dead && self.place == Place::Held;
                if is_lost {
                    state.copies.retain(|copy| copy.message != message);
                    return self.end(state, rank, post, End::Lost);
                }
                state.nodes[usize::from(rank)].posts[usize::from(post)].claimed = true;
                Ok(())
            }
            Packet::Post { post, tag, k } => {
                let matching = |&(seq, label): &(u8, Tag)| {
                    (seq >= k || self.is("k_ignored")) && accepts(tag, label)
                };
                let found = if self.is("log_searched_from_the_end") {
                    peer.log.iter().rposition(matching)
                } else {
                    peer.log.iter().position(matching)
                };
                match found.filter(|_| !self.is("log_not_searched")) {
                    Some(_) if self.is("log_kept_after_its_match") => {}
                    Some(index) => drop(peer.log.remove(index)),
                    None => peer.mirror.push((post, tag)).unwrap(),
                }
                Ok(())
            }
            Packet::Cancel { post } => {
                let found = peer.mirror.iter().position(|entry| entry.0 == post);
                if let Some(index) = found {
                    peer.mirror.remove(index);
                }
                let lane = &mut state.lanes[usize::from(rank)][usize::from(from)];
                let ack = Packet::Ack { post, was_open: found.is_some() };
                let copying = lane.iter().position(|packet| match *packet {
                    Packet::Delivered { message, post: other } => {
                        other == post && state.copies.iter().any(|copy| copy.message == message)
                    }
                    _ => false,
                });
                match copying.filter(|_| self.is("ack_overtakes_the_copy")) {
                    Some(index) => {
                        lane.insert(index, Packet::Ack { post, was_open: true }).unwrap();
                    }
                    None => lane.push(ack).unwrap(),
                }
                Ok(())
            }
            Packet::Ack { post, was_open } => {
                let entry = &mut node.posts[usize::from(post)];
                if self.is("cancel_without_handshake") {
                    return Ok(());
                }
                entry.cancelling = false;
                if was_open || self.is("cancel_believes_itself") {
                    return self.end(state, rank, post, End::Cancelled);
                }
                Ok(())
            }
        }
    }

    /// A message by lane finds its receive, or waits for one.
    fn arrive(
        &self,
        state: &mut State,
        rank: PeerIndex,
        message: Message,
        tag: Tag,
        expects: Option<u8>,
    ) -> Result<(), String> {
        let node = &mut state.nodes[usize::from(rank)];
        let found = |exact_only: bool| {
            node.posts.iter().position(|post| {
                post.end == End::Open
                    && !post.claimed
                    && !(post.cancelling && self.is("cancelled_post_matches_no_more"))
                    && (post.from == Some(sender(message)) || !exact_only && post.from.is_none())
                    && accepts(post.tag, tag)
            })
        };
        let exact = found(true).filter(|_| self.is("exact_before_wildcard"));
        let found = exact.or_else(|| found(false)).map(|index| index as u8);
        if expects.is_some() && found != expects {
            return Err(format!(
                "the sides disagree: message {message:#x} takes {found:?}, its sender thinks {expects:?}"
            ));
        }
        match found {
            Some(post) => self.end(state, rank, post, End::Got(message)),
            None => {
                node.unexpected.push((message, tag)).unwrap();
                Ok(())
            }
        }
    }

    fn copied(&self, state: &mut State, index: u8) -> Result<(), String> {
        let copy = state.copies.remove(usize::from(index));
        let entry = state.nodes[usize::from(copy.to)].posts[usize::from(copy.post)];
        let lane = &mut state.lanes[usize::from(sender(copy.message))][usize::from(copy.to)];
        if self.is("delivered_at_the_end_of_the_copy") {
            let packet = Packet::Delivered { message: copy.message, post: copy.post };
            lane.push(packet).unwrap();
        } else if entry.claimed {
            return self.end(state, copy.to, copy.post, End::Got(copy.message));
        }
        Ok(())
    }

    fn lose(&self, state: &mut State, rank: PeerIndex, lost: PeerIndex) {
        let node = &mut state.nodes[usize::from(rank)];
        node.peers[usize::from(lost)].is_lost = true;
        for post in &mut node.posts {
            if post.end == End::Open && post.from == Some(lost) {
                post.end = End::Lost;
                post.claimed = false;
            }
        }
        state.copies.retain(|copy| copy.to != rank || sender(copy.message) != lost);
    }

    /// No copy goes into a receive that has ended, or that has another message.
    fn check(&self, state: &State) -> Result<(), String> {
        for (index, copy) in state.copies.iter().enumerate() {
            let node = &state.nodes[usize::from(copy.to)];
            let end = node.posts[usize::from(copy.post)].end;
            if end != End::Open && !node.is_dead {
                return Err(format!(
                    "a copy into receive {} of rank {}: {end:?}",
                    copy.post, copy.to
                ));
            }
            if state.copies[..index].iter().any(|c| (c.to, c.post) == (copy.to, copy.post)) {
                return Err(format!("two copies into receive {} of rank {}", copy.post, copy.to));
            }
        }
        Ok(())
    }
}

impl Model for Mirror<'_> {
    type State = State;
    type Step = Step;

    fn start(&self) -> State {
        State::default()
    }

    fn steps(&self, state: &State, steps: &mut std::vec::Vec<Step>) {
        for rank in 0..self.judged.size() {
            let node = &state.nodes[usize::from(rank)];
            if node.is_dead {
                continue;
            }
            if self.judged.program.mortal == Some(rank) {
                steps.push(Step::Die { rank });
            }
            if let Some(op) = self.next(state, rank) {
                steps.push(Step::Do { rank });
                if let Op::Send { to, tag } = op
                    && self.mirrored(&node.peers[usize::from(to)], tag).is_some()
                {
                    steps.push(Step::Claim { rank });
                }
            }
            for (index, post) in node.posts.iter().enumerate() {
                if post.end == End::Open
                    && post.from.is_some()
                    && !post.published
                    && !self.is_held_back(node, index)
                {
                    steps.push(Step::Publish { rank, post: index as u8 });
                }
            }
            for peer in 0..self.judged.size() {
                self.steps_between(state, rank, peer, steps);
            }
        }
        for (index, copy) in state.copies.iter().enumerate() {
            if !state.nodes[usize::from(sender(copy.message))].is_dead {
                steps.push(Step::Copied { index: index as u8 });
            }
        }
    }

    fn apply(&self, state: &mut State, step: Step) -> Result<(), String> {
        match step {
            Step::Do { rank } | Step::Claim { rank } => {
                let op = self.next(state, rank).expect("there is more to do");
                state.nodes[usize::from(rank)].done += 1;
                match op {
                    Op::Send { to, tag } => {
                        self.send(state, rank, to, tag, matches!(step, Step::Claim { .. }));
                    }
                    Op::Post { from, tag } => self.post(state, rank, from, tag),
                    Op::Cancel { post } => self.cancel(state, rank, post)?,
                }
            }
            Step::Publish { rank, post } => self.publish(state, rank, post),
            Step::Take { rank, from } => self.take(state, rank, from)?,
            Step::Copied { index } => self.copied(state, index)?,
            Step::Return { rank, from } => {
                let taken = state.nodes[usize::from(rank)].peers[usize::from(from)].taken;
                state.returned[usize::from(rank)][usize::from(from)] = taken;
            }
            Step::ReadReturned { rank, to } => {
                let said = state.returned[usize::from(to)][usize::from(rank)];
                let peer = &mut state.nodes[usize::from(rank)].peers[usize::from(to)];
                peer.returned = said;
                if self.is("log_dropped_by_the_return_line_alone") {
                    peer.log.retain(|&(seq, _)| seq >= said);
                } else if self.is("log_dropped_after_an_earlier_look") {
                    let was_empty = peer.pending.take().is_some();
                    peer.log.retain(|&(seq, _)| seq >= said || !was_empty);
                } else {
                    peer.pending = Some(said);
                }
            }
            Step::FindEmpty { rank, to } => {
                let peer = &mut state.nodes[usize::from(rank)].peers[usize::from(to)];
                if self.is("log_dropped_after_an_earlier_look") {
                    peer.pending = Some(0);
                } else {
                    let said = peer.pending.take().expect("a return line was read");
                    peer.log.retain(|&(seq, _)| seq >= said);
                }
            }
            Step::Die { rank } => state.nodes[usize::from(rank)].is_dead = true,
            Step::Lose { rank, peer } => self.lose(state, rank, peer),
        }
        self.check(state)
    }

    fn at_rest(&self, state: &State) -> Result<(), String> {
        let dead = state.nodes.iter().filter(|node| node.is_dead).count();
        for rank in 0..self.judged.size() {
            let node = &state.nodes[usize::from(rank)];
            if node.is_dead {
                continue;
            }
            let outcome: Outcome = node.posts.iter().map(|post| post.end).collect();
            self.judged.judge(rank, dead, &outcome)?;
        }
        Ok(())
    }

    fn tell(&self, before: &State, step: Step) -> String {
        self.told(before, step)
    }
}
