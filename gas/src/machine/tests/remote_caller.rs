//! Copies by commands of other ranks.

use super::*;
use crate::command::{CommandEnd, CommandNote};
use crate::control::COMMAND_BYTES;
use crate::request::Copy;

const CALLER: Rank = Rank(2);
/// The stamp of the command, which is wider than the part of it in a note.
const STAMP: u32 = 0x0003_0007;

fn cells() -> MachineSetup<'static> {
    let setup = plain();
    MachineSetup { shape: ControlShape { cells: 4, ..setup.shape }, ..setup }
}

/// A copy of eight bytes from this rank to rank 1.
fn of_ours() -> CopyCommand {
    let at = |rank, offset| plain().split.named(rank, OPEN, offset);
    let request = Copy::new(at(1, 8), at(0, 16), 8).into();
    CopyCommand { request, index: 1, stamp: STAMP, to: OWN, no_relay: false }
}

/// Lets a note arrive in the word `word`.
fn note(rig: &mut Rig, word: usize, note: CommandNote) {
    rig.write(rig.control.note_words() + word, &[note.encode()]);
    rig.handle(MachineEvent::Rang);
}

fn plain_note(index: u16) -> CommandNote {
    CommandNote { from: CALLER, index, stamp: STAMP as u16, is_relay: false }
}

/// Lets a command arrive with its note.
fn comes(rig: &mut Rig, command: CopyCommand) {
    let words = command.encode(CALLER).unwrap();
    rig.write(rig.control.cell_words(CALLER), &words);
    note(rig, 3, plain_note(command.index));
}

fn is_end(rig: &Rig, out: &OutgoingOp, end: CommandEnd) -> bool {
    let Op { remote, kind, notify, .. } = out.op;
    remote == rig.control.end(CALLER, 1)
        && (kind, notify, out.op.operand()) == (Kind::PutWord, true, end.encode())
}

/// The command is fetched, the copy is done, and the caller gets a report.
#[test]
fn a_note_makes_the_source_fetch_its_command() {
    let mut rig = Rig::new(plain());
    note(&mut rig, 3, plain_note(1));
    let get = rig.op();
    let landing = rig.control.landing(8);
    assert_eq!((get.op.kind, get.op.remote), (Kind::Get, rig.control.command(CALLER, 1)));
    assert_eq!((get.op.local(), get.op.bytes()), (landing, COMMAND_BYTES as u64));
    let words = of_ours().encode(CALLER).unwrap();
    rig.write(rig.control.landing_words(8), &words);
    rig.end(&get, Ok(0));
    let put = rig.op();
    assert_eq!((put.op.kind, put.op.remote), (Kind::Put, remote(1, OPEN, 8)));
    assert!(put.then.is_none());
    rig.end(&put, Ok(0));
    let end = rig.op();
    assert!(is_end(&rig, &end, CommandEnd::Told { stamp: STAMP, code: 0 }), "{end:?}");
    rig.end(&end, Ok(0));
    assert!(rig.ops().is_empty() && rig.ended().is_empty());
    assert_eq!((rig.machine.dropped(), rig.machine.hints()), (0, 0));
}

#[test]
fn a_command_that_does_not_match_its_note_is_dropped() {
    let mut rig = Rig::new(plain());
    for (index, is_there) in [(2, false), (1, true), (u16::MAX, false)] {
        let dropped = rig.machine.dropped();
        note(&mut rig, 3, plain_note(index));
        let ops = rig.finish();
        assert_eq!(ops.len(), usize::from(is_there), "the caller has two places for commands");
        assert_eq!(rig.machine.dropped(), dropped + 1, "the words of the command are zero");
    }
    let right = of_ours();
    for command in [
        CopyCommand { to: Rank(1), ..right },
        CopyCommand { index: 0, ..right },
        CopyCommand { stamp: STAMP + 1, ..right },
    ] {
        let dropped = rig.machine.dropped();
        note(&mut rig, 5, plain_note(1));
        let get = rig.op();
        rig.write(rig.control.landing_words(8), &command.encode(CALLER).unwrap());
        rig.end(&get, Ok(0));
        assert!(rig.ops().is_empty());
        assert_eq!(rig.machine.dropped(), dropped + 1, "{command:?}");
    }
    // The landing is not used after a get that has failed.
    rig.write(rig.control.landing_words(8), &right.encode(CALLER).unwrap());
    note(&mut rig, 5, plain_note(1));
    let (get, dropped) = (rig.op(), rig.machine.dropped());
    rig.end(&get, Err(LOST));
    assert!(rig.ops().is_empty());
    assert_eq!(rig.machine.dropped(), dropped + 1);
    // A rank that does not exist.
    let stranger = CommandNote { from: Rank(RANKS), ..plain_note(1) };
    note(&mut rig, 5, stranger);
    assert!(rig.ops().is_empty());
    assert_eq!(rig.machine.dropped(), dropped + 2);
    note(&mut rig, 5, CommandNote { from: Rank(RANKS - 1), ..plain_note(1) });
    assert_eq!(rig.ops().len(), 1);
}

