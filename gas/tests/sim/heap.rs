//! Every rank takes blocks of every rank's heap, marks them, checks that the mark is still there,
//! and frees them.

use super::rank::{Party, Room, Sizes};
use super::*;
use std::collections::HashMap;
use tsumugi_core::mem::AddrError;
use tsumugi_core::op::Kind;
use tsumugi_core::sim::{Actor, Net, SimEvent as Told, SimNode, check};
use tsumugi_core::time::Instant;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::heap::{Heap, HeapError, HeapFree, HeapMalloc, HeapStep};
use tsumugi_gas::machine::MachineOutput;
use tsumugi_gas::order::{After, Handle};
use tsumugi_gas::request::WordRequest;

/// One kind of granule, in one word or two.
const BYTES: u64 = 9000;

enum Doing {
    Taking(HeapMalloc),
    /// The first and the last word of the block are written and read.
    Marking {
        addr: GlobalAddr,
        words: [GlobalAddr; 2],
        step: usize,
    },
    Giving(HeapFree),
}

struct Program<'n> {
    party: Party<'n>,
    heaps: Vec<Heap>,
    draw: Seeded,
    left: u64,
    live: HashMap<Handle, (usize, Doing, u64)>,
    taken: u64,
    full: u64,
}

impl Program<'_> {
    fn act(&mut self) {
        while self.left > 0 && self.live.len() < 4 {
            self.left -= 1;
            let at = self.draw.below(self.heaps.len() as u64) as usize;
            let bytes = 8 + self.draw.below(400);
            let malloc = self.heaps[at].malloc(bytes, self.draw.below(2) as u32);
            self.go_on(at, Doing::Taking(malloc), bytes, None);
        }
        self.party.pump();
    }

    /// Begins the next step of a block, after an answer.
    fn go_on(
        &mut self,
        at: usize,
        mut doing: Doing,
        bytes: u64,
        mut answer: Option<Result<u64, AddrError<GlobalAddr>>>,
    ) {
        let word = loop {
            doing = match doing {
                Doing::Taking(mut malloc) => match malloc.step(answer.take()) {
                    HeapStep::Do(word) => break (word, Doing::Taking(malloc)),
                    HeapStep::Done(Err(HeapError::NoMemory { .. })) => {
                        self.full += 1;
                        return;
                    }
                    HeapStep::Done(result) => {
                        self.taken += 1;
                        let addr = result.unwrap();
                        let last = (bytes - 8) / 8 * 8;
                        let last = GlobalAddr::from_bits(addr.to_bits() + last);
                        Doing::Marking { addr, words: [addr, last], step: 0 }
                    }
                },
                Doing::Marking { addr, words, step } => {
                    let mark = self.mark(addr);
                    if step >= 3 {
                        assert_eq!(answer.take(), Some(Ok(mark)), "the block of {addr}");
                    }
                    let kind = if step < 2 { Kind::Swap } else { Kind::GetWord };
                    if step < 4 {
                        let word = WordRequest::atomic(kind, words[step % 2], mark);
                        break (word, Doing::Marking { addr, words, step: step + 1 });
                    }
                    Doing::Giving(self.heaps[at].free(addr))
                }
                Doing::Giving(mut free) => match free.step(answer.take()) {
                    HeapStep::Do(word) => break (word, Doing::Giving(free)),
                    HeapStep::Done(result) => {
                        result.unwrap();
                        return;
                    }
                },
            };
        };
        let (word, doing) = word;
        let handle = self.party.machine.try_issue(word.into(), After::Nothing).unwrap();
        self.live.insert(handle, (at, doing, bytes));
    }

    fn mark(&self, addr: GlobalAddr) -> u64 {
        addr.to_bits() ^ u64::from(self.party.node.rank().0 + 1) << 56
    }

    fn take_outs(&mut self) {
        while let Some(out) = self.party.outs.pop_front() {
            let MachineOutput::Ended { handle, result } = out else { continue };
            let (at, doing, bytes) = self.live.remove(&handle).expect("once");
            self.go_on(at, doing, bytes, Some(result));
        }
    }
}

impl Actor for Program<'_> {
    fn on_event(&mut self, _: &SimNode<'_>, event: Told) {
        self.party.on_event(event);
        self.take_outs();
        self.act();
    }
}

fn run(seed: u64) -> (u64, u64) {
    let ranks = 2 + Seeded(seed).below(3) as u32;
    let net = Net::new(config(ranks, seed));
    let sizes = Sizes::new(ranks);
    let mut rooms: Vec<Room> = (0..ranks).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let heaps: Vec<Heap> = parties
        .iter_mut()
        .map(|party| Heap::new(sizes.split, party.open(BYTES).1, BYTES))
        .collect();
    let mut programs: Vec<Program<'_>> = parties
        .into_iter()
        .map(|party| {
            let draw = Seeded(seed ^ u64::from(party.node.rank().0) << 40);
            let (heaps, live) = (heaps.clone(), HashMap::new());
            Program { party, heaps, draw, left: 15, live, taken: 0, full: 0 }
        })
        .collect();
    net.start(&mut programs);
    programs.iter_mut().for_each(Program::act);
    net.run_until(Instant::from_ns(200_000_000), &mut programs);
    let mut counts = (0, 0);
    for program in &programs {
        assert_eq!((program.left, program.live.len()), (0, 0), "{:?}", program.party.machine);
        counts = (counts.0 + program.taken, counts.1 + program.full);
    }
    counts
}

#[test]
fn a_block_belongs_to_one_taker() {
    let mut counts = (0, 0);
    let is_own = check(SEEDS, |seed| {
        let (taken, full) = run(seed);
        counts = (counts.0 + taken, counts.1 + full);
    });
    assert!(
        counts.0 > 10_000 || !is_own,
        "{} taken, {} times there was no room",
        counts.0,
        counts.1
    );
}

#[test]
#[cfg(debug_assertions)]
fn planted_defects_are_caught() {
    assert_caught(&["gas_heap_used_first"], |seed| {
        run(seed);
    });
}
