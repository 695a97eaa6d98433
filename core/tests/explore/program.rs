//! Small programs, and their results at a sequential receiver, by which every design is judged.
//!
//! A receiver that took messages and posted receives one at a time would see some order of
//! them, in which the messages of one sender keep their order, and so do its own posts. All
//! such orders are tried; an outcome that none of them gives is wrong. A cancel may take effect
//! at any time after its request, since its answer takes time.

use std::collections::HashSet;

/// A rank.
pub type PeerIndex = u8;
/// A tag; `None` in a pattern: any tag.
pub type Tag = u8;
/// The sender in the high half, the number of the message in the low half.
pub type Message = u8;

/// The next operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Send { to: PeerIndex, tag: Tag },
    Post { from: Option<PeerIndex>, tag: Option<Tag> },
    Cancel { post: u8 },
}

/// The programs of all ranks, and the rank that may die.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub ranks: Vec<Vec<Op>>,
    pub mortal: Option<PeerIndex>,
}

/// The state of a receive, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Open,
    Got(Message),
    Cancelled,
    /// The sender died.
    Lost,
}

/// The ends of all receives of a rank, in the order of its posts.
pub type Outcome = Vec<End>;

/// The rank that sent the message.
pub const fn sender(message: Message) -> PeerIndex {
    message >> 4
}

/// Whether a message with `tag` may be taken by a receive with `pattern`.
pub fn accepts(pattern: Option<Tag>, tag: Tag) -> bool {
    pattern.is_none_or(|wanted| wanted == tag)
}

/// Whether some message could be taken by either of two receives.
pub fn overlap(one: Option<Tag>, other: Option<Tag>) -> bool {
    one.is_none() || other.is_none() || one == other
}

impl Program {
    /// Ranks with these programs.
    pub fn of(ranks: &[&[Op]]) -> Self {
        Self { ranks: ranks.iter().map(|ops| ops.to_vec()).collect(), mortal: None }
    }

    /// The same program, in which `rank` may die at any time.
    pub fn mortal(mut self, rank: PeerIndex) -> Self {
        self.mortal = Some(rank);
        self
    }

    /// The messages to `to`, by sender.
    fn messages(&self, to: PeerIndex) -> Vec<Vec<(Message, Tag)>> {
        let of_one = |(rank, ops): (usize, &Vec<Op>)| {
            let sent = ops.iter().filter(|op| matches!(op, Op::Send { .. }));
            let numbered = sent.enumerate().filter_map(|(number, op)| match *op {
                Op::Send { to: target, tag } if target == to => {
                    Some(((rank << 4 | number) as Message, tag))
                }
                _ => None,
            });
            numbered.collect()
        };
        self.ranks.iter().enumerate().map(of_one).collect()
    }

    /// All possible outcomes at `rank`, with `dead` dead, or with no rank dead.
    pub fn outcomes(&self, rank: PeerIndex, dead: Option<PeerIndex>) -> HashSet<Outcome> {
        let messages = self.messages(rank);
        let mut judge = Judge {
            ops: &self.ranks[usize::from(rank)],
            messages: &messages,
            dead,
            outcomes: HashSet::new(),
            seen: HashSet::new(),
        };
        judge.visit(Sequential { next: vec![0; messages.len()], ..Sequential::default() });
        judge.outcomes
    }
}

/// A program, and all its possible outcomes at each rank: with all ranks alive, and with the
/// mortal rank dead.
pub struct Judged<'p> {
    pub program: &'p Program,
    outcomes: Vec<[HashSet<Outcome>; 2]>,
}

impl<'p> Judged<'p> {
    pub fn new(program: &'p Program) -> Self {
        let outcomes = (0..program.ranks.len() as PeerIndex)
            .map(|rank| [program.outcomes(rank, None), program.outcomes(rank, program.mortal)])
            .collect();
        Self { program, outcomes }
    }

    pub fn size(&self) -> PeerIndex {
        self.program.ranks.len() as PeerIndex
    }

    /// The next operation of a rank that has done `done` of them.
    pub fn next(&self, rank: PeerIndex, done: u8) -> Option<Op> {
        self.program.ranks[usize::from(rank)].get(usize::from(done)).copied()
    }

