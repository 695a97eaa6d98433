//! The messages that a home sends, their order and their receivers.

extern crate std;

use super::*;
use std::vec::Vec;

const AT: DirectoryEntry = DirectoryEntry { owner: Rank(0), frame: 0, epoch: 4 };
const READER: Rank = Rank(1);
const MOVER: Rank = Rank(2);

fn sent(home: &mut Home) -> Vec<(Rank, DirectoryMessage)> {
    core::iter::from_fn(|| home.poll()).collect()
}

/// A home while its page moves and a rank that has stopped still reads.
fn read_while_it_moves() -> Home {
    let mut home = Home::new(AT);
    home.handle(READER, DirectoryMessage::Query(PageAccess::Read));
    assert_eq!(sent(&mut home), [(READER, DirectoryMessage::Told(AT))]);
    home.handle(MOVER, DirectoryMessage::Own);
    assert_eq!(sent(&mut home), [(READER, DirectoryMessage::Stop(AT.epoch))]);
    home.handle(READER, DirectoryMessage::Stopped { epoch: AT.epoch, has_ended: false });
    assert_eq!(sent(&mut home), [(MOVER, DirectoryMessage::Permit(AT))]);
    home
}

fn told() -> (Rank, DirectoryMessage) {
    (MOVER, DirectoryMessage::Told(AT.moved(MOVER, 3)))
}

#[test]
fn a_frame_is_free_after_its_last_reader() {
    let mut home = read_while_it_moves();
    home.handle(MOVER, DirectoryMessage::Moved(3));
    assert_eq!(sent(&mut home), [told()]);
    home.handle(READER, DirectoryMessage::Ended(AT.epoch));
    assert_eq!(sent(&mut home), [(AT.owner, DirectoryMessage::Free(AT.frame))]);
}

/// The lost rank may live, and may still use the place.
#[test]
fn a_frame_that_a_lost_rank_may_read_is_never_free() {
    let mut home = read_while_it_moves();
    home.handle(MOVER, DirectoryMessage::Moved(3));
    home.handle_lost(READER);
    assert_eq!(sent(&mut home), [told()]);

    let mut home = read_while_it_moves();
    home.handle_lost(READER);
    home.handle(MOVER, DirectoryMessage::Moved(3));
    assert_eq!(sent(&mut home), [told()]);
}

const OTHER: Rank = Rank(3);

fn stopped(epoch: u32, has_ended: bool) -> DirectoryMessage {
    DirectoryMessage::Stopped { epoch, has_ended }
}

/// When a page has moved, only the new owner is listed.
#[test]
fn only_ranks_that_have_asked_since_the_move_are_stopped() {
    let mut home = read_while_it_moves();
    home.handle(READER, DirectoryMessage::Ended(AT.epoch));
    home.handle(MOVER, DirectoryMessage::Moved(3));
    let free = (AT.owner, DirectoryMessage::Free(AT.frame));
    assert_eq!(sent(&mut home), [told(), free]);
    home.handle(OTHER, DirectoryMessage::Own);
    assert_eq!(sent(&mut home), [(MOVER, DirectoryMessage::Stop(AT.epoch + 1))]);
}

