//! A word on which one thread sleeps by a futex.
//!
//! ```text
//!   31 .. 1   events so far          0   sleeping
//!
//!   sleeper                        notifier
//!   prepare: sleeping := 1         publish work
//!   look for work again            notify: if sleeping { count + 1, sleeping := 0 }
//!   futex_wait(word == ticket)             and futex_wake
//! ```
//!
//! Both sides write first and then read the other side's word (the Dekker pattern),
//! with a fence between: the sleeper sees the work, or the notifier sees the
//! sleeper. Every change of state is a read-modify-write. Under load no thread
//! sleeps, and `notify` is a fence and a load.
//!
//! Progress: `prepare`, `cancel` and `notify` are lock-free.

use crate::mutate;
use crate::sync::{AtomicU32, Ordering, fence};

/// The event word of one thread; no other thread sleeps on it. All zeroes: no event,
/// and no thread asleep.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct EventWord(AtomicU32);

/// The value of the word when its owner announced that it would sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

impl EventWord {
    /// A word without events and without a sleeper.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A word without events and without a sleeper.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Announces that the owner is about to sleep. The owner must look for work once
    /// more and then either [`cancel`](Self::cancel) or wait on [`word`](Self::word)
    /// while the word equals `ticket`.
    pub fn prepare(&self) -> Ticket {
        // SeqCst: before the owner's last look for work, see the module's
        // documentation.
        let ticket = Ticket(self.0.fetch_or(SLEEPING, Ordering::SeqCst) | SLEEPING);
        // SeqCst: before the owner's last look for work, whatever the order of
        // its loads.
        mutate!("event_prepare_unordered": fence(Ordering::SeqCst) => ());
        ticket
    }

    /// Withdraws the announcement: the owner found work after all, or has woken.
    pub fn cancel(&self) {
        // Relaxed: it does not matter whether a notifier sees this in time, because
        // a needless futex wake is harmless.
        self.0.fetch_and(!SLEEPING, Ordering::Relaxed);
    }

    /// Whether an event came since `ticket`.
    pub fn has_changed(&self, ticket: Ticket) -> bool {
        self.0.load(Ordering::SeqCst) != ticket.0
    }

    /// Ends the owner's sleep, whether it has begun or is about to begin. Returns
    /// true if the caller must wake the word's futex now.
    #[must_use = "on true the futex must be woken"]
    pub fn notify(&self) -> bool {
        // SeqCst: after the publication of the work, whatever its order.
        mutate!("event_notify_unordered": fence(Ordering::SeqCst) => ());
        let mut seen = self.0.load(Ordering::SeqCst);
        while seen & SLEEPING != 0 {
            let next = (seen & !SLEEPING).wrapping_add(EVENT);
            match self.0.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(changed) => seen = changed,
            }
        }
        false
    }

    /// Whether the owner has ever prepared to sleep, as far as is known.
    pub fn is_used(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// The word to wait on.
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

impl Ticket {
    /// The value with which the futex compares the word.
    pub const fn expected(self) -> u32 {
        self.0
    }
}

const SLEEPING: u32 = 1;
const EVENT: u32 = 2;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_notice_before_the_sleep_is_not_lost() {
        let event = EventWord::new();
        assert!(!event.notify(), "no thread sleeps");
        let ticket = event.prepare();
        assert!(!event.has_changed(ticket));
        assert!(event.notify());
        assert!(event.has_changed(ticket));
        assert!(!event.notify(), "one wake is enough");
    }

    #[test]
    fn a_cancelled_sleep_is_not_woken() {
        let event = EventWord::new();
        event.prepare();
        event.cancel();
        assert!(!event.notify());
    }
}
