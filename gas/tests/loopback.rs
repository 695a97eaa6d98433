//! The global memory over the loopback backend: a program from its start on, with addresses that
//! its ranks exchange through the starter memory.
#![cfg(not(tsumugi_loom))]

use std::cell::Cell;
use std::ptr::NonNull;
use std::slice;
use tsumugi_core::backend::{
    Completion, Delivery, Domain, Endpoint, LoadStore, Loopback, LoopbackEndpoint, LoopbackRank,
    execute,
};
use tsumugi_core::mem::{Access, AddrError, Need, Rank, Region, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_gas::address::{AddressParts, GlobalAddr, GlobalPtr, REGIONS, STARTER, Split};
use tsumugi_gas::cache::{CacheSlot, Fetch, HazardPointers, HeldTarget, Miss, TableWanted};
use tsumugi_gas::control::{ControlShape, has_rung};
use tsumugi_gas::machine::{
    GlobalMachine, InFlightOp, MachineEvent, MachineOutput, MachineSetup, MachineTables, PendingOp,
    SentCommand,
};
use tsumugi_gas::order::{After, Edge, Handle, Issued};
use tsumugi_gas::request::{Copy, GlobalRequest, WordRequest};
use tsumugi_gas::table::{Agent, NameError, NameRecord, Starter};

const RANKS: usize = 4;
type Job4<'n> = Loopback<'n, RANKS, 16, 8>;
type Here<'n> = LoopbackRank<'n, RANKS, 16, 8>;

struct Party<'n> {
    here: Here<'n>,
    endpoint: LoopbackEndpoint<'n, RANKS, 16, 8>,
    machine: GlobalMachine<'n>,
    words: &'n [AtomicU64],
    shape: ControlShape,
    outs: Vec<MachineOutput>,
}

fn zeroes(words: usize) -> &'static mut [u64] {
    Box::leak(vec![0; words].into_boxed_slice())
}

fn leak<T>(vec: Vec<T>) -> &'static mut [T] {
    Box::leak(vec.into_boxed_slice())
}

/// Registers fresh words of `here`.
fn expose(here: Here<'_>, words: usize) -> Region {
    let memory = NonNull::new(zeroes(words).as_mut_ptr()).unwrap().cast();
    // SAFETY: leaked, and only ever touched through the backend and atomics.
    unsafe { here.register(memory, 8 * words as u64, Access::ReadWrite) }.unwrap()
}

const STARTER_WORDS: usize = 64;

fn party(here: &'static Here<'static>, split: Split) -> Party<'static> {
    let shape = ControlShape {
        own_jobs: 16,
        guest_jobs: 2,
        commands: 4,
        flights: 8,
        ..ControlShape::of(RANKS as u32, 1)
    };
    party_of(here, split, shape)
}

fn party_of(here: &'static Here<'static>, split: Split, shape: ControlShape) -> Party<'static> {
    let control = expose(*here, shape.words());
    let starter = expose(*here, STARTER_WORDS);
    let base = control.base.cast::<AtomicU64>();
    // SAFETY: leaked; atomics here and the backend elsewhere.
    let words = unsafe { slice::from_raw_parts(base.as_ptr(), shape.words()) };
    let tables = MachineTables {
        words,
        slots: leak((0..shape.copies).map(|_| CacheSlot::new()).collect()),
        seats: leak((0..2).map(|_| HazardPointers::new()).collect()),
        records: leak(vec![NameRecord::FREE; REGIONS]),
        awaited: zeroes(shape.bitmap_words()),
        told: zeroes(shape.bitmap_words()),
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
        split,
        shape,
        control: control.key,
        starter: Starter { key: starter.key, bytes: starter.bytes, agent: Agent::Cpu },
        remote_completion: here.capabilities().remote_completion,
        ordered_bytes_max: 0,
        carried_bytes_max: 0,
        part_bytes_max: 1 << 20,
        barrier: None,
    };
    let machine = GlobalMachine::new(setup, tables);
    Party { here: *here, endpoint: here.endpoint(), machine, words, shape, outs: Vec::new() }
}

struct World {
    parties: Vec<Party<'static>>,
    split: Split,
    polls: Cell<u64>,
}

