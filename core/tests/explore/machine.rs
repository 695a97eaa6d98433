//! The machine itself under the explorer.
//!
//! A machine can not be copied, so each way is run from its start. Two ways
//! lead to the same state if each rank was told the same in the same order:
//! what happens at different ranks commutes.

use crate::program::{End as Ending, Judged, Message, Op, Program, Rank, sender};
use crate::search::{Failure, Reached, Replay, mix};
use crate::wire::{End, Net, address_of_message, address_of_post};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use tsumugi_core::mem;
use tsumugi_core::msg::board::{Board, BoardShape, Standing};
use tsumugi_core::msg::{
    Begun, Bytes, CallError, Claimed, Copy, Design, Ended, Entry, Job, Label, Logged, Machine,
    Mirrored, Pattern, Peer, Received, Request, Shape, Side, Tables, Thresholds, Unexpected,
    Wire as _,
};

/// A program on real machines.
pub struct Real<'p> {
    pub judged: Judged<'p>,
    pub design: Design,
    /// How long the messages are, by their number at the sender.
    pub sizes: [u64; 3],
    pub quota: u32,
    pub by: By,
    /// A lone offer waits for a packet to ride on.
    pub rides: bool,
}

/// Who copies long messages for which no receive is known; `Both`: all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Receiver,
    Sender,
    Both,
}

/// Lengths of the messages, how many of them may be without a receive, who
/// copies the long ones, and whether lone offers wait.
pub type Sizes = ([u64; 3], u32, By, bool);

/// Travels in its packet.
pub const SHORT: u64 = 8;
/// Is copied inside the call.
pub const MIDDLE: u64 = 1000;
/// Is copied by a job.
pub const LONG: u64 = 20_000;
/// What each of two sides that copy claims at least: three parts of a long one.
const PART: u64 = 8 << 10;
/// Requests of each machine.
const REQUESTS: usize = 6;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The next of its program.
    Do {
        rank: Rank,
    },
    /// Sees one packet more, and takes it.
    Take {
        rank: Rank,
        from: Rank,
    },
    /// Looks, with no packet that it has not seen.
    Look {
        rank: Rank,
    },
    /// A copy under way is done, or the part of it that was claimed last.
    Copied {
        index: u8,
    },
    Die {
        rank: Rank,
    },
    /// With the lock of the other's board in its hands.
    DieLocking {
        rank: Rank,
        of: Rank,
    },
    Lose {
        rank: Rank,
        peer: Rank,
    },
}

/// The memory of a board.
struct BoardMemory {
    place: NonNull<u8>,
    layout: Layout,
    shape: BoardShape,
}

/// The memory of a machine.
struct Memory {
    peers: Vec<Peer>,
    requests: Vec<Entry>,
    unexpected: Vec<Unexpected>,
    log: Vec<Logged>,
    mirror: Vec<Mirrored>,
}

/// What a request is for.
#[derive(Clone, Copy)]
enum Use {
    Send(Message),
    Post(usize),
}

struct Node<'m> {
    machine: Machine<'m>,
    done: usize,
    sends: u8,
    posts: Vec<(Ending, Option<Request>)>,
    uses: BTreeMap<u64, Use>,
    ended: Vec<Message>,
    is_dead: bool,
    lost: [bool; 3],
    /// Its board, when it looked last.
    seen: u64,
}

struct World<'w, 'm> {
    real: &'w Real<'w>,
    net: &'w RefCell<Net>,
    boards: &'m [Board<'m>],
    nodes: Vec<Node<'m>>,
    works: Vec<Work>,
}

/// A copy under way.
struct Work {
    rank: Rank,
    job: Job,
    /// Of one that both sides do: the part that this one has claimed, and
    /// whether it had any.
    part: Option<Range<u64>>,
    has_claimed: bool,
}

