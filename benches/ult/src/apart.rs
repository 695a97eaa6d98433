//! Who wakes and who is woken, on two CPUs.

use std::time::Duration;
use tsumugi::affinity;

/// Threads that `start` starts keep to the second CPU of the process; from
/// here on the caller keeps to the first. With one CPU, or where the system
/// does not allow it, nobody keeps to any.
pub fn on_second<T>(start: impl FnOnce() -> T) -> T {
    let allowed = affinity::allowed().unwrap_or_default();
    let &[first, second, ..] = allowed.as_slice() else { return start() };
    let _ = affinity::pin(second);
    let started = start();
    let _ = affinity::pin(first);
    started
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
            let other = on_second(|| std::thread::spawn(here)).join().unwrap();
            match all.as_slice() {
                &[first, second, ..] => assert_eq!((here(), other), (vec![first], vec![second])),
                _ => assert_eq!((here(), other), (all.clone(), all)),
            }
        })
        .join()
        .unwrap();
    }
}
