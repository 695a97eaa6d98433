//! The memory of the machine's tables, which the driver owns.

use super::{Control, PART_BYTES};
use crate::Rank;
use crate::lend::{Lent, lend};
use tsumugi_gas::address::{REGIONS, Split};
use tsumugi_gas::cache::{Fetch, Seat, Slot};
use tsumugi_gas::control::Shape;
use tsumugi_gas::machine::{Asked, Flight, Job, Machine, Setup, Tables as Given};
use tsumugi_gas::order::{Edge, Issued};
use tsumugi_gas::table::{Agent, Record, Starter};
use tsumugi_pvas::Member;
use tsumugi_pvas::partition::STARTER_KEY;
use tsumugi_ult::internals::Fences;

/// The machine's tables, which are freed with the state.
pub(super) type Tables = (
    (Lent<Slot>, Lent<Record>, Lent<u64>, Lent<u64>, Lent<Fetch>, Lent<Issued>),
    (Lent<Edge>, Lent<Job>, Lent<Asked>, Lent<Flight>, Lent<Seat>, Lent<Rank>),
);

/// Makes a machine and its tables.
pub(super) fn machine(
    member: &Member,
    shape: Shape,
    split: Split,
    control: &Control,
    (remote_completion, ordered_bytes_max, carried_bytes_max): (bool, u64, u64),
    workers: usize,
) -> (Machine<'static>, Tables) {
    let (slots, slots_lent) = lend((0..shape.copies).map(|_| Slot::new()).collect());
    let (seats, seats_lent) = lend((0..workers).map(|_| Seat::new()).collect());
    let (records, records_lent) = lend(vec![Record::FREE; REGIONS * shape.colors as usize]);
    let (awaited, awaited_lent) = lend(vec![0; shape.bitmap_words()]);
    let (told, told_lent) = lend(vec![0; shape.bitmap_words()]);
    let (fetches, fetches_lent) = lend(vec![Fetch::FREE; shape.fetches as usize]);
    let (issued, issued_lent) = lend(vec![Issued::FREE; shape.own_jobs as usize]);
    let (edges, edges_lent) = lend(vec![Edge::FREE; shape.conditions as usize]);
    let (jobs, jobs_lent) = lend(vec![Job::FREE; shape.jobs()]);
    let (commands, commands_lent) = lend(vec![Asked::FREE; shape.commands as usize]);
    let (flights, flights_lent) = lend(vec![Flight::FREE; shape.flights as usize]);
    let given = Given {
        words: control.words(),
        slots,
        seats,
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
    let setup = Setup {
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
        (edges_lent, jobs_lent, commands_lent, flights_lent, seats_lent, near_lent),
    );
    (Machine::new(setup, given), lent)
}

/// A memory barrier on all threads of this process.
fn barrier() {
    Fences::Asymmetric.heavy();
}
