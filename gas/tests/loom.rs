//! Model checks of the cache that workers use while the machine changes it. Each model must pass
//! in every execution that loom finds within its preemption bound; with a defect planted it must
//! fail.
//!
//! Built only with `--cfg tsumugi_loom`: see `ci/loom.sh`.
#![cfg(all(tsumugi_loom, not(tsumugi_shuttle)))]

use loom::thread;
use std::env;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tsumugi_core::mem::{Access, Need, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering as Mapped};
use tsumugi_core::sync::{AtomicU32, AtomicU64 as Word, Ordering, fence, with_mutant};
use tsumugi_core::time::Instant;
use tsumugi_gas::address::{AddressParts, GlobalAddr, REGIONS, Split};
use tsumugi_gas::cache::{
    CacheSlot, Fetch, HazardPointers, HeldTarget, Miss, TableCache, TableWanted,
};
use tsumugi_gas::control::{ControlShape, TABLE_BYTES};
use tsumugi_gas::machine::{
    GlobalMachine, InFlightOp, MachineEvent, MachineSetup, MachineTables, PendingOp, SentCommand,
};
use tsumugi_gas::order::{Edge, Issued};
use tsumugi_gas::page::{
    DirectoryEntry, Distribution, Homes, OptimisticRead, PageAction, PageCopy, PageId, PageLayout,
    PagePin, PageProtocol, PageShape, PinFast, ReadFast, Relocation,
};
use tsumugi_gas::steal::{self, StealDeque, Theft};
use tsumugi_gas::table::{Agent, NameRecord, RegionEntry, Starter};

/// A rank with an operation in flight on a table, and the table's owner, which requests the table
/// back: the answer comes after the operation.
#[test]
fn a_table_is_given_up_when_no_operation_uses_it() {
    let mutants = [
        "gas_pin_unchecked",
        "gas_pin_unordered",
        "gas_unpin_unordered",
        "gas_drain_unordered",
        "gas_ack_before_drained",
    ];
    check(&mutants, || {
        gives_up(|cache, at_it| {
            let Ok(pinned) = cache.pin(addr(1), 8, Need::Read) else {
                return cache.is_waited_for(addr(1));
            };
            assert_eq!(pinned.target.remote.key, key(1));
            at_it();
            cache.unpin(pinned.slot)
        });
    });
}

/// The same for an access that a worker carries out by its own hazard pointers.
#[test]
fn a_table_is_given_up_when_no_worker_uses_it() {
    let mutants =
        ["gas_seat_no_light", "gas_drain_unordered", "gas_seat_unseen", "gas_no_second_look"];
    check(&mutants, || {
        gives_up(|cache, at_it| {
            let Ok(HeldTarget { target, slot }) = cache.hold::<0>(0, addr(1), 8, Need::Read) else {
                return cache.is_waited_for(addr(1));
            };
            assert_eq!(target.remote.key, key(1));
            at_it();
            cache.release::<0>(0, slot)
        });
    });
}

/// The same for an access by a slot that was kept from an earlier lookup.
#[test]
fn a_table_is_given_up_when_no_worker_uses_it_again() {
    let mutants =
        ["gas_seat_no_light", "gas_drain_unordered", "gas_seat_unseen", "gas_kept_unchecked"];
    let look = |cache: TableCache<'static>| {
        let found = cache.hold_keeping::<0>(0, addr(1), 8, Need::Read);
        let (HeldTarget { slot, .. }, kept) = found.expect("the table is here");
        assert!(!cache.release::<0>(0, slot), "nothing waits yet");
        kept
    };
    check(&mutants, move || {
        gives_up_after(look, |cache, kept, at_it| {
            if !kept.hold::<0>(cache.light()) {
                return cache.is_waited_for(addr(1));
            }
            at_it();
            kept.end::<0>(cache.light())
        });
    });
}

/// The same for a lookup of an unlisted region, and for one that finds the table being given up.
#[test]
fn a_table_is_given_up_after_a_lookup_that_found_nothing() {
    check(&["gas_miss_untold"], || {
        gives_up(|cache, _| {
            assert!(cache.pin(unlisted(1), 8, Need::Read).is_err());
            cache.is_waited_for(unlisted(1))
        });
    });
    check(&["gas_miss_untold"], || {
        gives_up(|cache, _| {
            assert!(cache.hold::<0>(0, unlisted(1), 8, Need::Read).is_err());
            cache.is_waited_for(unlisted(1))
        });
    });
}

