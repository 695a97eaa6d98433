//! A machine with the test in the place of its driver: the test sees each operation,
//! and decides when and how it ends.

extern crate std;

mod third_party;
mod remote_caller;
mod parts;
mod tables;
mod way;

use super::tables::OpQueue;
use super::*;
use crate::address::{AddressParts, GlobalAddr, Split};
use crate::cache::{CacheSlot, Fetch, HazardPointers};
use crate::command::{CopyCommand, WORDS};
use crate::control::{ControlRegion, ControlShape};
use crate::order::{After, Edge, Handle, Issued};
use crate::request::GlobalRequest;
use crate::table::{Agent, NameRecord, RegionEntry, Starter, entry_word};
use core::ptr::NonNull;
use core::time::Duration;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;
use tsumugi_core::mem::{Access, AddrError, Rank, Region, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};
use tsumugi_core::time::Instant;

const OWN: Rank = Rank(0);
const RANKS: u32 = 4;
/// Names of regions of each rank: for all accesses, for reading, and a device's.
const OPEN: u8 = 0;
const READ: u8 = 1;
const DEVICES: u8 = 2;
/// The name of a region that no rank has, unless a test lists it.
const NEW: u8 = 3;
/// The length of each region.
const BYTES: u64 = 4096;
const LOST: AddrError = AddrError::PeerLost { rank: Rank(3) };

struct Rig {
    machine: GlobalMachine<'static>,
    control: ControlRegion,
    split: Split,
    words: &'static [AtomicU64],
    now: Instant,
    /// Regions that other ranks have registered in addition to those that all ranks
    /// have.
    listed: Vec<(Rank, u8)>,
    /// The number of tables that were read.
    reads: usize,
    /// The ranks whose tables cannot be read.
    lost: Vec<Rank>,
}

fn leak<T>(count: usize, value: impl FnMut() -> T) -> &'static mut [T] {
    Box::leak(core::iter::repeat_with(value).take(count).collect::<Vec<T>>().into_boxed_slice())
}

fn plain() -> MachineSetup<'static> {
    let shape = ControlShape {
        notes: 16,
        cells: 0,
        commands: 2,
        own_jobs: 8,
        remote_jobs: 2,
        conditions: 16,
        flights: 16,
        fetches: 4,
        copies: 8,
        ..ControlShape::of(RANKS, 1)
    };
    MachineSetup {
        rank: OWN,
        near: &[],
        split: Split::fit(RANKS, 1, 1 << 20).unwrap(),
        shape,
        control: RegionKey::new(0, 1),
        starter: Starter { key: RegionKey::new(1, 1), bytes: 64, agent: Agent::Cpu },
        remote_completion: true,
        ordered_bytes_max: 0,
        carried_bytes_max: 0,
        part_bytes_max: 100,
        barrier: None,
    }
}

/// The key of a region of that rank.
fn key(rank: Rank, name: u8) -> RegionKey {
    let agent = if name == DEVICES { Agent::Device } else { Agent::Cpu };
    RegionKey::new(10 * (rank.0 as usize + 1) + name as usize, 1).of(agent)
}

fn remote(rank: u32, name: u8, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(rank), key: key(Rank(rank), name), offset }
}

impl Rig {
    fn new(setup: MachineSetup<'static>) -> Self {
        let MachineSetup { shape, split, .. } = setup;
        let words = &*leak(shape.words(), || AtomicU64::new(0));
        let tables = MachineTables {
            words,
            slots: leak(shape.copies as usize, CacheSlot::new),
            hazards: leak(1, HazardPointers::new),
            records: leak(shape.colors as usize * crate::address::REGIONS, || NameRecord::FREE),
            awaited: leak(shape.bitmap_words(), || 0),
            told: leak(shape.bitmap_words(), || 0),
            fetches: leak(shape.fetches as usize, || Fetch::FREE),
            issued: leak(shape.own_jobs as usize, || Issued::FREE),
            edges: leak(shape.conditions as usize, || Edge::FREE),
            jobs: leak(shape.jobs(), || PendingOp::FREE),
            commands: leak(shape.commands as usize, || SentCommand::FREE),
            flights: leak(shape.flights as usize, || InFlightOp::FREE),
        };
        let control = ControlRegion::new(setup.control, setup.rank, shape);
        let mut machine = GlobalMachine::new(setup, tables);
        for name in [OPEN, READ, DEVICES] {
            let region = Region {
                key: key(setup.rank, name),
                base: NonNull::dangling(),
                bytes: BYTES,
                access: access(name),
            };
            let agent = region.key.agent();
            assert_eq!(machine.register(0, &region, agent), Ok(split.named(setup.rank.0, name, 0)));
        }
        let (listed, lost) = (Vec::new(), Vec::new());
        Self { machine, control, split, words, now: Instant::ZERO, listed, reads: 0, lost }
    }

    fn at(&self, rank: u32, name: u8, offset: u64) -> GlobalAddr {
        self.split.named(rank, name, offset)
    }

