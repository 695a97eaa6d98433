//! What a lock costs that nobody else wants, in this process: beside two
//! atomics by the same way, which is the least that it can cost.
//!
//! ```text
//! cargo run --release -p tsumugi-gas --example lock_alone
//! ```

use std::ptr::NonNull;
use std::time::Duration;
use std::time::Instant;
use tsumugi_core::backend::{Domain, LoadStore, Loopback, execute};
use tsumugi_core::mem::{Access, AddrError, Rank, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;
use tsumugi_gas::lock::drive::{self, LockDriver};
use tsumugi_gas::lock::{
    LOCK_BYTES, Lock, LockClaim, LockKind, LockMode, NODE_BYTES, NodePool, NodeSlot, NodeTable,
};

/// Nobody waits here.
struct Alone<'a, L>(&'a L);

impl<L: LoadStore> LockDriver for Alone<'_, L> {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        execute(self.0, op)
    }

    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        _: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        panic!("nobody else has the lock, and {at} is awaited: {until:?}");
    }
}

fn main() {
    let job = Loopback::<1>::new(1);
    let memory = job.rank(Rank(0));
    let bytes = LOCK_BYTES + NODE_BYTES;
    let words: &'static mut [u64] = vec![0; bytes as usize / 8].leak();
    // SAFETY: leaked, and nobody else's.
    let region = unsafe { memory.register(NonNull::from(words).cast(), bytes, Access::ReadWrite) };
    let key = region.expect("a first region").key;
    let part = Alone(&memory);
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let nodes = NodeTable { key, offset: LOCK_BYTES };
    let mut slots = [NodeSlot::default()];
    let mut pool = NodePool::new(Rank(0), &mut slots);

    let unused = RemoteAddr { offset: LOCK_BYTES - 8, ..home };
    let atomics = fastest(|| {
        for delta in [1, u64::MAX] {
            execute(&memory, &Op::atomic(OpKind::FetchAdd, unused, delta)).expect("a word");
        }
    });
    println!("{:>12} {:>10} {atomics:>8.1} ns", "two atomics", "");
    let rows = [
        (LockKind::Readers, LockMode::Shared),
        (LockKind::Readers, LockMode::Exclusive),
        (LockKind::Neutral, LockMode::Shared),
        (LockKind::Neutral, LockMode::Exclusive),
        (LockKind::Mutex, LockMode::Exclusive),
    ];
    for (kind, mode) in rows {
        let lock = Lock { home, nodes, kind };
        let taken = fastest(|| {
            let node = |_: &LockClaim| pool.try_take(|_| 0).expect("it is given back each time");
            let held = drive::lock(&part, &lock, mode, node).expect("nobody dies");
            if let Some(node) = held.unlock(&part, &lock).expect("nobody dies") {
                pool.release(node, false);
            }
        });
        let kind = format!("{kind:?}");
        let mode = format!("{mode:?}");
        println!("{kind:>12} {mode:>10} {taken:>8.1} ns, {:.2} times", taken / atomics);
        execute(&memory, &Op::put_word(home, tsumugi_core::mem::Width::W8, 0)).expect("a word");
    }
}

/// The fastest of many short repetitions.
fn fastest(mut body: impl FnMut()) -> f64 {
    let once = |body: &mut dyn FnMut()| {
        let started = Instant::now();
        for _ in 0..EACH {
            body();
        }
        started.elapsed().as_nanos() as f64 / f64::from(EACH)
    };
    (0..REPETITIONS).map(|_| once(&mut body)).fold(f64::MAX, f64::min)
}

const EACH: u32 = 1_000;
const REPETITIONS: u32 = 2_000;
