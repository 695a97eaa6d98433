//! Commands to other ranks: how often their notes are tried, and how they end.

use super::*;
use crate::command::{CommandEnd, CommandNote};
use crate::control::COMMAND_BYTES;
use crate::request::{Copy, ListCopy};

/// A copy from one rank to another, neither of which is this rank.
fn others(rig: &Rig) -> Copy {
    Copy::new(rig.at(2, OPEN, 0), rig.at(1, OPEN, 0), 8)
}

fn told(rig: &mut Rig, at: usize, end: CommandEnd) {
    rig.write(rig.control.end_words() + at, &[end.encode()]);
    rig.handle(MachineEvent::Rang);
}

/// The words of rank 1 at which the notes of one round are tried; all are in use.
fn round(rig: &mut Rig) -> Vec<RemoteAddr> {
    let mut tried = Vec::new();
    loop {
        let ops = rig.ops();
        let Some(out) = ops.first() else { return tried };
        assert_eq!((ops.len(), out.op.kind, out.op.compare()), (1, Kind::CompareSwap, 0));
        assert!(out.op.notify && out.op.remote.rank == Rank(1));
        tried.push(out.op.remote);
        rig.end(out, Ok(5));
    }
}

#[test]
fn a_note_is_tried_at_four_words_and_then_later() {
    for own in [OWN, Rank(3)] {
        let mut rig = Rig::new(MachineSetup { rank: own, ..plain() });
        rig.issue(others(&rig));
        let (mut first, mut last) = (Vec::new(), 0);
        for doublings in [0, 1, 2, 3, 4, 5, 6, 6] {
            let tried = round(&mut rig);
            assert_eq!(tried.len(), 4);
            let (notes, bytes) = (rig.control.note(Rank(1), 0), 8 * 16);
            let is_note = |at: &RemoteAddr| {
                (notes.offset..notes.offset + bytes).contains(&at.offset) && at.key == notes.key
            };
            assert!(tried.iter().all(is_note));
            assert!(tried.iter().any(|at| *at != tried[0]), "the words differ between tries");
            let until = rig.machine.next_deadline().expect("the note is tried again").as_ns();
            let pause = until - rig.now.as_ns();
            let spread = pause - (1_000 << doublings);
            assert!(spread < 1_024 && (spread == 0) == (own == OWN), "{pause}");
            rig.pass(pause - 1);
            assert!(rig.ops().is_empty() && rig.machine.next_deadline().is_some());
            rig.pass(1);
            assert_eq!(rig.machine.next_deadline(), None);
            if doublings == 0 {
                first = tried;
            } else {
                assert_eq!(tried, first);
            }
            last = pause;
        }
        assert!((64_000..65_024).contains(&last));
        let note = rig.op();
        let word = CommandNote { from: own, index: 0, stamp: 1, is_relay: false }.encode();
        assert_eq!(note.op.operand(), word);
        rig.end(&note, Ok(0));
        assert!(rig.ops().is_empty());
        told(&mut rig, 0, CommandEnd::Told { stamp: 1, code: 0 });
        assert!(rig.ops().is_empty());
        assert_eq!(rig.result(), Ok(0));
    }
}

/// Of two pauses, the earlier end is the deadline.
#[test]
fn the_next_deadline_is_the_earliest() {
    let mut rig = Rig::new(plain());
    rig.issue(others(&rig));
    round(&mut rig);
    rig.pass(400);
    rig.issue(others(&rig));
    round(&mut rig);
    assert_eq!(rig.machine.next_deadline(), Some(Instant::from_ns(1_000)));
    rig.pass(600);
    assert_eq!(rig.machine.next_deadline(), Some(Instant::from_ns(1_400)));
    assert_eq!(rig.op().op.remote.rank, Rank(1));
}

