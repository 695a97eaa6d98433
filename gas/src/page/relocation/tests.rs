//! A relocation that fails when the page is already marked at its new place.

extern crate std;
use super::mover::MoveStep;
use super::*;
use crate::page::entry::{gone, is_of};
use crate::page::{DirectoryEntry, PageAction, PageId, PageLayout, PageProtocol, PageState};
use crate::page::{Distribution, Homes, PageShape};
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Kind;

/// The last value of the header at the page's new place, if the operation for which
/// `fails` returns true fails, after the new header was written, and later ones do
/// not fail.
fn left_behind(fails: impl Fn(MoveStep) -> bool, answer: Result<u64, AddrError>) -> u64 {
    let homes = Homes::new(2, 2, Distribution::Block);
    let shape = PageShape { homes, page_bytes: 8, slots: 2, frames: 2 };
    let layout = PageLayout::new(shape, RegionKey::new(0, 1), 0).unwrap();
    let (page, rank) = (PageId(0), Rank(1));
    let entry = DirectoryEntry { owner: Rank(0), frame: 0, epoch: 0 };
    let mut own = Relocation::new(layout, rank, page);
    let (mut header, mut is_taken, mut has_failed) = (0, false, false);
    loop {
        let op = match own.act() {
            PageAction::Do(op) => op,
            PageAction::Access(_) => {
                own.answer(Ok(0));
                continue;
            }
            PageAction::Failed(_) => break,
            act => unreachable!("{act:?}"),
        };
        let frame = own.frame.unwrap_or(0);
        if is_taken && op.remote == layout.header(rank, frame) {
            header = op.operand();
        }
        is_taken |= op.kind == Kind::CompareSwap && op.remote == layout.bits(rank, 0);
        if op.kind == Kind::FetchAnd && op.remote == layout.bits(rank, 0) {
            assert!(has_failed && header & 1 == 0, "a frame is freed when it is not live");
        }
        let now = !has_failed && header != 0 && fails(own.at);
        has_failed |= now;
        own.answer(match op.remote {
            _ if now => answer,
            at if at == layout.entry(page) && op.kind == Kind::GetWord => Ok(entry.to_bits()),
            RemoteAddr { .. } => Ok(op.compare()),
        });
    }
    assert!(has_failed && own.retired().is_none());
    assert!(is_of(header, page));
    header
}

#[test]
fn a_freed_frame_is_not_live() {
    let key = RegionKey::new(0, 1);
    let addr = RemoteAddr { offset: 0, rank: Rank(0), key };
    let refused = Err(AddrError::Unsupported { addr });
    let header = left_behind(|at| at == MoveStep::MarkOld, refused);
    assert_eq!(header, gone(header));
    // A mover that was taken for dead finds the entry of another mover.
    let header = left_behind(|at| at == MoveStep::Commit, Ok(0));
    assert_eq!(header, gone(header));
}

/// A recovering mover that fails leaves the page with a new epoch, because the dead mover may
/// have marked the old header, or may do so later.
#[test]
fn a_recovering_mover_that_fails_leaves_a_readable_page() {
    recovery_fails();
}

#[test]
#[cfg(debug_assertions)]
fn a_recovering_mover_that_restores_the_epoch_is_caught() {
    use tsumugi_core::sync::with_mutant;
    let caught = with_mutant("page_takeover_restores_epoch", || {
        std::panic::catch_unwind(recovery_fails).is_err()
    });
    assert!(caught);
}

fn recovery_fails() {
    let homes = Homes::new(3, 3, Distribution::Block);
    let shape = PageShape { homes, page_bytes: 8, slots: 3, frames: 3 };
    let layout = PageLayout::new(shape, RegionKey::new(0, 1), 0).unwrap();
    let (page, rank, dead) = (PageId(0), Rank(1), Rank(2));
    let was = DirectoryEntry { owner: Rank(0), frame: 0, epoch: 5 };
    let marked = gone(was.header(page));
    let mut entry = PageState::Moving { owner: was.owner, frame: was.frame, by: dead }.to_bits();
    let mut header = marked;
    let mut recovering = Relocation::new(layout, rank, page);
    loop {
        let op = match recovering.act() {
            PageAction::Do(op) => op,
            PageAction::Pause(by) => {
                assert_eq!(by, Some(dead));
                recovering.answer(Err(AddrError::PeerLost { rank: dead }));
                continue;
            }
            PageAction::Access(_) => {
                let addr = layout.bytes(was);
                recovering.answer(Err(AddrError::Unsupported { addr }));
                continue;
            }
            PageAction::Failed(_) => break,
            act => unreachable!("{act:?}"),
        };
        let word = match op.remote {
            at if at == layout.entry(page) => &mut entry,
            at if at == layout.header(was.owner, was.frame) => &mut header,
            _ => &mut 0,
        };
        let found = *word;
        match op.kind {
            Kind::PutWord => *word = op.operand(),
            Kind::CompareSwap if found == op.compare() => *word = op.operand(),
            _ => {}
        }
        recovering.answer(Ok(found));
    }
    let PageState::At(now) = PageState::from_bits(entry) else {
        panic!("the entry is left locked")
    };
    assert_eq!((now.owner, now.frame, now.epoch), (was.owner, was.frame, 6));
    assert_eq!(
        header,
        now.header(page),
        "the header is live, and the dead mover marks another one"
    );
}

/// Each word of bits is searched once, from the page's own word on.
#[test]
fn every_word_is_searched_for_a_frame() {
    let homes = Homes::new(2, 2, Distribution::Block);
    let shape = PageShape { homes, page_bytes: 8, slots: 2, frames: 130 };
    let layout = PageLayout::new(shape, RegionKey::new(0, 1), 0).unwrap();
    let own = Relocation::new(layout, Rank(1), PageId(0));
    assert_eq!(own.first_word(), 0);
    assert_eq!(own.looks_for_frame(0, u64::MAX), MoveStep::FindFrame(1));
    assert_eq!(own.looks_for_frame(1, 0b1011), MoveStep::TakeFrame(1, 0b1011, 2));
    assert_eq!(own.looks_for_frame(1, u64::MAX), MoveStep::FindFrame(2));
    // The last word has two frames.
    assert_eq!(own.looks_for_frame(2, 0b1), MoveStep::TakeFrame(2, 0b1, 1));
    assert_eq!(own.looks_for_frame(2, 0b11), MoveStep::Refused(Refusal::NoFrame));
}
