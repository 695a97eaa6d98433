//! Requests and answers of a rank that has died.

use super::*;

#[test]
fn a_loss_ends_requests_in_flight_and_unsent_ones() {
    let mut asks = Emulation::new(ASKS);
    for tag in 0..40 {
        assert!(asks.begin(&add(tag, 1), || None));
    }
    let late = sent(&mut asks, 5);
    asks.lose(|rank| (rank == SERVES).then_some(rank));
    let done = ended(&mut asks);
    let lost = Err(AddrError::PeerLost { rank: SERVES });
    assert!(done.len() == 40 && done.iter().all(|done| done.result == lost));
    assert_eq!(asks.unsent(), 0);
    let mut serves = Emulation::new(SERVES);
    assert!(serves.handle(ASKS, &late[0], &nothing(), |_| Ok(0)));
    let answer = &sent(&mut serves, 1)[0];
    assert!(!asks.handle(SERVES, answer, &nothing(), |_| Ok(0)), "the answer comes too late");
    assert!(asks.begin(&add(1, 1), || None));
    asks.send(&nothing(), |_| false, false, |_, _| Sent::Lost(Rank(9)));
    let because = Err(AddrError::PeerLost { rank: Rank(9) });
    assert_eq!(ended(&mut asks)[0].result, because);
}

/// New requests to a lost rank end, however many were under way; and it is owed nothing.
#[test]
fn nothing_is_kept_of_a_lost_rank() {
    let lost = |rank| (rank == ASKS || rank == SERVES).then_some(rank);
    for notifies in [false, true] {
        let op = |at| if notifies { add(at, 1).notifying() } else { add(at, 1) };
        let mut serves = owing(3, op);
        assert!(serves.handle(Rank(2), &owed_request(), &nothing(), |_| Ok(0)));
        serves.lose(lost);
        assert_eq!((serves.unsent(), serves.owed.of(Rank(0)), serves.owed.of(Rank(2))), (1, 0, 1));
    }
    let mut asks = Emulation::new(ASKS);
    for tag in 0..u64::from(WINDOW) {
        assert!(asks.begin(&add(tag, 1), || None));
    }
    assert_eq!(sent(&mut asks, MANY).len(), WINDOW as usize);
    asks.lose(lost);
    assert_eq!(ended(&mut asks).len(), WINDOW as usize);
    assert!(asks.begin(&add(99, 1), || None));
    asks.send(&nothing(), |_| false, false, |to, _| Sent::Lost(to));
    assert_eq!(ended(&mut asks)[0].result, Err(AddrError::PeerLost { rank: SERVES }));
    assert!(asks.is_idle());
}