/// With cells, a command goes ahead of its note, and only once; both are posted
/// together if the command lands before the note.
#[test]
fn a_command_goes_ahead_of_its_note() {
    let cells = |setup: MachineSetup<'static>| {
        let shape = ControlShape { cells: 4, ..setup.shape };
        MachineSetup { shape, ..setup }
    };
    let bytes = COMMAND_BYTES as u64;
    for (near, ordered, is_behind) in
        [(&[][..], bytes, true), (&[], bytes - 1, false), (&[Rank(1)], bytes, false)]
    {
        let setup = MachineSetup { near, ordered_bytes_max: ordered, ..cells(plain()) };
        let mut rig = Rig::new(setup);
        rig.issue(others(&rig));
        let mut ops = rig.ops();
        let hint = ops.remove(0);
        assert_eq!((hint.op.kind, hint.op.remote), (Kind::Put, rig.control.cell(Rank(1), OWN)));
        let from = rig.control.own_command(0);
        assert_eq!((hint.op.local(), hint.op.bytes(), hint.op.notify), (from, bytes, false));
        let note = match (hint.then, &ops[..]) {
            (Some(note), []) if is_behind => note,
            (None, [note]) if !is_behind => note.op,
            other => panic!("{other:?}"),
        };
        assert_eq!(note.kind, Kind::CompareSwap);
        rig.end(&hint, Ok(0));
        // As if the note's word had been in use; the command is already there.
        rig.handle(MachineEvent::NotPosted(note.tag));
        let again = rig.op();
        assert!(again.then.is_none() && again.op.kind == Kind::CompareSwap);
        assert_ne!(again.op.remote, note.remote);
    }
}

#[test]
fn an_end_belongs_to_one_life_and_carries_its_result() {
    let copy = |rig: &Rig| GlobalRequest::from(others(rig));
    let list = |rig: &Rig| {
        let entries = rig.at(3, OPEN, 0);
        GlobalRequest::from(ListCopy { entries, count: 1, from: Rank(1), to: Rank(2) })
    };
    for (is_list, bytes) in [(false, 8), (true, 0)] {
        let mut rig = Rig::new(plain());
        let request = if is_list { list(&rig) } else { copy(&rig) };
        let addr = if is_list { rig.at(3, OPEN, 0) } else { rig.at(2, OPEN, 0) };
        let out_of_range = AddrError::OutOfRange { addr, bytes, region_bytes: None };
        let lost = AddrError::PeerLost { rank: Rank(2) };
        let mut stamp = 0;
        for error in [None, Some(AddrError::StaleKey { addr }), Some(out_of_range), Some(lost)] {
            rig.issue(request);
            let note = rig.op();
            stamp += 1;
            let dropped = rig.machine.dropped();
            told(&mut rig, 0, CommandEnd::Told { stamp: stamp + 1, code: 0 });
            told(&mut rig, 1, CommandEnd::Told { stamp, code: 0 });
            assert!(rig.ops().is_empty() && rig.ended().is_empty());
            assert_eq!(rig.machine.dropped(), dropped + 2);
            let code = error.map_or(0, AddrError::to_code);
            told(&mut rig, 0, CommandEnd::Told { stamp, code });
            assert!(rig.ops().is_empty());
            assert_eq!(rig.result(), error.map_or(Ok(0), Err));
            // The note's own completion comes later, and no job waits for it.
            rig.end(&note, Ok(0));
            assert!(rig.ops().is_empty() && rig.ended().is_empty());
        }
        assert_eq!(rig.machine.relayed(), 0);
        rig.issue(request);
        let note = rig.op();
        rig.end(&note, Ok(0));
        told(&mut rig, 0, CommandEnd::Relayed { stamp: 5 });
        assert!(rig.ops().is_empty());
        assert_eq!((rig.result(), rig.machine.relayed()), (Ok(0), 1));
    }
}

/// With strided blocks, the source does not change the flag.
#[test]
fn the_caller_of_a_strided_copy_changes_the_flag_itself() {
    for is_good in [true, false] {
        let mut rig = Rig::new(plain());
        let flag = rig.at(2, OPEN, 64);
        rig.issue(others(&rig).strided(2, 8, 8).then_add(flag, 5));
        let note = rig.op();
        rig.end(&note, Ok(0));
        let code = if is_good { 0 } else { AddrError::Nowhere { addr: flag }.to_code() };
        told(&mut rig, 0, CommandEnd::Told { stamp: 1, code });
        let ops = rig.finish();
        assert_eq!(ops.len(), usize::from(is_good));
        for out in ops {
            assert_eq!((out.op.kind, out.op.remote), (Kind::FetchAdd, remote(2, OPEN, 64)));
            assert_eq!((out.op.operand(), out.op.notify), (5, true));
        }
        assert_eq!(rig.result().is_ok(), is_good);
    }
}

