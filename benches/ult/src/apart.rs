//! Who wakes and who is woken, on two CPUs.

use std::thread;
use std::time::{Duration, Instant};
use tsumugi::affinity;
use tsumugi_core::sync::{AtomicU64, Ordering, spin_loop};

/// The CPUs that a process had when it began.
#[derive(Clone, Debug)]
pub struct Apart(Vec<usize>);

impl Apart {
    /// Those that the calling thread may use now.
    pub fn new() -> Self {
        Self(affinity::allowed().unwrap_or_default())
    }

    /// Threads that `start` starts keep to the second CPU; from here on the
    /// caller keeps to the first. With one CPU, or where the system does not
    /// allow it, nobody keeps to any.
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

/// Spins until `word` is `value`. One that spins in vain lets others have its
/// CPU: who is waited for may be in its queue.
pub fn wait_for(word: &AtomicU64, value: u64) {
    let mut turns = 0u32;
    // Acquire: pairs with the Release of who is waited for.
    while word.load(Ordering::Acquire) != value {
        turns += 1;
        if turns.is_multiple_of(1 << 10) {
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Long enough for a thread that was woken to be parked again, and for its
/// worker to spin.
pub fn pause() {
    for _ in 0..64 {
        spin_loop();
    }
}

/// The middle of wakes that were timed one by one, without what the clock
/// takes.
pub fn middle_wake(wakes: Vec<f64>) -> f64 {
    let clock = wakes.iter().map(|_| Instant::now().elapsed().as_nanos() as f64).collect();
    middle(wakes) - middle(clock)
}

fn middle(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Long enough for a thread with nothing to do to be asleep.
pub const NAP: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_are_apart() {
        let here = || affinity::allowed().unwrap();
        let all = here();
        std::thread::spawn(move || {
            let apart = Apart::new();
            // The second time the caller is on the first already.
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