impl Work {
    /// What is to be copied for certain.
    fn copy(&self) -> Option<Copy> {
        let Copy { from, to, .. } = self.job.copy;
        match (&self.part, self.job.split) {
            (_, None) => Some(self.job.copy),
            (None, _) => None,
            (Some(part), _) => {
                let len = part.end - part.start;
                Some(Copy { from: from + part.start, to: to + part.start, len, ..self.job.copy })
            }
        }
    }
}

impl<'p> Real<'p> {
    pub fn new(program: &'p Program, design: Design, (sizes, quota, by, rides): Sizes) -> Self {
        Self { judged: Judged::new(program), design, sizes, quota, by, rides }
    }

    fn shape(&self) -> Shape {
        let peers = u32::from(self.judged.size());
        Shape { peers, lines: 8, slots: 2, slot_bytes: 2048, quota: self.quota, mirror: 4 }
    }

    fn size_of(&self, message: Message) -> u64 {
        self.sizes[usize::from(message & 15)]
    }

    fn tag_of(&self, message: Message) -> u32 {
        let mut sent = self.judged.program.ranks[usize::from(sender(message))].iter().filter_map(
            |op| match *op {
                Op::Send { tag, .. } => Some(u32::from(tag)),
                _ => None,
            },
        );
        sent.nth(usize::from(message & 15)).expect("it was sent")
    }

    /// Takes all these steps in a new world, and then looks at it.
    fn walk<R>(
        &self,
        path: &[Step],
        then: impl FnOnce(&mut World<'_, '_>) -> Result<R, String>,
    ) -> Result<R, Failure> {
        let shape = self.shape();
        let places: Vec<BoardMemory> = (0..shape.peers).map(|_| BoardMemory::new(&shape)).collect();
        let boards: Vec<Board<'_>> = places.iter().map(BoardMemory::board).collect();
        let mut memories: Vec<Memory> = (0..shape.peers).map(|_| Memory::of(&shape)).collect();
        let net = RefCell::new(Net::default());
        let mut world =
            World { real: self, net: &net, boards: &boards, nodes: Vec::new(), works: Vec::new() };
        for (rank, memory) in memories.iter_mut().enumerate() {
            let mut node = Node::new(mem::Rank(rank as u32), self, memory);
            node.machine.put_up(&boards);
            world.nodes.push(node);
        }
        let mut trace = Vec::new();
        for &step in path {
            trace.push(world.tell(step));
            if let Err(what) = world.take(step) {
                return Err(Failure { what, trace });
            }
        }
        then(&mut world).map_err(|what| Failure { what, trace })
    }
}

impl Replay for Real<'_> {
    type Step = Step;

    fn run(&self, path: &[Step]) -> Result<Reached<Step>, Failure> {
        self.walk(path, |world| Ok(Reached { digest: world.digest(), steps: world.steps() }))
    }

    fn at_rest(&self, path: &[Step]) -> Result<(), Failure> {
        self.walk(path, |world| world.come_to_rest())
    }
}

impl BoardMemory {
    fn new(shape: &Shape) -> Self {
        let shape = BoardShape { peers: shape.peers, posts: REQUESTS as u32 };
        let layout = Layout::from_size_align(Board::memory_size(shape), Board::ALIGN).unwrap();
        // SAFETY: not empty.
        let place = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        Self { place, layout, shape }
    }

    fn board(&self) -> Board<'_> {
        // SAFETY: large and aligned enough, and lives as long as it is lent.
        unsafe { Board::init(self.place, self.shape) }.unwrap()
    }
}

impl Drop for BoardMemory {
    fn drop(&mut self) {
        // SAFETY: allocated so, and not lent any more.
        unsafe { dealloc(self.place.as_ptr(), self.layout) }
    }
}

/// How the posts of a board stand.
fn digest_of(board: &Board<'_>) -> u64 {
    let mut digest = 0;
    for index in 0..REQUESTS as u32 {
        let word = match board.standing(index) {
            Standing::Posted => 0,
            Standing::Claimed(rank) => 1 + u64::from(rank.0),
            Standing::Done(arrival) => 8 + arrival.len,
            Standing::Failed(_) => 4,
        };
        mix(&mut digest, word);
    }
    digest
}

