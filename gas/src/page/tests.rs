//! Steps of moves, reads and grace periods that are rare in random histories, one by one on
//! the words that they change.

extern crate std;

mod fast_paths;
mod steps;

use super::entry::{gone, is_of};
use super::gate::{Gate, GateState};
use super::*;
use std::vec::Vec;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};

const PAGE: PageId = PageId(0);
/// The first place of the page, and the rank that moves it.
const FIRST: DirectoryEntry = DirectoryEntry { owner: Rank(0), frame: 0, epoch: 4 };
const MOVER: Rank = Rank(1);

/// All words, zero at first.
struct Words(Vec<(RemoteAddr, u64)>);

impl Words {
    fn at(&mut self, addr: RemoteAddr) -> &mut u64 {
        let found = self.0.iter().position(|(at, _)| *at == addr);
        let index = found.unwrap_or_else(|| {
            self.0.push((addr, 0));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }

    fn carry_out(&mut self, op: &Op) -> u64 {
        let word = self.at(op.remote);
        let found = *word;
        match op.kind {
            Kind::PutWord => *word = op.operand(),
            Kind::CompareSwap if found == op.compare() => *word = op.operand(),
            Kind::FetchAdd => *word = found.wrapping_add(op.operand()),
            Kind::FetchOr => *word |= op.operand(),
            Kind::FetchAnd => *word &= op.operand(),
            _ => {}
        }
        found
    }
}

fn layout(ranks: u32, is_apart: bool) -> PageLayout {
    let homes = Homes::new(ranks, ranks.into(), Distribution::Block);
    let shape = PageShape { homes, page_bytes: 8, slots: 4, frames: 4 };
    let key = RegionKey::new(0, 1);
    match is_apart {
        true => PageLayout::apart(shape, RegionKey::new(1, 1), key).unwrap(),
        false => PageLayout::new(shape, key, 0).unwrap(),
    }
}

/// The words of a page that is at its first place, where `holders` may write to it.
fn world(layout: &PageLayout, holders: &[Rank]) -> Words {
    let mut words = Words(Vec::new());
    *words.at(layout.entry(PAGE)) = FIRST.to_bits();
    *words.at(layout.header(FIRST.owner, FIRST.frame)) = FIRST.header(PAGE);
    for rank in holders {
        let seen = *words.at(layout.holders(PAGE));
        let entered = words.carry_out(&layout.enlist(PAGE, *rank, seen));
        assert!(layout.is_enlisted(*rank, seen, entered), "{rank} of {holders:?}");
        *words.at(layout.gate(*rank, PAGE)) = Gate::new(PAGE, GateState::Valid, 0).to_bits();
    }
    words
}

/// Runs a move to its end. Before each operation `meets` may change words; if
/// `meets` returns true, the operation fails because its rank is dead.
fn moves(
    layout: PageLayout,
    words: &mut Words,
    mut meets: impl FnMut(&mut Words, &Op) -> bool,
) -> Relocation {
    let mut own = Relocation::new(layout, MOVER, PAGE);
    loop {
        match own.act() {
            PageAction::Do(op) if meets(words, &op) => {
                own.answer(Err(AddrError::PeerLost { rank: op.remote.rank }));
            }
            PageAction::Do(op) => own.answer(Ok(words.carry_out(&op))),
            PageAction::Access(_) => own.answer(Ok(0)),
            PageAction::Over(_) => return own,
            act => panic!("{act:?}"),
        }
    }
}

#[test]
fn a_frame_that_a_dead_rank_may_write_is_not_reused() {
    let layout = layout(3, false);
    let old = layout.header(FIRST.owner, FIRST.frame);
    let gate = layout.gate(Rank(2), PAGE);
    for (dead, is_free) in [(None, true), (Some(gate), false), (Some(old), false)] {
        let mut words = world(&layout, &[Rank(2)]);
        let moved = moves(layout, &mut words, |_, op| Some(op.remote) == dead);
        let PageState::At(entry) = PageState::from_bits(*words.at(layout.entry(PAGE))) else {
            panic!("the entry is left locked")
        };
        assert_eq!(entry.owner, MOVER);
        assert!(moved.has_moved(), "{dead:?}");
        assert_eq!(moved.retired().is_some(), is_free, "{dead:?}");
    }
}

/// When the mark lands, the frame may belong to another page, or to this page in another
/// epoch.
#[test]
fn a_late_mark_spares_a_newer_header() {
    let layout = layout(3, false);
    let old = layout.header(FIRST.owner, FIRST.frame);
    let later = DirectoryEntry { epoch: FIRST.epoch + 2, ..FIRST }.header(PAGE);
    for (there, after) in [(later, later), (FIRST.header(PAGE), gone(FIRST.header(PAGE)))] {
        let mut words = world(&layout, &[]);
        moves(layout, &mut words, |words, op| {
            if op.remote == old {
                *words.at(old) = there;
            }
            false
        });
        assert_eq!(*words.at(old), after);
    }
}

/// If there are more ranks than bits in a list, a bit stands for several ranks: a
/// mover stops all of these, and no other rank.
#[test]
fn a_bit_of_the_list_stands_for_all_its_ranks() {
    for is_apart in [false, true] {
        let layout = layout(130, is_apart);
        let listed = [Rank(65), Rank(126)];
        let mut words = world(&layout, &listed);
        for rank in 0..130 {
            *words.at(layout.gate(Rank(rank), PAGE)) =
                Gate::new(PAGE, GateState::Valid, 0).to_bits();
        }
        moves(layout, &mut words, |_, _| false);
        let stopped = (0..130).filter(|rank| {
            let gate = Gate::from_bits(*words.at(layout.gate(Rank(*rank), PAGE)));
            gate.state == GateState::Stopped
        });
        assert_eq!(stopped.collect::<Vec<_>>(), [0, 2, 63, 65, 126, 128]);
        assert_eq!(*words.at(layout.holders(PAGE)), 0);
    }
}

#[test]
fn a_rank_is_on_the_list_when_its_bit_is_there() {
    let (near, apart) = (layout(3, false), layout(3, true));
    for (seen, found, is_there) in
        [(0, 0, true), (0, 0b10, true), (0b1, 0b1, true), (0, 0b1, false), (0b1, 0b101, false)]
    {
        assert_eq!(apart.is_enlisted(MOVER, seen, found), is_there, "{seen:b} {found:b}");
        assert!(near.is_enlisted(MOVER, seen, found), "the rank was added to the list");
    }
    // A list that was marked as incomplete stays so when it is emptied.
    for layout in [near, apart] {
        let mut words = world(&layout, &[Rank(2)]);
        let seen = *words.at(layout.holders(PAGE));
        words.carry_out(&layout.distrust(PAGE, seen));
        let seen = *words.at(layout.holders(PAGE));
        let found = words.carry_out(&layout.disown(PAGE, seen));
        assert!(layout.is_disowned(seen, found) && layout.is_disowned(seen, seen));
        let left = *words.at(layout.holders(PAGE));
        assert!((0..3).all(|rank| PageLayout::may_hold(left, Rank(rank))));
        let entered = words.carry_out(&layout.enlist(PAGE, MOVER, left));
        assert!(layout.is_enlisted(MOVER, left, entered));
    }
    assert!(near.is_disowned(1, 2) && !apart.is_disowned(1, 2));
}

/// The cached owner may have died: the home has the present one.
#[test]
fn a_read_asks_the_home_when_the_cached_owner_has_died() {
    let layout = layout(3, false);
    let mut words = world(&layout, &[]);
    let (was, rank) = (DirectoryEntry { owner: Rank(2), ..FIRST }, MOVER);
    *words.at(layout.seen(rank, PAGE)) = was.seen_of(PAGE);
    *words.at(layout.seen_entry(rank, PAGE)) = was.to_bits();
    let mut own = OptimisticRead::new(layout, rank, PAGE);
    let mut read = Vec::new();
    loop {
        match own.act() {
            PageAction::Do(op) => own.answer(Ok(words.carry_out(&op))),
            PageAction::Access(entry) => {
                read.push(entry.owner);
                own.answer(match entry.owner {
                    Rank(2) => Err(AddrError::PeerLost { rank: Rank(2) }),
                    _ => Ok(*words.at(layout.header(entry.owner, entry.frame))),
                });
            }
            PageAction::Over(_) => break,
            act => panic!("{act:?}"),
        }
    }
    assert_eq!(read, [Rank(2), FIRST.owner]);
    assert!(is_of(*words.at(layout.header(FIRST.owner, FIRST.frame)), PAGE));
    assert_eq!(*words.at(layout.seen_entry(rank, PAGE)), FIRST.to_bits(), "the owner is cached");
    assert_eq!(*words.at(layout.reader_epochs(rank)) & 0xffff_ffff, 0, "the reader has left");
}

/// A read fails if its page is lost, and is counted no more.
#[test]
fn a_read_of_a_lost_page_fails() {
    let layout = layout(3, false);
    let mut words = world(&layout, &[]);
    let mut own = OptimisticRead::new(layout, MOVER, PAGE);
    let lost = AddrError::PeerLost { rank: FIRST.owner };
    let error = loop {
        match own.act() {
            PageAction::Do(op) => own.answer(Ok(words.carry_out(&op))),
            PageAction::Access(_) => own.answer(Err(lost)),
            PageAction::Failed(error) => break error,
            act => panic!("{act:?}"),
        }
    };
    assert_eq!(error, lost);
    assert_eq!(*words.at(layout.reader_epochs(MOVER)) & 0xffff_ffff, 0);
}

/// A grace period passes a dead rank, at whatever step the rank died; any other error ends the grace period.
#[test]
fn a_sweep_passes_dead_ranks() {
    let layout = layout(4, false);
    for step in 0..6 {
        for is_death in [true, false] {
            let mut words = Words(Vec::new());
            // One reader is counted at each rank until the grace period waits for it.
            for rank in 0..4 {
                *words.at(layout.reader_epochs(Rank(rank))) = gate::ReaderEpochs(0).come().0;
            }
            let (mut own, mut done, mut asked) = (GracePeriod::new(layout), 0, None);
            let end = loop {
                match own.act() {
                    PageAction::Do(op) if done == step => {
                        let (rank, addr) = (op.remote.rank, op.remote);
                        asked = Some(rank);
                        done += 1;
                        own.answer(Err(match is_death {
                            true => AddrError::PeerLost { rank },
                            false => AddrError::Unsupported { addr },
                        }));
                    }
                    PageAction::Do(op) => {
                        done += 1;
                        let found = words.carry_out(&op);
                        own.answer(Ok(found));
                    }
                    PageAction::Pause(_) => {
                        for rank in 0..4 {
                            let epochs = words.at(layout.reader_epochs(Rank(rank)));
                            let phase = 1 - gate::ReaderEpochs(*epochs).phase();
                            if gate::ReaderEpochs(*epochs).count(phase) > 0 {
                                *epochs -= gate::ReaderEpochs::one(phase);
                            }
                        }
                        own.answer(Ok(0));
                    }
                    act => break act,
                }
            };
            assert_eq!(matches!(end, PageAction::Over(_)), is_death, "{end:?} at step {step}");
            assert!(asked.is_some_and(|rank| rank.0 <= step));
        }
    }
}
