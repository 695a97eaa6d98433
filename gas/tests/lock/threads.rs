//! Claims that block, on real threads: what they protect tells whether they
//! exclude each other, not the lock's own words.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use tsumugi_core::backend::{Domain, Loopback};
use tsumugi_core::coll::Part;
use tsumugi_core::mem::{Access, AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::signal::{Lot, Waiters};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_gas::lock::{
    Claim, Kind, LOCK_BYTES, Lock, Mode, NODE_BYTES, NodePool, NodeSlot, NodeTable, drive,
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
    fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
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

/// Two counters that are equal whenever nobody writes, and lose an increment
/// if two do.
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

fn all_writes_count(kind: Kind) {
    let lots: [Lot; RANKS] = Default::default();
    let waiters: [Waiters; RANKS] = Default::default();
    let notify = |addr: RemoteAddr, at: NonNull<u8>| {
        let owner = addr.rank.0 as usize;
        if lots[owner].announce(at.as_ptr() as u64) {
            waiters[owner].drain(&lots[owner]);
        }
    };
    let job = Loopback::<RANKS>::new(RANKS as u32).notifying(&notify);
    let bytes = LOCK_BYTES + NODE_BYTES;
    let key = RegionKey::new(0, 1);
    for rank in (0..RANKS as u32).map(Rank) {
        let words: &'static mut [u64] = vec![0; bytes as usize / 8].leak();
        let base = NonNull::from(words).cast();
        // SAFETY: leaked, and nobody else's.
        let region = unsafe { job.rank(rank).register(base, bytes, Access::ReadWrite) };
        assert_eq!(region.expect("a first region").key, key);
    }
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let lock = Lock { home, nodes: NodeTable { key, offset: LOCK_BYTES }, kind };
    let protected = Protected::default();
    thread::scope(|scope| {
        for rank in 0..RANKS {
            let (job, protected) = (&job, &protected);
            let (lot, waiters) = (&lots[rank], &waiters[rank]);
            scope.spawn(move || {
                let memory = job.rank(Rank(rank as u32));
                let elsewhere = |op: &Op| Err(AddrError::OtherNode { rank: op.remote.rank });
                let (wait, elsewhere) = (&Threads, &elsewhere);
                let part = Part { memory: &memory, lot, waiters, wait, elsewhere };
                let mut slots = [NodeSlot::default()];
                let mut pool = NodePool::new(Rank(rank as u32), &mut slots);
                for round in 0..ROUNDS {
                    let writes = kind == Kind::Mutex || (round + rank).is_multiple_of(2);
                    let mode = if writes { Mode::Exclusive } else { Mode::Shared };
                    let work = || if writes { protected.write() } else { protected.read() };
                    let mut take = || pool.try_take(|_| 0).expect("each is given back");
                    if round.is_multiple_of(3) {
                        let held = drive::lock(&part, &lock, mode, take).expect("nobody dies");
                        work();
                        if let Some(node) = held.unlock(&part).expect("nobody dies") {
                            pool.release(node, false);
                        }
                        continue;
                    }
                    let mut claim = Claim::new(lock, take());
                    // With phases a try may leave its node behind.
                    let tries = round % 3 == 1 && matches!(kind, Kind::Mutex | Kind::Readers);
                    let tried = tries && {
                        let ended = drive::try_acquire(&part, &mut claim, mode);
                        ended.expect("nobody dies").is_none()
                    };
                    if !tried {
                        pool.release(claim.node(), false);
                        claim = Claim::new(lock, pool.try_take(|_| 0).expect("each is given back"));
                        drive::acquire(&part, &mut claim, mode).expect("nobody dies");
                    }
                    work();
                    drive::release(&part, &mut claim).expect("nobody dies");
                    pool.release(claim.node(), false);
                }
            });
        }
    });
    let each = if kind == Kind::Mutex { ROUNDS } else { ROUNDS / 2 };
    let [first, second] = protected.0.map(AtomicU64::into_inner);
    assert_eq!((first, second), ((each * RANKS) as u64, (each * RANKS) as u64), "{kind:?}");
}

#[test]
fn claims_on_threads_protect_what_they_claim() {
    for kind in [Kind::Mutex, Kind::Readers, Kind::Neutral, Kind::Writers] {
        all_writes_count(kind);
    }
}

const RANKS: usize = 3;
const ROUNDS: usize = 500;
