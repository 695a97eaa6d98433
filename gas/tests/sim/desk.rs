//! Programs that block, on simulated ranks: each is a thread of its own, of which one runs at a
//! time, and only while the network stands still. Therefore every run of a seed is the same.
//!
//! ```text
//!  program's thread        │  the network's
//!  Store::read ── Ask ────►│  issue, pump, step ... ended
//!     sleeps               │        │
//!  ◄────────── Answer ─────│────────┘
//! ```

use super::rank::Party;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};
use tsumugi_core::mem::{AddrError, Rank, RegionKey};
use tsumugi_core::signal::Until;
use tsumugi_core::sim::{Actor, Net, SimEvent as Told, SimNode};
use tsumugi_core::time::{Clock, Instant};
use tsumugi_gas::address::{GlobalAddr, Split};
use tsumugi_gas::container::{Store, free, malloc, nodes_bytes};
use tsumugi_gas::heap::{Heap, HeapError};
use tsumugi_gas::lock::{NODE_BYTES, NodeId, NodePool, NodeSlot};
use tsumugi_gas::machine::MachineOutput;
use tsumugi_gas::order::{After, Handle};
use tsumugi_gas::request::{Copy, GlobalRequest, WordRequest};

/// The global memory as one program sees it.
pub struct View {
    rank: Rank,
    split: Split,
    /// The address of each rank's memory: its nodes, then its heap.
    bases: Vec<GlobalAddr>,
    ask: Sender<Ask>,
    answer: Receiver<Answer>,
    /// Whether the program's rank was killed.
    is_dead: Cell<bool>,
    /// The number of blocks that were not freed.
    live: Arc<AtomicI64>,
}

/// A program.
pub type PendingOp = Box<dyn FnOnce(&View) + Send>;

/// One rank, and the programs on it.
pub struct Desk<'n> {
    pub party: Party<'n>,
    nodes: NodePool<'n>,
    /// The memory of nodes and heap; and the buffers of the programs.
    memory: (RegionKey, GlobalAddr),
    scratch: (RegionKey, GlobalAddr),
    clients: Vec<Client>,
}

struct Client {
    ask: Receiver<Ask>,
    answer: Sender<Answer>,
    waits: Waits,
    thread: JoinHandle<()>,
}

#[derive(Clone)]
enum Ask {
    Do(GlobalRequest),
    Read(GlobalAddr, u64),
    Write(GlobalAddr, Vec<u8>),
    Wait(GlobalAddr, Until),
    TakeNode,
    ReleaseNode(NodeId, bool),
    Lost,
    Now,
    Pause,
}

enum Answer {
    Value(Result<u64, AddrError<GlobalAddr>>),
    Bytes(Result<Vec<u8>, AddrError<GlobalAddr>>),
    Node(NodeId),
    Lost(Option<Rank>),
    Dead,
}

enum Waits {
    /// The next request of the program comes at once.
    No,
    For(Handle, u64),
    /// The request waits for room, for a node or for a word.
    Again(Ask),
    Until(Instant),
    Ended,
}

impl View {
    /// Virtual time, in ns.
    pub fn now(&self) -> u64 {
        self.value(Ask::Now).unwrap_or(0)
    }

    fn ask(&self, ask: Ask) -> Answer {
        if self.is_dead.get() || self.ask.send(ask).is_err() {
            return Answer::Dead;
        }
        let answer = self.answer.recv().unwrap_or(Answer::Dead);
        self.is_dead.set(matches!(answer, Answer::Dead));
        answer
    }

    fn value(&self, ask: Ask) -> Result<u64, AddrError<GlobalAddr>> {
        match self.ask(ask) {
            Answer::Value(result) => result,
            _ => Err(AddrError::PeerLost { rank: self.rank }),
        }
    }

    fn heap(&self, rank: Rank) -> Heap {
        let base = self.bases[rank.0 as usize];
        let base = self.split.add(base, nodes_bytes(NODES) as i64).unwrap();
        Heap::new(self.split, base, HEAP_BYTES)
    }
}

