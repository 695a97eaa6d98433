//! Ranks that send and receive at random, checked against the rules of MPI.
//!
//! Each message from one rank to another has a length of its own there, so that the length of a
//! received message identifies it. After the last step everything is delivered, and then:
//!
//! - no message and no receive that could meet are both left over;
//! - a receive has taken the first message of its source that it could take, and a message the
//!   first receive, as far as the other side was not used up;
//! - every receive got the bytes that were sent, as many as fit, and no byte before or after its
//!   buffer was written;
//! - every request has ended once, and receives from any source find every message that is
//!   left.

mod call;
mod check;
mod loss;
mod room;
mod step;

pub use room::{Room, Wall};

use super::net::{At, Net, address};
use super::post::Post;
use loss::Parted;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{LocalRank, PeerIndex};
use tsumugi_core::msg::locked_matching::Board;
use tsumugi_core::msg::*;

/// The events that a run may have.
#[derive(Clone, Copy)]
pub struct Plan {
    pub design: MatchingDesign,
    pub deaths: bool,
    /// The network is cut, ranks give each other up, and the cut heals. For two nodes.
    pub parts: bool,
    pub cancels: bool,
    pub wildcards: bool,
    /// Some ranks are on other nodes.
    pub far: bool,
    /// Long messages between nodes are fetched, in most jobs.
    pub fetches: bool,
    /// Few lines, slots and requests, and many messages.
    pub tight: bool,
}

struct Sent {
    from: usize,
    to: usize,
    label: Label,
    at: u64,
    len: u64,
    /// The start of the message's bytes in the common noise.
    phase: usize,
    step: u64,
    was_cancelled: bool,
    received_by: Option<usize>,
}

struct Posted {
    by: usize,
    pattern: Pattern,
    into: MessageBytes,
    outcome: Option<Result<usize, RequestError>>,
    ended: u64,
}

enum What {
    Send(usize),
    Receive(usize),
}

struct Open {
    request: RequestId,
    what: What,
    is_watched: bool,
}

struct Player<'m> {
    machine: MessageMachine<'m>,
    /// Longer tables, the longest first.
    further: Vec<MessageTables<'m>>,
    open: Vec<Open>,
    /// The jobs, and whether each has claimed a part of a copy that both sides make.
    jobs: Vec<(CopyJob, bool)>,
    is_asleep: bool,
    is_dead: bool,
    /// The ranks of which it has learned the loss.
    told: Vec<bool>,
    /// Messages for which other ranks have posted receives.
    wanted: Vec<(usize, Label)>,
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
    /// The numbers of contexts and tags, the lengths, and the pairs that talk.
    contexts: u64,
    tags: u64,
    lengths: [u64; 10],
    pairs: u64,
    /// Whether most receives are posted before most messages are sent.
    posts_first: bool,
    step: u64,
    /// Set once the network was cut: the ranks that give each other up.
    parted: Option<Parted>,
    settled: Vec<(u64, u64)>,
}

impl<'m> Game<'m> {
    pub fn new(
        plan: Plan,
        shape: MessageShape,
        rooms: &'m mut [Room],
        further: &'m mut [Vec<Room>],
        boards: &'m [Board<'m>],
        post: Post<'m>,
        mut seeded: Seeded,
    ) -> Self {
        let mut apart = Seeded(!seeded.0);
        let mut drawn = |of: &[u32]| of[apart.below(of.len() as u64) as usize];
        let mut draw = |of: &[u32]| of[seeded.below(of.len() as u64) as usize];
        let thresholds = Thresholds {
            inline_max: draw(&[0, 8, 40, 88, 200]),
            direct_from: draw(&[0, 0, 89, 300, u32::MAX]),
            direct_max: draw(&[500, u32::MAX, u32::MAX]),
            nt_from: draw(&[600, 11_000, u32::MAX]),
            pull_from: draw(&[200, 9_000, u32::MAX, u32::MAX]),
            eager_max: draw(&[0, 128, 600, u32::MAX]),
            chunk: drawn(&[500, 5_000, u32::MAX]),
            part: drawn(&[500, 5_000, u32::MAX]),
            ask_from: drawn(&[0, 700, 9_000, u32::MAX]),
            both_from: drawn(&[0, 600, 9_000, u32::MAX, u32::MAX]),
            kernel_from: if plan.far { u32::MAX } else { drawn(&[0, 700, 9_000, u32::MAX]) },
            ..Thresholds::DEFAULT
        };
        let kernel_fails = drawn(&[0, 0, 3, 8]);
        // Lanes inside a node do not depend on other nodes.
        let alone_from = if plan.far { 0 } else { drawn(&[0, 900, u32::MAX]) };
        let halves_from = drawn(&[0, 300, u32::MAX]);
        let thresholds = Thresholds { alone_from, halves_from, ..thresholds };
        let rooms = rooms.iter_mut().zip(further).enumerate();
        let players = rooms.map(|(rank, (room, further))| Player {
            machine: MessageMachine::new(
                LocalRank(rank as u32),
                shape,
                plan.design,
                thresholds,
                room.tables(),
            )
            .unwrap(),
            further: further.iter_mut().map(Room::tables).collect(),
            open: Vec::new(),
            jobs: Vec::new(),
            is_asleep: false,
            is_dead: false,
            told: vec![false; shape.peers as usize],
            wanted: Vec::new(),
        });
        let mut players: Vec<Player<'m>> = players.collect();
        for player in &mut players {
            player.machine.put_up(boards);
            let rank = player.machine.own();
            let far =
                (0..shape.peers).map(PeerIndex).filter(|peer| post.is_far(rank.0 as usize, *peer));
            far.for_each(|peer| player.machine.set_remote(peer));
        }
        let mut draw = |bound: u64| seeded.below(bound);
        let (contexts, tags, pairs) = (1 + draw(2), 1 + draw(3) * draw(2), draw(3));
        let posts_first = draw(2) == 0;
        let lengths = LENGTHS[draw(3) as usize];
        let mut net = Net::new(shape, post, seeded.next());
        if !plan.far {
            net.post.fails = kernel_fails.into();
        }
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
            parted: None,
            settled: Vec::new(),
            seeded,
        }
    }

    pub fn play(&mut self, steps: u64) {
        let loses = self.plan.deaths || self.plan.parts;
        let death = if loses { self.draw(steps) } else { u64::MAX };
        let calls = if self.plan.tight { 60 } else { 36 };
        let mut left = calls;
        for step in 0..steps {
            if step == death && self.plan.parts {
                self.part();
            } else if step == death {
                let dead = self.draw(self.players.len() as u64) as usize;
                self.end(dead);
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
            if step >= death && self.draw(8) == 0 {
                self.lose_one(rank);
            }
            if step >= death && self.draw(100) == 0 {
                self.net.post.is_cut = false;
            }
        }
        self.finish();
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.seeded.below(bound)
    }

    fn machine(&mut self, rank: usize) -> (&mut MessageMachine<'m>, At<'_, 'm>) {
        (&mut self.players[rank].machine, At { net: &mut self.net, me: rank })
    }

    fn allocate(&mut self, rank: usize, in_reach: bool, len: u64) -> u64 {
        let memory = &mut self.net.memory[rank];
        let at = memory.len();
        memory.resize(at + len as usize, FRESH);
        address(rank, in_reach, at)
    }

    /// Overwrites a buffer that belongs to the caller again.
    fn scribble(&mut self, at: u64, len: u64) {
        self.net.bytes(at, len).fill(USED);
        self.settled.push((at, len));
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
