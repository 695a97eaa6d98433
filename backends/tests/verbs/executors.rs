//! Doorbells by executor: how many doorbells the device gets for operations that are
//! under way at once.
//!
//! ```text
//!  direct    post(batch) ───────────────────► endpoint
//!  worker    submit .. submit ─ Delegate ───► endpoint     any worker
//!  helper    submit .. submit ─► ring ─ Offload's thread ─► endpoint
//! ```

use super::Verbs;
use super::job::Job;
use super::particulars::{PEER, at, run};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_backends::verbs::VerbsEndpoint;
use tsumugi_conformance::endpoint::Fixture;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::completion::{Callback, CompletionTable};
use tsumugi_core::engine::{Delegate, Engine, Executor, Idle, Offload, Port, PortCounts, Work};
use tsumugi_core::mem::{Access, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::ring::Mpsc;
use tsumugi_core::tag::Tag;
use tsumugi_core::wait::Futex;

/// By the device's own counter, with 64 operations under way: at most one doorbell for 8.
pub fn every_executor_rings_seldom() {
    let job: Job<Verbs> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let word = at(&region, 0);
    assert_eq!(run(&job, &mut job.domain.endpoint(), Op::get_word(word, Width::W8)), Ok(0));
    let ways: [(&str, &dyn Fn(u64)); 3] = [
        ("direct", &|batch| direct(&mut job.domain.endpoint(), word, batch)),
        ("worker", &|batch| by_engine(job.domain.endpoint(), word, batch, false)),
        ("helper", &|batch| by_engine(job.domain.endpoint(), word, batch, true)),
    ];
    for (executor, work) in ways {
        for batch in [1, 16, 64] {
            let before = job.domain.endpoint().counters().doorbells;
            work(batch);
            let rung = job.domain.endpoint().counters().doorbells - before;
            let each = rung as f64 / OPS as f64;
            println!("{executor}, {batch} under way: {each:.3} doorbells each");
            assert!(batch < 64 || rung <= OPS / 8, "{executor}: {rung} for {OPS}");
        }
    }
}

fn direct(endpoint: &mut VerbsEndpoint<'_>, word: RemoteAddr, batch: u64) {
    let op = |tag| Op::put_word(word, Width::W8, 3).tagged(Tag::from_bits(tag + 1));
    let ops: Vec<Op> = (0..batch).map(op).collect();
    for _ in 0..OPS / batch {
        assert_eq!(endpoint.post(&ops), ops.len());
        let mut came = 0;
        while came < ops.len() {
            came += endpoint.poll(&mut [Completion::EMPTY; 16]);
        }
    }
}

/// Begins a batch each time the previous one has ended.
fn by_engine(endpoint: VerbsEndpoint<'_>, word: RemoteAddr, batch: u64, is_helper: bool) {
    let (table, counts) = (CompletionTable::<4>::new(), PortCounts::new());
    let ring = Mpsc::<Work, 256>::new();
    let ended = AtomicU64::new(0);
    let port = Port::new(endpoint, table.view(), &counts);
    if is_helper {
        let executors: [Executor<'_, VerbsEndpoint<'_>>; 1] =
            [Executor::Offload(Offload::new(ring.view()), &Nap)];
        let Executor::Offload(offload, futex) = &executors[0] else { unreachable!("made above") };
        thread::scope(|scope| {
            // SAFETY: the ring is this thread's alone.
            let mut owner = unsafe { offload.owner(port) };
            let idle = Idle { spins: 100, yields: 100 };
            scope.spawn(move || owner.run(idle, &Nap, &thread::yield_now));
            let engine = Engine::new(table.view(), &executors);
            play(&engine, word, batch, &ended, &thread::yield_now);
            offload.stop(*futex);
        });
    } else {
        // SAFETY: the ring is the delegate's alone.
        let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
        let engine = Engine::new(table.view(), &executors);
        play(&engine, word, batch, &ended, &|| {
            engine.poll();
        });
    }
}

fn play<E: Endpoint>(
    engine: &Engine<'_, E>,
    word: RemoteAddr,
    batch: u64,
    ended: &AtomicU64,
    wait: &dyn Fn(),
) {
    let end = |ended: *mut (), result: Result<u64, _>| {
        assert!(result.is_ok(), "{result:?}");
        // SAFETY: `ended`, which outlives all operations.
        unsafe { &*ended.cast::<AtomicU64>() }.fetch_add(1, Ordering::SeqCst);
    };
    let start = Instant::now();
    for round in 1..=OPS / batch {
        for _ in 0..batch {
            let put = Op::put_word(word, Width::W8, 3);
            let ended = (&raw const *ended).cast_mut().cast();
            // SAFETY: a counter, which outlives the operations since the loop below waits
            // for all.
            let callback = unsafe { Callback::new(end, ended) };
            assert!(engine.submit_callback(0, put, callback).is_ok());
        }
        while ended.load(Ordering::SeqCst) < round * batch {
            wait();
            assert!(start.elapsed() < Duration::from_secs(60), "{ended:?} ended");
        }
    }
}

/// A futex whose wait sleeps for a short fixed time.
struct Nap;

impl Futex for Nap {
    fn wait(&self, _: &tsumugi_core::sync::AtomicU32, _: u32, _: Option<Duration>) {
        thread::sleep(Duration::from_micros(100));
    }

    fn wake(&self, _: &tsumugi_core::sync::AtomicU32, _: u32) {}
}

const OPS: u64 = 640;
