//! Claims that block, on real threads: the protected data, and not the lock's own words, show
//! whether they exclude each other.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;
use tsumugi_core::backend::{Domain, LoadStore, Loopback, execute};
use tsumugi_core::mem::{Access, AddrError, Need, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::{ParkingLot, Until, Waiters};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_gas::lock::drive::{self, LockDriver, LockRefused};
use tsumugi_gas::lock::{
    LOCK_BYTES, Lock, LockClaim, LockKind, LockMode, NODE_BYTES, NodeId, NodePool, NodeSlot,
    NodeTable,
};

/// Puts a thread to sleep.
struct Threads;

struct Sleeper {
    woken: AtomicBool,
    thread: Thread,
}

// SAFETY: `commit` runs while the waker already finds the sleeper, which the
// waker keeps alive by itself; `sleep` returns after the wake.
unsafe impl Wait for Threads {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let (woken, thread) = (AtomicBool::new(false), thread::current());
        let sleeper = Arc::new(Sleeper { woken, thread });
        let data = Arc::into_raw(Arc::clone(&sleeper));
        // SAFETY: the waker owns one count of the sleeper.
        if commit(unsafe { Waker::new(data.cast(), wake) }) {
            while !sleeper.woken.load(Ordering::Acquire) {
                thread::park();
            }
        } else {
            // SAFETY: refused, so the waker's count is left to us.
            drop(unsafe { Arc::from_raw(data) });
        }
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the count that `sleep` gave to the waker.
    let sleeper = unsafe { Arc::from_raw(data.cast::<Sleeper>()) };
    sleeper.woken.store(true, Ordering::Release);
    sleeper.thread.unpark();
}

/// A rank that is a thread.
struct Own<'a, L> {
    memory: &'a L,
    parking_lot: &'a ParkingLot,
    waiters: &'a Waiters,
}

impl<L: LoadStore> LockDriver for Own<'_, L> {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        execute(self.memory, op)
    }

    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        if limit.is_some() {
            // A look without any wait.
            let value = self.carry(&Op::atomic(OpKind::FetchAdd, at, 0u64))?;
            return Ok(until.holds(value).then_some(value));
        }
        let word = self.memory.resolve(at, 8, Need::Read)?;
        // SAFETY: resolved for 8 bytes of leaked words, only used as atomics.
        let word = unsafe { word.cast::<tsumugi_core::sync::AtomicU64>().as_ref() };
        self.waiters.wait(self.parking_lot, word, until, &Threads).map(Some)
    }
}

/// Two counters that are equal whenever no thread writes, and that lose an increment if two
/// threads write at once.
#[derive(Default)]
struct Protected([AtomicU64; 2]);

impl Protected {
    fn write(&self) {
        for counter in &self.0 {
            let value = counter.load(Ordering::Relaxed);
            thread::yield_now();
            counter.store(value + 1, Ordering::Relaxed);
        }
    }

    fn read(&self) {
        let [first, second] = [0, 1].map(|index| self.0[index].load(Ordering::Relaxed));
        assert_eq!(first, second, "a reader beside a writer");
    }
}

fn all_writes_count(kind: LockKind) {
    let parking_lots: [ParkingLot; RANKS] = Default::default();
    let waiters: [Waiters; RANKS] = Default::default();
    let notify = |addr: RemoteAddr, at: NonNull<u8>| {
        let owner = addr.rank.0 as usize;
        if parking_lots[owner].announce(at.as_ptr() as u64) {
            waiters[owner].drain(&parking_lots[owner]);
        }
    };
    let job = Loopback::<RANKS>::new(RANKS as u32).notifying(&notify);
    let bytes = LOCK_BYTES + NODES as u64 * NODE_BYTES;
    let key = RegionKey::new(0, 1);
    for rank in (0..RANKS as u32).map(Rank) {
        let words: &'static mut [u64] = vec![0; bytes as usize / 8].leak();
        let base = NonNull::from(words).cast();
        // SAFETY: leaked, and used by nothing else.
        let region = unsafe { job.rank(rank).register(base, bytes, Access::ReadWrite) };
        assert_eq!(region.expect("a first region").key, key);
    }
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let lock = Lock { home, nodes: NodeTable { key, offset: LOCK_BYTES }, kind };
    let protected = Protected::default();
    thread::scope(|scope| {
        for rank in 0..RANKS {
            let (job, protected) = (&job, &protected);
            let (parking_lot, waiters) = (&parking_lots[rank], &waiters[rank]);
            scope.spawn(move || {
                let memory = job.rank(Rank(rank as u32));
                let own = Own { memory: &memory, parking_lot, waiters };
                let mut slots = [NodeSlot::default(); NODES];
                let mut pool = NodePool::new(Rank(rank as u32), &mut slots);
                for round in 0..ROUNDS {
                    let writes = kind == LockKind::Mutex || (round + rank).is_multiple_of(2);
                    let mode = if writes { LockMode::Exclusive } else { LockMode::Shared };
                    let state = |slot: usize| {
                        let offset = LOCK_BYTES + slot as u64 * NODE_BYTES;
                        let at = RemoteAddr { rank: Rank(rank as u32), key, offset };
                        own.carry(&Op::atomic(OpKind::FetchAdd, at, 0u64))
                            .expect("a word of this rank")
                    };
                    let asked = match round % 3 {
                        0 => None,
                        1 => {
                            let node = take(&mut pool, state);
                            Some(drive::try_lock(&own, &lock, mode, node))
                        }
                        _ => {
                            let node = take(&mut pool, state);
                            Some(drive::lock_timeout(&own, &lock, mode, Duration::ZERO, node))
                        }
                    };
                    let held = match asked.transpose().expect("no rank dies") {
                        Some(Ok(held)) => held,
                        refused => {
                            if let Some(Err(LockRefused { node, has_left })) = refused {
                                pool.release(node, has_left);
                            }
                            let node = |_: &LockClaim| take(&mut pool, state);
                            drive::lock(&own, &lock, mode, node).expect("no rank dies")
                        }
                    };
                    if writes {
                        protected.write()
                    } else {
                        protected.read()
                    }
                    if let Some(node) = held.unlock(&own, &lock).expect("no rank dies") {
                        pool.release(node, false);
                    }
                }
            });
        }
    });
    let each = if kind == LockKind::Mutex { ROUNDS } else { ROUNDS / 2 };
    let [first, second] = protected.0.map(AtomicU64::into_inner);
    assert_eq!((first, second), ((each * RANKS) as u64, (each * RANKS) as u64), "{kind:?}");
}

/// A free node; abandoned nodes are free soon.
fn take(pool: &mut NodePool<'_>, state: impl Fn(usize) -> u64) -> NodeId {
    loop {
        match pool.try_take(&state) {
            Some(node) => return node,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn claims_on_threads_protect_their_data() {
    for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        all_writes_count(kind);
    }
}

const RANKS: usize = 3;
/// The queue nodes of a rank, of which some were abandoned in a queue.
const NODES: usize = 8;
const ROUNDS: usize = 500;