/// There are two places for commands; the third command is sent when one is free,
/// and the place then has another life.
#[test]
fn a_command_without_a_place_waits_for_one() {
    let mut rig = Rig::new(plain());
    (0..3).for_each(|_| _ = rig.issue(others(&rig)));
    let notes = rig.ops();
    let words: Vec<u64> = notes.iter().map(|out| out.op.operand()).collect();
    let note = |index, stamp| CommandNote { from: OWN, index, stamp, is_relay: false }.encode();
    assert_eq!(words, [note(0, 1), note(1, 1)]);
    notes.iter().for_each(|out| rig.end(out, Ok(0)));
    assert!(rig.ops().is_empty());
    told(&mut rig, 1, CommandEnd::Told { stamp: 1, code: 0 });
    let third = rig.op();
    assert_eq!(third.op.operand(), note(1, 2));
    rig.end(&third, Ok(0));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.result(), Ok(0));
    assert_eq!(rig.command(1).map(|command| (command.stamp, command.to)), Some((2, Rank(1))));
}

/// The place of a command is free when the source has answered, also while the flag
/// is still being changed.
#[test]
fn a_place_is_free_when_the_source_has_answered() {
    let mut rig = Rig::new(plain());
    let flag = rig.at(2, OPEN, 64);
    rig.issue(others(&rig).strided(2, 8, 8).then_add(flag, 5));
    (0..2).for_each(|_| _ = rig.issue(others(&rig)));
    let notes = rig.ops();
    assert_eq!(notes.len(), 2);
    notes.iter().for_each(|out| rig.end(out, Ok(0)));
    told(&mut rig, 0, CommandEnd::Told { stamp: 1, code: 0 });
    let mut kinds: Vec<Kind> = rig.ops().iter().map(|out| out.op.kind).collect();
    kinds.sort_by_key(|kind| *kind as u8);
    assert_eq!(kinds, [Kind::FetchAdd, Kind::CompareSwap]);
}

/// Fresh memory has the value 0.
#[test]
fn no_command_has_life_0() {
    let mut rig = Rig::new(plain());
    rig.machine.commands[0].stamp = u32::MAX;
    rig.issue(others(&rig));
    assert_eq!(rig.op().op.operand() & 0xffff, 1);
    assert_eq!(rig.command(0).map(|command| command.stamp), Some(1));
}

/// A note that was refused ends the job.
#[test]
fn a_refused_note_ends_the_copy() {
    let mut rig = Rig::new(plain());
    rig.issue(others(&rig));
    let note = rig.op();
    rig.end(&note, Err(LOST));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.result(), Err(AddrError::PeerLost { rank: Rank(3) }));
    rig.issue(others(&rig));
    assert_eq!(rig.op().op.operand() & 0xffff_ffff, 2, "the place is free, in another life");
}

/// Commands to a lost rank, and copies into its memory, end; after a loss, the
/// caller asks the source to report the end.
#[test]
fn a_loss_ends_the_commands_to_that_rank() {
    for (lost, ends) in [(1, true), (2, true), (3, false)] {
        for phase in 0..3 {
            let mut rig = Rig::new(plain());
            rig.issue(others(&rig));
            let out = rig.op();
            match phase {
                0 => {}
                1 => rig.end(&out, Ok(0)),
                _ => {
                    rig.end(&out, Ok(5));
                    round(&mut rig);
                }
            }
            rig.handle(MachineEvent::Lost(Rank(lost)));
            assert!(rig.ops().is_empty());
            let ended = rig.ended();
            assert_eq!(ended.len(), usize::from(ends), "{lost} {phase}");
            let error = AddrError::PeerLost { rank: Rank(lost) };
            assert!(ended.iter().all(|(_, result)| *result == Err(error)));
            if ends {
                rig.issue(others(&rig));
                rig.ops();
            }
            assert_eq!(rig.command(0).map(|command| command.no_relay), Some(ends));
        }
    }
}

/// A command that was not sent yet is sent, because its source may not have lost the
/// rank.
#[test]
fn a_command_that_waits_for_a_place_is_sent_after_a_loss() {
    let mut rig = Rig::new(plain());
    (0..3).for_each(|_| _ = rig.issue(others(&rig)));
    assert_eq!(rig.ops().len(), 2);
    rig.handle(MachineEvent::Lost(Rank(2)));
    let note = rig.op();
    assert_eq!((note.op.kind, note.op.remote.rank), (Kind::CompareSwap, Rank(1)));
    assert_eq!(rig.ended().len(), 2);
}
