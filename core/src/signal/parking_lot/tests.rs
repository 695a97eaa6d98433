//! Tests of waiters that sleep through the steps that a test sets.

extern crate std;

use super::*;
use crate::wait::Interrupted;
use core::cell::Cell;
use std::format;
use std::vec::Vec;

/// A thread with a sleep of two steps that the test sets: one before the commit and
/// one after it; the second must wake the thread.
struct Sleeper<B, A> {
    before: B,
    after: A,
    woken: AtomicU32,
    slept: AtomicU32,
    /// The address and the wanted value of the last reason.
    reason: Cell<(u64, u64)>,
}

impl<B: Fn(), A: Fn()> Sleeper<B, A> {
    fn new(before: B, after: A) -> Self {
        let (woken, slept) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { before, after, woken, slept, reason: Cell::new((0, 0)) }
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed) == self.slept.load(Ordering::Relaxed)
    }

    fn begin(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        unsafe fn wake(woken: *const ()) {
            // SAFETY: the pointer is to the test's count, which outlives the sleep.
            unsafe { &*woken.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(reason.what, "signal");
        self.reason.set((reason.at, reason.wanted));
        self.slept.fetch_add(1, Ordering::Relaxed);
        (self.before)();
        // SAFETY: the pointer is to an atomic that outlives the sleep.
        assert!(commit(unsafe { Waker::new((&raw const self.woken).cast(), wake) }));
    }

    fn slept(&self) -> u32 {
        assert!(self.is_woken());
        self.slept.load(Ordering::Relaxed)
    }
}

// SAFETY: there is one thread, and a sleep returns after the wake, or panics.
unsafe impl<B: Fn(), A: Fn()> Wait for Sleeper<B, A>
where
    Self: Sync,
{
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        self.begin(reason, commit);
        (self.after)();
        assert!(self.is_woken(), "the sleeper was not woken");
    }

    fn yield_now(&self) {}
}

// SAFETY: as above; the limit passes after the second step.
unsafe impl<B: Fn(), A: Fn()> WaitFor for Sleeper<B, A>
where
    Self: Sync,
{
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        _: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        self.begin(reason, commit);
        (self.after)();
        assert!(!withdraw(), "the waker has been used");
        assert!(self.is_woken(), "the sleeper was not woken");
        Ok(())
    }
}

// SAFETY: each test has one thread.
unsafe impl<B, A> Sync for Sleeper<B, A> {}

fn at(word: &AtomicU64) -> u64 {
    (&raw const *word) as u64
}

fn change(parking_lot: &ParkingLot, word: &AtomicU64, value: u64) -> bool {
    word.store(value, Ordering::SeqCst);
    parking_lot.announce(at(word))
}

