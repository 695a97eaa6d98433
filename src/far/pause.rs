//! How long the watch sleeps between two looks at a device that does not call.
//!
//! ```text
//!  look ─┬─ something came, or bytes moved ─► look again at once
//!        └─ nothing ─► sleep 50 us, then twice as long each time, 1 ms at the most
//! ```
//!
//! Puts and gets of others tell nobody here, but what a socket holds moves only
//! while somebody looks: 64 KiB a look, say. So a look that has taken much longer
//! than one that finds nothing has moved bytes, and there will be more. Whoever
//! was kept off its core for as long looks once too often, which harms nobody.

use std::time::Duration;

/// See the module.
#[derive(Debug)]
pub(super) struct Pause {
    next: Duration,
    /// The shortest look so far: it has found nothing.
    least: Duration,
}

impl Pause {
    pub(super) fn new() -> Self {
        Self { next: LEAST, least: Duration::MAX }
    }

    /// Somebody has been here: the next pause is a short one.
    pub(super) fn restart(&mut self) {
        self.next = LEAST;
    }

    /// A look that has handed nothing over has taken so long: whether it has moved
    /// bytes.
    pub(super) fn has_moved(&mut self, took: Duration) -> bool {
        self.least = self.least.min(took);
        took >= MOVED && took >= self.least * TIMES
    }

    /// How long to sleep now, after a look that was for nothing.
    pub(super) fn take(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(MOST);
        now
    }
}

const LEAST: Duration = Duration::from_micros(50);
const MOST: Duration = Duration::from_millis(1);
/// A look with a system call that finds nothing takes a microsecond; one that
/// copies 64 KiB ten and more.
const MOVED: Duration = Duration::from_micros(5);
/// Where all looks are slower than that.
const TIMES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that holds a bounded number of pieces, of which each look moves
    /// one, as long as there are some; how often the watch has slept, and how long
    /// in all, until all have come.
    fn sleeps(pieces: u32, piece: Duration) -> (u32, Duration) {
        const NOTHING: Duration = Duration::from_micros(1);
        const HELD: u32 = 4;
        let (mut pause, mut left, mut held) = (Pause::new(), pieces, 0);
        // Nobody has come for long.
        while pause.take() < MOST {
            assert!(!pause.has_moved(NOTHING));
        }
        let (mut count, mut slept) = (0, Duration::ZERO);
        while left > 0 || held > 0 {
            let took = if held > 0 { piece } else { NOTHING };
            held = u32::saturating_sub(held, 1);
            if pause.has_moved(took) {
                pause.restart();
            } else {
                // Meanwhile the peer fills it.
                let more = left.min(HELD - held);
                (left, held) = (left - more, held + more);
                slept += pause.take();
                count += 1;
            }
        }
        (count, slept)
    }

    #[test]
    fn who_puts_much_waits_for_no_pause_but_the_first() {
        let (count, slept) = sleeps(1024, Duration::from_micros(12));
        assert_eq!(count, 1024 / 4);
        assert_eq!(slept, MOST + LEAST * (count - 1));
    }

    #[test]
    fn a_look_for_nothing_is_for_nothing_on_any_machine() {
        for micros in [1, 4, 30, 400] {
            let mut pause = Pause::new();
            let took = Duration::from_micros(micros);
            assert!((0..1000).all(|_| !pause.has_moved(took)), "{micros} us");
        }
    }

    #[test]
    fn pauses_grow_until_somebody_comes() {
        let mut pause = Pause::new();
        let mut all = (0..8).map(|_| pause.take().as_micros());
        assert!(all.by_ref().eq([50, 100, 200, 400, 800, 1000, 1000, 1000]));
        pause.restart();
        assert_eq!(pause.take(), LEAST);
    }
}
