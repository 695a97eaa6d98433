//! What the global address adds to a raw access: a word of one of eight ranks
//! is read by its region's key, and by its global address with the rank's
//! table in the cache.
//!
//! ```text
//! cargo run --release -p tsumugi-gas --example access
//! valgrind --tool=callgrind target/release/examples/access cached 100000
//! ```
//!
//! Without arguments it prints nanoseconds an access, least and middle of many
//! repetitions of both, side by side. With `raw`, `cached` or `pinned` and a
//! count it does only that, for those who count instructions.

use std::hint::black_box;
use std::ptr::NonNull;
use std::slice;
use std::time::Instant as Clock;
use tsumugi_core::backend::{Domain, Loopback, LoopbackRank, execute};
use tsumugi_core::mem::{Access, Need, Rank, Region, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;
use tsumugi_gas::address::{GlobalAddr, REGIONS, Split};
use tsumugi_gas::cache::{CacheSlot, Fetch, HazardPointers, HeldTarget, TableCache, TableWanted};
use tsumugi_gas::control::ControlShape;
use tsumugi_gas::machine::{
    GlobalMachine, InFlightOp, MachineEvent, MachineSetup, MachineTables, PendingOp, SentCommand,
};
use tsumugi_gas::order::{After, Edge, Issued};
use tsumugi_gas::request::WordRequest;
use tsumugi_gas::table::{Agent, NameRecord, Starter};

const RANKS: usize = 8;
const WORDS: usize = 512;
type Net = Loopback<'static, RANKS>;
type Here<'n> = LoopbackRank<'n, RANKS, 64, 64>;

fn main() {
    let net: &Net = Box::leak(Box::new(Net::new(RANKS as u32)));
    let here = net.rank(Rank(0));
    let mut machines: Vec<GlobalMachine<'_>> = (0..RANKS).map(|rank| machine(net, rank)).collect();
    let opened: Vec<(Region, GlobalAddr)> = machines
        .iter_mut()
        .enumerate()
        .map(|(rank, machine)| {
            let region = expose(net.rank(Rank(rank as u32)), WORDS);
            (region, machine.register(0, &region, Agent::Cpu).expect("the first name"))
        })
        .collect();
    let cache = machines[0].cache();
    for (_, addr) in &opened {
        fill(&mut machines[0], here, *addr);
    }
    // Where to: the same places in both.
    let mut state = 1u64;
    let places: Vec<(usize, u64)> = (0..4096)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as usize % RANKS, (state >> 40) % WORDS as u64)
        })
        .collect();
    let remote: Vec<RemoteAddr> = places
        .iter()
        .map(|&(rank, word)| RemoteAddr {
            offset: word * 8,
            rank: Rank(rank as u32),
            key: opened[rank].0.key,
        })
        .collect();
    let global: Vec<GlobalAddr> = places
        .iter()
        .map(|&(rank, word)| cache.split().add(opened[rank].1, word as i64 * 8).expect("inside"))
        .collect();

    let mut args = std::env::args().skip(1);
    if let Some(which) = args.next() {
        let count = args.next().and_then(|count| count.parse().ok()).unwrap_or(100_000);
        match which.as_str() {
            "cached" => cached(here, cache, &global, count),
            "pinned" => pinned(here, cache, &global, count),
            _ => raw(here, &remote, count),
        }
        return;
    }
    let time = |run: &mut dyn FnMut(usize)| {
        let mut times: Vec<f64> = (0..500)
            .map(|_| {
                let start = Clock::now();
                run(4096);
                start.elapsed().as_nanos() as f64 / 4096.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        (times[0], times[times.len() / 2])
    };
    println!("one read of 8 bytes, ns      least  middle");
    for (name, (least, middle)) in [
        ("by the region's key", time(&mut |count| raw(here, &remote, count))),
        ("by the global address", time(&mut |count| cached(here, cache, &global, count))),
        ("and with a pin", time(&mut |count| pinned(here, cache, &global, count))),
        (
            "as an operation of its own",
            time(&mut |count| issued(&mut machines[0], here, &global, count)),
        ),
    ] {
        println!("{name:<26} {least:>7.2} {middle:>7.2}");
    }
}

#[inline(never)]
fn raw(here: Here<'_>, places: &[RemoteAddr], count: usize) {
    for at in places.iter().cycle().take(count) {
        black_box(execute(&here, &Op::get_word(*at, Width::W8))).expect("registered");
    }
}

#[inline(never)]
fn cached(here: Here<'_>, cache: TableCache<'_>, places: &[GlobalAddr], count: usize) {
    for at in places.iter().cycle().take(count) {
        let HeldTarget { target, slot } =
            cache.hold::<0>(0, *at, 8, Need::Read).expect("in the cache");
        black_box(execute(&here, &Op::get_word(target.remote, Width::W8))).expect("registered");
        assert!(!cache.release::<0>(0, slot));
    }
}

#[inline(never)]
fn pinned(here: Here<'_>, cache: TableCache<'_>, places: &[GlobalAddr], count: usize) {
    for at in places.iter().cycle().take(count) {
        let pinned = cache.pin(*at, 8, Need::Read).expect("in the cache");
        let op = Op::get_word(pinned.target.remote, Width::W8);
        black_box(execute(&here, &op)).expect("registered");
        cache.unpin(pinned.slot);
    }
}

fn machine(net: &'static Net, rank: usize) -> GlobalMachine<'static> {
    let here = net.rank(Rank(rank as u32));
    let shape = ControlShape::of(RANKS as u32, 1);
    let control = expose(here, shape.words());
    let starter = expose(here, 8);
    let base = control.base.cast::<AtomicU64>();
    let tables = MachineTables {
        // SAFETY: leaked; atomics here and the backend elsewhere.
        words: unsafe { slice::from_raw_parts(base.as_ptr(), shape.words()) },
        slots: leak((0..shape.copies).map(|_| CacheSlot::new()).collect()),
        hazards: leak((0..1).map(|_| HazardPointers::new()).collect()),
        records: leak(vec![NameRecord::FREE; REGIONS]),
        awaited: leak(vec![0; shape.bitmap_words()]),
        told: leak(vec![0; shape.bitmap_words()]),
        fetches: leak(vec![Fetch::FREE; shape.fetches as usize]),
        issued: leak(vec![Issued::FREE; shape.own_jobs as usize]),
        edges: leak(vec![Edge::FREE; shape.conditions as usize]),
        jobs: leak(vec![PendingOp::FREE; shape.jobs()]),
        commands: leak(vec![SentCommand::FREE; shape.commands as usize]),
        flights: leak(vec![InFlightOp::FREE; shape.flights as usize]),
    };
    let setup = MachineSetup {
        rank: here.rank(),
        near: &[],
        split: Split::DEFAULT,
        shape,
        control: control.key,
        starter: Starter { key: starter.key, bytes: starter.bytes, agent: Agent::Cpu },
        remote_completion: true,
        ordered_bytes_max: 0,
        carried_bytes_max: 0,
        part_bytes_max: 1 << 30,
        // One thread.
        barrier: Some(|| ()),
    };
    GlobalMachine::new(setup, tables)
}

/// The same word by the machine, whose operation is carried out at once: what
/// order, tags and the end of an operation cost.
fn issued(machine: &mut GlobalMachine<'_>, here: Here<'_>, places: &[GlobalAddr], count: usize) {
    for at in places.iter().cycle().take(count) {
        let word = WordRequest::atomic(Kind::GetWord, *at, 0u64);
        machine.try_issue(word.into(), After::Nothing).expect("room for one");
        while let Some(out) = machine.poll_op() {
            let result = execute(&here, &out.op);
            machine.handle(MachineEvent::Completed { tag: out.op.tag, result }, Instant::ZERO);
        }
        black_box(machine.poll()).expect("it has ended");
    }
}

/// Carries out at once what brings a table here.
fn fill(machine: &mut GlobalMachine<'_>, here: Here<'_>, addr: GlobalAddr) {
    while machine.want(addr).expect("an address of this job") != TableWanted::Here {
        while let Some(out) = machine.poll_op() {
            let result = execute(&here, &out.op);
            machine.handle(MachineEvent::Completed { tag: out.op.tag, result }, Instant::ZERO);
        }
        while machine.poll().is_some() {}
    }
}

fn expose(here: Here<'_>, words: usize) -> Region {
    let memory = NonNull::from(&mut *leak(vec![0u64; words])).cast();
    // SAFETY: leaked, and only ever touched through the backend and atomics.
    unsafe { here.register(memory, 8 * words as u64, Access::ReadWrite) }.expect("a free slot")
}

fn leak<T>(vec: Vec<T>) -> &'static mut [T] {
    Box::leak(vec.into_boxed_slice())
}
