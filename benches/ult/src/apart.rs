//! Two CPUs: one for the thread that wakes, one for the thread that is woken.

use std::thread;
use std::time::{Duration, Instant};
use tsumugi::affinity;
use tsumugi_core::sync::{AtomicU64, Ordering, spin_loop};

/// The CPUs that a process had when it began.
#[derive(Clone, Debug)]
pub struct Apart(Vec<usize>);

impl Apart {
    /// Notes the CPUs that the calling thread may use now.
    pub fn new() -> Self {
        Self(affinity::allowed().unwrap_or_default())
    }

    /// Calls `start`. The threads that it starts are pinned to the second CPU,
    /// and from here on the caller is pinned to the first. With one CPU, or where
    /// the system does not allow it, no thread is pinned.
    pub fn on_second<T>(&self, start: impl FnOnce() -> T) -> T {
        let &[first, second, ..] = self.0.as_slice() else { return start() };
        let _ = affinity::pin(second);
        let started = start();
        let _ = affinity::pin(first);
        started
    }
}

impl Default for Apart {
    fn default() -> Self {
        Self::new()
    }
}

/// Spins until `word` is `value`. After many turns in vain it yields the CPU,
/// because the thread that sets the word may be in the CPU's queue.
pub fn wait_for(word: &AtomicU64, value: u64) {
    let mut turns = 0u32;
    // Acquire: pairs with the Release of the thread that sets the word.
    while word.load(Ordering::Acquire) != value {
        turns += 1;
        if turns.is_multiple_of(1 << 10) {
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Waits so long that a thread that was woken is parked again, and its worker spins.
pub fn pause() {
    for _ in 0..64 {
        spin_loop();
    }
}

/// Returns the median of wakes that were timed one by one, minus the time that
/// reading the clock takes.
pub fn middle_wake(wakes: Vec<f64>) -> f64 {
    let clock = wakes.iter().map(|_| Instant::now().elapsed().as_nanos() as f64).collect();
    middle(wakes) - middle(clock)
}

fn middle(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// A time after which a thread with nothing to do is asleep.
pub const NAP: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_are_pinned_to_two_cpus() {
        let here = || affinity::allowed().unwrap();
        let all = here();
        std::thread::spawn(move || {
            let apart = Apart::new();
            // The second time the caller is pinned to the first CPU already.
            for _ in 0..2 {
                let other = apart.on_second(|| std::thread::spawn(here)).join().unwrap();
                match all.as_slice() {
                    &[first, second, ..] => {
                        assert_eq!((here(), other), (vec![first], vec![second]));
                    }
                    _ => assert_eq!((here(), other), (all.clone(), all.clone())),
                }
            }
        })
        .join()
        .unwrap();
    }
}
