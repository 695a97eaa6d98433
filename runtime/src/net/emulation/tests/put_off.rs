//! Answers that are put off while notified threads are busy.

use super::*;

/// Notified threads are busy, and parcels come all the time.
#[test]
fn an_answer_that_is_put_off_is_sent_in_the_end() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    assert!(asks.begin(&add(1, 1).notifying(), || None));
    let request = &sent(&mut asks, 1)[0];
    assert!(serves.handle(ASKS, request, &nothing(), |_| Ok(3)));
    let mut gone = 0;
    let mut tries = 0;
    while gone == 0 {
        serves.send(
            &nothing(),
            |_| false,
            true,
            |_, _| {
                gone += 1;
                Sent::Yes
            },
        );
        tries += 1;
    }
    assert_eq!((gone, tries), (1, u32::from(PUT_OFF_MAX) + 1));
}

/// After a lack of room for an answer that was put off, one parcel of each kind is sent
/// first; then answers are sent before requests.
#[test]
fn after_a_lack_of_room_one_parcel_of_each_kind_goes_first() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let own = RemoteAddr { rank: ASKS, ..add(0, 0).remote };
    for (at, is_patient) in [true, false, false, false].into_iter().enumerate() {
        let op = add(at as u64, 1);
        assert!(asks.begin(&if is_patient { op.notifying() } else { op }, || None));
        let request = sent(&mut asks, 1).remove(0);
        assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(at as u64)));
    }
    for _ in 0..3 {
        assert!(serves.begin(&Op::atomic(Kind::FetchAdd, own, 1_u64), || None));
    }
    assert!(sent(&mut serves, 0).is_empty());
    let value = |parcel: &Vec<u8>| (parcel[0] == ANSWER).then(|| parcel[8]);
    let went: Vec<_> = sent(&mut serves, 3).iter().map(value).collect();
    assert_eq!(went, [Some(0), Some(1), None]);
    let went: Vec<_> = sent(&mut serves, MANY).iter().map(value).collect();
    assert_eq!(went, [Some(2), None, Some(3), None]);
    assert_eq!(serves.unsent(), 0);
}

/// Only an answer that was put off is left, and finds no room: it goes before what comes
/// meanwhile. One that has gone leaves answers their place before those that are put off.
#[test]
fn an_answer_that_was_put_off_and_finds_no_room_goes_first() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let mut asked = |serves: &mut Emulation, at: u64, notifies: bool| {
        let op = add(at, 1);
        assert!(asks.begin(&if notifies { op.notifying() } else { op }, || None));
        let request = sent(&mut asks, 1).remove(0);
        assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(at)));
    };
    let values = |serves: &mut Emulation, room| -> Vec<u8> {
        sent(serves, room).iter().map(|parcel| parcel[8]).collect()
    };
    asked(&mut serves, 0, true);
    assert_eq!(values(&mut serves, 0), []);
    asked(&mut serves, 1, false);
    asked(&mut serves, 2, false);
    assert_eq!(values(&mut serves, MANY), [0, 1, 2]);
    asked(&mut serves, 3, true);
    assert_eq!(values(&mut serves, MANY), [3]);
    asked(&mut serves, 4, true);
    asked(&mut serves, 5, false);
    assert_eq!(values(&mut serves, MANY), [5, 4]);
    assert_eq!(serves.unsent(), 0);
}

/// How many answers go while something has just come.
fn go_at_once(serves: &mut Emulation) -> usize {
    let mut gone = 0;
    serves.send(
        &nothing(),
        |_| false,
        true,
        |_, _| {
            gone += 1;
            Sent::Yes
        },
    );
    gone
}

#[test]
fn answers_are_not_put_off_if_they_are_many() {
    let many = WINDOW as usize / 2;
    for (count, gone) in [(many - 1, 0), (many, many)] {
        let mut serves = owing(count, |at| add(at, 1).notifying());
        assert_eq!(go_at_once(&mut serves), gone, "{count} answers");
        assert_eq!(serves.unsent(), count - gone);
    }
}

#[test]
fn each_answer_is_put_off_as_long() {
    let mut serves = owing(1, |at| add(at, 1).notifying());
    let again = owing(1, |at| add(at, 1).notifying()).patient;
    for _ in 0..2 {
        let mut put_off = 0;
        while go_at_once(&mut serves) == 0 {
            put_off += 1;
        }
        assert_eq!(put_off, PUT_OFF_MAX);
        serves.patient.extend(again.iter());
    }
    // Patience is lost only where nothing has come.
    serves.patient[0].patience = 2;
    assert_eq!((go_at_once(&mut serves), go_at_once(&mut serves)), (0, 0));
    let gone: Vec<_> = (0..3).map(|_| sent(&mut serves, 1).len()).collect();
    assert_eq!(gone, [0, 0, 1]);
}

/// A thread waits for the answer to a put that notifies, and for no answer to a put with a
/// second operation.
#[test]
fn an_answer_for_which_a_thread_waits_goes_before_one_that_frees_a_place() {
    let here = Memory::new(ASKS);
    let base = NonNull::from(&[7u8; 8]).cast();
    // SAFETY: the bytes are constant, and only read.
    let region = unsafe { here.table.register(base, 8, Access::Local) }.unwrap();
    let put = |at| Op::put(LocalAddr { key: region.key, offset: 0 }, add(0, 0).remote, at);
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let begun = [(put(1), Some(add(1, 1))), (put(2).notifying(), None), (put(3), None)];
    for (value, (op, then)) in (1..).zip(begun) {
        assert!(asks.begin(&op, || then));
        asks.send(
            &here,
            |_| false,
            false,
            |_, request| {
                assert!(serves.handle(ASKS, request, &nothing(), |_| Ok(value)));
                Sent::Yes
            },
        );
    }
    let patience = |answers: &VecDeque<EmulatedReply>| -> Vec<_> {
        answers.iter().map(|answer| (answer.result, answer.patience)).collect()
    };
    assert_eq!(patience(&serves.answers), [(Ok(3), 0)]);
    assert_eq!(patience(&serves.patient), [(Ok(2), 0), (Ok(1), PATIENCE)]);
}
