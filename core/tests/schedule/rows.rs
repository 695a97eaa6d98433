//! Collectives through rows of cells: each member takes its steps at drawn times, for many
//! collectives one after the other, with deaths.

use super::case::{Case, Kind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tsumugi_conformance::Seeded;
use tsumugi_core::coll::row::{CellRow, RowMemory, RowSeat, RowWait};
use tsumugi_core::coll::schedule::{
    AllgatherDesign, AllreduceDesign, BroadcastDesign, BufferSpan, CollBuffer, CollChoice,
    CollForced, CollStep, Collective, CombineOrder,
};
use tsumugi_core::mem::Rank;
use tsumugi_core::sim::{Seeds, check};
use tsumugi_core::sync::AtomicU64;

struct Rows(Vec<CellRow>);

impl RowMemory for Rows {
    fn row(&self, member: u32) -> &CellRow {
        &self.0[member as usize]
    }

    fn wake(&self, member: u32, _: &AtomicU64) {
        panic!("member {member} is woken, and none sleeps");
    }
}

/// A member with its place in the series of collectives.
struct Member<'c> {
    seat: RowSeat,
    me: u32,
    case: usize,
    part: Option<Part<'c>>,
    is_dead: bool,
    lost: bool,
}

/// A member's part in one collective.
struct Part<'c> {
    case: &'c Case,
    machine: Collective,
    held: Option<CollStep>,
    number: u64,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Part<'_> {
    /// Takes one step; returns whether there was one to take.
    fn step(&mut self, rows: &Rows, seat: &RowSeat, me: u32) -> bool {
        let tables = self.case.tables(me);
        let held = self.held.take();
        let Some(step) = held.or_else(|| self.machine.poll_step(&tables)) else { return false };
        if self.try_step(rows, seat, step).is_err() {
            self.held = Some(step);
        }
        true
    }

    fn try_step(&mut self, rows: &Rows, seat: &RowSeat, step: CollStep) -> Result<(), RowWait> {
        match step {
            CollStep::Enter { from } => {
                let value = from.map(|span| self.buffer(span.buffer)[range(span)].to_vec());
                seat.try_enter(rows, self.number, value.as_deref())
            }
            CollStep::Take { member, at, value_bytes, into, combined } => {
                let mut value = vec![0; into.len];
                let len = seat.try_take(rows, self.number, member, at, &mut value)?;
                assert!(value_bytes.is_none_or(|expected| expected == len), "{step:?}: {len}");
                if let Some(order) = combined {
                    let mut both = self.buffer(into.buffer)[range(into)].to_vec();
                    let from_first = order == CombineOrder::FromFirst;
                    self.case.combine(&value, &mut both, from_first);
                    value = both;
                }
                assert!(into.len == 0 || into.buffer == CollBuffer::Output, "{step:?}");
                self.output[range(into)].copy_from_slice(&value);
                Ok(())
            }
            CollStep::Leave { all_left } => {
                seat.leave(rows, self.number, all_left);
                self.number += 1;
                Ok(())
            }
            _ => panic!("{step:?} in {:?}, whose values are short", self.case),
        }
    }

    fn buffer(&self, buffer: CollBuffer) -> &[u8] {
        match buffer {
            CollBuffer::Input => &self.input,
            CollBuffer::Output => &self.output,
            CollBuffer::Scratch => &[],
        }
    }
}

fn range(span: BufferSpan) -> std::ops::Range<usize> {
    span.at..if span.len == 0 { span.at } else { span.at + span.len }
}

/// Every collective that can go through rows, with the operations that it allows.
const KINDS: [(Kind, bool); 14] = [
    (Kind::Barrier, true),
    (Kind::Broadcast(BroadcastDesign::Tree), true),
    (Kind::Broadcast(BroadcastDesign::Tree), true),
    (Kind::Reduce, true),
    (Kind::Reduce, false),
    (Kind::Allreduce(AllreduceDesign::Doubling), true),
    (Kind::Allreduce(AllreduceDesign::Doubling), false),
    (Kind::Scan { exclusive: false }, false),
    (Kind::Scan { exclusive: true }, false),
    (Kind::Gather { tree: true }, true),
    (Kind::Scatter { tree: true }, true),
    (Kind::Allgather(AllgatherDesign::Ring), true),
    (Kind::Alltoall { short: true }, true),
    (Kind::ReduceScatter { halve: false }, false),
];

fn drawn_cases(draws: &mut Seeded, size: u32) -> Vec<Case> {
    let case = |_| {
        let (kind, commutes) = KINDS[draws.below(KINDS.len() as u64) as usize];
        let whole = matches!(
            kind,
            Kind::Alltoall { .. } | Kind::Scatter { .. } | Kind::ReduceScatter { .. }
        );
        let most = if whole { CellRow::VALUE_BYTES / 8 / size as usize } else { 32 };
        let count = [0, 1, 2, most.min(32)][draws.below(4) as usize];
        let mut case = Case::new(kind, size, draws.below(size.into()) as u32, count, commutes);
        if draws.below(2) == 0 {
            case.choice =
                CollChoice::DEFAULT.forcing(CollForced::parse("all=rooted_rows").unwrap());
        }
        case
    };
    (0..40).map(case).collect()
}

