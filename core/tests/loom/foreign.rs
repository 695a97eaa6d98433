//! Sleeping on a scheduler of another library: no wake is lost, and no task is unparked after
//! its end.

use crate::check;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::sync::UnsafeCell;
use tsumugi_core::time::{Clock, Instant};
use tsumugi_core::wait::{Foreign, ForeignTask, ForeignWait, Reason, Wait, Waker};

/// A scheduler of one task.
struct Scheduler {
    token: Mutex<Token>,
    bell: Condvar,
}

struct Token {
    is_there: bool,
    has_ended: bool,
}

struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

// SAFETY: the one task has one name; a condition variable parks it.
unsafe impl Foreign for Scheduler {
    fn current(&self) -> Option<ForeignTask> {
        Some(ForeignTask::new(NonNull::from(self).cast()))
    }

    unsafe fn park(&self, _: ForeignTask, _: Option<Duration>) {
        let mut token = self.token.lock().unwrap();
        while !token.is_there {
            token = self.bell.wait(token).unwrap();
        }
        token.is_there = false;
    }

    unsafe fn unpark(&self, _: ForeignTask) {
        let mut token = self.token.lock().unwrap();
        assert!(!token.has_ended, "a task was unparked that has ended");
        token.is_there = true;
        self.bell.notify_one();
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

/// The slot in which the event finds the waker, and the answer that it leaves.
struct Event {
    state: Mutex<State>,
    answer: UnsafeCell<u32>,
}

#[derive(Default)]
struct State {
    has_happened: bool,
    waker: Option<Waker>,
}

// SAFETY: the event accesses the answer before the wake, the sleeper after it.
unsafe impl Sync for Event {}

#[test]
fn a_foreign_task_is_woken_and_only_while_it_lives() {
    check(&["foreign_awake_first", "foreign_wake_relaxed"], || {
        let scheduler = Arc::new(Scheduler {
            token: Mutex::new(Token { is_there: false, has_ended: false }),
            bell: Condvar::new(),
        });
        let event = Arc::new(Event { state: Mutex::default(), answer: UnsafeCell::new(0) });
        let (theirs, keeper) = (event.clone(), scheduler.clone());
        let event_thread = thread::spawn(move || {
            // SAFETY: before the wake, when the sleeper does not access it.
            theirs.answer.with_mut(|answer| unsafe { *answer = 7 });
            let waker = {
                let mut state = theirs.state.lock().unwrap();
                state.has_happened = true;
                state.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
            drop(keeper);
        });
        let mut publish = |waker| {
            let mut state = event.state.lock().unwrap();
            if state.has_happened {
                return false;
            }
            state.waker = Some(waker);
            true
        };
        // SAFETY: the event takes the waker out once.
        unsafe {
            ForeignWait::new(&*scheduler, &NoClock).sleep(Reason::new("model"), &mut publish)
        };
        // SAFETY: after it.
        event.answer.with(|answer| assert_eq!(unsafe { *answer }, 7));
        scheduler.token.lock().unwrap().has_ended = true;
        event_thread.join().unwrap();
    });
}
