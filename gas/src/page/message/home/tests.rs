//! The messages that a home sends, their order and their receivers.

extern crate std;

use super::*;
use std::vec::Vec;

const AT: Entry = Entry { owner: Rank(0), frame: 0, epoch: 4 };
const READER: Rank = Rank(1);
const MOVER: Rank = Rank(2);

fn sent(home: &mut Home) -> Vec<(Rank, Message)> {
    core::iter::from_fn(|| home.poll()).collect()
}

/// A home while its page moves and a rank that has stopped still reads.
fn read_while_it_moves() -> Home {
    let mut home = Home::new(AT);
    home.handle(READER, Message::Query(Want::Read));
    assert_eq!(sent(&mut home), [(READER, Message::Told(AT))]);
    home.handle(MOVER, Message::Own);
    assert_eq!(sent(&mut home), [(READER, Message::Stop(AT.epoch))]);
    home.handle(READER, Message::Stopped { epoch: AT.epoch, has_ended: false });
    assert_eq!(sent(&mut home), [(MOVER, Message::Permit(AT))]);
    home
}

fn told() -> (Rank, Message) {
    (MOVER, Message::Told(AT.moved(MOVER, 3)))
}

#[test]
fn a_frame_is_free_after_its_last_reader() {
    let mut home = read_while_it_moves();
    home.handle(MOVER, Message::Moved(3));
    assert_eq!(sent(&mut home), [told()]);
    home.handle(READER, Message::Ended(AT.epoch));
    assert_eq!(sent(&mut home), [(AT.owner, Message::Free(AT.frame))]);
}

/// The lost rank may live, and may still use the place.
#[test]
fn a_frame_that_a_lost_rank_may_read_is_never_free() {
    let mut home = read_while_it_moves();
    home.handle(MOVER, Message::Moved(3));
    home.handle_lost(READER);
    assert_eq!(sent(&mut home), [told()]);

    let mut home = read_while_it_moves();
    home.handle_lost(READER);
    home.handle(MOVER, Message::Moved(3));
    assert_eq!(sent(&mut home), [told()]);
}

const OTHER: Rank = Rank(3);

fn stopped(epoch: u32, has_ended: bool) -> Message {
    Message::Stopped { epoch, has_ended }
}

/// When a page has moved, only the new owner is listed.
#[test]
fn only_ranks_that_have_asked_since_the_move_are_stopped() {
    let mut home = read_while_it_moves();
    home.handle(READER, Message::Ended(AT.epoch));
    home.handle(MOVER, Message::Moved(3));
    let free = (AT.owner, Message::Free(AT.frame));
    assert_eq!(sent(&mut home), [told(), free]);
    home.handle(OTHER, Message::Own);
    assert_eq!(sent(&mut home), [(MOVER, Message::Stop(AT.epoch + 1))]);
}

/// A rank that is lost may still write to the page's place, if it was listed and had
/// not stopped: that frame is not used any more.
#[test]
fn a_frame_that_a_lost_rank_may_write_to_is_never_free() {
    for (is_listed, has_stopped) in [(true, false), (true, true), (false, false)] {
        for is_moving in [false, true] {
            let mut home = Home::new(AT);
            if is_listed {
                home.handle(READER, Message::Query(Want::Write));
            }
            home.handle(OTHER, Message::Query(Want::Write));
            if is_moving {
                home.handle(MOVER, Message::Own);
            }
            if is_moving && has_stopped {
                home.handle(READER, stopped(AT.epoch, true));
            }
            home.handle_lost(READER);
            if !is_moving {
                home.handle(MOVER, Message::Own);
            }
            home.handle(OTHER, stopped(AT.epoch, true));
            sent(&mut home);
            home.handle(MOVER, Message::Moved(3));
            let is_free = !is_listed || is_moving && has_stopped;
            let messages = sent(&mut home);
            assert_eq!(messages[0], told());
            assert_eq!(messages.len(), 1 + usize::from(is_free), "{is_listed} {is_moving}");
        }
    }
}