impl Memory {
    fn of(shape: &Shape) -> Self {
        Self {
            peers: vec![Peer::EMPTY; shape.peers as usize],
            requests: vec![Entry::EMPTY; REQUESTS],
            unexpected: vec![Unexpected::EMPTY; shape.unexpected()],
            log: vec![Logged::EMPTY; shape.log()],
            mirror: vec![Mirrored::EMPTY; shape.mirrored()],
        }
    }
}

impl<'m> Node<'m> {
    fn new(rank: mem::Rank, real: &Real<'_>, memory: &'m mut Memory) -> Self {
        let tables = Tables {
            peers: &mut memory.peers,
            requests: &mut memory.requests,
            unexpected: &mut memory.unexpected,
            log: &mut memory.log,
            mirror: &mut memory.mirror,
        };
        let thresholds = Thresholds {
            inline_max: 32,
            direct_from: 33,
            alone_from: if real.rides { u32::MAX } else { 0 },
            direct_max: 1 << 17,
            nt_from: 1 << 18,
            pull_from: 1 << 18,
            eager_max: 8 << 10,
            part: u32::MAX,
            both_from: if real.by == By::Both { LONG as u32 } else { u32::MAX },
            kernel_from: u32::MAX,
            ask_from: if real.by == By::Sender { 0 } else { u32::MAX },
        };
        let machine = Machine::new(rank, real.shape(), real.design, thresholds, tables);
        Self {
            machine: machine.unwrap(),
            done: 0,
            sends: 0,
            posts: Vec::new(),
            uses: BTreeMap::new(),
            ended: Vec::new(),
            is_dead: false,
            lost: [false; 3],
            seen: 0,
        }
    }
}

impl World<'_, '_> {
    fn size(&self) -> Rank {
        self.nodes.len() as Rank
    }

    fn next(&self, rank: Rank) -> Option<Op> {
        self.real.judged.next(rank, self.nodes[usize::from(rank)].done as u8)
    }

