//! The suite of [`Wait`] and [`WaitFor`]: their promises to a caller that sleeps.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_core::wait::{Interrupted, Reason, Wait, WaitFor, Waker};

/// A kind of thread that sleeps through `W`.
pub trait Fixture {
    /// The type under test.
    type Wait: WaitFor + 'static;

    /// Runs `body` on a thread of this kind, to its end.
    fn run(body: impl FnOnce(&Self::Wait) + Send + 'static);
}

/// One `#[test]` per promise, for the fixture type.
#[macro_export]
macro_rules! sleep {
    ($fixture:ty) => {
        $crate::sleep!($fixture:
            a_refused_sleep_is_none, a_wake_in_the_commit_is_kept, a_wake_ends_the_sleep,
            a_limit_ends_the_sleep, an_event_comes_before_the_limit,
            a_wake_that_cannot_be_withdrawn_is_awaited, wakes_and_limits_race,
            a_caller_that_runs_on_has_not_left,
        );
    };
    ($fixture:ty: $($promise:ident),* $(,)?) => {$(
        #[test]
        fn $promise() {
            $crate::sleep::$promise::<$fixture>();
        }
    )*};
}

const REASON: Reason = Reason::new("conformance");
const ROUNDS: u64 = 200;

/// An event: the place of the published waker, and a count of wakes.
#[derive(Default)]
struct Event {
    published: Mutex<Option<Waker>>,
    happened: AtomicU64,
}

impl Event {
    fn publish(&self, waker: Waker) {
        let before = self.published.lock().unwrap().replace(waker);
        assert!(before.is_none(), "published twice");
    }

    /// Takes back what was published; returns whether it was still there.
    fn withdraw(&self) -> bool {
        self.published.lock().unwrap().take().is_some()
    }