/// An access, which reports when it is under way and whether its thread calls the machine next,
/// beside an owner that requests its table back.
fn gives_up(access: impl FnOnce(TableCache<'_>, &dyn Fn()) -> bool + Send + Sync + 'static) {
    gives_up_after(|_| (), |cache, (), at_it| access(cache, at_it));
}

/// The same after a lookup by which the owner is not concerned yet.
fn gives_up_after<P: Send + Sync + 'static>(
    look: impl FnOnce(TableCache<'static>) -> P,
    access: impl FnOnce(TableCache<'_>, P, &dyn Fn()) -> bool + Send + Sync + 'static,
) {
    let (words, mut machine) = rank(2);
    fetch(words, &mut machine, 1);
    let cache = machine.cache();
    let kept = look(cache);
    let answered = Arc::new(AtomicU32::new(0));
    let worker = {
        let answered = answered.clone();
        let at_it = move || {
            assert_eq!(answered.load(Ordering::Relaxed), 0, "given up meanwhile");
        };
        thread::spawn(move || access(cache, kept, &at_it))
    };
    set_drop(words, 1);
    machine.handle(MachineEvent::Rang, Instant::ZERO);
    let out = machine.poll_op();
    if let Some(out) = &out {
        assert_eq!((out.op.kind, out.op.remote.rank), (Kind::FetchOr, Rank(1)));
        answered.store(1, Ordering::Relaxed);
    }
    let goes_on = worker.join().unwrap();
    assert!(out.is_some() || goes_on, "no call lets the machine continue");
    machine.handle(MachineEvent::Tick, Instant::ZERO);
    let answers = u32::from(machine.poll_op().is_some()) + answered.load(Ordering::Relaxed);
    assert_eq!(answers, 1, "one answer");
}

/// A lookup while its slot passes to another rank's table: it finds the entry of its own rank, or
/// nothing.
#[test]
fn a_lookup_never_mixes_two_tables() {
    check(&["gas_no_second_look"], || {
        let (words, mut machine) = rank(6);
        (1..5).for_each(|rank| fetch(words, &mut machine, rank));
        let cache = machine.cache();
        let worker = thread::spawn(move || look(cache));
        fetch(words, &mut machine, 5);
        worker.join().unwrap();
    });
}

fn look(cache: TableCache<'_>) {
    for rank in 1..3 {
        match cache.hold::<0>(0, addr(rank), 8, Need::Read) {
            Ok(HeldTarget { target, slot }) => {
                assert_eq!(target.remote.key, key(rank), "the entry of another rank");
                cache.release::<0>(0, slot);
            }
            Err(miss) => assert_eq!(miss, Miss::NoTable),
        }
    }
}

/// A read of a page at its cached place, while the page leaves and another page comes to its
/// frame: the read finds the page's bytes, or nothing.
#[test]
fn a_hit_never_reads_another_page() {
    check(&["page_hit_no_second_look", "page_hit_unfenced"], || {
        let (layout, word, entry) = one_frame();
        let (header, bytes) = (word(layout.header(Rank(0), 0)), word(layout.bytes(entry)));
        header.store(entry.header(PageId(0)), Ordering::Relaxed);
        bytes.store(OURS, Ordering::Relaxed);
        let reader = thread::spawn(move || hit(&layout, word, entry));
        // The page leaves: its header is no longer live.
        header.store(entry.header(PageId(0)) & !1, Ordering::Release);
        // No grace period waits for a hit. The fence is the one of a rank that copies a page here.
        fence(Ordering::Release);
        bytes.store(THEIRS, Ordering::Relaxed);
        header.store(entry.header(PageId(1)), Ordering::Release);
        let found = reader.join().unwrap();
        assert!(found.is_none_or(|found| found == OURS), "the bytes of another page: {found:?}");
    });
}

/// The same while the page is on its way to its cached place, as when the cached entry is of two
/// times: another page's entry, and the same epoch.
#[test]
fn a_hit_never_reads_a_page_that_has_not_arrived() {
    check(&["page_hit_no_first_look", "page_hit_unordered"], || {
        let (layout, word, entry) = one_frame();
        let (header, bytes) = (word(layout.header(Rank(0), 0)), word(layout.bytes(entry)));
        bytes.store(THEIRS, Ordering::Relaxed);
        let reader = thread::spawn(move || hit(&layout, word, entry));
        bytes.store(OURS, Ordering::Relaxed);
        header.store(entry.header(PageId(0)), Ordering::Release);
        let found = reader.join().unwrap();
        assert!(
            found.is_none_or(|found| found == OURS),
            "not yet the bytes of the page: {found:?}"
        );
    });
}

/// A page that its rank has cached at its one frame, as an optimistic read leaves it, and a function that
/// finds words.
fn one_frame() -> (PageLayout, impl Fn(RemoteAddr) -> &'static Word + Copy + Send, DirectoryEntry) {
    let (page, entry) = (PageId(0), DirectoryEntry { owner: Rank(0), frame: 0, epoch: 3 });
    let homes = Homes::new(1, 2, Distribution::Block);
    let layout =
        PageLayout::new(PageShape { homes, page_bytes: 8, slots: 1, frames: 1 }, key(0), 0);
    let layout = layout.unwrap();
    let words = (0..layout.shape().bytes() / 8).map(|_| Word::new(0)).collect();
    let words: &'static [Word] = leak(words);
    let word = move |at: RemoteAddr| &words[(at.offset / 8) as usize];
    word(layout.entry(page)).store(entry.to_bits(), Ordering::Relaxed);
    let mut read = OptimisticRead::new(layout, Rank(0), page);
    loop {
        let answer = match read.act() {
            PageAction::Do(op) => carry(word(op.remote), &op),
            PageAction::Access(_) => entry.header(page),
            PageAction::Over(_) => break,
            act => unreachable!("{act:?}"),
        };
        read.answer(Ok(answer));
    }
    (layout, word, entry)
}

/// A hit of the page at its cached place.
fn hit(
    layout: &PageLayout,
    word: impl Fn(RemoteAddr) -> &'static Word,
    entry: DirectoryEntry,
) -> Option<u64> {
    let (header, bytes) = (word(layout.header(Rank(0), 0)), word(layout.bytes(entry)));
    let find = |found| (found == entry).then_some((header, ()));
    ReadFast::of(layout, Rank(0), PageId(0), word)
        .hit(PageId(0), find, |()| bytes.load(Ordering::Relaxed))
}

/// A put by a gate that was valid, while the page leaves: either the page has the value at its
/// new place, or the put was not done.
#[test]
fn a_put_by_a_valid_gate_is_never_lost() {
    check(&["page_door_unchecked", "page_door_unordered"], || {
        let (page, entry) = (PageId(0), DirectoryEntry { owner: Rank(0), frame: 0, epoch: 3 });
        let homes = Homes::new(2, 1, Distribution::Block);
        let shape = PageShape { homes, page_bytes: 8, slots: 1, frames: 1 };
        let layout = PageLayout::new(shape, key(0), 0).unwrap();
        let each = (shape.bytes() / 8) as usize;
        let words: &'static [Word] = leak((0..2 * each).map(|_| Word::new(0)).collect());
        let word = move |at: RemoteAddr| &words[at.rank.0 as usize * each + at.offset as usize / 8];
        word(layout.entry(page)).store(entry.to_bits(), Ordering::Relaxed);
        word(layout.header(Rank(0), 0)).store(entry.header(page), Ordering::Relaxed);
        // The page is at rank 0, which has put to it before.
        let mut pin = PagePin::new(layout, Rank(0), page);
        loop {
            match pin.act() {
                PageAction::Do(op) => pin.answer(Ok(carry(word(op.remote), &op))),
                PageAction::Access(_) => pin.answer(Ok(0)),
                PageAction::Over(_) => break,
                act => unreachable!("{act:?}"),
            }
        }
        let putter = thread::spawn(move || {
            let put = |found: DirectoryEntry| {
                assert_eq!(found, entry);
                word(layout.bytes(found)).store(OURS, Ordering::Relaxed);
            };
            PinFast::of(&layout, Rank(0), page, word).hit(page, Some, put).is_some()
        });
        let mut own = Relocation::new(layout, Rank(1), page);
        loop {
            let answer = match own.act() {
                PageAction::Do(op) => carry(word(op.remote), &op),
                PageAction::Pause(_) => {
                    thread::yield_now();
                    0
                }
                PageAction::Access(PageCopy { from, to }) => {
                    let value = word(from).load(Ordering::Relaxed);
                    word(to).store(value, Ordering::Relaxed);
                    0
                }
                PageAction::Over(_) => break,
                act => unreachable!("{act:?}"),
            };
            own.answer(Ok(answer));
        }
        let is_put = putter.join().unwrap();
        let value = word(layout.bytes(entry.moved(Rank(1), 0))).load(Ordering::Relaxed);
        assert_eq!(value, if is_put { OURS } else { 0 }, "put: {is_put}");
    });
}

/// Carries out an operation.
fn carry(word: &Word, op: &Op) -> u64 {
    match op.kind {
        Kind::GetWord => word.load(Ordering::Acquire),
        Kind::PutWord => {
            word.store(op.operand(), Ordering::Release);
            0
        }
        Kind::FetchAdd => word.fetch_add(op.operand(), Ordering::SeqCst),
        Kind::CompareSwap => {
            let (old, new) = (op.compare(), op.operand());
            let swapped = word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst);
            swapped.unwrap_or_else(|old| old)
        }
        Kind::FetchOr => word.fetch_or(op.operand(), Ordering::SeqCst),
        Kind::FetchAnd => word.fetch_and(op.operand(), Ordering::SeqCst),
        Kind::Swap => word.swap(op.operand(), Ordering::SeqCst),
        kind => unreachable!("{kind:?} in an access, a grace or an own"),
    }
}

/// Rank 0 of `ranks`, with room for four tables. It lives as long as the
/// program: loom has no scopes.
fn rank(ranks: u32) -> (&'static [AtomicU64], GlobalMachine<'static>) {
    let shape = ControlShape {
        ranks,
        colors: 1,
        copies: 4,
        flat_words: 64,
        notes: 1,
        cells: 0,
        commands: 1,
        own_jobs: 1,
        remote_jobs: 1,
        conditions: 1,
        flights: 1,
        fetches: 1,
    };
    let words: &[AtomicU64] = leak((0..shape.words()).map(|_| AtomicU64::new(0)).collect());
    let tables = MachineTables {
        words,
        slots: leak((0..shape.copies).map(|_| CacheSlot::new()).collect()),
        hazards: leak((0..1).map(|_| HazardPointers::new()).collect()),
        records: leak(vec![NameRecord::FREE; REGIONS]),
        awaited: leak(vec![0; 1]),
        told: leak(vec![0; 1]),
        fetches: leak(vec![Fetch::FREE; 1]),
        issued: leak(vec![Issued::FREE; 1]),
        edges: leak(vec![Edge::FREE; 1]),
        jobs: leak(vec![PendingOp::FREE; 2]),
        commands: leak(vec![SentCommand::FREE; 1]),
        flights: leak(vec![InFlightOp::FREE; 1]),
    };
    let starter = Starter { key: RegionKey::new(1, 1), bytes: 8, agent: Agent::Cpu };
    let control = RegionKey::new(0, 1);
    let (split, remote_completion, part_bytes_max) = (Split::DEFAULT, true, 64);
    let rank = Rank(0);
    let barrier = None;
    let setup = MachineSetup {
        rank,
        near: &[],
        split,
        shape,
        control,
        starter,
        remote_completion,
        ordered_bytes_max: 0,
        carried_bytes_max: 0,
        part_bytes_max,
        barrier,
    };
    (words, GlobalMachine::new(setup, tables))
}

fn leak<T>(vec: Vec<T>) -> &'static mut [T] {
    Box::leak(vec.into_boxed_slice())
}