fn waiting(parking_lot: &ParkingLot) -> u32 {
    parking_lot.waiting.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

fn nothing() {}

const LIMIT: Duration = Duration::from_millis(1);

#[test]
fn a_condition_holds_for_the_values_that_it_names() {
    for (until, holds, does_not) in [
        (Until::Equal(5), [5, 5, 5], [4, 6, 0]),
        (Until::NotEqual(5), [4, 6, u64::MAX], [5, 5, 5]),
        (Until::AtLeast(5), [5, 6, 5 + (1 << 62)], [4, 0, u64::MAX]),
        (Until::AtLeast(u64::MAX), [u64::MAX, 0, 7], [u64::MAX - 1, 1 << 63, (1 << 63) - 1]),
        (Until::AnyBit(6), [2, 4, 7], [0, 1, 8]),
    ] {
        let (parking_lot, waiters) = (ParkingLot::new(), Waiters::new());
        for value in holds {
            assert!(until.holds(value), "{until:?} {value}");
            let never = Sleeper::new(|| panic!("the condition holds"), nothing);
            let word = AtomicU64::new(value);
            assert_eq!(waiters.wait(&parking_lot, &word, until, &never), Ok(value));
            assert_eq!(
                waiters.wait_timeout(&parking_lot, &word, until, &never, LIMIT),
                Ok(Some(value))
            );
        }
        assert!(does_not.iter().all(|value| !until.holds(*value)), "{until:?}");
        assert_eq!(waiting(&parking_lot), 0);
    }
}

#[test]
fn a_waiter_is_woken_by_the_change_that_it_waits_for() {
    let (parking_lot, waiters) = (ParkingLot::new(), Waiters::new());
    // As many words as there are different buckets.
    let words: Vec<AtomicU64> = (0..200).map(|_| AtomicU64::new(0)).collect();
    for (index, word) in words.iter().enumerate() {
        assert!(
            !change(&parking_lot, word, 0) && !parking_lot.has_fired(),
            "no waiter for this word"
        );
        let waiter = Sleeper::new(nothing, || {
            assert_eq!((waiting(&parking_lot), parking_lot.has_fired()), (1, false));
            assert!(change(&parking_lot, word, 3) && parking_lot.has_fired());
            assert_eq!(
                (waiters.drain(&parking_lot), waiting(&parking_lot)),
                (0, 1),
                "no waiter for this value"
            );
            assert!(!parking_lot.has_fired());
            let (bucket, other) = (bucket_of(at(word)), &words[(index + 1) % 200]);
            if bucket_of(at(other)) != bucket {
                assert!(!change(&parking_lot, other, 0), "another word");
            }
            assert_eq!(waiters.drain(&parking_lot), 0);
            assert!(change(&parking_lot, word, 7));
            assert_eq!((waiters.drain(&parking_lot), waiters.drain(&parking_lot)), (1, 0));
        });
        assert_eq!(waiters.wait(&parking_lot, word, Until::Equal(7), &waiter), Ok(7));
        assert_eq!((waiter.slept(), waiting(&parking_lot)), (1, 0));
        assert_eq!(waiter.reason.get(), (at(word), 7));
        word.store(0, Ordering::SeqCst);
    }
}

#[test]
fn words_are_spread_over_the_buckets() {
    let mut hit = [false; BUCKETS];
    (0..4096u64).for_each(|word| hit[bucket_of(0x7f00_0000_1000 + 8 * word)] = true);
    assert!(hit.iter().filter(|hit| **hit).count() > BUCKETS * 3 / 4);
}

#[test]
fn a_waiter_sees_a_change_before_it_parks() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let early = || {
        assert!(change(&parking_lot, &word, 1), "the waiter has announced itself");
        assert_eq!(waiters.drain(&parking_lot), 0, "the waiter is not parked yet");
    };
    let waiter = Sleeper::new(early, nothing);
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(1), &waiter), Ok(1));
    assert_eq!((waiter.slept(), waiting(&parking_lot)), (1, 0));
}

#[test]
fn waiters_for_one_word_wait_for_their_own_values() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let inner = Sleeper::new(nothing, || {
        assert_eq!(waiting(&parking_lot), 2);
        assert!(change(&parking_lot, &word, 2));
        assert_eq!((waiters.drain(&parking_lot), waiting(&parking_lot)), (1, 1));
    });
    let outer = Sleeper::new(nothing, || {
        assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(2), &inner), Ok(2));
        assert!(change(&parking_lot, &word, 1));
        assert_eq!(waiters.drain(&parking_lot), 1);
    });
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(1), &outer), Ok(1));
    assert_eq!((outer.slept(), inner.slept(), waiting(&parking_lot)), (1, 1, 0));
    // Both wait for the same word: one drain wakes both.
    let inner = Sleeper::new(nothing, || {
        assert!(change(&parking_lot, &word, 9));
        assert_eq!(waiters.drain(&parking_lot), 2);
    });
    let outer = Sleeper::new(nothing, || {
        assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(9), &inner), Ok(9));
    });
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(9), &outer), Ok(9));
    assert_eq!((outer.slept(), inner.slept(), waiting(&parking_lot)), (1, 1, 0));
}

/// A waiter that is woken and finds the word changed again sleeps again.
#[test]
fn a_woken_waiter_waits_again_if_the_word_has_changed_back() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let round = Cell::new(0);
    let waiter = Sleeper::new(nothing, || {
        round.set(round.get() + 1);
        assert!(change(&parking_lot, &word, 1));
        assert_eq!(waiters.drain(&parking_lot), 1);
        if round.get() < 3 {
            word.store(0, Ordering::SeqCst);
        }
    });
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(1), &waiter), Ok(1));
    assert_eq!((waiter.slept(), waiting(&parking_lot)), (3, 0));
}

