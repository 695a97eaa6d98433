//! The machine itself under the explorer.
//!
//! A machine cannot be copied, so each path is run from its start. Two paths lead to the same
//! state if each rank got the same inputs in the same order: steps of different ranks commute.

mod node;
mod step;
mod verdict;
mod world;

use crate::program::{Judged, Message, Op, Program, sender};
use crate::search::{Failure, Reached, Replay};
use crate::wire::Net;
use node::{BoardMemory, Memory, Node};
use std::cell::RefCell;
pub use step::Step;
use tsumugi_core::mem;
use tsumugi_core::msg::locked_matching::Board;
use tsumugi_core::msg::{MatchingDesign, MessageShape};
use world::World;

/// A program on real machines.
pub struct Real<'p> {
    pub judged: Judged<'p>,
    pub design: MatchingDesign,
    /// The lengths of the messages, by their number at the sender.
    pub sizes: [u64; 3],
    pub quota: u32,
    pub by: By,
    /// Whether a lone offer waits for a packet to ride on.
    pub rides: bool,
}

/// The side that copies long messages without a known receive; `Both` copies all long messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Receiver,
    Sender,
    Both,
}

/// The lengths of the messages, the number of them that may be without a receive, the side
/// that copies the long ones, and whether lone offers wait.
pub type Sizes = ([u64; 3], u32, By, bool);

/// A message that travels in its packet.
pub const SHORT: u64 = 8;
/// A message that is copied inside the call.
pub const MIDDLE: u64 = 1000;
/// A message that is copied by a job.
pub const LONG: u64 = 20_000;
/// The minimum that each of two copying sides claims: a long message has three parts.
const PART: u64 = 8 << 10;
/// The number of requests of each machine.
const REQUESTS: usize = 6;

impl<'p> Real<'p> {
    pub fn new(
        program: &'p Program,
        design: MatchingDesign,
        (sizes, quota, by, rides): Sizes,
    ) -> Self {
        Self { judged: Judged::new(program), design, sizes, quota, by, rides }
    }

    fn shape(&self) -> MessageShape {
        let peers = u32::from(self.judged.size());
        MessageShape { peers, lines: 8, slots: 2, slot_bytes: 2048, quota: self.quota, mirror: 4 }
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

    /// Takes all these steps in a new world, and then calls `look` on it.
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
            let mut node = Node::new(mem::PeerIndex(rank as u32), self, memory);
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