/// Runs the machine's operations that fetch the table of a rank, which has one region.
fn fetch(words: &[AtomicU64], machine: &mut GlobalMachine<'_>, rank: u32) {
    while machine.want(addr(rank)).unwrap() != TableWanted::Here {
        let Some(out) = machine.poll_op() else {
            while machine.poll().is_some() {}
            // A worker looks at its slot: the machine tries again later.
            if machine.poll_op().is_none() {
                return;
            }
            unreachable!("everything is posted as it comes");
        };
        land(words, &out.op, rank);
        machine.handle(MachineEvent::Completed { tag: out.op.tag, result: Ok(0) }, Instant::ZERO);
        while machine.poll().is_some() {}
    }
}

fn land(words: &[AtomicU64], op: &Op, rank: u32) {
    if op.kind != Kind::Get {
        return;
    }
    assert_eq!(op.bytes(), TABLE_BYTES as u64);
    let first = op.local().offset as usize / 8;
    let entry = RegionEntry {
        key: key(rank),
        bytes: 64,
        life: 0,
        access: Access::ReadWrite,
        agent: Agent::Cpu,
    };
    for (word, value) in entry.encode().into_iter().enumerate() {
        words[first + word].store(value, Mapped::Relaxed);
    }
}

fn set_drop(words: &[AtomicU64], rank: u32) {
    // The bitmaps come after the table, a line each: holders, drops, acks.
    words[TABLE_BYTES / 8 + 8].store(1 << rank, Mapped::Relaxed);
}