impl Store for View {
    fn split(&self) -> Split {
        self.split
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn read(&self, from: GlobalAddr, into: &mut [u8]) -> Result<(), AddrError<GlobalAddr>> {
        match self.ask(Ask::Read(from, into.len() as u64)) {
            Answer::Bytes(bytes) => bytes.map(|bytes| into.copy_from_slice(&bytes)),
            _ => Err(AddrError::PeerLost { rank: self.rank }),
        }
    }

    fn write(&self, to: GlobalAddr, bytes: &[u8]) -> Result<(), AddrError<GlobalAddr>> {
        self.value(Ask::Write(to, bytes.to_vec())).map(drop)
    }

    fn copy(
        &self,
        dst: GlobalAddr,
        src: GlobalAddr,
        bytes: u64,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.value(Ask::Do(Copy::new(dst, src, bytes).into())).map(drop)
    }

    fn word(&self, word: WordRequest) -> Result<u64, AddrError<GlobalAddr>> {
        self.value(Ask::Do(word.into()))
    }

    fn allocate(&self, rank: Rank, bytes: u64) -> Result<GlobalAddr, HeapError> {
        let addr = malloc(&self.heap(rank), bytes, self.rank.0, |word| self.word(word))?;
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(addr)
    }

    fn free(&self, addr: GlobalAddr) -> Result<(), HeapError> {
        let rank = self.split.rank(addr).expect("an address");
        free(&self.heap(rank), addr, |word| self.word(word))?;
        self.live.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn nodes(&self, rank: Rank) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
        Ok(self.bases[rank.0 as usize])
    }

    fn take_node(&self) -> NodeId {
        match self.ask(Ask::TakeNode) {
            Answer::Node(node) => node,
            _ => NodeId::NONE,
        }
    }

    fn release_node(&self, node: NodeId, has_left: bool) {
        self.ask(Ask::ReleaseNode(node, has_left));
    }

    fn wait(&self, at: GlobalAddr, until: Until) -> Result<u64, AddrError<GlobalAddr>> {
        self.value(Ask::Wait(at, until))
    }

    fn lost(&self) -> Option<Rank> {
        match self.ask(Ask::Lost) {
            Answer::Lost(lost) => lost,
            _ => Some(self.rank),
        }
    }

    fn pause(&self) {
        self.ask(Ask::Pause);
    }
}

impl<'n> Desk<'n> {
    pub fn new(mut party: Party<'n>, slots: &'n mut [NodeSlot]) -> Self {
        let nodes = NodePool::new(party.node.rank(), slots);
        let mut open = |bytes| {
            let (region, addr) = party.open(bytes);
            (region.key, addr)
        };
        let memory = open(nodes_bytes(NODES) + HEAP_BYTES);
        let scratch = open(CLIENTS_MAX * SCRATCH_BYTES);
        Self { party, nodes, memory, scratch, clients: Vec::new() }
    }

    /// Answers requests until every program waits for the network.
    fn go_on(&mut self) {
        loop {
            let mut has_moved = false;
            self.party.pump();
            while let Some(out) = self.party.outs.pop_front() {
                let MachineOutput::Ended { handle, result } = out else { continue };
                let is_its =
                    |client: &Client| matches!(client.waits, Waits::For(its, _) if its == handle);
                let at =
                    self.clients.iter().position(is_its).expect("a program waits for this result");
                self.ended(at, result);
                has_moved = true;
            }
            for at in 0..self.clients.len() {
                has_moved |= self.turn(at);
            }
            if !has_moved {
                return;
            }
        }
    }

    fn ended(&mut self, at: usize, result: Result<u64, AddrError<GlobalAddr>>) {
        let Waits::For(_, bytes) = std::mem::replace(&mut self.clients[at].waits, Waits::No) else {
            return;
        };
        let answer = match bytes {
            0 => Answer::Value(result),
            bytes => Answer::Bytes(result.map(|_| self.taken(at, bytes))),
        };
        self.clients[at].answer.send(answer).unwrap();
    }

    /// Serves one client; returns whether there was a request or an answer.
    fn turn(&mut self, at: usize) -> bool {
        let client = &mut self.clients[at];
        let ask = match &client.waits {
            Waits::Until(end) if self.party.node.now() >= *end => {
                client.waits = Waits::No;
                client.answer.send(Answer::Value(Ok(0))).unwrap();
                return true;
            }
            Waits::For(..) | Waits::Until(_) | Waits::Ended => return false,
            Waits::Again(ask) => ask.clone(),
            Waits::No => match client.ask.recv() {
                Ok(ask) => ask,
                Err(_) => {
                    client.waits = Waits::Ended;
                    return true;
                }
            },
        };
        let was_again = matches!(client.waits, Waits::Again(_));
        match self.answer(at, ask.clone()) {
            Some(Ok(waits)) => {
                self.clients[at].waits = waits;
                true
            }
            Some(Err(answer)) => {
                self.clients[at].waits = Waits::No;
                self.clients[at].answer.send(answer).unwrap();
                true
            }
            None => {
                self.clients[at].waits = Waits::Again(ask);
                !was_again
            }
        }
    }

