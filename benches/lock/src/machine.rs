//! The ranks of a simulated machine, which lock and unlock.

use std::collections::HashMap;
use tsumugi_core::mem::{Access as MemoryAccess, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::sim::{CostModel, Net, SimConfig, SimEvent, SimNode};
use tsumugi_core::tag::Tag;
use tsumugi_core::time::{Clock, Instant};
use tsumugi_gas::lock::{
    AccessWait, FAN_MAX, LOCK_BYTES, Lock, LockDesign, LockKind, LockPlan, NODE_BYTES, NodeId,
    NodePool, NodeSlot, NodeTable, RankMembership, StepId, Tree, Vertex, VertexStep, Want,
    WindowAccess,
};

/// A phase of the ranks' work; phases run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All ranks lock and unlock all, for the first time.
    Cold,
    /// All ranks lock and unlock all, once more.
    Warm,
    /// One rank locks one target exclusively.
    Exclusive,
    /// One rank of each node locks its own target, all at once.
    Parallel,
    /// As in `Cold`, after the other phases.
    ColdAgain,
}

/// The cost of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Until the last rank had its lock.
    pub held_ns: u64,
    /// Until the last rank had released its lock.
    pub done_ns: u64,
    /// Operations between nodes.
    pub remote: u64,
    /// Operations on the word that had the most operations.
    pub on_a_word: u32,
}

/// The times at which a rank ended its last work.
#[derive(Clone, Copy, Debug)]
pub struct ClaimEnd {
    /// When the rank had its lock.
    pub held_ns: u64,
    /// When the rank had released its lock.
    pub done_ns: u64,
}

/// The machine and its ranks.
pub struct World {
    net: Net,
    ranks: Ranks,
    events: u64,
}

struct Ranks {
    members: Vec<Member>,
    tally: Tally,
}

struct Member {
    access: WindowAccess,
    slots: [NodeSlot; 1],
    node: NodeId,
    membership: RankMembership,
    vertices: Vec<Vertex>,
    key: RegionKey,
    is_pausing: bool,
    want: Option<Want>,
    rounds: u32,
    held_at: Instant,
    done_at: Instant,
}

#[derive(Default)]
struct Tally {
    node_ranks: u32,
    counts: bool,
    remote: u64,
    words: HashMap<(u32, u64), u32>,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 5] =
        [Self::Cold, Self::Warm, Self::Exclusive, Self::Parallel, Self::ColdAgain];

    /// The name of the phase.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Exclusive => "exclusive",
            Self::Parallel => "parallel",
            Self::ColdAgain => "cold again",
        }
    }
}

impl World {
    /// A machine in which no rank has locked anything. `counts`: whether operations
    /// are counted by word, which takes memory.
    pub fn new(design: LockDesign, ranks: u32, machine: CostModel, counts: bool) -> Self {
        let net = Net::new(SimConfig::big(ranks, machine));
        let key = RegionKey::new(0, 1);
        let nodes = NodeTable { key, offset: LOCK_BYTES };
        let tree = Tree::new(ranks, machine.node_ranks.min(FAN_MAX), ARITY, key, TREE_OFFSET);
        let tree = tree.expect("a tree of these sizes is possible");
        let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
        let plan = LockPlan { design, lock: Lock { home, nodes, kind: LockKind::Readers }, tree };
        let members = (0..ranks).map(Rank).map(|rank| {
            let bytes = TREE_OFFSET + tree.bytes_of(rank);
            let region = net.node(rank).allocate(bytes, MemoryAccess::ReadWrite);
            assert_eq!(region.expect("the first region is registered").key, key);
            Member {
                access: WindowAccess::new(plan),
                slots: [NodeSlot::default()],
                node: NodeId::NONE,
                membership: RankMembership::new(&plan, rank),
                vertices: tree.vertices_of(rank).map(|id| Vertex::new(tree, id)).collect(),
                key,
                is_pausing: false,
                want: None,
                rounds: 0,
                held_at: Instant::from_ns(0),
                done_at: Instant::from_ns(0),
            }
        });
        let members = members.collect();
        let tally = Tally { node_ranks: machine.node_ranks, counts, ..Tally::default() };
        Self { net, ranks: Ranks { members, tally }, events: 0 }
    }

    /// Runs one phase, until the last rank is done.
    pub fn run(&mut self, phase: Phase) -> Cost {
        let ranks = self.ranks.members.len() as u32;
        let wants = |rank: u32| match phase {
            Phase::Cold | Phase::Warm | Phase::ColdAgain => Some(Want::All),
            Phase::Exclusive => (rank == ranks / 2).then_some(Want::Exclusive(Rank(ranks - 1))),
            Phase::Parallel => (rank.is_multiple_of(self.ranks.tally.node_ranks))
                .then_some(Want::Exclusive(Rank(rank))),
        };
        let wants: Vec<Option<Want>> = (0..ranks).map(wants).collect();
        self.ranks.tally.words.clear();
        self.ranks.tally.remote = 0;
        let start = self.net.now();
        self.go(&wants, 1);
        let ended = self.ranks.members.iter().zip(&wants).filter(|(_, want)| want.is_some());
        let since = |at: Instant| at.as_ns() - start.as_ns();
        let times = ended.map(|(member, _)| (since(member.held_at), since(member.done_at)));
        let (held_ns, done_ns) =
            times.fold((0, 0), |most, times| (most.0.max(times.0), most.1.max(times.1)));
        let Tally { remote, words, .. } = &self.ranks.tally;
        Cost {
            held_ns,
            done_ns,
            remote: *remote,
            on_a_word: words.values().copied().max().unwrap_or(0),
        }
    }

