//! Ranks that send and receive at random, and what MPI says of it.
//!
//! Each message to a rank from another has a length of its own there, so that
//! what was received tells which message it was. After the last step
//! everything is let through, and then:
//!
//! - no message and receive that could meet are both left over;
//! - a receive has taken the first message that it could of its source, and a
//!   message the first receive, as far as the other side was not used up;
//! - every receive got the bytes that were sent, as many as fit, and nothing
//!   was written into its buffer before or after;
//! - every request has ended once, and receives from everybody find every
//!   message that is left.

mod check;

use super::net::{At, Net, address};
use super::post::Post;
use std::ptr::NonNull;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::msg::board::{Board, BoardShape};
use tsumugi_core::msg::*;

/// What may happen.
#[derive(Clone, Copy)]
pub struct Plan {
    pub design: Design,
    pub deaths: bool,
    pub cancels: bool,
    pub wildcards: bool,
    /// Some ranks are on other nodes.
    pub far: bool,
    /// Few lines, slots and requests, and many messages.
    pub tight: bool,
}

struct Sent {
    from: usize,
    to: usize,
    label: Label,
    at: u64,
    len: u64,
    /// Where the bytes of all messages are taken from.
    phase: usize,
    step: u64,
    was_cancelled: bool,
    received_by: Option<usize>,
}

struct Posted {
    by: usize,
    pattern: Pattern,
    into: Bytes,
    outcome: Option<Result<usize, Ended>>,
    ended: u64,
}

enum What {
    Send(usize),
    Receive(usize),
}

struct Open {
    request: Request,
    what: What,
    is_watched: bool,
}

struct Player<'m> {
    machine: Machine<'m>,
    open: Vec<Open>,
    jobs: Vec<Job>,
    is_asleep: bool,
    is_dead: bool,
    knows: bool,
    /// Messages that others have posted receives for.
    wanted: Vec<(usize, Label)>,
}

/// Memory for the tables of one machine.
pub struct Room {
    peers: Vec<Peer>,
    requests: Vec<Entry>,
    unexpected: Vec<Unexpected>,
    log: Vec<Logged>,
    mirror: Vec<Mirrored>,
}

/// Memory for a board.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory for the boards of all ranks.
pub struct Wall {
    lines: Vec<Line>,
    shape: BoardShape,
}

/// One run.
pub struct Game<'m> {
    plan: Plan,
    net: Net<'m>,
    players: Vec<Player<'m>>,
    seeded: Seeded,
    sent: Vec<Sent>,
    posted: Vec<Posted>,
    noise: Vec<u8>,
    /// How many contexts and tags there are, which lengths, and who talks.
    contexts: u64,
    tags: u64,
    lengths: [u64; 10],
    pairs: u64,
    /// Most receives are posted before most messages are sent.
    posts_first: bool,
    step: u64,
    dead: Option<usize>,
    settled: Vec<(u64, u64)>,
}

impl Room {
    pub fn new(shape: Shape, requests: usize) -> Self {
        Self {
            peers: vec![Peer::EMPTY; shape.peers as usize],
            requests: vec![Entry::EMPTY; requests],
            unexpected: vec![Unexpected::EMPTY; shape.unexpected()],
            log: vec![Logged::EMPTY; shape.log()],
            mirror: vec![Mirrored::EMPTY; shape.mirrored()],
        }
    }

    pub fn tables(&mut self) -> Tables<'_> {
        Tables {
            peers: &mut self.peers,
            requests: &mut self.requests,
            unexpected: &mut self.unexpected,
            log: &mut self.log,
            mirror: &mut self.mirror,
        }
    }
}

impl Wall {
    pub fn new(shape: Shape, requests: usize) -> Self {
        let shape = BoardShape { peers: shape.peers, posts: requests as u32 };
        let lines = Self::lines_of(shape) * shape.peers as usize;
        Self { lines: vec![Line([0; 64]); lines], shape }
    }

    pub fn boards(&mut self) -> Vec<Board<'_>> {
        let chunks = self.lines.chunks_exact_mut(Self::lines_of(self.shape));
        let places = chunks.map(|lines| NonNull::from(lines).cast());
        // SAFETY: lines enough and aligned, and lent as long as the boards.
        places.map(|place| unsafe { Board::init(place, self.shape) }.unwrap()).collect()
    }

    fn lines_of(shape: BoardShape) -> usize {
        Board::memory_size(shape).div_ceil(size_of::<Line>())
    }
}