    fn issue(&mut self, request: impl Into<GlobalRequest>) -> Handle {
        self.machine.try_issue(request.into(), After::Nothing).unwrap()
    }

    fn handle(&mut self, event: MachineEvent) {
        self.machine.handle(event, self.now);
    }

    fn end(&mut self, out: &OutgoingOp, result: Result<u64, AddrError>) {
        self.handle(MachineEvent::Completed { tag: out.op.tag, result });
    }

    /// All operations that are due now. Those that fetch tables end at once, and are
    /// not returned.
    fn ops(&mut self) -> Vec<OutgoingOp> {
        let mut all = Vec::new();
        while let Some(out) = self.machine.poll_op() {
            let result = match self.lost.contains(&out.op.remote.rank) {
                true => Err(AddrError::PeerLost { rank: out.op.remote.rank }),
                false => Ok(0),
            };
            match out.op.remote {
                at if at == self.control.holder(at.rank).0 => self.end(&out, result),
                at if at == self.control.table(at.rank, 0) && out.op.kind == Kind::Get => {
                    self.reads += 1;
                    self.fill(at.rank, out.op.local().offset);
                    self.end(&out, result);
                }
                _ => all.push(out),
            }
            self.outs_of_tables();
        }
        all
    }

    /// The only operation that is due now.
    fn op(&mut self) -> OutgoingOp {
        let mut all = self.ops();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Continues jobs whose tables have arrived; ends stay with the machine.
    fn outs_of_tables(&mut self) {
        if let Some(fetched) = self.machine.fetcher.poll() {
            self.machine.table_came(fetched.table, fetched.result);
        }
    }

    /// Writes the table of a rank to the place to which the machine reads it.
    fn fill(&self, rank: Rank, offset: u64) {
        let names = [OPEN, READ, DEVICES].into_iter();
        let more = self.listed.iter().filter(|(of, _)| *of == rank).map(|(_, name)| *name);
        for name in names.chain(more) {
            let key = key(rank, name);
            let (bytes, agent) = (BYTES, key.agent());
            let entry = RegionEntry { key, bytes, life: 0, access: access(name), agent };
            self.write(offset as usize / 8 + entry_word(0, name.into()), &entry.encode());
        }
    }

    fn ended(&mut self) -> Vec<(Handle, Result<u64, AddrError<GlobalAddr>>)> {
        let outs = core::iter::from_fn(|| self.machine.poll());
        let ended = outs.filter_map(|out| match out {
            MachineOutput::Ended { handle, result } => Some((handle, result)),
            _ => None,
        });
        ended.collect()
    }

    /// The result of the only operation that has ended.
    fn result(&mut self) -> Result<u64, AddrError<GlobalAddr>> {
        let ended = self.ended();
        assert_eq!(ended.len(), 1, "{ended:?}");
        ended[0].1
    }

    /// Carries out all operations with success until none is left, and returns them.
    fn finish(&mut self) -> Vec<OutgoingOp> {
        let mut all = Vec::new();
        loop {
            let ops = self.ops();
            if ops.is_empty() {
                return all;
            }
            ops.iter().for_each(|out| self.end(out, Ok(0)));
            all.extend(ops);
        }
    }

    /// Whether an operation under way keeps the table of another rank here, when that rank requests
    /// it back.
    fn keeps(&mut self, rank: u32) -> bool {
        let word = self.control.drop_words() + rank as usize / 64;
        self.words[word].fetch_or(1 << (rank % 64), Ordering::Relaxed);
        self.handle(MachineEvent::Rang);
        let ack = self.control.ack(Rank(rank)).0;
        !self.ops().iter().any(|out| out.op.remote == ack)
    }

    /// Writes an entry of a list to the landing of the first job.
    fn land(&self, entry: u64, dst: GlobalAddr, src: GlobalAddr, bytes: u64) {
        let first = self.control.landing_words(0) + 3 * entry as usize;
        self.write(first, &[dst.to_bits(), src.to_bits(), bytes]);
    }

    /// The command of this rank in the place `index`.
    fn command(&self, index: usize) -> Option<CopyCommand> {
        let first = self.control.command_words() + index * WORDS;
        let words = core::array::from_fn(|word| self.words[first + word].load(Ordering::Relaxed));
        CopyCommand::decode(&words, self.machine.setup.rank)
    }

    /// Writes words to the control region.
    fn write(&self, first: usize, words: &[u64]) {
        for (word, value) in words.iter().enumerate() {
            self.words[first + word].store(*value, Ordering::Relaxed);
        }
    }

    fn pass(&mut self, ns: u64) {
        self.now = self.now + Duration::from_nanos(ns);
        self.handle(MachineEvent::Tick);
    }
}

impl Split {
    fn named(self, rank: u32, region: u8, offset: u64) -> GlobalAddr {
        self.addr(AddressParts { rank: Rank(rank), color: 0, region, life: 0, offset }).unwrap()
    }
}

fn access(name: u8) -> Access {
    if name == READ { Access::Read } else { Access::ReadWrite }
}