/// A rank that is lost may still write to the page's place, if it was listed and had
/// not stopped: that frame is not used any more.
#[test]
fn a_frame_that_a_lost_rank_may_write_to_is_never_free() {
    for (is_listed, has_stopped) in [(true, false), (true, true), (false, false)] {
        for is_moving in [false, true] {
            let mut home = Home::new(AT);
            if is_listed {
                home.handle(READER, DirectoryMessage::Query(PageAccess::Write));
            }
            home.handle(OTHER, DirectoryMessage::Query(PageAccess::Write));
            if is_moving {
                home.handle(MOVER, DirectoryMessage::Own);
            }
            if is_moving && has_stopped {
                home.handle(READER, stopped(AT.epoch, true));
            }
            home.handle_lost(READER);
            if !is_moving {
                home.handle(MOVER, DirectoryMessage::Own);
            }
            home.handle(OTHER, stopped(AT.epoch, true));
            sent(&mut home);
            home.handle(MOVER, DirectoryMessage::Moved(3));
            let is_free = !is_listed || is_moving && has_stopped;
            let messages = sent(&mut home);
            assert_eq!(messages[0], told());
            assert_eq!(messages.len(), 1 + usize::from(is_free), "{is_listed} {is_moving}");
        }
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_frame_that_is_freed_under_a_lost_rank_is_caught() {
    let caught = tsumugi_core::sync::with_mutant("page_taint_forgotten", || {
        std::panic::catch_unwind(a_frame_that_a_lost_rank_may_write_to_is_never_free).is_err()
    });
    assert!(caught);
}

/// The number of the lost rank is beyond those that can be listed.
#[test]
fn the_loss_of_an_unlisted_rank_changes_nothing() {
    let mut home = Home::new(AT);
    home.handle(Rank(0), DirectoryMessage::Query(PageAccess::Read));
    sent(&mut home);
    home.handle_lost(Rank(RANKS_MAX));
    home.handle(MOVER, DirectoryMessage::Own);
    assert_eq!(sent(&mut home), [(Rank(0), DirectoryMessage::Stop(AT.epoch))]);
    home.handle(Rank(0), stopped(AT.epoch, true));
    home.handle(MOVER, DirectoryMessage::Moved(3));
    let free = (AT.owner, DirectoryMessage::Free(AT.frame));
    assert_eq!(sent(&mut home), [told(), free]);
}

/// Nothing is sent to a rank that was lost meanwhile.
#[test]
fn a_lost_new_owner_gets_no_message() {
    let mut home = Home::new(AT);
    home.handle(MOVER, DirectoryMessage::Own);
    assert_eq!(sent(&mut home), [(MOVER, DirectoryMessage::Permit(AT))]);
    home.handle(MOVER, DirectoryMessage::Moved(3));
    home.handle_lost(MOVER);
    assert!(sent(&mut home).iter().all(|(to, _)| *to != MOVER));
}

/// A page that stays gets a new epoch; ranks that have not stopped stay listed, and
/// the others do not.
#[test]
fn a_page_that_stays_lists_the_ranks_that_have_not_stopped() {
    let mut home = Home::new(AT);
    for reader in [READER, OTHER] {
        home.handle(reader, DirectoryMessage::Query(PageAccess::Read));
    }
    home.handle(MOVER, DirectoryMessage::Own);
    sent(&mut home);
    home.handle(READER, stopped(AT.epoch, true));
    home.handle_lost(MOVER);
    assert!(!home.is_moving() && home.entry() == AT.moved(AT.owner, AT.frame));
    home.handle(READER, DirectoryMessage::Own);
    assert_eq!(sent(&mut home), [(OTHER, DirectoryMessage::Stop(AT.epoch + 1))]);
}

/// An `Ended` counts for one epoch only: if it was sent before a page stayed, or
/// long ago, it does not concern the present reads.
#[test]
fn an_end_of_another_epoch_counts_for_nothing() {
    for is_late in [false, true] {
        let mut home = Home::new(AT);
        home.handle(READER, DirectoryMessage::Query(PageAccess::Read));
        let mut epoch = AT.epoch;
        if is_late {
            home.handle(READER, DirectoryMessage::Ended(epoch - 1));
        } else {
            home.handle(MOVER, DirectoryMessage::Own);
            home.handle(READER, DirectoryMessage::Ended(epoch));
            home.handle_lost(MOVER);
            home.handle(READER, stopped(epoch, false));
            epoch += 1;
        }
        let at = home.entry();
        sent(&mut home);
        home.handle(OTHER, DirectoryMessage::Own);
        home.handle(READER, stopped(epoch, false));
        assert_eq!(sent(&mut home).last(), Some(&(OTHER, DirectoryMessage::Permit(at))));
        home.handle(OTHER, DirectoryMessage::Moved(1));
        assert_eq!(sent(&mut home), [(OTHER, DirectoryMessage::Told(at.moved(OTHER, 1)))]);
        home.handle(READER, DirectoryMessage::Ended(epoch));
        assert_eq!(sent(&mut home), [(at.owner, DirectoryMessage::Free(at.frame))]);
    }
}

/// The end of reads that a dead mover has stopped comes during the next move, and does not free
/// the frame that the rank reads now.
#[test]
fn an_end_of_reads_before_the_page_stayed_frees_nothing() {
    let mut home = Home::new(AT);
    home.handle(READER, DirectoryMessage::Query(PageAccess::Read));
    home.handle(MOVER, DirectoryMessage::Own);
    home.handle_lost(MOVER);
    home.handle(READER, stopped(AT.epoch, false));
    home.handle(READER, DirectoryMessage::Query(PageAccess::Read));
    home.handle(OTHER, DirectoryMessage::Own);
    let at = home.entry();
    home.handle(READER, stopped(at.epoch, false));
    sent(&mut home);
    for is_moving in [true, false] {
        home.handle(READER, DirectoryMessage::Ended(AT.epoch));
        assert_eq!(sent(&mut home), []);
        if is_moving {
            home.handle(OTHER, DirectoryMessage::Moved(1));
            assert_eq!(sent(&mut home), [(OTHER, DirectoryMessage::Told(at.moved(OTHER, 1)))]);
        }
    }
    home.handle(READER, DirectoryMessage::Ended(at.epoch));
    assert_eq!(sent(&mut home), [(at.owner, DirectoryMessage::Free(at.frame))]);
}

/// A rank that has owned the page gets it again after the ranks that wait for it.
#[test]
fn ranks_get_a_page_in_the_order_of_their_requests() {
    let mut home = Home::new(AT);
    for rank in [MOVER, OTHER, READER] {
        home.handle(rank, DirectoryMessage::Own);
    }
    let mut turns = Vec::new();
    for _ in 0..4 {
        let permit = sent(&mut home).into_iter().find_map(|(to, message)| match message {
            DirectoryMessage::Permit(_) => Some(to),
            _ => None,
        });
        let Some(by) = permit else { break };
        turns.push(by);
        if turns.len() == 1 {
            home.handle(by, DirectoryMessage::Own);
        }
        let epoch = home.entry().epoch;
        home.handle(by, DirectoryMessage::Moved(1));
        for (to, message) in sent(&mut home) {
            assert_ne!(message, DirectoryMessage::Yours, "the page has moved away from {to}");
            if let DirectoryMessage::Stop(_) = message {
                home.handle(to, stopped(epoch + 1, true));
            }
        }
    }
    assert_eq!(turns[..2], [MOVER, OTHER]);
}