    /// The answer, or the event that comes first; `None`: the request is tried again.
    fn answer(&mut self, at: usize, ask: Ask) -> Option<Result<Waits, Answer>> {
        let scratch = self.party.machine.cache().split();
        let scratch = scratch.add(self.scratch.1, (at as u64 * SCRATCH_BYTES) as i64).unwrap();
        let node = self.party.node;
        Some(match ask {
            Ask::Do(request) => return self.issue(request, 0),
            Ask::Read(_, 0) => Err(Answer::Bytes(Ok(Vec::new()))),
            Ask::Read(from, bytes) => {
                return self.issue(Copy::new(scratch, from, bytes).into(), bytes);
            }
            Ask::Write(_, bytes) if bytes.is_empty() => Err(Answer::Value(Ok(0))),
            Ask::Write(to, bytes) => {
                assert!(bytes.len() as u64 <= SCRATCH_BYTES);
                for (word, part) in bytes.chunks(8).enumerate() {
                    let mut whole = [0; 8];
                    whole[..part.len()].copy_from_slice(part);
                    let offset = at as u64 * SCRATCH_BYTES + word as u64 * 8;
                    node.store(self.scratch.0, offset, u64::from_le_bytes(whole)).unwrap();
                }
                return self.issue(Copy::new(to, scratch, bytes.len() as u64).into(), 0);
            }
            Ask::Wait(at, until) => {
                let place = self.party.machine.cache().split().place(at).unwrap();
                assert_eq!(place.rank, node.rank(), "a program waits on a word of its own rank");
                let value = node.load(self.memory.0, place.offset).unwrap();
                match self.party.lost.last() {
                    _ if until.holds(value) => Err(Answer::Value(Ok(value))),
                    Some(&rank) => Err(Answer::Value(Err(AddrError::PeerLost { rank }))),
                    None => return None,
                }
            }
            Ask::TakeNode => {
                let key = self.memory.0;
                let load = |slot: usize| node.load(key, slot as u64 * NODE_BYTES).unwrap();
                Err(Answer::Node(self.nodes.try_take(load)?))
            }
            Ask::ReleaseNode(node, has_left) => {
                self.nodes.release(node, has_left);
                Err(Answer::Value(Ok(0)))
            }
            Ask::Lost => Err(Answer::Lost(self.party.lost.last().copied())),
            Ask::Now => Err(Answer::Value(Ok(node.now().as_ns()))),
            Ask::Pause => {
                let end = Instant::from_ns(node.now().as_ns() + PAUSE_NS);
                node.wake_at(end, 0);
                Ok(Waits::Until(end))
            }
        })
    }

    fn issue(&mut self, request: GlobalRequest, bytes: u64) -> Option<Result<Waits, Answer>> {
        let handle = self.party.machine.try_issue(request, After::Nothing).ok()?;
        Some(Ok(Waits::For(handle, bytes)))
    }

    /// The bytes that were read for a client.
    fn taken(&self, at: usize, bytes: u64) -> Vec<u8> {
        let word = |word: u64| {
            let offset = at as u64 * SCRATCH_BYTES + word * 8;
            self.party.node.load(self.scratch.0, offset).unwrap().to_le_bytes()
        };
        let mut all: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(word).collect();
        all.truncate(bytes as usize);
        all
    }
}

impl Actor for Desk<'_> {
    fn on_event(&mut self, _: &SimNode<'_>, event: Told) {
        self.party.on_event(event);
        self.go_on();
    }
}

/// Runs these programs on these ranks to their ends, and kills a rank on the way; with a planted
/// defect if one is named. Returns the programs that have not ended.
pub fn run_jobs(
    net: &Net,
    desks: &mut [Desk<'_>],
    jobs: Vec<(u32, PendingOp)>,
    mutant: Option<&'static str>,
    kill: Option<(u64, u32)>,
    live: &Arc<AtomicI64>,
) -> usize {
    let bases: Vec<GlobalAddr> = desks.iter().map(|desk| desk.memory.1).collect();
    for (rank, job) in jobs {
        let (ask, asked) = channel();
        let (answers, answer) = channel();
        let split = desks[0].party.machine.cache().split();
        let (bases, live, is_dead) = (bases.clone(), live.clone(), Cell::new(false));
        let view = View { rank: Rank(rank), split, bases, ask, answer, is_dead, live };
        let thread = spawn(move || match mutant {
            #[cfg(debug_assertions)]
            Some(name) => tsumugi_core::sync::with_mutant(name, || job(&view)),
            _ => job(&view),
        });
        let client = Client { ask: asked, answer: answers, waits: Waits::No, thread };
        desks[rank as usize].clients.push(client);
    }
    desks.iter_mut().for_each(Desk::go_on);
    if let Some((after, rank)) = kill {
        net.run_until(Instant::from_ns(net.now().as_ns() + after), desks);
        net.kill(Rank(rank));
    }
    net.run_until(Instant::from_ns(net.now().as_ns() + END_NS), desks);
    let mut stuck = 0;
    for desk in desks {
        let dead = kill.is_some_and(|(_, rank)| Rank(rank) == desk.party.node.rank());
        for client in desk.clients.drain(..) {
            stuck += usize::from(!dead && !matches!(client.waits, Waits::Ended));
            drop(client.answer);
            drop(client.ask);
            if let Err(panic) = client.thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
    stuck
}

pub const NODES: u32 = 16;
const HEAP_BYTES: u64 = 1 << 16;
const CLIENTS_MAX: u64 = 4;
const SCRATCH_BYTES: u64 = 4096;
const PAUSE_NS: u64 = 100_000;
const END_NS: u64 = 2_000_000_000;