impl<'m> Game<'m> {
    pub fn new(
        plan: Plan,
        shape: Shape,
        rooms: &'m mut [Room],
        boards: &'m [Board<'m>],
        post: Post<'m>,
        mut seeded: Seeded,
    ) -> Self {
        let mut draw = |of: &[u32]| of[seeded.below(of.len() as u64) as usize];
        let thresholds = Thresholds {
            inline_max: draw(&[0, 8, 40, 88, 200]),
            direct_from: draw(&[0, 0, 89, 300, u32::MAX]),
            direct_max: draw(&[500, u32::MAX, u32::MAX]),
            nt_from: draw(&[600, 11_000, u32::MAX]),
            pull_from: draw(&[200, 9_000, u32::MAX, u32::MAX]),
            eager_max: draw(&[0, 128, 600, u32::MAX]),
        };
        let players = rooms.iter_mut().enumerate().map(|(rank, room)| Player {
            machine: Machine::new(Rank(rank as u32), shape, plan.design, thresholds, room.tables())
                .unwrap(),
            open: Vec::new(),
            jobs: Vec::new(),
            is_asleep: false,
            is_dead: false,
            knows: false,
            wanted: Vec::new(),
        });
        let mut players: Vec<Player<'m>> = players.collect();
        for player in &mut players {
            player.machine.put_up(boards);
            let rank = player.machine.rank();
            let far = (0..shape.peers).map(Rank).filter(|peer| post.is_far(rank.0 as usize, *peer));
            far.for_each(|peer| player.machine.set_far(peer));
        }
        let mut draw = |bound: u64| seeded.below(bound);
        let (contexts, tags, pairs) = (1 + draw(2), 1 + draw(3) * draw(2), draw(3));
        let posts_first = draw(2) == 0;
        let lengths = LENGTHS[draw(3) as usize];
        let net = Net::new(shape, post, seeded.next());
        let mut noise = Seeded(1);
        Self {
            plan,
            net,
            players,
            sent: Vec::new(),
            posted: Vec::new(),
            noise: (0..NOISE / 8).flat_map(|_| noise.next().to_le_bytes()).collect(),
            contexts,
            tags,
            lengths,
            pairs,
            posts_first,
            step: 0,
            dead: None,
            settled: Vec::new(),
            seeded,
        }
    }

    pub fn play(&mut self, steps: u64) {
        let death = if self.plan.deaths { self.draw(steps) } else { u64::MAX };
        let calls = if self.plan.tight { 60 } else { 36 };
        let mut left = calls;
        for step in 0..steps {
            if step == death {
                let dead = self.draw(self.players.len() as u64) as usize;
                self.players[dead].is_dead = true;
                self.net.post.drop_some(dead, &mut self.seeded);
                self.dead = Some(dead);
            }
            let rank = self.draw(self.players.len() as u64) as usize;
            if self.players[rank].is_dead {
                continue;
            }
            if left > 0 && self.draw(5) == 0 {
                left -= 1;
                self.call(rank, left > calls / 2);
            } else {
                self.progress(rank);
            }
            if self.dead.is_some() && !self.players[rank].knows && self.draw(8) == 0 {
                self.tell_death(rank);
            }
        }
        self.finish();
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.seeded.below(bound)
    }

    fn machine(&mut self, rank: usize) -> (&mut Machine<'m>, At<'_, 'm>) {
        (&mut self.players[rank].machine, At { net: &mut self.net, me: rank })
    }

    // What a rank does.

    fn call(&mut self, rank: usize, is_early: bool) {
        self.step += 1;
        self.players[rank].is_asleep = false;
        let kind = self.draw(if self.plan.cancels { 12 } else { 9 });
        let wrong = self.posts_first && if is_early { kind < 4 } else { (4..8).contains(&kind) };
        let kind = if wrong && self.draw(4) != 0 { (kind + 4) % 8 } else { kind };
        match kind {
            0..4 => self.send(rank),
            4..8 => {
                let pattern = self.pattern(rank);
                let room = self.length();
                let in_reach = self.draw(4) != 0;
                self.receive(rank, pattern, room, in_reach);
            }
            8 => self.probe(rank),
            _ => self.cancel(rank),
        }
    }

    fn length(&mut self) -> u64 {
        let max = self.lengths[self.draw(10) as usize];
        self.draw(max)
    }

    fn send(&mut self, from: usize) {
        let wanted = self.players[from].wanted.len() as u64;
        let (to, label) = if wanted > 0 && self.draw(8) != 0 {
            let at = self.draw(wanted.min(3)) as usize;
            self.players[from].wanted.remove(at)
        } else {
            let (context, tag) = (self.draw(self.contexts) as u16, self.draw(self.tags) as u32);
            (self.partner(from), Label { context, tag })
        };
        let mut len = self.length();
        while self.sent.iter().any(|sent| (sent.from, sent.to, sent.len) == (from, to, len)) {
            len += 1;
        }
        let in_reach = self.draw(4) != 0;
        let phase = self.draw((NOISE - 20_000) as u64) as usize;
        let at = self.allocate(from, in_reach, len);
        self.net.bytes(at, len).copy_from_slice(&self.noise[phase..][..len as usize]);
        let (machine, mut wire) = self.machine(from);
        let begun = machine.send(&mut wire, Rank(to as u32), label, Bytes { at, len, in_reach });
        let begun = match begun {
            Ok(begun) => begun,
            Err(CallError::Busy(_)) => return,
            Err(CallError::Addr(error)) => {
                assert_eq!(error, AddrError::PeerLost { rank: Rank(to as u32) });
                assert!(self.players[from].knows && self.dead == Some(to), "{error}");
                return;
            }
        };
        let number = self.sent.len();
        let step = self.step;
        let (was_cancelled, received_by) = (false, None);
        self.sent.push(Sent { from, to, label, at, len, phase, step, was_cancelled, received_by });
        match begun {
            Begun::Done(()) => self.scribble(at, len),
            Begun::Pending(request) => self.open(from, request, What::Send(number)),
        }
    }

    /// Anybody, or mostly one and the same.
    fn partner(&mut self, of: usize) -> usize {
        let ranks = self.players.len() as u64;
        if self.draw(4) < self.pairs * 2 {
            (of ^ 1) % ranks as usize
        } else {
            self.draw(ranks) as usize
        }
    }

    fn pattern(&mut self, by: usize) -> Pattern {
        let any_source = self.plan.wildcards && self.draw(4) == 0;
        let any_tag = self.plan.wildcards && self.draw(4) == 0;
        Pattern {
            context: self.draw(self.contexts) as u16,
            source: if any_source { None } else { Some(Rank(self.partner(by) as u32)) },
            tag: if any_tag { None } else { Some(self.draw(self.tags) as u32) },
        }
    }

    fn receive(&mut self, by: usize, pattern: Pattern, len: u64, in_reach: bool) -> bool {
        let at = self.allocate(by, in_reach, len);
        let into = Bytes { at, len, in_reach };
        // Some callers look into the lane first.
        let looks = self.draw(2) == 0;
        let (machine, mut wire) = self.machine(by);
        let next = looks.then(|| machine.receive_next(&mut wire, &pattern, into)).flatten();
        let begun = match next.map_or_else(
            || machine.receive(&mut wire, pattern, into),
            |received| Ok(Begun::Done(received)),
        ) {
            Ok(begun) => begun,
            Err(CallError::Busy(_)) => return false,
            Err(CallError::Addr(error)) => {
                assert_eq!(Some(error), pattern.source.map(|rank| AddrError::PeerLost { rank }));
                assert!(self.players[by].knows, "{error}");
                return false;
            }
        };
        let number = self.post(by, pattern, into);
        self.begun(by, number, begun);
        let source = pattern.source.map_or(self.partner(by), |source| source.0 as usize);
        let tag = pattern.tag.unwrap_or(self.draw(self.tags) as u32);
        self.players[source].wanted.push((by, Label { context: pattern.context, tag }));
        true
    }

    fn post(&mut self, by: usize, pattern: Pattern, into: Bytes) -> usize {
        self.posted.push(Posted { by, pattern, into, outcome: None, ended: u64::MAX });
        self.posted.len() - 1
    }

    fn begun(&mut self, by: usize, number: usize, begun: Begun<Received>) {
        match begun {
            Begun::Done(received) => self.received(number, Ok(received)),
            Begun::Pending(request) => self.open(by, request, What::Receive(number)),
        }
    }

    /// A request is under way; whoever began it may want to be told of its end.
    fn open(&mut self, by: usize, request: Request, what: What) {
        let is_watched = self.draw(2) == 0 && self.players[by].machine.watch(request);
        self.players[by].open.push(Open { request, what, is_watched });
    }

    /// Looks whether something is there; then it is the next that is received.
    fn probe(&mut self, by: usize) {
        let pattern = self.pattern(by);
        let receives = self.draw(2) == 0;
        let (machine, _) = self.machine(by);
        let Some(seen) = machine.probe(&pattern) else { return };
        if !receives || !self.receive(by, pattern, seen.len, true) {
            return;
        }
        if let Some(Ok(message)) = self.posted.last().expect("it was posted").outcome {
            let Sent { from, len, .. } = self.sent[message];
            assert_eq!((Rank(from as u32), len), (seen.source, seen.len), "another was seen");
        }
    }

    fn cancel(&mut self, rank: usize) {
        let open = self.players[rank].open.len() as u64;
        if open == 0 {
            return;
        }
        let at = self.draw(open) as usize;
        let request = self.players[rank].open[at].request;
        let (machine, mut wire) = self.machine(rank);
        let was = machine.has_ended(request);
        let cancel = machine.cancel(&mut wire, request);
        assert!(!was || cancel == Cancel::TooLate);
        if cancel == Cancel::Done {
            assert!(machine.has_ended(request));
        }
    }

    fn progress(&mut self, rank: usize) -> bool {
        self.step += 1;
        self.net.carry(rank);
        if core::mem::take(&mut self.net.bells[rank]) {
            self.players[rank].is_asleep = false;
            return true;
        }
        if self.players[rank].is_asleep {
            return false;
        }
        let mut has_moved = match self.draw(if self.plan.far { 7 } else { 6 }) {
            0 => self.run_job(rank),
            1 => {
                let from = Rank(self.draw(self.players.len() as u64) as u32);
                let (machine, mut wire) = self.machine(rank);
                machine.advance_from(&mut wire, from)
            }
            6 => {
                let mut has_moved = false;
                while let Some(from) = self.net.post.mail(rank).poll_arrived() {
                    let (machine, mut wire) = self.machine(rank);
                    has_moved |= machine.look(&mut wire, from);
                }
                has_moved
            }
            2 if self.players[rank].jobs.is_empty() => {
                let (machine, mut wire) = self.machine(rank);
                // What is not watched is to be asked for.
                let has_moved = machine.rest(&mut wire) | self.collect(rank);
                let waits = self.net.carry(rank);
                if !has_moved && !waits && !self.net.has_mail(rank) {
                    self.players[rank].is_asleep = true;
                    return true;
                }
                has_moved
            }
            _ => {
                let (machine, mut wire) = self.machine(rank);
                machine.advance(&mut wire)
            }
        };
        while let Some(job) = self.players[rank].machine.poll_job() {
            self.players[rank].jobs.push(job);
            has_moved = true;
        }
        has_moved | self.collect(rank)
    }

    fn run_job(&mut self, rank: usize) -> bool {
        let jobs = self.players[rank].jobs.len() as u64;
        if jobs == 0 {
            return false;
        }
        let at = self.draw(jobs) as usize;
        let job = self.players[rank].jobs.swap_remove(at);
        let is_dead = self.players[job.copy.peer.0 as usize].is_dead;
        let result = if is_dead && self.draw(2) == 0 {
            Err(Ended::PeerLost { rank: job.copy.peer })
        } else {
            self.net.copy(rank, &job.copy);
            Ok(())
        };
        let (machine, mut wire) = self.machine(rank);
        machine.job_done(&mut wire, job.request, result);
        true
    }

    /// Requests that have ended, told or asked for.
    fn collect(&mut self, rank: usize) -> bool {
        let mut has_moved = false;
        let told = self.draw(2) == 0;
        while told && let Some(request) = self.players[rank].machine.poll_ended() {
            let open = &mut self.players[rank].open;
            let it = open.iter_mut().find(|open| open.request == request);
            let it = it.unwrap_or_else(|| panic!("{request:?} ended again"));
            let was_watched = core::mem::replace(&mut it.is_watched, false);
            assert!(was_watched, "{request:?} was told of unasked, or twice");
            assert!(self.players[rank].machine.has_ended(request), "{request:?} has not ended");
        }
        let mut at = 0;
        while at < self.players[rank].open.len() {
            let request = self.players[rank].open[at].request;
            let Some(result) = self.players[rank].machine.take(request) else {
                at += 1;
                continue;
            };
            has_moved = true;
            assert!(self.players[rank].machine.take(request).is_none(), "{request:?} twice");
            match self.players[rank].open.remove(at).what {
                What::Receive(number) => self.received(number, result),
                What::Send(number) => self.was_sent(number, result),
            }
        }
        has_moved
    }

    fn was_sent(&mut self, number: usize, result: Result<Received, Ended>) {
        let sent = &mut self.sent[number];
        let (at, len) = (sent.at, sent.len);
        match result {
            Ok(_) => {}
            Err(Ended::Cancelled) => {
                assert!(sent.received_by.is_none(), "message {number} was received and cancelled");
                sent.was_cancelled = true;
            }
            Err(error) => {
                let rank = Rank(sent.to as u32);
                let is_dead = self.dead == Some(sent.to);
                assert!(is_dead && error == Ended::PeerLost { rank }, "message {number}: {error}");
            }
        }
        self.scribble(at, len);
    }

    fn received(&mut self, number: usize, result: Result<Received, Ended>) {
        let Posted { by, pattern, into, .. } = self.posted[number];
        assert!(self.posted[number].outcome.is_none(), "receive {number} ended twice");
        self.posted[number].ended = self.step;
        let received = match result {
            Ok(received) => received,
            Err(error) => {
                if let Ended::PeerLost { rank } = error {
                    assert_eq!(Some(rank.0 as usize), self.dead);
                }
                assert!(!matches!(error, Ended::Failed { .. }), "receive {number} failed");
                self.posted[number].outcome = Some(Err(error));
                if error == Ended::Cancelled {
                    let bytes = self.net.bytes(into.at, into.len);
                    assert!(
                        bytes.iter().all(|byte| *byte == FRESH),
                        "receive {number} was written"
                    );
                    self.scribble(into.at, into.len);
                }
                return;
            }
        };
        let source = received.source.0 as usize;
        let message = self
            .sent
            .iter()
            .position(|sent| (sent.from, sent.to, sent.len) == (source, by, received.len));
        let message = message.unwrap_or_else(|| panic!("receive {number}: no such {received:?}"));
        let sent = &mut self.sent[message];
        assert!(!sent.was_cancelled, "message {message} was cancelled");
        assert!(sent.received_by.replace(number).is_none(), "message {message} came twice");
        assert!(pattern.takes(received.source, sent.label), "{pattern:?} took {:?}", sent.label);
        assert_eq!(received.tag, sent.label.tag);
        assert_eq!(received.truncated, sent.len > into.len);
        let fitting = sent.len.min(into.len) as usize;
        let want = &self.noise[sent.phase..][..fitting];
        let got = self.net.bytes(into.at, into.len);
        assert!(got[..fitting] == *want, "message {message} in receive {number} is garbled");
        assert!(got[fitting..].iter().all(|byte| *byte == FRESH), "{number} ran over");
        self.scribble(into.at, into.len);
        self.posted[number].outcome = Some(Ok(message));
    }

    fn allocate(&mut self, rank: usize, in_reach: bool, len: u64) -> u64 {
        let memory = &mut self.net.memory[rank];
        let at = memory.len();
        memory.resize(at + len as usize, FRESH);
        address(rank, in_reach, at)
    }

    /// The buffer is the caller's again.
    fn scribble(&mut self, at: u64, len: u64) {
        self.net.bytes(at, len).fill(USED);
        self.settled.push((at, len));
    }

    fn tell_death(&mut self, rank: usize) {
        let dead = self.dead.expect("somebody died");
        self.net.see_all(dead, rank);
        self.net.post.deliver_all(dead, rank);
        self.players[rank].is_asleep = false;
        self.players[rank].knows = true;
        let (machine, mut wire) = self.machine(rank);
        machine.lost(&mut wire, Rank(dead as u32));
        self.net.post.lose(rank, dead);
        self.collect(rank);
    }
}

const LENGTHS: [[u64; 10]; 3] = [
    [1, 9, 33, 89, 201, 500, 1000, 1000, 9_000, 14_000],
    [9, 89, 201, 500, 500, 500, 1000, 1000, 1000, 1000],
    [9, 89, 500, 500, 1000, 1000, 9_000, 14_000, 14_000, 14_000],
];
const NOISE: usize = 1 << 16;
const FRESH: u8 = 0xee;
const USED: u8 = 0xdd;