impl World {
    fn new(delivery: Delivery) -> Self {
        let job = Job4::new(RANKS as u32).delivering(delivery);
        let job: &'static Job4<'static> = Box::leak(Box::new(job));
        let split = Split::fit(RANKS as u32, 1, 1 << 30).unwrap();
        let parties = (0..RANKS as u32)
            .map(|rank| party(Box::leak(Box::new(job.rank(Rank(rank)))), split))
            .collect();
        Self { parties, split, polls: Cell::new(0) }
    }

    /// Runs everything that is under way to its end.
    fn settle(&mut self) {
        for quiet in 0.. {
            let mut is_idle = true;
            self.polls.set(self.polls.get() + 1);
            let now = Instant::from_ns(self.polls.get() * 1_000_000);
            for party in &mut self.parties {
                if has_rung(party.words, party.shape) {
                    party.machine.handle(MachineEvent::Rang, now);
                    is_idle = false;
                }
                let mut done = [Completion::EMPTY; 8];
                let count = party.endpoint.poll(&mut done);
                for Completion { tag, result } in &done[..count] {
                    let event = MachineEvent::Completed { tag: *tag, result: *result };
                    party.machine.handle(event, now);
                }
                party.machine.handle(MachineEvent::Tick, now);
                is_idle &= party.pump() && count == 0 && party.endpoint.in_flight() == 0;
            }
            if is_idle {
                return;
            }
            assert!(quiet < 10_000, "the world never comes to rest");
        }
    }

    fn issue(
        &mut self,
        rank: usize,
        request: impl Into<GlobalRequest>,
        after: After<'_>,
    ) -> Handle {
        self.parties[rank].machine.try_issue(request.into(), after).unwrap()
    }

    /// Issues a request and waits for its end.
    fn call(
        &mut self,
        rank: usize,
        request: impl Into<GlobalRequest>,
    ) -> Result<u64, AddrError<GlobalAddr>> {
        let handle = self.issue(rank, request, After::Nothing);
        self.settle();
        self.outcome(rank, handle)
    }

    fn outcome(&mut self, rank: usize, handle: Handle) -> Result<u64, AddrError<GlobalAddr>> {
        let is_its = |out: &MachineOutput| matches!(out, MachineOutput::Ended { handle: ended, .. } if *ended == handle);
        let outs = &mut self.parties[rank].outs;
        let at = outs.iter().position(is_its).expect("the request has ended");
        let MachineOutput::Ended { result, .. } = outs.remove(at) else { unreachable!() };
        assert!(self.parties[rank].machine.has_ended(handle));
        result
    }

    fn open(&mut self, rank: usize, words: usize) -> (Region, GlobalAddr) {
        let region = expose(self.parties[rank].here, words);
        (region, self.parties[rank].machine.register(0, &region, Agent::Cpu).unwrap())
    }

    fn starter(&self, rank: u32, offset: u64) -> GlobalAddr {
        let place = AddressParts { rank: Rank(rank), color: 0, region: STARTER, life: 0, offset };
        self.split.addr(place).unwrap()
    }
}

impl Party<'_> {
    /// Returns true if there was nothing to do.
    fn pump(&mut self) -> bool {
        let mut is_idle = true;
        loop {
            let mut is_done = true;
            // The endpoint holds as many operations as the machine has in flight.
            while let Some(out) = self.machine.poll_op() {
                assert_eq!(self.endpoint.post(&[out.op]), 1);
                is_done = false;
            }
            while let Some(out) = self.machine.poll() {
                if let MachineOutput::Retired(retired) = out {
                    assert!(self.here.unregister(retired.key));
                }
                self.outs.push(out);
                is_done = false;
            }
            is_idle &= is_done;
            if is_done {
                return is_idle;
            }
        }
    }
}

fn peek(here: impl LoadStore, rank: u32, region: &Region, word: u64) -> u64 {
    let remote = RemoteAddr { rank: Rank(rank), key: region.key, offset: word * 8 };
    execute(&here, &Op::get_word(remote, Width::W8)).unwrap()
}

