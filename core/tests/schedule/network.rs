//! A network of messages for many ranks in one thread: messages of one rank to another
//! keep their order, all else is drawn from the seed.
//!
//! ```text
//!  send ─► under way, for a drawn time ─► receiver: a receive waits ─► bytes copied, both end
//!    └ short ones end at once                       none: kept      ─► ended by the receive
//!  death ─► each survivor learns of it after a drawn time: it cancels its receives, and
//!           takes all that comes in this group
//! ```

use super::case::{Case, Outcome};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::ops::Range;
use tsumugi_conformance::Seeded;
use tsumugi_core::coll::schedule::{
    BufferSpan, CollBuffer, CollStep, CollTables, Collective, CombineOrder,
};
use tsumugi_core::mem::Rank;

/// What happens to the ranks besides the collective.
pub struct Weather {
    pub seed: u64,
    /// The number of ranks that die, at drawn times.
    pub deaths: u32,
    /// Sends up to this length end at once.
    pub eager_max: usize,
    /// The time in which all ranks begin.
    pub begin_within: u64,
    /// A message takes at most so long.
    pub delay_max: u64,
}

struct Node<'c> {
    machine: Collective,
    tables: CollTables<'c>,
    input: Vec<u8>,
    output: Vec<u8>,
    scratch: Vec<u8>,
    is_begun: bool,
    is_dead: bool,
    /// A dead rank of which this one knows.
    lost: Option<Rank>,
    outcome: Option<Outcome>,
    /// The receives under way, and the sends that have not ended.
    receiving: Vec<(u32, BufferSpan)>,
    sending: Vec<u32>,
    /// The ranks that have sent to this one.
    sources: Vec<u32>,
    /// The longest chain of messages, each sent after the one before had come, that has come here.
    depth: u32,
}

struct Message {
    bytes: Vec<u8>,
    /// The send ends when the receiver takes the message.
    is_held: bool,
    /// The length of its chain of messages.
    depth: u32,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin(u32),
    Arrive(u32, u32),
    /// A send of the rank has ended.
    Step(u32),
    Kill(u32),
    Learn(u32, u32),
}

pub struct Network<'c> {
    case: &'c Case,
    nodes: Vec<Node<'c>>,
    draws: Seeded,
    weather: Weather,
    now: u64,
    number: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Messages under way and kept ones, and how many of them have arrived.
    lanes: HashMap<(u32, u32), (VecDeque<Message>, usize, u64)>,
    begun: u32,
}

impl<'c> Network<'c> {
    pub fn new(case: &'c Case, weather: Weather) -> Self {
        let mut nodes: Vec<Node<'c>> = Vec::with_capacity(case.size as usize);
        for me in 0..case.size {
            let machine = Collective::new(case.plan(me));
            nodes.push(Node {
                scratch: vec![0xEE; machine.scratch_bytes()],
                machine,
                tables: case.tables(me),
                input: case.input(me),
                output: case.output(me),
                is_begun: false,
                is_dead: false,
                lost: None,
                outcome: None,
                receiving: Vec::new(),
                sending: Vec::new(),
                sources: Vec::new(),
                depth: 0,
            });
        }
        let draws = Seeded(weather.seed);
        let mut net = Self {
            case,
            nodes,
            draws,
            weather,
            now: 0,
            number: 0,
            events: BinaryHeap::new(),
            lanes: HashMap::new(),
            begun: 0,
        };
        for rank in 0..case.size {
            let at = net.draws.below(net.weather.begin_within);
            net.at(at, Event::Begin(rank));
        }
        let within = net.weather.begin_within + 8 * net.weather.delay_max;
        for _ in 0..net.weather.deaths {
            let (at, victim) = (net.draws.below(within), net.draws.below(case.size.into()));
            net.at(at, Event::Kill(victim as u32));
        }
        net
    }

