//! The memory of all ranks as words of this process. It knows the allocated blocks: an access
//! outside of them is a defect.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::Kind;
use tsumugi_core::signal::Until;
use tsumugi_gas::address::{AddressParts, GlobalAddr, Split};
use tsumugi_gas::container::{Store, free, malloc, nodes_bytes};
use tsumugi_gas::heap::{Heap, HeapError};
use tsumugi_gas::lock::{NodeId, NodePool, NodeSlot};
use tsumugi_gas::request::WordRequest;

/// The memory of a job.
pub struct Plain {
    ranks: Vec<Vec<AtomicU64>>,
    pools: Vec<Mutex<NodePool<'static>>>,
    live: Mutex<BTreeMap<GlobalAddr, u64>>,
}

/// The view of one rank.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub plain: &'a Plain,
    pub rank: Rank,
}

impl Plain {
    pub fn new(ranks: u32) -> Self {
        let words = |_| (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        let pool = |rank| {
            let slots = Box::leak(vec![NodeSlot::default(); NODES as usize].into_boxed_slice());
            Mutex::new(NodePool::new(Rank(rank), slots))
        };
        let pools = (0..ranks).map(pool).collect();
        Self { ranks: (0..ranks).map(words).collect(), pools, live: Mutex::default() }
    }

    pub fn view(&self, rank: u32) -> View<'_> {
        View { plain: self, rank: Rank(rank) }
    }

    /// The number of blocks that were not freed.
    pub fn live(&self) -> usize {
        self.live.lock().unwrap().len()
    }

    fn check(&self, addr: GlobalAddr, bytes: u64) {
        let live = self.live.lock().unwrap();
        let block = live.range(..=addr).next_back();
        let inside = block.and_then(|(&start, &size)| {
            let offset = SPLIT.distance(start, addr)? as u64;
            Some(offset + bytes <= size)
        });
        assert_eq!(inside, Some(true), "{bytes} bytes at {}", SPLIT.show(addr));
    }

    /// The word of a rank that contains the address, and the byte in it.
    fn place(&self, addr: GlobalAddr) -> (&[AtomicU64], usize) {
        let place = SPLIT.place(addr).expect("an address");
        (&self.ranks[place.rank.0 as usize], place.offset as usize)
    }

    fn word(&self, addr: GlobalAddr) -> &AtomicU64 {
        let (words, offset) = self.place(addr);
        assert_eq!(offset % 8, 0, "{}", SPLIT.show(addr));
        &words[offset / 8]
    }

    fn heap(rank: Rank) -> Heap {
        Heap::new(SPLIT, base(rank, nodes_bytes(NODES)), BYTES - nodes_bytes(NODES))
    }

    /// An atomic on a heap's bits or a node's words, or on a block.
    fn execute(&self, word: WordRequest) -> u64 {
        let at = self.word(word.target());
        let remote = tsumugi_core::mem::RemoteAddr {
            rank: Rank(0),
            key: tsumugi_core::mem::RegionKey::from_bits(0),
            offset: 0,
        };
        let op = word.at(remote);
        let new = op.operand();
        match op.kind {
            Kind::GetWord => at.load(Ordering::SeqCst),
            Kind::PutWord | Kind::Swap => at.swap(new, Ordering::SeqCst),
            Kind::FetchAdd => at.fetch_add(new, Ordering::SeqCst),
            Kind::FetchAnd => at.fetch_and(new, Ordering::SeqCst),
            Kind::FetchOr => at.fetch_or(new, Ordering::SeqCst),
            Kind::FetchXor => at.fetch_xor(new, Ordering::SeqCst),
            Kind::CompareSwap => at
                .compare_exchange(op.compare(), new, Ordering::SeqCst, Ordering::SeqCst)
                .unwrap_or_else(|old| old),
            kind => panic!("{kind:?} is no operation on a word"),
        }
    }
}