fn each_delivery(test: impl Fn(&mut World)) {
    let late = Delivery { late_polls: 3, shuffle: None };
    for delivery in [
        Delivery::default(),
        late,
        Delivery { shuffle: Some(7), ..late },
        Delivery { shuffle: Some(8), ..Delivery::default() },
    ] {
        test(&mut World::new(delivery));
    }
}

/// Ranks publish the addresses of their memory in starter memory; then one rank moves bytes
/// between two others and raises a flag at a fourth.
#[test]
fn addresses_are_exchanged_in_starter_memory_and_bytes_move_between_any_ranks() {
    each_delivery(|world| {
        let opened: Vec<(Region, GlobalAddr)> = (0..4).map(|rank| world.open(rank, 32)).collect();
        for (rank, (_, addr)) in opened.iter().enumerate() {
            let at = world.starter(0, 8 * rank as u64);
            let told = WordRequest::atomic(Kind::PutWord, at, addr.to_bits());
            assert_eq!(world.call(rank, told), Ok(0));
        }
        let found: Vec<GlobalAddr> = (0..4)
            .map(|rank| {
                let word = WordRequest::atomic(Kind::GetWord, world.starter(0, 8 * rank), 0u64);
                GlobalAddr::from_bits(world.call(3, word).unwrap())
            })
            .collect();
        assert_eq!(found, opened.iter().map(|(_, addr)| *addr).collect::<Vec<_>>());

        let split = world.split;
        let word = |rank: usize, index| {
            split.index(GlobalPtr::<u64>::new(found[rank]), index).unwrap().addr()
        };
        for index in 0..8 {
            let put = WordRequest::atomic(Kind::PutWord, word(1, index), 100 + index as u64);
            assert_eq!(world.call(3, put), Ok(0));
        }
        // Rank 3 has every second word of rank 1 copied to rank 2, backwards, and then the flag at
        // rank 0 raised.
        let copy = Copy::new(word(2, 7), word(1, 0), 8).strided(4, -16, 16);
        assert_eq!(world.call(3, copy.then_add(word(0, 5), 9)), Ok(0));
        let here = world.parties[0].here;
        let copied: Vec<u64> = (0..8).map(|index| peek(here, 2, &opened[2].0, index)).collect();
        assert_eq!(copied, [0, 106, 0, 104, 0, 102, 0, 100]);
        assert_eq!(peek(here, 0, &opened[0].0, 5), 9);
    });
}

/// A command to other ranks waits for the operations before it, and a flush for all.
#[test]
fn a_chain_through_three_ranks_keeps_its_order() {
    each_delivery(|world| {
        let addrs: Vec<GlobalAddr> = (0..4).map(|rank| world.open(rank, 8).1).collect();
        let put = WordRequest::atomic(Kind::PutWord, addrs[1], 42u64);
        let mut last = world.issue(0, put, After::Nothing);
        for (dst, src) in [(2, 1), (3, 2), (0, 3)] {
            last = world.issue(0, Copy::new(addrs[dst], addrs[src], 8), After::One(last));
        }
        let flush = world.parties[0].machine.try_flush_all().unwrap();
        let of_rank = world.parties[0].machine.try_flush(Rank(2)).unwrap();
        assert!(!world.parties[0].machine.has_ended(flush));
        world.settle();
        for handle in [last, flush, of_rank] {
            assert_eq!(world.outcome(0, handle), Ok(0));
        }
        assert!(world.parties[0].machine.has_ended_up_to(Handle::ALL));
        assert_eq!(world.call(0, WordRequest::atomic(Kind::GetWord, addrs[0], 0u64)), Ok(42));
    });
}

