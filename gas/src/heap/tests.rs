//! One caller alone, then every interleaving of the atomics of a few callers.

extern crate std;
use super::*;
use crate::address::{AddressParts, GlobalAddr};
use std::collections::HashSet;
use std::vec;
use std::vec::Vec;
use tsumugi_core::mem::Rank;

fn base() -> GlobalAddr {
    let place = AddressParts { rank: Rank(3), color: 0, region: 1, life: 0, offset: 0 };
    Split::DEFAULT.addr(place).unwrap()
}

fn heap(bytes: u64) -> Heap {
    Heap::new(Split::DEFAULT, base(), bytes)
}

fn offset(addr: GlobalAddr) -> u64 {
    Split::DEFAULT.distance(base(), addr).unwrap() as u64
}

/// The words of a heap's bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Memory(Vec<u64>);

impl Memory {
    fn new(heap: &Heap) -> Self {
        Self(vec![0; heap.granules_at[0] as usize / 8])
    }

    fn execute(&mut self, word: &WordRequest) -> u64 {
        let cell = &mut self.0[offset(word.target) as usize / 8];
        let old = *cell;
        *cell = match word.kind {
            Atomic::CompareSwap if old == word.compare => word.operand,
            Atomic::CompareSwap | Atomic::GetWord => old,
            Atomic::FetchOr => old | word.operand,
            Atomic::FetchAnd => old & word.operand,
            other => panic!("{other:?}"),
        };
        old
    }

    fn malloc(&mut self, heap: &Heap, bytes: u64, hint: u32) -> Result<GlobalAddr, HeapError> {
        let (mut malloc, mut answer) = (heap.malloc(bytes, hint), None);
        loop {
            match malloc.step(answer) {
                HeapStep::Do(word) => answer = Some(Ok(self.execute(&word))),
                HeapStep::Done(result) => return result,
            }
        }
    }

    fn free(&mut self, heap: &Heap, addr: GlobalAddr) -> Result<(), HeapError> {
        let (mut free, mut answer) = (heap.free(addr), None);
        loop {
            match free.step(answer) {
                HeapStep::Do(word) => answer = Some(Ok(self.execute(&word))),
                HeapStep::Done(result) => return result,
            }
        }
    }
}

#[test]
fn blocks_never_overlap_and_can_all_be_freed() {
    let bytes = 4 << 20;
    let heap = heap(bytes);
    let mut memory = Memory::new(&heap);
    let empty = memory.clone();
    let (mut state, mut blocks) = (7u64, Vec::new());
    for round in 0..4000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let size = (state >> 33) % (1 << ((state >> 20) % 18));
        if round % 3 != 2 {
            let Ok(addr) = memory.malloc(&heap, size, (state >> 40) as u32) else { continue };
            let start = offset(addr);
            assert!(start >= heap.granules_at[0] && start + size.max(1) <= bytes);
            blocks.push((start, size.max(1), addr));
        } else if !blocks.is_empty() {
            let at = (state >> 30) as usize % blocks.len();
            let (.., addr) = blocks.swap_remove(at);
            assert_eq!(memory.free(&heap, addr), Ok(()));
        }
    }
    blocks.sort_unstable();
    assert!(blocks.len() > 100, "{} blocks", blocks.len());
    for pair in blocks.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
    }
    for (.., addr) in blocks {
        assert_eq!(memory.free(&heap, addr), Ok(()));
    }
    assert_eq!(memory, empty);
}

#[test]
fn a_full_heap_refuses_a_request() {
    let heap = heap(20_000);
    let mut memory = Memory::new(&heap);
    let mut blocks = Vec::new();
    while let Ok(addr) = memory.malloc(&heap, 64, 5) {
        blocks.push(addr);
    }
    assert_eq!(blocks.len(), 64 * heap.words[0] as usize);
    let bytes = 1;
    assert_eq!(memory.malloc(&heap, bytes, 0), Err(HeapError::NoMemory { bytes }));
    memory.free(&heap, blocks[9]).unwrap();
    assert_eq!(memory.malloc(&heap, 64, 0), Ok(blocks[9]));
}

#[test]
fn wrong_requests_are_errors() {
    let heap = heap(1 << 20);
    let mut memory = Memory::new(&heap);
    let (bytes, bytes_max) = (1 << 30, heap.block_bytes_max());
    assert_eq!(memory.malloc(&heap, bytes, 0), Err(HeapError::TooLarge { bytes, bytes_max }));
    let addr = memory.malloc(&heap, 100, 0).unwrap();
    let inside = Split::DEFAULT.add(addr, 8).unwrap();
    for wrong in [inside, base(), GlobalAddr::NULL] {
        assert_eq!(memory.free(&heap, wrong), Err(HeapError::NoBlock { addr: wrong }));
    }
    assert_eq!(memory.free(&heap, addr), Ok(()));
    assert_eq!(memory.free(&heap, addr), Err(HeapError::NoBlock { addr }), "twice");
}