    /// Whether this may be the outcome of a rank that lives, with `dead` ranks dead.
    pub fn judge(&self, rank: PeerIndex, dead: usize, outcome: &Outcome) -> Result<(), String> {
        let allowed = &self.outcomes[usize::from(rank)][dead];
        if allowed.contains(outcome) {
            return Ok(());
        }
        Err(format!("rank {rank}: {outcome:x?}; in order only {allowed:x?}"))
    }
}

/// The first waiting message that this receive takes.
pub fn waiting(
    unexpected: &[(Message, Tag)],
    from: Option<PeerIndex>,
    tag: Option<Tag>,
) -> Option<usize> {
    unexpected.iter().position(|&(message, label)| {
        from.is_none_or(|from| from == sender(message)) && accepts(tag, label)
    })
}

/// Ends a receive, which must happen once.
pub fn end(of: &mut End, rank: PeerIndex, post: u8, end: End) -> Result<(), String> {
    if *of != End::Open {
        return Err(format!("receive {post} of rank {rank} ends twice: {of:?}, then {end:?}"));
    }
    *of = end;
    Ok(())
}

/// A receiver that does one operation at a time.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Sequential {
    done: usize,
    next: Vec<usize>,
    posts: Vec<(Option<PeerIndex>, Option<Tag>, End)>,
    cancels: Vec<u8>,
    unexpected: Vec<(Message, Tag)>,
}

struct Judge<'p> {
    ops: &'p [Op],
    messages: &'p [Vec<(Message, Tag)>],
    dead: Option<PeerIndex>,
    outcomes: HashSet<Outcome>,
    seen: HashSet<Sequential>,
}

impl Judge<'_> {
    fn visit(&mut self, state: Sequential) {
        if !self.seen.insert(state.clone()) {
            return;
        }
        if state.done == self.ops.len() {
            self.end(&state);
        } else {
            let mut after = state.clone();
            after.done += 1;
            match self.ops[state.done] {
                Op::Send { .. } => {}
                Op::Post { from, tag } => after.post(from, tag),
                Op::Cancel { post } => after.cancels.push(post),
            }
            self.visit(after);
        }
        for index in 0..state.cancels.len() {
            let mut after = state.clone();
            let post = &mut after.posts[usize::from(state.cancels[index])];
            after.cancels.remove(index);
            if post.2 == End::Open {
                post.2 = End::Cancelled;
            }
            self.visit(after);
        }
        for source in 0..self.messages.len() {
            let Some(&(message, tag)) = self.messages[source].get(state.next[source]) else {
                continue;
            };
            let mut after = state.clone();
            after.next[source] += 1;
            if self.dead == Some(source as PeerIndex) {
                // The copy into its receive was never finished.
                let mut broken = after.clone();
                if broken.arrive(message, tag, End::Lost) {
                    self.visit(broken);
                }
            }
            after.arrive(message, tag, End::Got(message));
            self.visit(after);
        }
    }

    fn end(&mut self, state: &Sequential) {
        let is_dead = |source: usize| self.dead == Some(source as PeerIndex);
        let all_sent = (0..self.messages.len())
            .all(|source| is_dead(source) || state.next[source] == self.messages[source].len());
        let from_dead = |from: Option<PeerIndex>| from.is_some() && from == self.dead;
        let all_answered =
            state.cancels.iter().all(|&post| from_dead(state.posts[usize::from(post)].0));
        if all_sent && all_answered {
            let ends = state.posts.iter().map(|&(from, _, end)| {
                if end == End::Open && from_dead(from) { End::Lost } else { end }
            });
            self.outcomes.insert(ends.collect());
        }
    }
}

impl Sequential {
    fn post(&mut self, from: Option<PeerIndex>, tag: Option<Tag>) {
        let found = waiting(&self.unexpected, from, tag);
        let end = found.map_or(End::Open, |index| End::Got(self.unexpected.remove(index).0));
        self.posts.push((from, tag, end));
    }

    /// Delivers a message; returns whether a receive took it.
    fn arrive(&mut self, message: Message, label: Tag, end: End) -> bool {
        let found = self.posts.iter_mut().find(|(from, tag, end)| {
            *end == End::Open
                && from.is_none_or(|from| from == sender(message))
                && accepts(*tag, label)
        });
        let is_taken = found.is_some();
        match found {
            Some(post) => post.2 = end,
            None => self.unexpected.push((message, label)),
        }
        is_taken
    }
}