#[test]
fn a_death_ends_every_wait() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let other = AtomicU64::new(0);
    assert_eq!((parking_lot.lost(), parking_lot.latest_lost()), (None, None));
    let lost = Err(AddrError::PeerLost { rank: Rank(4) });
    let inner = Sleeper::new(nothing, || {
        parking_lot.break_off(Rank(4));
        assert!(parking_lot.has_fired());
        assert_eq!(waiters.drain(&parking_lot), 2);
    });
    let outer = Sleeper::new(nothing, || {
        assert_eq!(waiters.wait(&parking_lot, &other, Until::Equal(1), &inner), lost);
    });
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(1), &outer), lost);
    assert_eq!((waiting(&parking_lot), parking_lot.has_fired()), (0, false));
    assert_eq!((parking_lot.lost(), parking_lot.latest_lost()), (Some(Rank(4)), Some(Rank(4))));
    parking_lot.break_off(Rank(0));
    assert_eq!((parking_lot.lost(), parking_lot.latest_lost()), (Some(Rank(4)), Some(Rank(0))));
    // From now on no wait begins; a condition that holds still gives its value.
    let never = Sleeper::new(|| panic!("a rank is lost"), nothing);
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(1), &never), lost);
    assert_eq!(
        waiters.wait_timeout(&parking_lot, &word, Until::Equal(1), &never, LIMIT),
        lost.map(Some)
    );
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(0), &never), Ok(0));
}

#[test]
fn a_waiter_sees_a_death_before_it_parks() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let waiter = Sleeper::new(|| parking_lot.break_off(Rank(1)), nothing);
    let lost = Err(AddrError::PeerLost { rank: Rank(1) });
    assert_eq!(waiters.wait(&parking_lot, &word, Until::Equal(1), &waiter), lost);
    assert_eq!((waiter.slept(), waiting(&parking_lot)), (1, 0));
}

#[test]
fn a_waiter_that_times_out_leaves_the_others_waiting() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let until = Until::Equal(1);
    let outer = Sleeper::new(nothing, || {
        for _ in 0..3 {
            let alone = Sleeper::new(nothing, nothing);
            assert_eq!(waiters.wait_timeout(&parking_lot, &word, until, &alone, LIMIT), Ok(None));
            assert_eq!((alone.slept(), waiting(&parking_lot)), (1, 1));
        }
        assert!(change(&parking_lot, &word, 1));
        assert_eq!(waiters.drain(&parking_lot), 1);
    });
    assert_eq!(waiters.wait(&parking_lot, &word, until, &outer), Ok(1));
    assert_eq!((outer.slept(), waiting(&parking_lot)), (1, 0));
}

#[test]
fn a_change_before_the_limit_is_returned() {
    let (parking_lot, waiters, word) = (ParkingLot::new(), Waiters::new(), AtomicU64::new(0));
    let until = Until::Equal(1);
    // The waiter is woken and then its limit passes: its giving up leaves nothing
    // behind.
    let woken = Sleeper::new(nothing, || {
        assert!(change(&parking_lot, &word, 1));
        assert_eq!(waiters.drain(&parking_lot), 1);
    });
    assert_eq!(waiters.wait_timeout(&parking_lot, &word, until, &woken, LIMIT), Ok(Some(1)));
    // The word was changed, but the waiter was not woken before its limit.
    word.store(0, Ordering::SeqCst);
    let unseen = Sleeper::new(nothing, || word.store(1, Ordering::SeqCst));
    assert_eq!(waiters.wait_timeout(&parking_lot, &word, until, &unseen, LIMIT), Ok(Some(1)));
    // The waiter is woken for a change that has been undone: it has still given up.
    let passing = Sleeper::new(nothing, || {
        assert!(change(&parking_lot, &word, 1));
        assert_eq!(waiters.drain(&parking_lot), 1);
        word.store(0, Ordering::SeqCst);
    });
    word.store(0, Ordering::SeqCst);
    assert_eq!(waiters.wait_timeout(&parking_lot, &word, until, &passing, LIMIT), Ok(None));
    assert_eq!((woken.slept(), unseen.slept(), passing.slept()), (1, 1, 1));
    assert!(waiters.quitting.iter().all(|count| count.load(Ordering::Relaxed) == 0));
    assert_eq!(format!("{parking_lot:?}"), "ParkingLot(0 waiting)");
}
