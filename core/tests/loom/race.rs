//! A sleep that an event and a clock race to end: one of them counts, and the sleeper is woken
//! once.

use crate::check;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::wait::{Interrupted, Race, Waker};

/// The sleeper of the real waker: counts how often the waker was used.
struct Bed {
    woken: Mutex<u32>,
    ring: Condvar,
}

unsafe fn ring(bed: *const ()) {
    // SAFETY: the model holds the bed until all threads are joined.
    let bed = unsafe { &*bed.cast::<Bed>() };
    *bed.woken.lock().unwrap() += 1;
    bed.ring.notify_all();
}

impl Bed {
    fn waker(&self) -> Waker {
        // SAFETY: as in `ring`.
        unsafe { Waker::new((&raw const *self).cast(), ring) }
    }

    /// Sleeps until woken `times` times, and no more than that.
    fn sleep(&self, times: u32) {
        let mut woken = self.woken.lock().unwrap();
        while *woken < times {
            woken = self.ring.wait(woken).unwrap();
        }
        assert_eq!(*woken, times, "woken too often");
    }
}

#[test]
fn the_event_or_the_clock_but_not_both() {
    check(&["race_no_second_look", "race_interrupt_blind"], || {
        let bed = Arc::new(Bed { woken: Mutex::new(0), ring: Condvar::new() });
        let race = Arc::new(Race::new());
        // SAFETY: the model holds the race until all threads are joined.
        let published = Arc::new(Mutex::new(Some(unsafe { race.waker() })));
        let event = {
            let published = published.clone();
            thread::spawn(move || {
                let taken = published.lock().unwrap().take();
                taken.map(Waker::wake).is_some()
            })
        };
        let clock = {
            let race = race.clone();
            thread::spawn(move || {
                if let Some(waker) = race.interrupt(Interrupted::TimedOut) {
                    waker.wake();
                }
            })
        };
        let mut sleeps = 0;
        // SAFETY: this thread is the sleeper.
        if unsafe { race.fall_asleep(bed.waker()) } {
            sleeps += 1;
            bed.sleep(sleeps);
        }
        let gave_up = race.interrupted().is_some() && published.lock().unwrap().take().is_some();
        // SAFETY: the same.
        if !gave_up && !race.is_woken() && unsafe { race.sleep_on(bed.waker()) } {
            sleeps += 1;
            bed.sleep(sleeps);
        }
        assert!(gave_up || race.is_woken());
        clock.join().unwrap();
        assert_ne!(event.join().unwrap(), gave_up, "either the event or the clock counts");
        assert_eq!(*bed.woken.lock().unwrap(), sleeps, "woken once for each sleep");
    });
}