    fn at(&mut self, time: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, event)));
    }

    /// Runs until nothing is left to happen, and returns how each rank has ended: `None`
    /// for those that died, and for those that wait for ever.
    pub fn run(self) -> Vec<(bool, Option<Outcome>)> {
        self.run_counting().0
    }

    /// The same, with the longest chain of messages.
    pub fn run_counting(mut self) -> (Vec<(bool, Option<Outcome>)>, u32) {
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            self.now = time;
            match event {
                Event::Begin(rank) => {
                    self.nodes[rank as usize].is_begun = true;
                    self.begun += 1;
                    self.drive(rank);
                }
                Event::Arrive(from, to) => self.arrive(from, to),
                Event::Step(rank) => self.drive(rank),
                Event::Kill(rank) => self.kill(rank),
                Event::Learn(rank, dead) => self.learn(rank, dead),
            }
        }
        let depth = self.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let ends = self.nodes.into_iter().map(|node| (node.is_dead, node.outcome)).collect();
        (ends, depth)
    }

    fn drive(&mut self, rank: u32) {
        let node = &mut self.nodes[rank as usize];
        if node.is_dead || !node.is_begun {
            return;
        }
        if let Some(lost) = node.lost {
            node.machine.handle_lost(lost);
        }
        loop {
            let node = &mut self.nodes[rank as usize];
            let Some(step) = node.machine.poll_step(&node.tables) else { break };
            match step {
                CollStep::Copy { from, to } => {
                    let bytes = node.bytes(from).to_vec();
                    node.write(to, &bytes);
                }
                CollStep::Combine { from, into, order } => {
                    let (from, mut result) = (node.bytes(from).to_vec(), node.bytes(into).to_vec());
                    self.case.combine(&from, &mut result, order == CombineOrder::FromFirst);
                    node.write(into, &result);
                }
                CollStep::Send { to, from } => self.send(rank, to, from),
                CollStep::Receive { from, into } => {
                    node.receiving.push((from, into));
                    self.deliver(from, rank);
                }
                CollStep::Enter { .. } | CollStep::Take { .. } | CollStep::Leave { .. } => {
                    panic!("{step:?}: no member has rows")
                }
            }
        }
        self.look_at_end(rank);
    }

    fn look_at_end(&mut self, rank: u32) {
        let all = self.begun == self.case.size;
        let node = &mut self.nodes[rank as usize];
        if node.outcome.is_some() {
            return;
        }
        node.outcome = match node.machine.poll_done() {
            None => None,
            Some(Ok(())) => Some(Outcome::Done(std::mem::take(&mut node.output), all)),
            Some(Err(dead)) => Some(Outcome::Lost(dead)),
        };
    }

    fn send(&mut self, from: u32, to: u32, span: BufferSpan) {
        let bytes = self.nodes[from as usize].bytes(span).to_vec();
        let is_held = bytes.len() > self.weather.eager_max;
        let depth = self.nodes[from as usize].depth + 1;
        let at = self.now + 1 + self.draws.below(self.weather.delay_max);
        let lane = self.lanes.entry((from, to)).or_insert_with(|| {
            self.nodes[to as usize].sources.push(from);
            Default::default()
        });
        let at = at.max(lane.2);
        lane.2 = at;
        lane.0.push_back(Message { bytes, is_held, depth });
        if is_held {
            self.nodes[from as usize].sending.push(to);
        } else {
            self.nodes[from as usize].machine.handle_ended();
        }
        self.at(at, Event::Arrive(from, to));
    }

    fn arrive(&mut self, from: u32, to: u32) {
        self.lanes.get_mut(&(from, to)).expect("a message is under way").1 += 1;
        self.deliver(from, to);
        self.drive(to);
    }

    /// Gives the messages of a lane that have arrived to the receives that wait.
    fn deliver(&mut self, from: u32, to: u32) {
        loop {
            let Some(lane) = self.lanes.get_mut(&(from, to)) else { return };
            if lane.1 == 0 {
                return;
            }
            let node = &mut self.nodes[to as usize];
            let waits = node.receiving.iter().position(|(source, _)| *source == from);
            // A rank that knows of a death takes what comes, as a dead one drops it.
            if waits.is_none() && node.lost.is_none() {
                return;
            }
            lane.1 -= 1;
            let message = lane.0.pop_front().expect("a message has arrived");
            if let Some(index) = waits {
                let (_, into) = node.receiving.remove(index);
                assert_eq!(into.len, message.bytes.len(), "{from} to {to} in {:?}", self.case);
                node.write(into, &message.bytes);
                node.depth = node.depth.max(message.depth);
                node.machine.handle_ended();
            }
            let sender = &mut self.nodes[from as usize];
            if message.is_held
                && let Some(index) = sender.sending.iter().position(|peer| *peer == to)
            {
                sender.sending.remove(index);
                sender.machine.handle_ended();
                self.at(self.now, Event::Step(from));
            }
        }
    }

    fn kill(&mut self, rank: u32) {
        if std::mem::replace(&mut self.nodes[rank as usize].is_dead, true) {
            return;
        }
        self.nodes[rank as usize].outcome = None;
        for survivor in 0..self.case.size {
            if !self.nodes[survivor as usize].is_dead {
                let at = self.now + 1 + self.draws.below(20 * self.weather.delay_max);
                self.at(at, Event::Learn(survivor, rank));
            }
        }
    }

    fn learn(&mut self, rank: u32, dead: u32) {
        let node = &mut self.nodes[rank as usize];
        node.lost = node.lost.or(Some(Rank(dead)));
        node.machine.handle_lost(Rank(dead));
        for _ in node.receiving.drain(..) {
            node.machine.handle_ended();
        }
        // The sends to the dead rank end as failed.
        let before = node.sending.len();
        node.sending.retain(|to| *to != dead);
        for _ in node.sending.len()..before {
            node.machine.handle_ended();
        }
        let sources = self.nodes[rank as usize].sources.clone();
        for from in sources {
            self.deliver(from, rank);
        }
        self.drive(rank);
    }
}

impl Node<'_> {
    fn buffer(&mut self, buffer: CollBuffer) -> &mut Vec<u8> {
        match buffer {
            CollBuffer::Input => &mut self.input,
            CollBuffer::Output => &mut self.output,
            CollBuffer::Scratch => &mut self.scratch,
        }
    }

    fn bytes(&mut self, span: BufferSpan) -> &[u8] {
        let range: Range<usize> = span.at..span.at + span.len;
        &self.buffer(span.buffer)[range]
    }

    fn write(&mut self, span: BufferSpan, bytes: &[u8]) {
        assert_ne!(span.buffer, CollBuffer::Input, "the input is only read");
        self.buffer(span.buffer)[span.at..span.at + span.len].copy_from_slice(bytes);
    }
}
