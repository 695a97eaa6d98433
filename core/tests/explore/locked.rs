//! Design Locked: the sender looks into the receiver's own table of posts,
//! under a lock that it only ever tries.
//!
//! ```text
//!  posted ──claim (sender, under the lock)──► claimed ──copied──► done ──► ended
//!     ├──message by lane (receiver, under the lock)──────────────────────► ended
//!     └──cancel (receiver, under the lock)───────────────────────────────► ended
//! ```
//!
//! Beside the posts lies, for each sender, the number of the message that is expected next:
//! a sender whose next message has another number has earlier messages in the lane, and must
//! not overtake them. Two threads of the receiver post receives and take from the lane, each
//! under the lock.

use crate::program::{
    self, End, Judged, Message, Op, Outcome, PeerIndex, Program, Tag, accepts, sender, waiting,
};
use crate::search::Model;
use heapless::Vec;

/// The design with at most one of its rules broken.
pub struct Locked<'p> {
    pub judged: Judged<'p>,
    pub mutant: &'static str,
}

/// All mutants; each breaks one rule.
pub const MUTANTS: &[&str] = &[
    "expected_not_looked_at",
    "expected_advanced_before_the_match",
    "unexpected_looked_at_outside_the_lock",
    "claim_after_the_unlock",
    "claim_from_the_end",
    "claimed_post_still_matches",
    "cancel_of_a_claimed_post",
    "done_before_the_copy",
    "lock_of_the_dead_not_broken",
    "lock_of_the_living_broken",
    "claims_of_the_dead_forgotten",
    "exact_before_wildcard",
    "unexpected_not_searched",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Post {
    from: Option<PeerIndex>,
    tag: Option<Tag>,
    end: End,
    claimed: Option<Message>,
    done: bool,
}

/// The progress of a sender's look into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    Locked,
    Found {
        post: u8,
    },
    Claimed {
        post: u8,
    },
    Nothing,
    /// A state that only mutants reach.
    Unlocked {
        post: u8,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    done: u8,
    sends: u8,
    sent: [u8; 3],
    look: Option<Look>,
    // The table that other ranks see.
    lock: Option<PeerIndex>,
    posts: Vec<Post, 3>,
    expected: [u8; 3],
    // The rank's own data.
    unexpected: Vec<(Message, Tag), 3>,
    lost: [bool; 3],
    is_dead: bool,
    // Only in mutants: a message between its two steps, and likewise a receive.
    taken: Option<(Message, Tag)>,
    looked: bool,
}

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
    lanes: [[Vec<(Message, Tag), 3>; 3]; 3],
    copies: Vec<Copying, 3>,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The next operation of the rank's program; a send goes by the lane and does not try the lock.
    Do {
        rank: PeerIndex,
    },
    /// The sender gets the lock.
    TryLock {
        rank: PeerIndex,
    },
    Find {
        rank: PeerIndex,
    },
    Claim {
        rank: PeerIndex,
    },
    Unlock {
        rank: PeerIndex,
    },
    Copied {
        index: u8,
    },
    Take {
        rank: PeerIndex,
        from: PeerIndex,
    },
    Match {
        rank: PeerIndex,
    },
    Finish {
        rank: PeerIndex,
        post: u8,
    },
    Die {
        rank: PeerIndex,
    },
    Break {
        rank: PeerIndex,
    },
    Lose {
        rank: PeerIndex,
        peer: PeerIndex,
    },
}

impl<'p> Locked<'p> {
    pub fn new(program: &'p Program, mutant: &'static str) -> Self {
        Self { judged: Judged::new(program), mutant }
    }

    fn is(&self, mutant: &str) -> bool {
        self.mutant == mutant
    }

    fn next(&self, state: &State, rank: PeerIndex) -> Option<Op> {
        self.judged.next(rank, state.nodes[usize::from(rank)].done)
    }

