//! Tests of what a worker takes from other workers.

use super::*;

/// Puts ULTs into another worker's queue, without a notification.
fn fill(bench: &Bench, queue: fn(&crate::sched::worker_slot::Seat) -> &crate::deque::Deque<Task>) {
    for slot in bench.several(2) {
        // SAFETY: this thread acts as the owner of the seat.
        unsafe { queue(&bench.shared.seats[1]).push(slot.as_ptr()) };
    }
}

#[test]
fn both_queues_of_another_worker_are_stolen_from() {
    let bench = Bench::new(3, 0);
    assert_eq!(bench.workers[0].steal(), None);
    fill(&bench, |seat| &seat.ready);
    fill(&bench, |seat| &seat.yielded);
    // SAFETY: this thread acts as the owner of the seat.
    unsafe { bench.shared.seats[0].ready.push(bench.ready().as_ptr()) };
    let stolen = (0..8).filter(|_| bench.workers[0].steal().is_some()).count();
    assert_eq!(stolen, 4, "each lone ULT at the second look");
    assert!(!bench.shared.seats[0].ready.is_empty(), "a worker does not steal from itself");
    assert_eq!(bench.counted(0, Counter::Steals), 4);
}

#[test]
fn a_lone_ult_is_left_until_it_was_seen_twice() {
    let bench = Bench::new(2, 0);
    let lone = bench.ready();
    // SAFETY: this thread acts as the owner of the seat.
    unsafe { bench.shared.seats[1].ready.push(lone.as_ptr()) };
    assert_eq!(bench.workers[0].steal(), None);
    // The ULT ran meanwhile.
    task(lone).set_runnable();
    assert_eq!(bench.workers[0].steal(), None);
    assert_eq!(bench.workers[0].steal(), Some(lone));
}

#[test]
fn a_thief_keeps_a_part_of_a_long_queue() {
    let bench = Bench::new(2, 0);
    let all = bench.several(24);
    for slot in &all {
        // SAFETY: this thread acts as the owner of the seat.
        unsafe { bench.shared.seats[1].yielded.push(slot.as_ptr()) };
    }
    assert_eq!(bench.workers[0].steal(), Some(all[0]));
    let ready = &bench.shared.seats[0].ready;
    // SAFETY: as above.
    let kept: Vec<_> = core::iter::from_fn(|| unsafe { ready.pop() }).collect();
    assert_eq!(kept, [all[2].as_ptr(), all[1].as_ptr()]);
}

#[test]
fn a_thief_is_patient_for_a_while() {
    for (spin, patience) in [(0, 0), (7, 7), (1000, 64)] {
        let bench = Bench::new(2, spin);
        fill(&bench, |seat| &seat.ready);
        let looks = (0..).take_while(|_| bench.workers[0].steal().is_none()).count();
        assert_eq!(looks, patience, "of a worker that spins {spin} rounds");
    }
}

#[test]
fn the_only_worker_does_not_steal() {
    let bench = Bench::new(1, 0);
    // SAFETY: this thread acts as the owner of the seat.
    unsafe { bench.shared.seats[0].ready.push(bench.ready().as_ptr()) };
    assert_eq!(bench.workers[0].steal(), None);
}

#[test]
fn unread_mail_of_another_worker_is_taken() {
    let bench = Bench::new(2, 0);
    let mail = &bench.shared.seats[1].mail;
    let send = |slot: Slot| {
        mail.open();
        assert!(mail.try_send(slot.into()));
        slot
    };
    let plain = send(bench.sleeping(1));
    assert_eq!(bench.workers[0].steal(), Some(plain));
    assert!(task(plain).is_ready() && !mail.is_full());
    assert_eq!(bench.counted(0, Counter::WokenAfar), 1);
    send(bench.pinned(1));
    assert_eq!(bench.workers[0].steal(), None);
    assert!(!bench.shared.seats[1].pinned.is_empty(), "the pinned ULT is returned to its worker");
    bench.workers[0].open_letter(send(bench.ready()).into());
}

#[test]
fn the_offers_of_all_other_workers_are_searched() {
    let bench = Bench::new(3, 0);
    for worker in [1, 2, 1] {
        let slot = bench.ready();
        // SAFETY: this thread acts as the owner of the seat, and the offer is empty.
        unsafe { bench.shared.seats[worker].offer.lay_out(slot.into()) };
        assert_eq!(bench.workers[0].take_offered(), Some(slot));
        assert_eq!(bench.workers[0].take_offered(), None);
    }
    // SAFETY: as above.
    unsafe { bench.shared.seats[1].offer.lay_out(bench.ready().into()) };
    assert_eq!(bench.workers[1].take_offered(), None, "a worker does not take its own offer");
    for worker in [2, 0] {
        assert!(bench.workers[worker].take_offered().is_some());
        // SAFETY: as above.
        unsafe { bench.shared.seats[1].offer.lay_out(bench.ready().into()) };
    }
}
