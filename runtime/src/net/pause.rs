//! How long the poller sleeps between two looks at a device that has no event
//! descriptor.
//!
//! ```text
//!  look ─┬─ something came, or bytes moved ─► look again at once
//!        └─ nothing ─► sleep 50 us, then twice as long each time, 1 ms at the most
//! ```
//!
//! Puts and gets of other ranks make no event here, but the bytes in a socket move
//! only while a thread polls: for example 64 KiB a look. So two looks in a row that
//! have taken much longer than a look that finds nothing have moved bytes, and more
//! will come. One long look alone may have other reasons; mostly its data were in no
//! cache after a pause.

use std::time::Duration;

/// The state of the pauses. See the module.
#[derive(Debug)]
pub(super) struct Pause {
    next: Duration,
    /// The shortest look so far, which has found nothing.
    least: Duration,
    /// The last look was a long one.
    was_long: bool,
    /// Further looks that are due although the last ones have found nothing.
    due: u32,
}

/// What the poller does after a look that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseStep {
    /// Look again at once.
    Look,
    /// Sleep for as long as [`Pause::take`] returns.
    Sleep,
}

impl Pause {
    pub(super) fn new() -> Self {
        Self { next: LEAST, least: Duration::MAX, was_long: false, due: 0 }
    }

    /// Makes the next pause a short one, because something has come.
    pub(super) fn restart(&mut self) {
        self.next = LEAST;
    }

    /// Takes the length of a look that has handed nothing over, and returns what the
    /// poller does next. With `may_linger`, where the poller uses a free core, it
    /// polls on for bytes that move.
    pub(super) fn after(&mut self, took: Duration, may_linger: bool) -> PauseStep {
        self.least = self.least.min(took);
        let is_long = took >= LONG && took >= self.least * TIMES;
        let moves = std::mem::replace(&mut self.was_long, is_long) && is_long;
        self.due = match (moves, may_linger) {
            (_, false) => 0,
            (true, true) => LINGER,
            (false, true) => self.due.saturating_sub(1),
        };
        if moves {
            self.restart();
        }
        if is_long || self.due > 0 { PauseStep::Look } else { PauseStep::Sleep }
    }

    /// Returns how long to sleep now, after a look that found nothing.
    pub(super) fn take(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(MOST);
        now
    }
}

const LEAST: Duration = Duration::from_micros(50);
const MOST: Duration = Duration::from_millis(1);
/// A look with a system call that finds nothing takes a microsecond; a look that
/// copies 64 KiB takes ten and more.
const LONG: Duration = Duration::from_micros(5);
/// How many times longer than the shortest look a long one is, where all looks are
/// slow.
const TIMES: u32 = 4;
/// Looks that find nothing, which take as long as the shortest pause.
const LINGER: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a socket that holds a bounded number of pieces. Each look moves one
    /// piece; the peer fills the socket while the poller sleeps, or after
    /// `fills_after` looks that found nothing. Returns how often the poller has slept
    /// until all pieces have come, and how long in all.
    fn sleeps(pieces: u32, fills_after: u32, may_linger: bool) -> (u32, Duration) {
        const HELD: u32 = 4;
        let (mut pause, mut left, mut held) = (Pause::new(), pieces, 0);
        // No piece has come for a long time.
        while pause.take() < MOST {
            assert_eq!(pause.after(NOTHING, may_linger), PauseStep::Sleep);
        }
        let (mut count, mut slept, mut in_vain) = (0, Duration::ZERO, 0);
        while left > 0 || held > 0 {
            let took = if held > 0 { PIECE } else { NOTHING };
            in_vain = if held > 0 { 0 } else { in_vain + 1 };
            held = u32::saturating_sub(held, 1);
            let next = pause.after(took, may_linger);
            if next == PauseStep::Sleep {
                slept += pause.take();
                count += 1;
            }
            if next == PauseStep::Sleep || in_vain == fills_after {
                let more = left.min(HELD - held);
                (left, held) = (left - more, held + more);
            }
        }
        (count, slept)
    }

    const NOTHING: Duration = Duration::from_micros(1);
    const PIECE: Duration = Duration::from_micros(12);

    #[test]
    fn a_stream_of_puts_waits_for_the_first_pause_only() {
        assert_eq!(sleeps(1024, LINGER / 2, true), (1, MOST));
    }

    #[test]
    fn pauses_stay_short_if_the_watch_may_not_linger() {
        let (count, slept) = sleeps(1024, LINGER / 2, false);
        assert_eq!((count, slept), (1024 / 4, MOST + LEAST * (count - 1)));
    }

    #[test]
    fn the_watch_lingers_for_a_limited_number_of_looks() {
        let mut pause = Pause::new();
        let mut looks = |took, may_linger| pause.after(took, may_linger) == PauseStep::Look;
        assert!(!looks(NOTHING, true) && looks(PIECE, true) && looks(PIECE, true));
        assert_eq!((0..1000).take_while(|_| looks(NOTHING, true)).count() as u32, LINGER - 1);
        assert!(looks(PIECE, true) && looks(PIECE, true) && !looks(NOTHING, false));
    }

    #[test]
    fn one_long_look_after_each_pause_does_not_shorten_pauses() {
        let mut pause = Pause::new();
        pause.after(NOTHING, true);
        while pause.take() < MOST {}
        for _ in 0..1000 {
            assert_eq!(pause.after(PIECE, true), PauseStep::Look);
            assert_eq!(pause.after(NOTHING, true), PauseStep::Sleep);
            assert_eq!(pause.take(), MOST);
        }
    }

    #[test]
    fn looks_of_one_length_find_nothing_on_any_machine() {
        for micros in [1, 4, 30, 400] {
            let mut pause = Pause::new();
            let took = Duration::from_micros(micros);
            assert!((0..1000).all(|_| pause.after(took, true) == PauseStep::Sleep), "{micros} us");
        }
    }

    #[test]
    fn pauses_grow_until_they_are_restarted() {
        let mut pause = Pause::new();
        let all: Vec<u128> = (0..8).map(|_| pause.take().as_micros()).collect();
        assert_eq!(all, [50, 100, 200, 400, 800, 1000, 1000, 1000]);
        pause.restart();
        assert_eq!(pause.take(), LEAST);
    }
}