#[test]
fn a_command_that_arrived_in_its_cell_is_not_fetched() {
    let mut rig = Rig::new(cells());
    comes(&mut rig, of_ours());
    assert_eq!(rig.op().op.kind, Kind::Put);
    assert_eq!(rig.machine.hints(), 1);
    // A command in the cell that does not match the note is not used: the matching command is
    // fetched.
    let mut rig = Rig::new(cells());
    comes(&mut rig, CopyCommand { stamp: STAMP + 1, ..of_ours() });
    assert_eq!(rig.op().op.kind, Kind::Get);
    assert_eq!(rig.machine.hints(), 0);
}

/// A rank that is not the source of the copy refuses it, with the source's address.
#[test]
fn a_command_at_the_wrong_rank_is_refused() {
    let mut rig = Rig::new(cells());
    let addr = rig.at(1, OPEN, 0);
    let request = Copy::new(rig.at(3, OPEN, 0), addr, 8).into();
    comes(&mut rig, CopyCommand { request, ..of_ours() });
    let code = AddrError::OtherRank { addr }.to_code();
    let end = rig.op();
    assert!(is_end(&rig, &end, CommandEnd::Told { stamp: STAMP, code }), "{end:?}");
}

/// The source reports the error of a put, also if the destination reports an end.
#[test]
fn the_source_reports_an_error() {
    for ordered_bytes_max in [0, 8] {
        let mut rig = Rig::new(MachineSetup { ordered_bytes_max, ..cells() });
        comes(&mut rig, of_ours());
        let put = rig.op();
        if let Some(relay) = put.then {
            rig.handle(MachineEvent::Completed { tag: relay.tag, result: Ok(0) });
        }
        rig.end(&put, Err(LOST));
        let code = AddrError::<GlobalAddr>::PeerLost { rank: Rank(3) }.to_code();
        let end = rig.op();
        assert!(is_end(&rig, &end, CommandEnd::Told { stamp: STAMP, code }), "{end:?}");
    }
}

/// The operation that is posted behind the last put of a copy, if there is one.
fn behind(
    setup: MachineSetup<'static>,
    change: impl Fn(&Rig, CopyCommand) -> CopyCommand,
) -> Option<Op> {
    let mut rig = Rig::new(setup);
    let command = change(&rig, of_ours());
    comes(&mut rig, command);
    let ops = rig.ops();
    assert!(ops.iter().all(|out| out.op.kind == Kind::Put));
    assert!(ops.iter().rev().skip(1).all(|out| out.then.is_none()));
    ops.last().and_then(|out| out.then)
}

#[test]
fn a_relay_follows_the_last_put_where_order_is_kept() {
    let ordered = || MachineSetup { ordered_bytes_max: 8, ..cells() };
    let same = |_: &Rig, command| command;
    let relay = behind(ordered(), same).expect("eight bytes keep their order");
    let word = CommandNote { is_relay: true, ..plain_note(1) }.encode();
    assert_eq!((relay.kind, relay.compare(), relay.operand()), (Kind::CompareSwap, 0, word));
    assert!(relay.remote.rank == Rank(1) && relay.notify);
    assert!(behind(MachineSetup { ordered_bytes_max: 7, ..cells() }, same).is_none());
    assert!(behind(MachineSetup { near: &[Rank(1)], ..ordered() }, same).is_none());
    let flights = ControlShape { flights: 1, ..cells().shape };
    assert!(
        behind(MachineSetup { shape: flights, ..ordered() }, same).is_none(),
        "no flight is free"
    );
    let copy = |dst: GlobalAddr, rig: &Rig| Copy::new(dst, rig.at(0, OPEN, 16), 8);
    assert!(
        behind(ordered(), |rig, command| {
            CopyCommand { request: copy(rig.at(2, OPEN, 8), rig).into(), ..command }
        })
        .is_none(),
        "the caller is the destination"
    );
    assert!(behind(ordered(), |_, command| CopyCommand { no_relay: true, ..command }).is_none());
    assert!(
        behind(ordered(), |rig, command| {
            let request = copy(rig.at(1, OPEN, 8), rig).then_add(rig.at(1, OPEN, 64), 1).into();
            CopyCommand { request, ..command }
        })
        .is_none(),
        "the flag comes after the copy"
    );
    let blocks = |rig: &Rig, command| {
        let request = copy(rig.at(1, OPEN, 8), rig).strided(2, 8, 8).into();
        CopyCommand { request, ..command }
    };
    assert!(behind(ordered(), blocks).is_none(), "the first block may land later");
    let parts = MachineSetup { part_bytes_max: 4, ..ordered() };
    assert!(behind(parts, same).is_none(), "the first part may land later");
}