    /// Makes all ranks lock and unlock all, so many times; returns the time of the
    /// slowest.
    pub fn run_rounds(&mut self, rounds: u32) -> u64 {
        let wants = vec![Some(Want::All); self.ranks.members.len()];
        self.go(&wants, rounds);
        self.ranks.members.iter().map(|member| member.done_at.as_ns()).max().unwrap_or(0)
    }

    /// The times at which each rank was done.
    pub fn ended(&self) -> impl Iterator<Item = ClaimEnd> {
        let times = |member: &Member| ClaimEnd {
            held_ns: member.held_at.as_ns(),
            done_ns: member.done_at.as_ns(),
        };
        self.ranks.members.iter().map(times)
    }

    /// The number of events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    fn go(&mut self, wants: &[Option<Want>], rounds: u32) {
        let Ranks { members, tally } = &mut self.ranks;
        for ((rank, member), want) in (0..).map(Rank).zip(members.iter_mut()).zip(wants) {
            let Some(want) = *want else { continue };
            (member.want, member.rounds) = (Some(want), rounds - 1);
            member.begin(rank, want);
            member.drive(&self.net.node(rank), tally);
        }
        while let Some((rank, event)) = self.net.step() {
            self.events += 1;
            if event != SimEvent::Nothing {
                members[rank.0 as usize].handle(&self.net.node(rank), event, tally);
            }
        }
        for (member, want) in members.iter().zip(wants) {
            assert!(
                member.want.is_none(),
                "no event is left, and {want:?} is not over: {:?}",
                member.access
            );
        }
    }
}

impl Member {
    fn begin(&mut self, rank: Rank, want: Want) {
        let mut pool = NodePool::new(rank, &mut self.slots);
        self.node = pool.try_take(|_| 0).expect("the member has released its node");
        self.access.begin(&mut self.membership, want, self.node).expect("the member holds nothing");
    }

    fn handle(&mut self, node: &SimNode<'_>, event: SimEvent, tally: &mut Tally) {
        match event {
            SimEvent::Completed(done) => {
                let (who, id) = (done.tag.to_bits() >> 32, done.tag.to_bits() as u32);
                match who {
                    0 => {
                        let id = StepId::from_bits(id);
                        self.access.handle_completed(&mut self.membership, id, done.result);
                    }
                    _ => {
                        let vertex = &mut self.vertices[who as usize - 1];
                        vertex.handle_completed(VertexStep::from_bits(id), done.result);
                    }
                }
            }
            SimEvent::Timer(_) => {
                self.is_pausing = false;
                self.access.handle_wake(&mut self.membership, 0);
            }
            _ => {}
        }
        self.drive(node, tally);
    }

    fn drive(&mut self, node: &SimNode<'_>, tally: &mut Tally) {
        for (index, vertex) in self.vertices.iter_mut().enumerate() {
            let load = |addr: RemoteAddr| node.load(addr.key, addr.offset);
            vertex.handle_words(load).expect("the node's own words");
            while let Some((step, op)) = vertex.poll_op() {
                let tag = (index as u64 + 1) << 32 | u64::from(step.to_bits());
                tally.post(node, &op.tagged(Tag::from_bits(tag)));
            }
        }
        loop {
            if let Some(waiting) = self.access.waits_for(&self.membership) {
                match waiting {
                    AccessWait::Word(word, until) => {
                        let value = node
                            .load(self.key, word.offset)
                            .expect("the word lies in the node's own memory");
                        if until.holds(value) {
                            self.access.handle_wake(&mut self.membership, value);
                        }
                    }
                    AccessWait::Pause(ns) if !self.is_pausing => {
                        self.is_pausing = true;
                        node.wake_at(Instant::from_ns(node.now().as_ns() + ns), 0);
                    }
                    AccessWait::Pause(_) => {}
                }
            }
            if let Some((step, op)) = self.access.poll_op(&mut self.membership) {
                tally.post(node, &op.tagged(Tag::from_bits(step.to_bits().into())));
            }
            let Some(want) = self.want else { return };
            match self.access.poll_done() {
                None => return,
                Some(Err(error)) => panic!("{want:?}: {error}"),
                Some(Ok(())) if self.access.is_held() => {
                    self.held_at = node.busy_until();
                    self.access.release(&mut self.membership);
                }
                Some(Ok(())) => {
                    NodePool::new(node.rank(), &mut self.slots).release(self.node, false);
                    self.done_at = node.busy_until();
                    if self.rounds == 0 {
                        self.want = None;
                        return;
                    }
                    self.rounds -= 1;
                    self.begin(node.rank(), want);
                }
            }
        }
    }
}

impl Tally {
    fn post(&mut self, node: &SimNode<'_>, op: &Op) {
        let Op { remote: RemoteAddr { rank, offset, .. }, .. } = *op;
        self.remote += u64::from(rank.0 / self.node_ranks != node.rank().0 / self.node_ranks);
        if self.counts {
            *self.words.entry((rank.0, offset)).or_default() += 1;
        }
        node.post(op);
    }
}

const ARITY: u32 = 16;
const TREE_OFFSET: u64 = (LOCK_BYTES + NODE_BYTES).next_multiple_of(64);

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({} ranks)", self.ranks.members.len())
    }
}