#[test]
fn atomics_follow_the_width_of_their_word() {
    let mut world = World::new(Delivery::default());
    let (_, wide) = world.open(2, 2);
    let narrow = world.split.add(wide, 12).unwrap();
    let mut on =
        |kind, operand: u64| world.call(1, WordRequest::atomic(kind, wide, operand)).unwrap();
    assert_eq!(on(Kind::FetchAdd, 5), 0);
    assert_eq!(on(Kind::FetchXor, 6), 5);
    assert_eq!(on(Kind::FetchOr, 8), 3);
    assert_eq!(on(Kind::FetchAnd, 9), 11);
    assert_eq!(on(Kind::Swap, u64::MAX), 9);
    let swap = WordRequest::compare_swap(wide, u64::MAX, 1u64);
    assert_eq!((world.call(1, swap), world.call(1, swap)), (Ok(u64::MAX), Ok(1)));
    let add = WordRequest::atomic(Kind::FetchAdd, narrow, -1i32);
    assert_eq!((world.call(1, add), world.call(1, add)), (Ok(0), Ok(0xffff_ffff)));
    let swap = WordRequest::compare_swap(narrow, -2i32, 7i32).notifying();
    assert_eq!(world.call(1, swap), Ok(0xffff_fffe));
    let odd = world.split.add(wide, 2).unwrap();
    let odd_add = WordRequest::atomic(Kind::FetchAdd, odd, 1u32);
    assert_eq!(world.call(1, odd_add), Err(AddrError::Unaligned { addr: odd, align: 4 }));
}

#[test]
fn a_wrong_access_is_an_error_with_its_address() {
    let mut world = World::new(Delivery::default());
    let (region, addr) = world.open(2, 2);
    let last = world.split.add(addr, 15).unwrap();
    let own = world.starter(1, 0);
    let beyond = |region_bytes| AddrError::OutOfRange { addr: last, bytes: 2, region_bytes };
    for (copy, error) in [
        (Copy::new(GlobalAddr::NULL, own, 8), AddrError::Nowhere { addr: GlobalAddr::NULL }),
        (Copy::new(last, own, 2), beyond(Some(16))),
        (Copy::new(own, last, 2), beyond(Some(16))),
        // A command to rank 3 does this copy; the code of its error has no length.
        (Copy::new(last, world.starter(3, 0), 2), beyond(None)),
    ] {
        assert_eq!(world.call(1, copy), Err(error));
    }
    let other = world.split.place(addr).unwrap();
    let unknown = world.split.addr(AddressParts { region: 200, ..other }).unwrap();
    let read = WordRequest::atomic(Kind::GetWord, unknown, 0u64);
    assert_eq!(world.call(1, read), Err(AddrError::StaleKey { addr: unknown }));
    let far = world.split.addr(AddressParts { rank: Rank(5), ..other }).unwrap();
    let read = WordRequest::atomic(Kind::GetWord, far, 0u64);
    assert_eq!(world.call(1, read), Err(AddrError::Nowhere { addr: far }));

    assert_eq!(world.call(1, Copy::new(addr, own, 16)), Ok(0));
    world.parties[2].machine.unregister(addr).unwrap();
    world.settle();
    let retired = world.parties[2].outs.iter().any(|out| matches!(out, MachineOutput::Retired(_)));
    assert!(retired && world.parties[2].machine.names() == 0);
    assert_eq!(
        world.call(1, Copy::new(addr, own, 16)),
        Err(AddrError::StaleKey { addr }),
        "stale, not an error of the device for {region:?}"
    );
}

/// A source that was given up answers late, when the place of its command belongs to another
/// command: the second command continues. Its own end is reported.
fn late_end() -> [Option<MachineOutput>; 3] {
    let mut world = World::new(Delivery::default());
    let addrs: Vec<GlobalAddr> = (0..4).map(|rank| world.open(rank, 8).1).collect();
    let Party { machine, words, shape, .. } = &mut world.parties[0];
    let before = |name| shape.parts().into_iter().take_while(move |part| part.name != name);
    let end: u64 = before("ends of commands").map(|part| part.bytes).sum();
    // The command and its note arrive, and the source does nothing.
    let ask = |machine: &mut GlobalMachine<'_>, src: GlobalAddr| {
        let copy = Copy::new(addrs[2], src, 8);
        machine.try_issue(copy.into(), After::Nothing).unwrap();
        while let Some(out) = machine.poll_op() {
            machine
                .handle(MachineEvent::Completed { tag: out.op.tag, result: Ok(0) }, Instant::ZERO);
        }
    };
    let answer = |machine: &mut GlobalMachine<'_>, stamp: u64| {
        words[end as usize / 8].store(stamp << 32, Ordering::Relaxed);
        machine.handle(MachineEvent::Rang, Instant::ZERO);
        while machine.poll_op().is_some() {}
        machine.poll()
    };
    ask(machine, addrs[1]);
    machine.handle(MachineEvent::Lost(Rank(1)), Instant::ZERO);
    while machine.poll_op().is_some() {}
    let lost = machine.poll();
    ask(machine, addrs[3]);
    [lost, answer(machine, 1), answer(machine, 2)]
}