fn addr(rank: u32) -> GlobalAddr {
    let place = AddressParts { rank: Rank(rank), color: 0, region: 0, life: 0, offset: 0 };
    Split::DEFAULT.addr(place).unwrap()
}

/// A region of the rank that its table does not list.
fn unlisted(rank: u32) -> GlobalAddr {
    let place = AddressParts { rank: Rank(rank), color: 0, region: 1, life: 0, offset: 0 };
    Split::DEFAULT.addr(place).unwrap()
}

fn key(rank: u32) -> RegionKey {
    RegionKey::new(rank as usize, 7)
}

/// A rank that adds items and takes them, beside a thief: each item is taken once, as it was
/// added.
#[test]
fn each_item_of_work_is_taken_once() {
    let mutants = [
        "steal_last_from_the_other_end",
        "steal_copy_kept",
        "steal_published_early",
        "steal_push_relaxed",
    ];
    check(&mutants, || {
        work(|deque| {
            let (one, two) = ([10, 11], [20, 21]);
            assert!(deque.push(one));
            let mut own = Vec::from_iter(pop(deque));
            assert!(deque.push(two));
            own.extend(pop(deque));
            (vec![one, two], own)
        })
    });
}

/// Each added item is taken by the rank or the thief, or is left.
fn work(rank: impl Fn(&StealDeque<'_>) -> (Vec<[u64; 2]>, Vec<[u64; 2]>) + Send + Sync + 'static) {
    let words = Arc::new((Word::new(0), [(); 4].map(|()| Word::new(0))));
    let theirs = words.clone();
    let thief = thread::spawn(move || steal(&theirs.0, &theirs.1));
    let deque = StealDeque::new(&words.0, &words.1, (2, 2));
    let (added, mut taken) = rank(&deque);
    taken.extend(thief.join().unwrap());
    while let Some(item) = pop(&deque) {
        taken.push(item);
    }
    taken.sort_unstable();
    assert_eq!(taken, added);
}

fn pop(deque: &StealDeque<'_>) -> Option<[u64; 2]> {
    let mut item = [0; 2];
    let copy = |words: &[Word]| {
        item = [0, 1].map(|word: usize| words[word].load(Ordering::Relaxed));
        true
    };
    deque.pop_if(copy).then_some(item)
}

/// One theft, by operations as a backend carries them out.
fn steal(ends: &Word, items: &[Word]) -> Option<[u64; 2]> {
    let at = RemoteAddr { rank: Rank(0), key: RegionKey::from_bits(1), offset: 0 };
    let (mut theft, mut copy) = (Theft::new(at, items.len() / 2), None);
    loop {
        let answer = match theft.act() {
            steal::TheftAction::Do(op) if op.kind == Kind::GetWord => ends.load(Ordering::Acquire),
            steal::TheftAction::Do(op) => {
                let order = (Ordering::SeqCst, Ordering::SeqCst);
                let swap = ends.compare_exchange(op.compare(), op.operand(), order.0, order.1);
                swap.unwrap_or_else(|now| now)
            }
            steal::TheftAction::Copy(place) => {
                let word = |word: usize| items[2 * place + word].load(Ordering::Relaxed);
                copy = Some([0, 1].map(word));
                0
            }
            steal::TheftAction::Taken => return copy,
            steal::TheftAction::Nothing => return None,
            steal::TheftAction::Failed(error) => panic!("{error}"),
        };
        theft.answer(Ok(answer));
    }
}

/// Explores `body`, which must pass, and then fail with each of `mutants`, each in a process of
/// its own, since a model that has failed aborts.
fn check(mutants: &[&'static str], body: impl Fn() + Send + Sync + 'static) {
    if let Ok(planted) = env::var(PLANTED) {
        let mutant = mutants.iter().find(|mutant| ***mutant == *planted);
        with_mutant(mutant.expect("a mutant of this model"), || explore(body));
        return;
    }
    let executions = explore(body);
    assert!(executions > 5, "{executions} executions: the model explores nothing");
    let test = std::thread::current().name().expect("libtest names its threads").to_owned();
    println!("{test}: {executions} executions");
    for mutant in mutants {
        let run = Command::new(env::current_exe().unwrap())
            .args(["--exact", &test, "--nocapture"])
            .env(PLANTED, mutant)
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let text = [run.stdout, run.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("running 1 test"), "{test} was not found:\n{text}");
        assert!(!run.status.success(), "the mutant {mutant} was not caught");
        assert!(!text.contains("maximum number of branches"), "{mutant}:\n{text}");
    }
}

fn explore(body: impl Fn() + Send + Sync + 'static) -> usize {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    model.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    executions.load(std::sync::atomic::Ordering::Relaxed)
}

/// The bytes of a page, and those of the next one.
const OURS: u64 = 11;
const THEIRS: u64 = 22;
/// The variable that names the mutant to the process that must fail.
const PLANTED: &str = "TSUMUGI_TEST_LOOM_MUTANT";