/// If two blocks go one after the other, the note follows the last one.
#[test]
fn for_single_blocks_the_relay_follows_the_last_one() {
    let shape = ControlShape { flights: 4, ..cells().shape };
    let mut rig = Rig::new(MachineSetup { shape, ordered_bytes_max: 8, ..cells() });
    let copy = Copy::new(rig.at(1, OPEN, 8), rig.at(0, OPEN, 16), 8).strided(2, 8, 8);
    comes(&mut rig, CopyCommand { request: copy.into(), ..of_ours() });
    let first = rig.op();
    assert!(first.then.is_none());
    rig.end(&first, Ok(0));
    let last = rig.op();
    let relay = last.then.expect("the last put has the relay");
    // The destination reports the end: nothing is left to do here.
    rig.handle(MachineEvent::Completed { tag: relay.tag, result: Ok(0) });
    rig.end(&last, Ok(0));
    assert!(rig.ops().is_empty());
    comes(&mut rig, of_ours());
    assert_eq!(rig.op().op.remote.rank, Rank(1), "the place of the relay is free");
}

/// If there is no room for the note, or it was not posted, the source reports the
/// end.
#[test]
fn without_a_relay_the_source_reports_the_end() {
    for is_posted in [true, false] {
        let mut rig = Rig::new(MachineSetup { ordered_bytes_max: 8, ..cells() });
        comes(&mut rig, of_ours());
        let put = rig.op();
        let relay = put.then.expect("the put keeps its order");
        rig.end(&put, Ok(0));
        assert!(rig.ops().is_empty(), "the destination may have sent the report");
        rig.handle(match is_posted {
            true => MachineEvent::Completed { tag: relay.tag, result: Ok(77) },
            false => MachineEvent::NotPosted(relay.tag),
        });
        let end = rig.op();
        assert!(is_end(&rig, &end, CommandEnd::Told { stamp: STAMP, code: 0 }), "{end:?}");
    }
}

/// The destination sends the report to the caller in place of the source.
#[test]
fn the_destination_passes_a_relay_on_to_the_caller() {
    let mut rig = Rig::new(cells());
    note(&mut rig, 3, CommandNote { is_relay: true, ..plain_note(1) });
    let end = rig.op();
    assert!(is_end(&rig, &end, CommandEnd::Relayed { stamp: STAMP as u16 }), "{end:?}");
    rig.end(&end, Ok(0));
    assert!(rig.ops().is_empty());
}

/// There are two places: the third note waits, and the words are taken in turn.
#[test]
fn notes_are_taken_in_turn_when_places_are_free() {
    let mut rig = Rig::new(plain());
    for (word, index) in [(3, 0), (9, 1), (5, 1)] {
        note(&mut rig, word, CommandNote { from: Rank(1 + word as u32 / 4), ..plain_note(index) });
    }
    let gets = rig.ops();
    let from = |out: &OutgoingOp| out.op.remote.rank.0;
    assert_eq!(gets.iter().map(from).collect::<Vec<_>>(), [1, 2]);
    let left = |rig: &Rig, word: usize| {
        rig.words[rig.control.note_words() + word].load(Ordering::Relaxed) != 0
    };
    assert_eq!([3, 5, 9].map(|word| left(&rig, word)), [false, false, true]);
    // A note in a word before the next in turn comes after it.
    note(&mut rig, 2, CommandNote { from: Rank(1), ..plain_note(1) });
    rig.end(&gets[0], Ok(0));
    let third = rig.op();
    assert_eq!(from(&third), 3);
    rig.end(&gets[1], Ok(0));
    assert_eq!(from(&rig.op()), 1);
    rig.end(&third, Ok(0));
    assert!(rig.ops().is_empty());
}
