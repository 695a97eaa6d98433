//! The memory of the machine's tables, which the driver owns.

use super::control::ControlRegions;
use crate::leaked_slice::{LeakedSlice, lend};
use tsumugi_core::mem::Rank;
use tsumugi_gas::address::{REGIONS, Split};
use tsumugi_gas::cache::{CacheSlot, Fetch, HazardPointers};
use tsumugi_gas::control::ControlShape;
use tsumugi_gas::machine::{
    GlobalMachine, InFlightOp, MachineSetup, MachineTables as Given, PendingOp, SentCommand,
};
use tsumugi_gas::order::{Edge, Issued};
use tsumugi_gas::table::{Agent, NameRecord, Starter};
use tsumugi_pvas::Member;
use tsumugi_pvas::partition::STARTER_KEY;
use tsumugi_ult::internals::Fences;

/// The machine's tables, which are freed with the state.
pub(super) type MachineTables = (
    (
        LeakedSlice<CacheSlot>,
        LeakedSlice<NameRecord>,
        LeakedSlice<u64>,
        LeakedSlice<u64>,
        LeakedSlice<Fetch>,
        LeakedSlice<Issued>,
    ),
    (
        LeakedSlice<Edge>,
        LeakedSlice<PendingOp>,
        LeakedSlice<SentCommand>,
        LeakedSlice<InFlightOp>,
        LeakedSlice<HazardPointers>,
        LeakedSlice<Rank>,
    ),
);

/// Makes a machine and its tables.
pub(super) fn machine(
    member: &Member,
    shape: ControlShape,
    split: Split,
    control: &ControlRegions,
    (remote_completion, ordered_bytes_max, carried_bytes_max): (bool, u64, u64),
    seats: usize,
) -> (GlobalMachine<'static>, MachineTables) {
    let (slots, slots_lent) = lend((0..shape.copies).map(|_| CacheSlot::new()).collect());
    let (hazards, hazards_lent) = lend((0..seats).map(|_| HazardPointers::new()).collect());
    let (records, records_lent) = lend(vec![NameRecord::FREE; REGIONS * shape.colors as usize]);
    let (awaited, awaited_lent) = lend(vec![0; shape.bitmap_words()]);
    let (told, told_lent) = lend(vec![0; shape.bitmap_words()]);
    let (fetches, fetches_lent) = lend(vec![Fetch::FREE; shape.fetches as usize]);
    let (issued, issued_lent) = lend(vec![Issued::FREE; shape.own_jobs as usize]);
    let (edges, edges_lent) = lend(vec![Edge::FREE; shape.conditions as usize]);
    let (jobs, jobs_lent) = lend(vec![PendingOp::FREE; shape.jobs()]);
    let (commands, commands_lent) = lend(vec![SentCommand::FREE; shape.commands as usize]);
    let (flights, flights_lent) = lend(vec![InFlightOp::FREE; shape.flights as usize]);
    let given = Given {
        words: control.words(),
        slots,
        hazards,
        records,
        awaited,
        told,
        fetches,
        issued,
        edges,
        jobs,
        commands,
        flights,
    };
    let starter = Starter { key: STARTER_KEY, bytes: member.starter().bytes, agent: Agent::Cpu };
    let (near, near_lent) = lend(member.neighbours().collect::<Vec<_>>());
    near.sort_unstable();
    let setup = MachineSetup {
        rank: member.rank(),
        near,
        split,
        shape,
        control: super::control::KEY,
        starter,
        remote_completion,
        ordered_bytes_max,
        carried_bytes_max,
        part_bytes_max: PART_BYTES,
        barrier: (Fences::of_system() == Fences::Asymmetric).then_some(barrier as fn()),
    };
    let lent = (
        (slots_lent, records_lent, awaited_lent, told_lent, fetches_lent, issued_lent),
        (edges_lent, jobs_lent, commands_lent, flights_lent, hazards_lent, near_lent),
    );
    (GlobalMachine::new(setup, given), lent)
}

/// A memory barrier on all threads of this process.
fn barrier() {
    Fences::Asymmetric.heavy();
}

/// The length of the longest single put or get; one worker copies this much at a
/// time.
pub(super) const PART_BYTES: u64 = 1 << 20;