#[test]
fn a_late_end_of_a_command_is_ignored() {
    let [lost, late, right] = late_end();
    let rank = Rank(1);
    assert!(
        matches!(lost, Some(MachineOutput::Ended { result: Err(AddrError::PeerLost { rank: lost }), .. })
            if lost == rank)
    );
    assert_eq!(late, None);
    assert!(matches!(right, Some(MachineOutput::Ended { result: Ok(0), .. })));
}

#[test]
#[cfg(debug_assertions)]
fn accepting_a_late_end_is_caught() {
    let [_, late, _] = tsumugi_core::sync::with_mutant("gas_end_of_any_life", late_end);
    assert!(late.is_some());
}

/// Two of a million ranks hold the table: each gets a request, by its bit and the hint for it,
/// and no other rank does.
#[test]
fn two_holders_among_a_million_are_found() {
    let job: &Job4<'static> = Box::leak(Box::new(Job4::new(1)));
    let ranks = 1_000_000;
    let shape = ControlShape { copies: 4, ..ControlShape::of(ranks, 1) };
    let split = Split::fit(ranks, 1, 1 << 30).unwrap();
    let here = Box::leak(Box::new(job.rank(Rank(0))));
    let Party { mut machine, words, here, .. } = party_of(here, split, shape);
    let region = expose(here, 1);
    let addr = machine.register(0, &region, Agent::Cpu).unwrap();
    let part = |name| {
        let before = shape.parts().into_iter().take_while(|part| part.name != name);
        before.map(|part| part.bytes as usize / 8).sum::<usize>()
    };
    let (bitmaps, hints) = (part("holders, drops, acks"), part("hints"));
    let (bitmap, hint) = ((hints - bitmaps) / 3, (part("notes") - hints) / 2);
    let holders = [70_001u32, 999_999];
    let set = |first: usize, bit: u32| {
        words[first + bit as usize / 64].fetch_or(1 << (bit % 64), Ordering::Relaxed);
    };
    holders.iter().for_each(|&rank| set(bitmaps, rank));
    machine.unregister(addr).unwrap();
    let mut asked = Vec::new();
    while let Some(out) = machine.poll_op() {
        let Op { remote, kind, notify, .. } = out.op;
        assert_eq!(kind, Kind::FetchOr);
        asked.push((remote.rank.0, notify));
        machine.handle(MachineEvent::Completed { tag: out.op.tag, result: Ok(0) }, Instant::ZERO);
    }
    let [one, other] = holders;
    assert_eq!(asked, [(one, false), (one, true), (other, false), (other, true)]);
    for rank in holders {
        assert_eq!(machine.poll(), None, "no region is free before {rank} has answered");
        set(bitmaps + 2 * bitmap, rank);
        set(hints + hint, rank / 64);
        assert!(has_rung(words, shape));
        machine.handle(MachineEvent::Rang, Instant::ZERO);
        assert!(!has_rung(words, shape));
    }
    assert!(
        matches!(machine.poll(), Some(MachineOutput::Retired(retired)) if retired.addr == addr)
    );
}