    /// The receive that a message finds.
    fn found(&self, node: &Node, from: PeerIndex, tag: Tag, by_lane: bool) -> Option<u8> {
        let open = |post: &Post| {
            post.end == End::Open
                && (post.claimed.is_none() || by_lane && self.is("claimed_post_still_matches"))
                && accepts(post.tag, tag)
        };
        let exact = |post: &Post| open(post) && post.from == Some(from);
        let either = |post: &Post| exact(post) || open(post) && post.from.is_none();
        let mut found = node.posts.iter().position(either);
        if self.is("exact_before_wildcard") {
            found = node.posts.iter().position(exact).or(found);
        } else if self.is("claim_from_the_end") && !by_lane {
            found = node.posts.iter().rposition(either);
        }
        found.map(|index| index as u8)
    }

    fn end(&self, state: &mut State, rank: PeerIndex, post: u8, end: End) -> Result<(), String> {
        let entry = &mut state.nodes[usize::from(rank)].posts[usize::from(post)];
        program::end(&mut entry.end, rank, post, end)
    }

    fn destination(&self, state: &State, rank: PeerIndex) -> (PeerIndex, Tag) {
        match self.next(state, rank) {
            Some(Op::Send { to, tag }) => (to, tag),
            other => panic!("rank {rank} sends, but does {other:?}"),
        }
    }

    fn by_lane(&self, state: &mut State, rank: PeerIndex) {
        let (to, tag) = self.destination(state, rank);
        let node = &mut state.nodes[usize::from(rank)];
        let message = rank << 4 | node.sends;
        node.sent[usize::from(to)] += 1;
        node.sends += 1;
        node.done += 1;
        state.lanes[usize::from(rank)][usize::from(to)].push((message, tag)).unwrap();
    }

    fn post(&self, state: &mut State, rank: PeerIndex, from: Option<PeerIndex>, tag: Option<Tag>) {
        let node = &mut state.nodes[usize::from(rank)];
        if self.is("unexpected_looked_at_outside_the_lock")
            && !node.looked
            && waiting(&node.unexpected, from, tag).is_none()
        {
            node.looked = true;
            return;
        }
        let found = waiting(&node.unexpected, from, tag);
        let found = found.filter(|_| !self.is("unexpected_not_searched") && !node.looked);
        let is_lost = from.is_some_and(|from| node.lost[usize::from(from)]);
        let end = match found {
            Some(index) => End::Got(node.unexpected.remove(index).0),
            None if is_lost => End::Lost,
            None => End::Open,
        };
        node.posts.push(Post { from, tag, end, claimed: None, done: false }).unwrap();
        node.looked = false;
        node.done += 1;
    }

    fn arrive(
        &self,
        state: &mut State,
        rank: PeerIndex,
        message: Message,
        tag: Tag,
    ) -> Result<(), String> {
        let node = &mut state.nodes[usize::from(rank)];
        match self.found(node, sender(message), tag, true) {
            Some(post) => self.end(state, rank, post, End::Got(message)),
            None => {
                node.unexpected.push((message, tag)).unwrap();
                Ok(())
            }
        }
    }

    fn claim(&self, state: &mut State, rank: PeerIndex, post: u8) -> Result<(), String> {
        let (to, _) = self.destination(state, rank);
        let message = rank << 4 | state.nodes[usize::from(rank)].sends;
        let table = &mut state.nodes[usize::from(to)];
        let entry = &mut table.posts[usize::from(post)];
        if let (Some(other), _) | (None, End::Got(other)) = (entry.claimed, entry.end) {
            return Err(format!(
                "receive {post} of rank {to} is taken by {message:#x}, and by {other:#x} before"
            ));
        }
        entry.claimed = Some(message);
        entry.done = self.is("done_before_the_copy");
        table.expected[usize::from(rank)] += 1;
        state.copies.push(Copying { message, to, post }).unwrap();
        let node = &mut state.nodes[usize::from(rank)];
        node.sent[usize::from(to)] += 1;
        Ok(())
    }

    fn unlock(&self, state: &mut State, rank: PeerIndex) -> Result<(), String> {
        let (to, _) = self.destination(state, rank);
        let look = state.nodes[usize::from(rank)].look.take().expect("it looked");
        if !matches!(look, Look::Unlocked { .. }) && state.nodes[usize::from(to)].lock == Some(rank)
        {
            state.nodes[usize::from(to)].lock = None;
        }
        match look {
            Look::Claimed { .. } => {
                let node = &mut state.nodes[usize::from(rank)];
                node.sends += 1;
                node.done += 1;
            }
            Look::Nothing => self.by_lane(state, rank),
            Look::Found { post } => {
                state.nodes[usize::from(rank)].look = Some(Look::Unlocked { post });
            }
            Look::Unlocked { post } => {
                self.claim(state, rank, post)?;
                let node = &mut state.nodes[usize::from(rank)];
                node.sends += 1;
                node.done += 1;
            }
            Look::Locked => panic!("it has looked"),
        }
        Ok(())
    }