    /// Waits for a waker, counts, and uses the waker.
    fn happen(&self) {
        loop {
            let waker = self.published.lock().unwrap().take();
            if let Some(waker) = waker {
                self.happened.fetch_add(1, Ordering::Relaxed);
                return waker.wake();
            }
            thread::yield_now();
        }
    }
}

fn sleep(wait: &impl Wait, commit: &mut dyn FnMut(Waker) -> bool) {
    // SAFETY: a commit of the suite drops its waker, uses it or publishes it, in
    // agreement with its result. It blocks only on a lock under which no thread
    // sleeps.
    unsafe { wait.sleep(REASON, commit) }
}

fn sleep_for(
    wait: &impl WaitFor,
    limit: Duration,
    commit: &mut dyn FnMut(Waker) -> bool,
    withdraw: &mut dyn FnMut() -> bool,
) -> Result<(), Interrupted> {
    // SAFETY: as for `sleep`; `withdraw` drops the waker that it takes back.
    unsafe { wait.sleep_for(REASON, limit, commit, withdraw) }
}

/// After a commit that returns false there is no sleep, and the commit runs once.
pub fn a_refused_sleep_is_none<F: Fixture>() {
    F::run(|wait| {
        let mut commits = 0;
        sleep(wait, &mut |_| {
            commits += 1;
            false
        });
        let slept = sleep_for(
            wait,
            Duration::from_secs(3600),
            &mut |_| {
                commits += 1;
                false
            },
            &mut || panic!("nothing was published"),
        );
        assert_eq!((slept, commits), (Ok(()), 2));
    });
}

/// A wake that comes before the commit has returned is not lost.
pub fn a_wake_in_the_commit_is_kept<F: Fixture>() {
    F::run(|wait| {
        for _ in 0..ROUNDS {
            sleep(wait, &mut |waker| {
                waker.wake();
                true
            });
            let slept = sleep_for(
                wait,
                Duration::from_secs(3600),
                &mut |waker| {
                    waker.wake();
                    true
                },
                &mut || panic!("the event came first"),
            );
            assert_eq!(slept, Ok(()));
        }
    });
}

/// A wake by any thread ends the sleep, and the sleeper sees what came before the
/// wake.
pub fn a_wake_ends_the_sleep<F: Fixture>() {
    F::run(|wait| {
        let event: &'static Event = Box::leak(Box::default());
        let waking = thread::spawn(|| (0..ROUNDS).for_each(|_| event.happen()));
        for round in 0..ROUNDS {
            sleep(wait, &mut |waker| {
                event.publish(waker);
                true
            });
            assert_eq!(event.happened.load(Ordering::Relaxed), round + 1, "woken without an event");
        }
        waking.join().unwrap();
    });
}

/// Without its event a sleep ends when its limit has passed, and not before.
pub fn a_limit_ends_the_sleep<F: Fixture>() {
    F::run(|wait| {
        let event: &'static Event = Box::leak(Box::default());
        let (limit, start) = (Duration::from_millis(5), Instant::now());
        let mut withdrawn = 0;
        let slept = sleep_for(
            wait,
            limit,
            &mut |waker| {
                event.publish(waker);
                true
            },
            &mut || {
                withdrawn += 1;
                event.withdraw()
            },
        );
        assert_eq!((slept, withdrawn), (Err(Interrupted::TimedOut), 1));
        assert!(start.elapsed() >= limit, "{:?} is too short", start.elapsed());
        // A limit that has passed already.
        let slept = sleep_for(wait, Duration::ZERO, &mut |_| true, &mut || true);
        assert_eq!(slept, Err(Interrupted::TimedOut));
    });
}

/// An event that comes before the limit ends the sleep, and nothing is
/// withdrawn.
pub fn an_event_comes_before_the_limit<F: Fixture>() {
    F::run(|wait| {
        let event: &'static Event = Box::leak(Box::default());
        let waking = thread::spawn(|| event.happen());
        let slept = sleep_for(
            wait,
            Duration::from_secs(3600),
            &mut |waker| {
                event.publish(waker);
                true
            },
            &mut || panic!("the event came first"),
        );
        assert_eq!(slept, Ok(()));
        waking.join().unwrap();
    });
}

/// If the event has the waker when the limit passes, the call waits for the wake.
pub fn a_wake_that_cannot_be_withdrawn_is_awaited<F: Fixture>() {
    F::run(|wait| {
        let event: &'static Event = Box::leak(Box::default());
        let mut late = None;
        let slept = sleep_for(
            wait,
            Duration::from_millis(1),
            &mut |waker| {
                event.publish(waker);
                true
            },
            &mut || {
                late = event.published.lock().unwrap().take().map(|waker| {
                    thread::spawn(move || {
                        thread::sleep(Duration::from_millis(5));
                        event.happened.store(1, Ordering::Relaxed);
                        waker.wake();
                    })
                });
                false
            },
        );
        assert_eq!(slept, Ok(()));
        assert_eq!(event.happened.load(Ordering::Relaxed), 1, "the call did not wait for the wake");
        late.expect("the limit passed").join().unwrap();
    });
}

/// Exactly one of the wake and the limit ends each sleep.
pub fn wakes_and_limits_race<F: Fixture>() {
    F::run(|wait| {
        let event: &'static Event = Box::leak(Box::default());
        let ended: &'static AtomicU64 = Box::leak(Box::default());
        let waking = thread::spawn(|| {
            while ended.load(Ordering::Acquire) == 0 {
                let waker = event.published.lock().unwrap().take();
                if let Some(waker) = waker {
                    event.happened.fetch_add(1, Ordering::Relaxed);
                    waker.wake();
                }
                thread::yield_now();
            }
        });
        let mut came = 0;
        let all = (0..ROUNDS).try_for_each(|round| {
            let slept = sleep_for(
                wait,
                Duration::from_micros(round % 50),
                &mut |waker| {
                    event.publish(waker);
                    true
                },
                &mut || event.withdraw(),
            );
            came += slept.is_ok() as u64;
            match event.happened.load(Ordering::Relaxed) == came {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(round),
            }
        });
        ended.store(1, Ordering::Release);
        waking.join().unwrap();
        assert_eq!(all, ControlFlow::Continue(()), "the round in which both counted, or neither");
    });
}

/// A call with something to give up does not give it up if the caller runs on.
pub fn a_caller_that_runs_on_has_not_left<F: Fixture>() {
    F::run(|wait| {
        let event: &'static Event = Box::leak(Box::default());
        let waking = thread::spawn(|| (0..ROUNDS).for_each(|_| event.happen()));
        let mut left = 0;
        let leave: &mut dyn FnMut() = &mut || left += 1;
        let commit: &mut dyn FnMut(Waker) -> bool = &mut |waker| {
            event.publish(waker);
            true
        };
        let limit = Duration::from_secs(3600);
        for round in 1..=ROUNDS / 2 {
            // SAFETY: as for `sleep`; `leave` only counts.
            unsafe { wait.yield_or_leave(leave) };
            // SAFETY: as above.
            unsafe { wait.sleep_or_leave(REASON, commit, leave) };
            assert_eq!(event.happened.load(Ordering::Relaxed), 2 * round - 1);
            let withdraw: &mut dyn FnMut() -> bool = &mut || panic!("the event came first");
            // SAFETY: as above.
            let slept = unsafe { wait.sleep_for_or_leave(REASON, limit, commit, withdraw, leave) };
            assert_eq!((slept, event.happened.load(Ordering::Relaxed)), (Ok(()), 2 * round));
        }
        waking.join().unwrap();
        assert_eq!(left, 0);
    });
}