/// All names of a colour can be in use; they are given in turn.
#[test]
fn names_run_out_and_are_given_again() {
    let mut world = World::new(Delivery::default());
    let region = expose(world.parties[0].here, 1);
    let machine = &mut world.parties[0].machine;
    let addrs: Vec<GlobalAddr> =
        (0..REGIONS).map(|_| machine.register(0, &region, Agent::Cpu).unwrap()).collect();
    assert_eq!(machine.register(0, &region, Agent::Cpu), Err(NameError::Full { color: 0 }));
    assert_eq!(
        machine.register(1, &region, Agent::Cpu),
        Err(NameError::NoSuchColor { color: 1, colors: 1 })
    );
    machine.unregister(addrs[7]).unwrap();
    while machine.poll_op().is_some() {}
    assert!(
        matches!(machine.poll(), Some(MachineOutput::Retired(retired)) if retired.addr == addrs[7])
    );
    let again = machine.register(0, &region, Agent::Cpu).unwrap();
    let (old, new) = (world.split.place(addrs[7]).unwrap(), world.split.place(again).unwrap());
    assert_eq!((old.region, old.life + 1), (new.region, new.life));
}

/// A worker's own accesses use the cache and the backend, and the machine only when the table is
/// not here.
#[test]
fn a_worker_needs_the_machine_for_a_miss_alone() {
    let mut world = World::new(Delivery::default());
    let (region, addr) = world.open(2, 2);
    let cache = world.parties[1].machine.cache();
    let here = world.parties[1].here;
    assert_eq!(cache.hold::<0>(0, addr, 8, Need::Write), Err(Miss::NoTable));
    assert_eq!(world.parties[1].machine.want(addr), Ok(TableWanted::Coming));
    world.settle();
    let came = MachineOutput::Table { rank: Rank(2), result: Ok(()) };
    assert!(world.parties[1].outs.contains(&came));
    let HeldTarget { target, slot } = cache.hold::<0>(0, addr, 8, Need::Write).unwrap();
    execute(&here, &Op::put_word(target.remote, Width::W8, 5)).unwrap();
    assert!(!cache.release::<0>(0, slot), "no rank waits for the table");
    assert_eq!(peek(here, 2, &region, 0), 5);
    // A region that is younger than the copy of its table.
    let (_, younger) = world.open(2, 1);
    let Err(Miss::NotListed { version }) = cache.hold::<0>(0, younger, 8, Need::Read) else {
        panic!("the table was read before the region existed")
    };
    assert_eq!(world.parties[1].machine.want_newer(younger, version), Ok(TableWanted::Coming));
    world.settle();
    assert!(cache.hold::<0>(0, younger, 8, Need::Read).is_ok());
    assert!(!cache.release::<0>(0, slot));
    assert_eq!(world.parties[1].machine.table_counts(), (0, 2));
    // An operation in flight keeps the region until it has ended, and so does a worker that
    // accesses it.
    let held = cache.hold::<1>(1, addr, 8, Need::Write).unwrap();
    let pinned = cache.pin(addr, 8, Need::Write).unwrap();
    world.parties[2].machine.unregister(addr).unwrap();
    world.settle();
    assert_eq!(world.parties[2].machine.names(), 2, "one name is in use");
    assert_eq!(cache.hold::<0>(0, addr, 8, Need::Write), Err(Miss::NoTable));
    assert!(cache.unpin(pinned.slot), "the machine waits for the pin");
    world.settle();
    assert_eq!(world.parties[2].machine.names(), 2, "one name is in use");
    assert!(cache.release::<1>(1, held.slot), "the machine waits for the hold");
    world.settle();
    assert_eq!(world.parties[2].machine.names(), 1);
}

