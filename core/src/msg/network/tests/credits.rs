//! Counts that give a sender its room back, and the limit of parcels under way.

use super::*;

#[test]
fn returned_counts_go_with_other_packets_or_on_request() {
    let (mut a, mut b) = (mail(), mail());
    one(&mut a, &mut b);
    let returned = Returned { taken: 1, ..Returned::default() };
    assert!(!b.give_back(A, returned));
    assert!(!b.has_unsent(), "one line is not worth a parcel");
    a.set_starved(B);
    let [ask] = &parcels(&mut a, 1024)[..] else { panic!("one parcel") };
    b.take(A, ask).unwrap();
    assert!(b.is_starved(A));
    let [answer] = &parcels(&mut b, 1024)[..] else { panic!("one parcel") };
    a.take(B, answer).unwrap();
    assert_eq!(a.returned(B), Returned { lines: 1, ..returned });
    assert!(b.give_back(A, returned) && !b.is_starved(A));
    let [answer] = &parcels(&mut b, 1024)[..] else { panic!("a request is answered") };
    a.take(B, answer).unwrap();
    one(&mut a, &mut b);
    one(&mut a, &mut b);
    b.give_back(A, Returned { taken: 3, matched: 3, ..returned });
    let [much] = &parcels(&mut b, 1024)[..] else { panic!("one parcel") };
    a.take(B, much).unwrap();
    assert_eq!(a.returned(B).lines, 3);
    assert!(!a.has_unsent() && !b.has_unsent(), "an answer needs no answer");
}

#[test]
fn the_count_of_taken_messages_arrives_with_the_last_earlier_packet() {
    let (mut a, mut b) = (mail(), mail());
    let mut memory = Memory(vec![0; 256]);
    for _ in 0..2 {
        a.push(B, &inline(1, 200), PacketLoad::Inline(0), &mut memory);
    }
    a.give_back(B, Returned { taken: 7, matched: 7, ..Returned::default() });
    let [first, second] = &parcels(&mut a, PARCEL_BYTES_MIN)[..] else { panic!("two parcels") };
    b.take(A, first).unwrap();
    assert_eq!((b.returned(A).taken, b.returned(A).matched), (0, 7));
    b.take(A, second).unwrap();
    assert_eq!(b.returned(A).taken, 7);
}

/// A parcel contains the count of messages that were taken when its last packet
/// was pushed, if that count is the latest or the oldest that was not sent.
#[test]
fn a_parcel_carries_the_count_that_was_taken_before_its_packets() {
    let mut a = mail_of(MessageShape { lines: 64, ..SHAPE });
    let mut b = mail_of(MessageShape { lines: 64, ..SHAPE });
    let mut memory = Memory(vec![0; 256]);
    let push = |a: &mut NetworkLanes<'_>, memory: &mut Memory, taken| {
        a.push(B, &inline(1, 200), PacketLoad::Inline(0), memory);
        a.give_back(B, Returned { taken, ..Returned::default() });
    };
    let mut tell = |a: &mut NetworkLanes<'_>| {
        let mut into = vec![0; PARCEL_BYTES_MIN];
        let (to, len) = a.poll_parcel(&mut into).unwrap();
        a.posted(to);
        b.take(A, &into[..len]).unwrap();
        b.returned(A).taken
    };
    push(&mut a, &mut memory, 1);
    push(&mut a, &mut memory, 2);
    assert_eq!(tell(&mut a), 1);
    push(&mut a, &mut memory, 3);
    assert_eq!(tell(&mut a), 2);
    push(&mut a, &mut memory, 3);
    assert_eq!(tell(&mut a), 3);
    push(&mut a, &mut memory, 4);
    push(&mut a, &mut memory, 5);
    assert_eq!([tell(&mut a), tell(&mut a), tell(&mut a)], [3, 4, 5]);
}

#[test]
fn a_limited_number_of_parcels_is_under_way() {
    let (mut a, mut b) = (mail(), mail());
    let mut sent = Vec::new();
    for _ in 0..40 {
        a.set_starved(B);
        sent.extend(parcels(&mut a, 1024));
    }
    assert_eq!(sent.len(), 32);
    for parcel in &sent[..16] {
        b.take(A, parcel).unwrap();
    }
    let [alone] = &parcels(&mut b, 1024)[..] else { panic!("one acknowledgement") };
    assert_eq!(alone.len(), 8, "an acknowledgement has no number");
    a.take(B, alone).unwrap();
    let [last] = &parcels(&mut a, 1024)[..] else {
        panic!("the requests made meanwhile are one parcel")
    };
    for parcel in &sent[16..] {
        b.take(A, parcel).unwrap();
    }
    b.take(A, last).unwrap();
    let [alone] = &parcels(&mut b, 1024)[..] else { panic!("one acknowledgement") };
    assert_eq!(alone.len(), 8, "an acknowledgement has no number");
    a.take(B, alone).unwrap();
    assert!(!a.has_unsent() && !b.has_unsent(), "an acknowledgement is not acknowledged");
}

#[test]
fn a_very_late_parcel_does_not_move_the_window_back() {
    let (mut a, mut b) = (mail(), mail());
    b.set_starved(A);
    let late = parcels(&mut b, 1024).remove(0);
    for _ in 0..10 {
        for _ in 0..16 {
            a.set_starved(B);
            b.take(A, &parcels(&mut a, 1024).remove(0)).unwrap();
        }
        // It acknowledges alone: a numbered parcel would wait for the late one.
        let alone = parcels(&mut b, 1024).remove(0);
        a.take(B, &alone).unwrap();
    }
    a.take(B, &late).unwrap();
    assert!(a.is_starved(B));
    a.set_starved(B);
    assert_eq!(parcels(&mut a, 1024).len(), 1, "the window has not moved back");
}

/// A quarter of the lines, or of the quota, is returned in a parcel of its own; less of it
/// goes in another parcel.
#[test]
fn a_quarter_is_returned_in_a_parcel_of_its_own() {
    let (mut a, mut b) = (mail_of(SHAPE), mail_of(SHAPE));
    one(&mut a, &mut b);
    b.give_back(A, Returned::default());
    assert!(!b.has_unsent(), "one line of eight");
    one(&mut a, &mut b);
    b.give_back(A, Returned::default());
    assert!(b.has_unsent(), "two lines of eight");
    for (matched, is_much) in [(7, false), (8, true), (9, true)] {
        let mut mail = mail_of(MessageShape { lines: 64, quota: 32, ..SHAPE });
        mail.give_back(A, Returned { matched, ..Returned::default() });
        assert_eq!(mail.has_unsent(), is_much, "{matched} of 32");
    }
}

/// A rank that wants more says so in one parcel; the parcels around it become visible with it.
#[test]
fn a_request_is_answered_whichever_parcels_come_with_it() {
    for asks_first in [true, false] {
        let (mut a, mut b) = (mail(), mail());
        one(&mut a, &mut b);
        b.give_back(A, Returned { taken: 1, ..Returned::default() });
        let mut sent = Vec::new();
        for asks in [asks_first, !asks_first] {
            if asks {
                a.set_starved(B);
            } else {
                a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
            }
            sent.append(&mut parcels(&mut a, 1024));
        }
        b.take(A, &sent[1]).unwrap();
        assert!(!b.has_unsent());
        b.take(A, &sent[0]).unwrap();
        assert!(b.is_starved(A) && b.has_unsent(), "the counts are due");
    }
}