    fn lose(&self, state: &mut State, rank: PeerIndex, lost: PeerIndex) {
        let node = &mut state.nodes[usize::from(rank)];
        node.lost[usize::from(lost)] = true;
        for post in node.posts.iter_mut().filter(|post| post.end == End::Open) {
            match post.claimed {
                Some(message)
                    if sender(message) == lost && !self.is("claims_of_the_dead_forgotten") =>
                {
                    post.end = if post.done { End::Got(message) } else { End::Lost };
                }
                None if post.from == Some(lost) => post.end = End::Lost,
                _ => {}
            }
        }
        state.copies.retain(|copy| copy.to != rank || sender(copy.message) != lost);
    }

    fn check(&self, state: &State) -> Result<(), String> {
        for copy in &state.copies {
            let post = state.nodes[usize::from(copy.to)].posts[usize::from(copy.post)];
            if post.end != End::Open {
                return Err(format!(
                    "a copy into receive {} of rank {}: {:?}",
                    copy.post, copy.to, post.end
                ));
            }
        }
        Ok(())
    }

    /// The steps of a living sender under the lock, one at a time.
    fn steps_of_look(
        &self,
        state: &State,
        rank: PeerIndex,
        look: Look,
        steps: &mut std::vec::Vec<Step>,
    ) {
        let late = self.is("claim_after_the_unlock");
        let step = match look {
            Look::Locked => Step::Find { rank },
            Look::Found { .. } if !late => Step::Claim { rank },
            _ => Step::Unlock { rank },
        };
        steps.push(step);
        let (to, _) = self.destination(state, rank);
        let holds = state.nodes[usize::from(to)].lock == Some(rank);
        if self.is("lock_of_the_living_broken") && holds {
            steps.push(Step::Break { rank: to });
        }
    }
}