/// A name that is given again belongs to another region: its old addresses are stale, here and at
/// a peer that has the new table.
#[test]
fn a_name_used_twice_is_two_regions() {
    let mut world = World::new(Delivery::default());
    let (_, old) = world.open(2, 2);
    assert_eq!(world.call(1, WordRequest::atomic(Kind::PutWord, old, 7u64)), Ok(0));
    world.parties[2].machine.unregister(old).unwrap();
    world.settle();
    let old_name = world.split.place(old).unwrap();
    let (mut again, mut others) = (None, 0);
    while again.is_none() {
        let (region, addr) = world.open(2, 2);
        if world.split.place(addr).unwrap().region == old_name.region {
            again = Some((region, addr));
        } else {
            world.parties[2].machine.unregister(addr).unwrap();
            world.settle();
            others += 1;
        }
    }
    let (region, new) = again.unwrap();
    assert_eq!(others, REGIONS - 1, "all other names came first");
    assert_eq!(world.split.place(new).unwrap().life, old_name.life + 1);
    for rank in [1, 2, 3] {
        let put = |addr, value: u64| WordRequest::atomic(Kind::PutWord, addr, value);
        assert_eq!(world.call(rank, put(new, 1)), Ok(0));
        assert_eq!(world.call(rank, put(old, 9)), Err(AddrError::StaleKey { addr: old }));
        let (of_old, of_new) = (Copy::new(world.starter(3, 0), old, 8), world.starter(0, 8));
        assert!(matches!(world.call(rank, of_old), Err(AddrError::StaleKey { .. })));
        assert_eq!(world.call(rank, Copy::new(of_new, new, 8)), Ok(0));
        assert_eq!(peek(world.parties[0].here, 2, &region, 0), 1);
    }
    let cache = world.parties[1].machine.cache();
    let stale = cache.hold::<0>(0, old, 8, Need::Read);
    assert!(stale.is_err(), "{stale:?}");
    assert_eq!(world.parties[2].machine.unregister(old), Err(AddrError::StaleKey { addr: old }));
    world.parties[2].machine.unregister(new).unwrap();
}

/// A region of 16 bytes has no 17th byte.
#[test]
fn a_table_admits_no_byte_beyond_a_region() {
    let mut world = World::new(Delivery::default());
    let (_, addr) = world.open(2, 2);
    assert_eq!(world.call(1, WordRequest::atomic(Kind::GetWord, addr, 0u64)), Ok(0));
    let cache = world.parties[1].machine.cache();
    for (offset, bytes, is_in) in
        [(0, 16, true), (8, 8, true), (15, 1, true), (0, 17, false), (9, 8, false), (16, 1, false)]
    {
        let at = world.split.add(addr, offset).unwrap();
        match cache.hold::<0>(0, at, bytes, Need::Read) {
            Ok(held) => {
                cache.release::<0>(0, held.slot);
                assert!(is_in, "{bytes} bytes at {offset}");
            }
            Err(miss) => {
                let error = AddrError::OutOfRange { addr: at, bytes, region_bytes: Some(16) };
                assert!(!is_in && miss == Miss::Refused(error), "{bytes} at {offset}: {miss:?}");
            }
        }
    }
}

/// Memory of this rank needs no copy of a table.
#[test]
fn own_memory_is_found_without_a_table() {
    let mut world = World::new(Delivery::default());
    let (_, from) = world.open(1, 2);
    let (region, to) = world.open(1, 2);
    assert_eq!(world.call(1, WordRequest::atomic(Kind::PutWord, from, 5u64)), Ok(0));
    assert_eq!(world.call(1, Copy::new(to, from, 16)), Ok(0));
    assert_eq!(peek(world.parties[0].here, 1, &region, 0), 5);
    assert_eq!(world.parties[1].machine.table_counts(), (0, 0));
}

/// The last word of a region can be a flag as any other.
#[test]
fn a_flag_may_be_the_last_word_of_a_region() {
    let mut world = World::new(Delivery::default());
    let (_, from) = world.open(1, 1);
    let (region, to) = world.open(2, 2);
    let last = world.split.add(to, 8).unwrap();
    assert_eq!(world.call(1, Copy::new(to, from, 8).then_add(last, 3)), Ok(0));
    assert_eq!(peek(world.parties[0].here, 2, &region, 1), 3);
}

/// A flush of one rank waits for the operations on that rank: not for puts to another, nor for a
/// fence that waits for those.
#[test]
fn a_flush_of_one_rank_waits_for_no_other() {
    let mut world = World::new(Delivery::default());
    let (_, addr) = world.open(1, 1);
    let put = world.issue(0, WordRequest::atomic(Kind::PutWord, addr, 1u64), After::Nothing);
    let all = world.parties[0].machine.try_flush_all().unwrap();
    let one = world.parties[0].machine.try_flush(Rank(2)).unwrap();
    world.parties[0].pump();
    assert_eq!(world.outcome(0, one), Ok(0));
    assert!(!world.parties[0].machine.has_ended(all));
    world.settle();
    assert_eq!((world.outcome(0, put), world.outcome(0, all)), (Ok(0), Ok(0)));
}