/// The number of the lost rank is beyond those that can be listed.
#[test]
fn the_loss_of_an_unlisted_rank_changes_nothing() {
    let mut home = Home::new(AT);
    home.handle(Rank(0), Message::Query(Want::Read));
    sent(&mut home);
    home.handle_lost(Rank(RANKS_MAX));
    home.handle(MOVER, Message::Own);
    assert_eq!(sent(&mut home), [(Rank(0), Message::Stop(AT.epoch))]);
    home.handle(Rank(0), stopped(AT.epoch, true));
    home.handle(MOVER, Message::Moved(3));
    let free = (AT.owner, Message::Free(AT.frame));
    assert_eq!(sent(&mut home), [told(), free]);
}

/// Nothing is sent to a rank that was lost meanwhile.
#[test]
fn a_lost_new_owner_gets_no_message() {
    let mut home = Home::new(AT);
    home.handle(MOVER, Message::Own);
    assert_eq!(sent(&mut home), [(MOVER, Message::Permit(AT))]);
    home.handle(MOVER, Message::Moved(3));
    home.handle_lost(MOVER);
    assert!(sent(&mut home).iter().all(|(to, _)| *to != MOVER));
}

/// A page that stays gets a new epoch; ranks that have not stopped stay listed, and
/// the others do not.
#[test]
fn a_page_that_stays_lists_the_ranks_that_have_not_stopped() {
    let mut home = Home::new(AT);
    for reader in [READER, OTHER] {
        home.handle(reader, Message::Query(Want::Read));
    }
    home.handle(MOVER, Message::Own);
    sent(&mut home);
    home.handle(READER, stopped(AT.epoch, true));
    home.handle_lost(MOVER);
    assert!(!home.is_moving() && home.entry() == AT.moved(AT.owner, AT.frame));
    home.handle(READER, Message::Own);
    assert_eq!(sent(&mut home), [(OTHER, Message::Stop(AT.epoch + 1))]);
}

/// An `Ended` counts for one epoch only: if it was sent before a page stayed, or
/// long ago, it does not concern the present reads.
#[test]
fn an_end_of_another_epoch_counts_for_nothing() {
    for is_late in [false, true] {
        let mut home = Home::new(AT);
        home.handle(READER, Message::Query(Want::Read));
        let mut epoch = AT.epoch;
        if is_late {
            home.handle(READER, Message::Ended(epoch - 1));
        } else {
            home.handle(MOVER, Message::Own);
            home.handle(READER, Message::Ended(epoch));
            home.handle_lost(MOVER);
            home.handle(READER, stopped(epoch, false));
            epoch += 1;
        }
        let at = home.entry();
        sent(&mut home);
        home.handle(OTHER, Message::Own);
        home.handle(READER, stopped(epoch, false));
        assert_eq!(sent(&mut home).last(), Some(&(OTHER, Message::Permit(at))));
        home.handle(OTHER, Message::Moved(1));
        assert_eq!(sent(&mut home), [(OTHER, Message::Told(at.moved(OTHER, 1)))]);
        home.handle(READER, Message::Ended(epoch));
        assert_eq!(sent(&mut home), [(at.owner, Message::Free(at.frame))]);
    }
}

/// A rank that has owned the page gets it again after the ranks that wait for it.
#[test]
fn ranks_get_a_page_in_the_order_of_their_requests() {
    let mut home = Home::new(AT);
    for rank in [MOVER, OTHER, READER] {
        home.handle(rank, Message::Own);
    }
    let mut turns = Vec::new();
    for _ in 0..4 {
        let permit = sent(&mut home).into_iter().find_map(|(to, message)| match message {
            Message::Permit(_) => Some(to),
            _ => None,
        });
        let Some(by) = permit else { break };
        turns.push(by);
        if turns.len() == 1 {
            home.handle(by, Message::Own);
        }
        let epoch = home.entry().epoch;
        home.handle(by, Message::Moved(1));
        for (to, message) in sent(&mut home) {
            assert_ne!(message, Message::Yours, "the page has moved away from {to}");
            if let Message::Stop(_) = message {
                home.handle(to, stopped(epoch + 1, true));
            }
        }
    }
    assert_eq!(turns[..2], [MOVER, OTHER]);
}