impl Store for View<'_> {
    fn split(&self) -> Split {
        SPLIT
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn read(&self, from: GlobalAddr, into: &mut [u8]) -> Result<(), AddrError<GlobalAddr>> {
        self.plain.check(from, into.len() as u64);
        let (words, first) = self.plain.place(from);
        for (at, byte) in into.iter_mut().enumerate() {
            let at = first + at;
            *byte = words[at / 8].load(Ordering::Relaxed).to_le_bytes()[at % 8];
        }
        Ok(())
    }

    fn write(&self, to: GlobalAddr, bytes: &[u8]) -> Result<(), AddrError<GlobalAddr>> {
        self.plain.check(to, bytes.len() as u64);
        let (words, first) = self.plain.place(to);
        for (at, byte) in bytes.iter().enumerate() {
            let at = first + at;
            let mut whole = words[at / 8].load(Ordering::Relaxed).to_le_bytes();
            whole[at % 8] = *byte;
            words[at / 8].store(u64::from_le_bytes(whole), Ordering::Relaxed);
        }
        Ok(())
    }

    fn copy(
        &self,
        dst: GlobalAddr,
        src: GlobalAddr,
        bytes: u64,
    ) -> Result<(), AddrError<GlobalAddr>> {
        if let Some(distance) = SPLIT.distance(src, dst) {
            assert!(distance.unsigned_abs() >= bytes, "the two ranges overlap");
        }
        let mut copied = vec![0; bytes as usize];
        self.read(src, &mut copied)?;
        self.write(dst, &copied)
    }

    fn word(&self, word: WordRequest) -> Result<u64, AddrError<GlobalAddr>> {
        let place = SPLIT.place(word.target()).expect("an address");
        if place.offset >= nodes_bytes(NODES) {
            self.plain.check(word.target(), 8);
        }
        Ok(self.plain.execute(word))
    }

    fn allocate(&self, rank: Rank, bytes: u64) -> Result<GlobalAddr, HeapError> {
        let addr =
            malloc(&Plain::heap(rank), bytes, self.rank.0, |word| Ok(self.plain.execute(word)))?;
        self.plain.live.lock().unwrap().insert(addr, bytes);
        // Fresh memory is not zero.
        self.write(addr, &vec![0xee; bytes as usize]).map_err(HeapError::Access)?;
        Ok(addr)
    }

    fn free(&self, addr: GlobalAddr) -> Result<(), HeapError> {
        let known = self.plain.live.lock().unwrap().remove(&addr);
        assert!(known.is_some(), "{} is freed but was not allocated", SPLIT.show(addr));
        let rank = SPLIT.rank(addr).expect("an address");
        free(&Plain::heap(rank), addr, |word| Ok(self.plain.execute(word)))
    }

    fn nodes(&self, rank: Rank) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
        Ok(base(rank, 0))
    }

    fn take_node(&self) -> NodeId {
        let own = &self.plain.ranks[self.rank.0 as usize];
        loop {
            let mut pool = self.plain.pools[self.rank.0 as usize].lock().unwrap();
            let load = |slot: usize| own[slot * 2].load(Ordering::Acquire);
            if let Some(node) = pool.try_take(load) {
                return node;
            }
            drop(pool);
            std::thread::yield_now();
        }
    }

    fn release_node(&self, node: NodeId, has_left: bool) {
        self.plain.pools[self.rank.0 as usize].lock().unwrap().release(node, has_left);
    }

    fn wait(&self, at: GlobalAddr, until: Until) -> Result<u64, AddrError<GlobalAddr>> {
        assert_eq!(SPLIT.rank(at), Some(self.rank), "a rank waits on its own word");
        let word = self.plain.word(at);
        loop {
            let value = word.load(Ordering::Acquire);
            if until.holds(value) {
                return Ok(value);
            }
            std::thread::yield_now();
        }
    }

    fn lost(&self) -> Option<Rank> {
        None
    }

    fn pause(&self) {
        std::thread::yield_now();
    }
}

fn base(rank: Rank, offset: u64) -> GlobalAddr {
    SPLIT.addr(AddressParts { rank, color: 0, region: 0, life: 0, offset }).expect("the place fits")
}

pub const SPLIT: Split = Split::DEFAULT;
const BYTES: u64 = 4 << 20;
const NODES: u32 = 256;