    fn digest(&self) -> u64 {
        let mut digest = self.net.borrow().digest();
        for Work { rank, job, part, has_claimed } in &self.works {
            mix(&mut digest, u64::from(*rank) ^ job.copy.to);
            let from = part.as_ref().map_or(1, |part| part.start << 1);
            mix(&mut digest, from << 1 | u64::from(*has_claimed));
        }
        if self.real.design == Design::Locked {
            for board in self.boards {
                mix(&mut digest, digest_of(board));
            }
        }
        digest
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for rank in 0..self.size() {
            let node = &self.nodes[usize::from(rank)];
            if node.is_dead {
                continue;
            }
            if self.real.judged.program.mortal == Some(rank) {
                steps.push(Step::Die { rank });
                if self.real.design == Design::Locked {
                    steps.push(Step::DieLocking { rank, of: 0 });
                }
            }
            if self.next(rank).is_some() {
                steps.push(Step::Do { rank });
            }
            let net = self.net.borrow();
            for from in 0..self.size() {
                let lane = &net.lanes[usize::from(from)][usize::from(rank)];
                if lane.seen < lane.packets.len() {
                    steps.push(Step::Take { rank, from });
                }
                if self.nodes[usize::from(from)].is_dead && !node.lost[usize::from(from)] {
                    steps.push(Step::Lose { rank, peer: from });
                }
            }
            let may_be_done = self.real.design == Design::Locked
                && node.posts.iter().any(|post| post.0 == Ending::Open)
                && digest_of(&self.boards[usize::from(rank)]) != node.seen;
            if node.machine.wants_poll() || net.has_news(rank) || may_be_done {
                steps.push(Step::Look { rank });
            }
        }
        for (index, work) in self.works.iter().enumerate() {
            if !self.nodes[usize::from(work.rank)].is_dead {
                steps.push(Step::Copied { index: index as u8 });
            }
        }
        steps
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Do { rank } => self.act(rank),
            Step::Take { rank, from } => {
                self.net.borrow_mut().lanes[usize::from(from)][usize::from(rank)].seen += 1;
                let mut end = End { net: self.net, rank };
                let machine = &mut self.nodes[usize::from(rank)].machine;
                machine.advance_from(&mut end, mem::Rank(from.into()));
            }
            Step::Look { rank } => {
                let mut end = End { net: self.net, rank };
                self.nodes[usize::from(rank)].machine.advance(&mut end);
            }
            Step::Copied { index } => self.copied(usize::from(index)),
            Step::Die { rank } => {
                self.nodes[usize::from(rank)].is_dead = true;
                self.net.borrow_mut().told(rank, &[1]);
            }
            Step::DieLocking { rank, of } => {
                // Found out at once, and told to the machine later.
                self.boards[usize::from(of)].lock(mem::Rank(rank.into()));
                self.boards[usize::from(of)].lost(mem::Rank(rank.into()));
                self.nodes[usize::from(rank)].is_dead = true;
                self.net.borrow_mut().told(rank, &[2]);
            }
            Step::Lose { rank, peer } => self.lose(rank, peer),
        }
        if let Step::Do { rank } | Step::Take { rank, .. } | Step::Look { rank } = step {
            let seen = digest_of(&self.boards[usize::from(rank)]);
            self.nodes[usize::from(rank)].seen = seen;
        }
        for rank in 0..self.size() {
            self.collect(rank)?;
        }
        self.check()
    }

    /// The next of a rank's program.
    fn act(&mut self, rank: Rank) {
        let op = self.next(rank).expect("there is more to do");
        let mut end = End { net: self.net, rank };
        let real = self.real;
        let node = &mut self.nodes[usize::from(rank)];
        node.done += 1;
        self.net.borrow_mut().told(rank, &[node.done as u64]);
        match op {
            Op::Send { to, tag } => {
                let message = rank << 4 | node.sends;
                node.sends += 1;
                let at = address_of_message(message);
                let bytes = Bytes { at, len: real.size_of(message), in_reach: true };
                let label = Label { context: 0, tag: tag.into() };
                match node.machine.send(&mut end, mem::Rank(to.into()), label, bytes) {
                    Ok(Begun::Done(())) => self.sent(rank, message),
                    Ok(Begun::Pending(request)) => {
                        node.machine.watch(request);
                        node.uses.insert(request.to_bits(), Use::Send(message));
                    }
                    Err(error) => panic!("rank {rank} can not send: {error}"),
                }
            }
            Op::Post { from, tag } => {
                let post = node.posts.len();
                let source = from.map(|from| mem::Rank(from.into()));
                let pattern = Pattern { context: 0, source, tag: tag.map(u32::from) };
                let into = Bytes { at: address_of_post(rank, post), len: LONG, in_reach: true };
                match node.machine.receive(&mut end, pattern, into) {
                    Ok(Begun::Done(received)) => {
                        node.posts.push((Ending::Open, None));
                        self.received(rank, post, Ok(received));
                    }
                    Ok(Begun::Pending(request)) => {
                        node.machine.watch(request);
                        node.uses.insert(request.to_bits(), Use::Post(post));
                        node.posts.push((Ending::Open, Some(request)));
                    }
                    Err(CallError::Addr(_)) => node.posts.push((Ending::Lost, None)),
                    Err(error) => panic!("rank {rank} can not receive: {error}"),
                }
            }
            Op::Cancel { post } => {
                if let (Ending::Open, Some(request)) = node.posts[usize::from(post)] {
                    node.machine.cancel(&mut end, request);
                }
            }
        }
    }

    fn copied(&mut self, index: usize) {
        let work = self.works.remove(index);
        let mut end = End { net: self.net, rank: work.rank };
        if let Some(copy) = work.copy() {
            end.copy(&copy);
        }
        if let Some(split) = work.job.split {
            return self.claim(work, split);
        }
        self.net.borrow_mut().told(work.rank, &[work.job.request.to_bits()]);
        let machine = &mut self.nodes[usize::from(work.rank)].machine;
        machine.job_done(&mut end, work.job.request, Ok(()));
    }

    /// The next part of a copy that both sides make, or its end.
    fn claim(&mut self, mut work: Work, (id, side): (u32, Side)) {
        let Work { rank, job, .. } = work;
        let claimed = {
            let net = self.net.borrow();
            let split = net.split(rank, job.copy.peer, side);
            let claimed = split.claim(id, side, job.copy.len, PART);
            if matches!(claimed, Claimed::Over(_)) && side == Side::Back && work.has_claimed {
                split.close();
            }
            claimed
        };
        let (from, other) = match &claimed {
            Claimed::Part(part) => (part.start, 2),
            Claimed::Over(other) => (0, u64::from(*other)),
        };
        self.net.borrow_mut().told(rank, &[job.request.to_bits(), from, other]);
        match claimed {
            Claimed::Part(part) => {
                (work.part, work.has_claimed) = (Some(part), true);
                self.works.push(work);
            }
            Claimed::Over(other) => {
                let mut end = End { net: self.net, rank };
                let machine = &mut self.nodes[usize::from(rank)].machine;
                machine.split_done(&mut end, job.request, [work.has_claimed, other]);
            }
        }
    }

    /// The whole of what the dead rank has pushed is seen before.
    fn lose(&mut self, rank: Rank, peer: Rank) {
        self.see_all(rank, peer);
        let node = &mut self.nodes[usize::from(rank)];
        node.lost[usize::from(peer)] = true;
        let mut end = End { net: self.net, rank };
        node.machine.lost(&mut end, mem::Rank(peer.into()));
        end.net.borrow_mut().told(rank, &[u64::from(peer)]);
    }

    fn see_all(&self, rank: Rank, from: Rank) {
        let lane = &mut self.net.borrow_mut().lanes[usize::from(from)][usize::from(rank)];
        lane.seen = lane.packets.len();
    }

    /// What a machine wants to have copied, and what has ended.
    fn collect(&mut self, rank: Rank) -> Result<(), String> {
        if self.nodes[usize::from(rank)].is_dead {
            return Ok(());
        }
        while let Some(job) = self.nodes[usize::from(rank)].machine.poll_job() {
            self.works.push(Work { rank, job, part: None, has_claimed: false });
        }
        loop {
            let node = &mut self.nodes[usize::from(rank)];
            let Some(request) = node.machine.poll_ended() else { return Ok(()) };
            let Some(result) = node.machine.take(request) else {
                return Err(format!("rank {rank}: {request:?} has not ended, or twice"));
            };
            self.net.borrow_mut().told(rank, &[request.to_bits(), u64::from(result.is_ok())]);
            match self.nodes[usize::from(rank)].uses.remove(&request.to_bits()) {
                Some(Use::Send(message)) => self.sent(rank, message),
                Some(Use::Post(post)) => self.received(rank, post, result),
                None => return Err(format!("rank {rank}: {request:?} ends twice")),
            }
        }
    }

    fn sent(&mut self, rank: Rank, message: Message) {
        self.nodes[usize::from(rank)].ended.push(message);
        self.net.borrow_mut().closed.push(address_of_message(message));
    }

    fn received(&mut self, rank: Rank, post: usize, result: Result<Received, Ended>) {
        let mut net = self.net.borrow_mut();
        let at = address_of_post(rank, post);
        net.closed.push(at);
        let entry = &mut self.nodes[usize::from(rank)].posts[post];
        entry.0 = match result {
            Err(Ended::Cancelled) => Ending::Cancelled,
            Err(_) => Ending::Lost,
            Ok(received) => match net.content(at) {
                None => {
                    net.broken.get_or_insert(format!("receive {post}: nothing is in its buffer"));
                    Ending::Open
                }
                Some((message, len)) => {
                    let is_it = received.source.0 == u32::from(sender(message))
                        && received.len == len
                        && len == self.real.size_of(message)
                        && received.tag == self.real.tag_of(message);
                    if !is_it {
                        let what = format!("{received:?}, but {message:#x}, {len} bytes are there");
                        net.broken.get_or_insert(what);
                    }
                    Ending::Got(message)
                }
            },
        };
    }

    fn check(&self) -> Result<(), String> {
        let net = self.net.borrow();
        if let Some(what) = &net.broken {
            return Err(what.clone());
        }
        for (index, work) in self.works.iter().enumerate() {
            let Some(copy) = work.copy() else { continue };
            let rank = work.rank;
            let is_alive = |address: u64| {
                let owner =
                    if address >> 40 == 1 { address >> 24 & 15 } else { address >> 32 & 15 };
                !self.nodes[owner as usize].is_dead
            };
            let buffers = [work.job.copy.from, work.job.copy.to];
            for address in buffers {
                if net.closed.contains(&address)
                    && is_alive(address)
                    && is_alive(u64::from(rank) << 32)
                {
                    return Err(format!(
                        "rank {rank} copies, and {address:#x} is not in use any more"
                    ));
                }
            }
            if self.works[..index].iter().filter_map(Work::copy).any(|other| other.to == copy.to) {
                return Err(format!("two copies to {:#x}", copy.to));
            }
        }
        Ok(())
    }

    /// Nothing is left to happen but what ranks do before they sleep.
    fn come_to_rest(&mut self) -> Result<(), String> {
        for _ in 0..12 {
            for rank in 0..self.size() {
                if self.nodes[usize::from(rank)].is_dead {
                    continue;
                }
                for from in 0..self.size() {
                    self.see_all(rank, from);
                }
                let mut end = End { net: self.net, rank };
                self.nodes[usize::from(rank)].machine.rest(&mut end);
                self.collect(rank)?;
                while let Some(index) = self.works.iter().position(|work| work.rank == rank) {
                    self.copied(index);
                    self.collect(rank)?;
                }
                self.check()?;
            }
        }
        self.judge()
    }

    fn judge(&self) -> Result<(), String> {
        let dead = self.nodes.iter().filter(|node| node.is_dead).count();
        for (rank, node) in self.nodes.iter().enumerate() {
            if node.is_dead {
                continue;
            }
            let outcome: Vec<Ending> = node.posts.iter().map(|post| post.0).collect();
            self.real.judged.judge(rank as Rank, dead, &outcome)?;
            for end in outcome {
                if let Ending::Got(message) = end {
                    let from = &self.nodes[usize::from(sender(message))];
                    if !from.is_dead && !from.ended.contains(&message) {
                        return Err(format!(
                            "message {message:#x} was received, its send is not over"
                        ));
                    }
                }
            }
            if node.machine.counts().dropped > 0 {
                return Err(format!("rank {rank} has dropped packets"));
            }
        }
        Ok(())
    }

    fn tell(&self, step: Step) -> String {
        match step {
            Step::Do { rank } => format!("rank {rank}: {:?}", self.next(rank)),
            Step::Take { rank, from } => {
                let net = self.net.borrow();
                let lane = &net.lanes[usize::from(from)][usize::from(rank)];
                let (packet, load, _) = &lane.packets[lane.seen];
                format!("rank {rank} takes from rank {from}: {packet:?} {load:?}")
            }
            Step::Copied { index } => {
                let work = &self.works[usize::from(index)];
                let (rank, copy) = (work.rank, &work.job.copy);
                match (work.job.split, &work.part) {
                    (None, _) => {
                        format!("rank {rank} has copied {:#x} to {:#x}", copy.from, copy.to)
                    }
                    (Some((_, side)), None) => format!("rank {rank}, {side:?}, claims"),
                    (Some((_, side)), Some(part)) => {
                        format!("rank {rank}, {side:?}, has copied {part:?} to {:#x}", copy.to)
                    }
                }
            }
            _ => format!("{step:?}"),
        }
    }
}
