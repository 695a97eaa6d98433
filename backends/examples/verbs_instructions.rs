//! Puts of 8 bytes over simulated cards, so many under way at once: how many
//! instructions a message takes, by whoever carries it. `ci/instructions.sh`
//! has them counted without those of the cards: `verbs_instructions WAY
//! UNDER_WAY BATCHES`.
//!
//! ```text
//!  hand      write requests ────────────► post_send, poll_cq
//!  direct    post(batch) ───────────────► endpoint
//!  worker    submit .. submit ─ Delegate ─► endpoint     whoever comes
//!  helper    submit .. submit ─► ring ─ Offload's owner ─► endpoint
//! ```
//!
//! All on one thread, so that the same is done each time. A batch is begun when
//! the one before has ended. Of the ways of this library it prints, and checks,
//! how often the device was rung.

mod bare;

use bare::{Bare, Batch};
use std::cell::Cell;
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_backends::verbs::sys::IBV_WR_RDMA_WRITE;
use tsumugi_backends::verbs::{VerbsConfig, VerbsDomain, VerbsEndpoint};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::completion::{Callback, CompletionTable};
use tsumugi_core::engine::{Delegate, Engine, Executor, Offload, Port, PortCounts, Work};
use tsumugi_core::mem::{Access, Rank, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::ring::Mpsc;
use tsumugi_core::sync::AtomicU32;
use tsumugi_core::wait::Futex;
use tsumugi_test_networks::verbs::libraries;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [way, under_way, batches] = &args[..] else {
        eprintln!("verbs_instructions hand|direct|worker|helper UNDER_WAY BATCHES");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let (under_way, batches) = (number(under_way), number(batches));
    let config = VerbsConfig { libraries: Some(libraries()), ..VerbsConfig::default() };
    let domain = VerbsDomain::open(&config, Rank(0), 1).expect("simulated cards");
    let card = domain.card().to_vec();
    domain.find(move |_, into| {
        into[..card.len()].copy_from_slice(&card);
        Some(card.len())
    });
    let memory = vec![0u64; 1024].leak();
    let base = NonNull::from(&mut *memory).cast();
    // SAFETY: leaked, and used as nothing but bytes.
    let region = unsafe { domain.register(base, 8192, Access::ReadWrite) }.expect("a region");
    let word = RemoteAddr { rank: Rank(0), key: region.key, offset: 4096 };
    let put = Op::put_word(word, Width::W8, 3);
    // The connection is open from here on.
    direct(&mut domain.endpoint(), put, 1, 1);
    let before = domain.endpoint().counters().doorbells;
    match &**way {
        "hand" => {
            let facts = domain.facts();
            let bare = Bare::open(libraries().verbs, [facts, facts], memory.as_mut_ptr());
            let mut batch = Batch::new(under_way);
            (0..batches).for_each(|_| match under_way {
                1 => bare.once(IBV_WR_RDMA_WRITE),
                _ => bare.batch(IBV_WR_RDMA_WRITE, &mut batch),
            });
            return;
        }
        "direct" => direct(&mut domain.endpoint(), put, under_way, batches),
        "worker" => worker(domain.endpoint(), put, under_way, batches),
        "helper" => helper(domain.endpoint(), put, under_way, batches),
        other => panic!("{other} is no way"),
    }
    let doorbells = domain.endpoint().counters().doorbells - before;
    let each = doorbells as f64 / (under_way * batches) as f64;
    println!("{each:.3} doorbells each");
    assert!(under_way < 64 || each <= 1.0 / 8.0, "{way} rings for each eighth message at the most");
}

fn direct(endpoint: &mut VerbsEndpoint<'_>, put: Op, under_way: usize, batches: usize) {
    let ops = vec![put; under_way];
    for _ in 0..batches {
        assert_eq!(endpoint.post(&ops), under_way);
        let mut left = under_way;
        while left > 0 {
            left -= endpoint.poll(&mut [Completion::EMPTY; 16]);
        }
    }
}

fn worker(endpoint: VerbsEndpoint<'_>, put: Op, under_way: usize, batches: usize) {
    let (table, counters) = (CompletionTable::<4>::new(), PortCounts::new());
    let ring = Mpsc::<Work, 256>::new();
    let port = Port::new(endpoint, table.view(), &counters);
    // SAFETY: the ring is the delegate's alone.
    let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
    let engine = Engine::new(table.view(), &executors);
    play(&engine, put, under_way, batches, || {
        engine.poll();
    });
}

fn helper(endpoint: VerbsEndpoint<'_>, put: Op, under_way: usize, batches: usize) {
    let (table, counters) = (CompletionTable::<4>::new(), PortCounts::new());
    let ring = Mpsc::<Work, 256>::new();
    let port = Port::new(endpoint, table.view(), &counters);
    let executors: [Executor<'_, VerbsEndpoint<'_>>; 1] =
        [Executor::Offload(Offload::new(ring.view()), &Awake)];
    let Executor::Offload(offload, _) = &executors[0] else { unreachable!("made above") };
    // SAFETY: the ring is this owner's alone.
    let mut owner = unsafe { offload.owner(port) };
    let engine = Engine::new(table.view(), &executors);
    play(&engine, put, under_way, batches, || {
        owner.turn();
    });
}

fn play<E: Endpoint>(
    engine: &Engine<'_, E>,
    put: Op,
    under_way: usize,
    batches: usize,
    mut turn: impl FnMut(),
) {
    let ended = Cell::new(0);
    let end = |ended: *mut (), result: Result<u64, _>| {
        assert!(result.is_ok(), "{result:?}");
        // SAFETY: the count, which outlives all operations, of one thread.
        let ended = unsafe { &*ended.cast::<Cell<usize>>() };
        ended.set(ended.get() + 1);
    };
    for batch in 1..=batches {
        for _ in 0..under_way {
            // SAFETY: the count is waited for below, on this thread.
            let callback = unsafe { Callback::new(end, (&raw const ended).cast_mut().cast()) };
            assert!(engine.submit_callback(0, put, callback).is_ok());
        }
        while ended.get() < batch * under_way {
            turn();
        }
    }
}

/// Of an owner that never sleeps.
struct Awake;

impl Futex for Awake {
    fn wait(&self, _: &AtomicU32, _: u32, _: Option<Duration>) {}

    fn wake(&self, _: &AtomicU32, _: u32) {}
}