/// A caller that takes a block, gives it back, and takes another one.
#[derive(Clone)]
struct Caller {
    bytes: [u64; 2],
    stage: usize,
    malloc: HeapMalloc,
    free: Option<HeapFree>,
    answer: Option<Result<u64, AddrError<GlobalAddr>>>,
    holds: Option<(u64, u64)>,
}

impl Caller {
    fn new(heap: &Heap, bytes: [u64; 2]) -> Self {
        let malloc = heap.malloc(bytes[0], 0);
        Self { bytes, stage: 0, malloc, free: None, answer: None, holds: None }
    }

    /// Runs the caller up to and including its next atomic; false: the caller has
    /// ended.
    fn step(&mut self, heap: &Heap, memory: &mut Memory) -> bool {
        loop {
            let answer = self.answer.take();
            match (self.stage, &mut self.free) {
                (0 | 2, _) => match self.malloc.step(answer) {
                    HeapStep::Do(word) => {
                        self.answer = Some(Ok(memory.execute(&word)));
                        return true;
                    }
                    HeapStep::Done(result) => {
                        let addr = result.expect("the heap has room for all callers");
                        self.holds = Some((offset(addr), self.bytes[self.stage / 2]));
                        self.free = Some(heap.free(addr));
                        self.stage += 1;
                        // The caller has the block here, between two atomics of
                        // other callers.
                        return true;
                    }
                },
                (1, Some(free)) => {
                    self.holds = None;
                    match free.step(answer) {
                        HeapStep::Do(word) => {
                            self.answer = Some(Ok(memory.execute(&word)));
                            return true;
                        }
                        HeapStep::Done(result) => {
                            result.expect("the caller's own block");
                            self.malloc = heap.malloc(self.bytes[1], 0);
                            self.stage = 2;
                        }
                    }
                }
                _ => return false,
            }
        }
    }
}

type State = (usize, (u8, u64, u64), Option<(u8, u64)>, Option<u64>);
type Seen = (Memory, Vec<State>);

/// Explores every order of the callers' atomics.
fn explore(heap: &Heap, memory: &Memory, callers: &[Caller], seen: &mut HashSet<Seen>) {
    // All state that determines the further steps.
    let state = |caller: &Caller| {
        let HeapMalloc { phase, known, wanted, .. } = caller.malloc;
        let free = caller.free.map(|free| (free.phase as u8, free.run));
        (caller.stage, (phase as u8, known, wanted), free, caller.answer.map(Result::unwrap))
    };
    let key = (memory.clone(), callers.iter().map(state).collect());
    if !seen.insert(key) {
        return;
    }
    let mut held: Vec<(u64, u64)> = callers.iter().filter_map(|caller| caller.holds).collect();
    held.sort_unstable();
    for pair in held.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "two callers have {pair:?}");
    }
    let mut is_over = true;
    for at in 0..callers.len() {
        let (mut memory, mut callers) = (memory.clone(), callers.to_vec());
        if callers[at].step(heap, &mut memory) {
            is_over = false;
            explore(heap, &memory, &callers, seen);
        }
    }
    if is_over {
        let mut memory = memory.clone();
        for (start, _) in held {
            let addr = Split::DEFAULT.add(base(), start as i64).unwrap();
            assert_eq!(memory.free(heap, addr), Ok(()));
        }
        assert_eq!(memory, Memory::new(heap), "the memory is as before when all blocks are freed");
    }
}

fn explore_all() -> usize {
    let heap = heap(5000);
    assert_eq!(heap.words[0], 1, "all callers want the same word");
    let mut callers = [[64, 128], [128, 64], [1, 100]].map(|bytes| Caller::new(&heap, bytes));
    // The third caller only takes its second block.
    callers[2] = Caller { malloc: heap.malloc(100, 0), stage: 2, ..callers[2].clone() };
    let mut seen = HashSet::new();
    explore(&heap, &Memory::new(&heap), &callers, &mut seen);
    seen.len()
}

#[test]
fn no_order_of_atomics_duplicates_or_loses_a_block() {
    let states = explore_all();
    assert!(states > 1000, "{states} states");
}

#[test]
#[cfg(debug_assertions)]
fn freeing_a_block_before_clearing_its_end_is_caught() {
    let caught = tsumugi_core::sync::with_mutant("gas_heap_used_first", || {
        std::panic::catch_unwind(explore_all).is_err()
    });
    assert!(caught, "the mutant was not caught");
}