/// Runs a series of drawn collectives. All survivors go on until they learn of a death.
fn run(seed: u64, deaths: u64) {
    let mut draws = Seeded(seed);
    let size = 2 + draws.below(7) as u32;
    let cases = drawn_cases(&mut draws, size);
    let rows = Rows((0..size).map(|_| CellRow::new()).collect());
    let base = draws.below(100);
    let mut members: Vec<Member<'_>> = (0..size)
        .map(|me| {
            let seat = RowSeat::new(me, size, base, &rows);
            Member { seat, me, case: 0, part: None, is_dead: false, lost: false }
        })
        .collect();
    let mut dead = Vec::new();
    let (mut idle, end) = (0, cases.len());
    while members.iter().any(|one| !one.is_dead && !one.lost && one.case < end) {
        idle += 1;
        assert!(idle < 100_000, "seed {seed}: members wait for ever");
        if (dead.len() as u64) < deaths && draws.below(400) == 0 {
            let victim = draws.below(size.into()) as u32;
            members[victim as usize].is_dead = true;
            dead.push(victim);
        }
        let member = &mut members[draws.below(size.into()) as usize];
        if member.is_dead || member.lost || member.case == end {
            continue;
        }
        // A member is fast for a while, or stands still.
        for _ in 0..1 + draws.below(12) {
            let (case, me) = (&cases[member.case], member.me);
            let part = member.part.get_or_insert_with(|| {
                let plan = case.published(me);
                assert!(plan.as_published().is_some(), "{case:?}");
                Part {
                    case,
                    held: None,
                    number: member.seat.take_numbers(plan.row_turns()),
                    machine: Collective::new(plan),
                    input: case.input(me),
                    output: case.output(me),
                }
            });
            if let Some(victim) = dead.first().filter(|_| draws.below(100) == 0) {
                part.machine.handle_lost(Rank(*victim));
                assert_eq!(part.machine.poll_done(), Some(Err(Rank(*victim))));
                member.lost = true;
                break;
            }
            if part.step(&rows, &member.seat, me) {
                continue;
            }
            assert_eq!(part.machine.poll_done(), Some(Ok(())));
            assert_eq!(part.output, case.expected(me), "member {me} of {case:?}, seed {seed}");
            (member.part, member.case, idle) = (None, member.case + 1, 0);
            if member.case == end {
                break;
            }
        }
    }
}

#[test]
fn values_come_through_rows() {
    check(Seeds::new(if cfg!(debug_assertions) { 60 } else { 2000 }), |seed| run(seed, 0));
}

#[test]
fn every_survivor_in_a_row_ends() {
    check(Seeds::new(if cfg!(debug_assertions) { 60 } else { 2000 }), |seed| run(seed, 2));
}

#[test]
fn a_value_of_another_length_is_not_read() {
    let rows = Rows(vec![CellRow::new(), CellRow::new()]);
    let seats = [0, 1].map(|me| RowSeat::new(me, 2, 7, &rows));
    let number = seats[0].take_numbers(1);
    seats[0].try_enter(&rows, number, Some(&[1, 2, 3])).unwrap();
    let mut into = [9; 4];
    assert_eq!(seats[1].try_take(&rows, number, 0, 0, &mut into), Ok(3));
    assert_eq!(into, [9; 4]);
    assert_eq!(seats[1].try_take(&rows, number, 0, 1, &mut into[..2]), Ok(3));
    assert_eq!(into, [2, 3, 9, 9]);
    let later = seats[1].try_take(&rows, number + 1, 0, 0, &mut into);
    assert!(later.is_err(), "the value {later:?} was not published");
}

#[test]
fn a_member_runs_one_collective_after_the_other() {
    let rows = Rows(vec![CellRow::new(), CellRow::new()]);
    let seat = RowSeat::new(0, 2, 0, &rows);
    assert_eq!([seat.take_numbers(2), seat.take_numbers(1)], [1, 3]);
    seat.try_enter(&rows, 1, Some(&[])).unwrap();
    assert!(seat.try_enter(&rows, 2, Some(&[])).is_err(), "the first one is not over");
    seat.leave(&rows, 1, Some(1));
    seat.try_enter(&rows, 2, Some(&[])).unwrap();
}

/// A member that publishes nothing keeps its row, too, until all have done what it has begun:
/// another one may still watch the row.
#[test]
fn the_last_number_is_that_of_the_last_collective() {
    let rows = Rows(vec![CellRow::new(), CellRow::new()]);
    let seat = RowSeat::new(0, 2, 7, &rows);
    assert_eq!(seat.last_number(), 7);
    let number = seat.take_numbers(1);
    seat.try_enter(&rows, number, None).unwrap();
    seat.leave(&rows, number, None);
    assert_eq!(seat.last_number(), 8);
}

#[cfg(debug_assertions)]
#[test]
fn a_cell_that_is_written_too_early_is_noticed() {
    let all = || (0..200).for_each(|seed| run(seed, 0));
    let run = || tsumugi_core::sync::with_mutant("row_no_room", all);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}
