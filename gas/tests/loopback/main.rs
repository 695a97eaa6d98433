//! The global memory over the loopback backend: a program from its start on, with addresses that
//! its ranks exchange through the starter memory.
#![cfg(not(tsumugi_loom))]

mod accesses;
mod late_ends;
mod names;

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
        remote_jobs: 2,
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
        hazards: leak((0..2).map(|_| HazardPointers::new()).collect()),
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