impl Model for Locked<'_> {
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
            if let Some(look) = node.look {
                self.steps_of_look(state, rank, look, steps);
                continue;
            }
            let is_free = node.lock.is_none();
            match self.next(state, rank) {
                Some(Op::Send { to, .. }) => {
                    steps.push(Step::Do { rank });
                    if state.nodes[usize::from(to)].lock.is_none() {
                        steps.push(Step::TryLock { rank });
                    }
                }
                Some(Op::Post { .. })
                    if self.is("unexpected_looked_at_outside_the_lock") && !node.looked =>
                {
                    steps.push(Step::Do { rank });
                }
                Some(_) if is_free => steps.push(Step::Do { rank }),
                _ => {}
            }
            for (index, post) in node.posts.iter().enumerate() {
                if post.done && post.end == End::Open {
                    steps.push(Step::Finish { rank, post: index as u8 });
                }
            }
            if node.taken.is_some() && is_free {
                steps.push(Step::Match { rank });
            }
            for peer in 0..self.judged.size() {
                let is_empty = state.lanes[usize::from(peer)][usize::from(rank)].is_empty();
                if !is_empty && is_free && node.taken.is_none() {
                    steps.push(Step::Take { rank, from: peer });
                }
                if state.nodes[usize::from(peer)].is_dead {
                    let holds = node.lock == Some(peer);
                    if holds && !self.is("lock_of_the_dead_not_broken") {
                        steps.push(Step::Break { rank });
                    }
                    if !node.lost[usize::from(peer)] && is_empty && !holds {
                        steps.push(Step::Lose { rank, peer });
                    }
                }
            }
        }
        for (index, copy) in state.copies.iter().enumerate() {
            // The copy begins when the lock is free again.
            let node = &state.nodes[usize::from(sender(copy.message))];
            if !node.is_dead && node.look.is_none() {
                steps.push(Step::Copied { index: index as u8 });
            }
        }
    }

    fn apply(&self, state: &mut State, step: Step) -> Result<(), String> {
        match step {
            Step::Do { rank } => match self.next(state, rank).expect("there is more to do") {
                Op::Send { .. } => self.by_lane(state, rank),
                Op::Post { from, tag } => self.post(state, rank, from, tag),
                Op::Cancel { post } => {
                    state.nodes[usize::from(rank)].done += 1;
                    let entry = state.nodes[usize::from(rank)].posts[usize::from(post)];
                    let can = entry.claimed.is_none() || self.is("cancel_of_a_claimed_post");
                    if entry.end == End::Open && can {
                        self.end(state, rank, post, End::Cancelled)?;
                    }
                }
            },
            Step::TryLock { rank } => {
                let (to, _) = self.destination(state, rank);
                state.nodes[usize::from(to)].lock = Some(rank);
                state.nodes[usize::from(rank)].look = Some(Look::Locked);
            }
            Step::Find { rank } => {
                let (to, tag) = self.destination(state, rank);
                let table = &state.nodes[usize::from(to)];
                let sent = state.nodes[usize::from(rank)].sent[usize::from(to)];
                let is_next = table.expected[usize::from(rank)] == sent;
                let found = self.found(table, rank, tag, false);
                let look = match found {
                    Some(post) if is_next || self.is("expected_not_looked_at") => {
                        Look::Found { post }
                    }
                    _ => Look::Nothing,
                };
                state.nodes[usize::from(rank)].look = Some(look);
            }
            Step::Claim { rank } => {
                let Some(Look::Found { post }) = state.nodes[usize::from(rank)].look else {
                    panic!("a claim is of a post");
                };
                state.nodes[usize::from(rank)].look = Some(Look::Claimed { post });
                self.claim(state, rank, post)?;
            }
            Step::Unlock { rank } => self.unlock(state, rank)?,
            Step::Copied { index } => {
                let copy = state.copies.remove(usize::from(index));
                state.nodes[usize::from(copy.to)].posts[usize::from(copy.post)].done = true;
            }
            Step::Take { rank, from } => {
                let (message, tag) = state.lanes[usize::from(from)][usize::from(rank)].remove(0);
                let node = &mut state.nodes[usize::from(rank)];
                node.expected[usize::from(from)] += 1;
                if self.is("expected_advanced_before_the_match") {
                    node.taken = Some((message, tag));
                } else {
                    self.arrive(state, rank, message, tag)?;
                }
            }
            Step::Match { rank } => {
                let taken = state.nodes[usize::from(rank)].taken.take();
                let (message, tag) = taken.expect("a message was taken");
                self.arrive(state, rank, message, tag)?;
            }
            Step::Finish { rank, post } => {
                let message = state.nodes[usize::from(rank)].posts[usize::from(post)].claimed;
                self.end(state, rank, post, End::Got(message.expect("done, so claimed")))?;
            }
            Step::Die { rank } => state.nodes[usize::from(rank)].is_dead = true,
            Step::Break { rank } => state.nodes[usize::from(rank)].lock = None,
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
            if let Some(op) = self.next(state, rank) {
                return Err(format!("rank {rank}: {op:?} never happens"));
            }
            self.judged.judge(rank, dead, &outcome)?;
        }
        Ok(())
    }

    fn tell(&self, before: &State, step: Step) -> String {
        match step {
            Step::Do { rank } => match self.next(before, rank) {
                Some(Op::Post { from, tag }) => {
                    let number = before.nodes[usize::from(rank)].posts.len();
                    format!("rank {rank} posts receive {number}: from {from:?}, tag {tag:?}")
                }
                Some(op) => format!("rank {rank}: {op:?}, by the lane"),
                None => format!("{step:?}"),
            },
            Step::TryLock { rank } => {
                format!("rank {rank} gets the lock for {:?}", self.next(before, rank))
            }
            Step::Copied { index } => {
                format!("the copy is done: {:?}", before.copies[usize::from(index)])
            }
            Step::Take { rank, from } => {
                let message = before.lanes[usize::from(from)][usize::from(rank)][0];
                format!("rank {rank} takes from rank {from}: {message:?}")
            }
            _ => format!("{step:?}"),
        }
    }
}
