//! The timers of a scheduler: the deadlines of sleeps, in a heap that has no clock of
//! its own.
//!
//! A pairing heap. Its nodes lie on the sleepers' own stacks, so arming a timer
//! allocates nothing, and any number of timers fit:
//!
//! ```text
//!   root: the earliest
//!    │ child
//!    ▼        next        next
//!   node ───────────► node ───► node      siblings; `prev` is the left
//!    │ child           │ child            sibling, or the parent
//!    ▼                 ▼
//! ```
//!
//! Arming is O(1), disarming and expiring O(log n) amortised.
//!
//! # References
//!
//! Fredman, Sedgewick, Sleator, Tarjan: The pairing heap, Algorithmica 1
//! (1986).

use core::ptr;
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Race;

/// The timer of one sleeper; it stays in place while it is armed.
pub(crate) struct Timer {
    deadline: Instant,
    /// The sleep that the timer interrupts.
    pub(crate) race: *const Race,
    child: *mut Self,
    next: *mut Self,
    prev: *mut Self,
    armed: bool,
}

/// The armed timers; their holder locks them.
pub(crate) struct Timers {
    root: *mut Timer,
    count: usize,
}

// SAFETY: timers are reached only through the heap, by the thread that holds its
// lock.
unsafe impl Send for Timers {}

impl Timer {
    pub(crate) fn new(deadline: Instant, race: *const Race) -> Self {
        let null = ptr::null_mut();
        Self { deadline, race, child: null, next: null, prev: null, armed: false }
    }
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { root: ptr::null_mut(), count: 0 }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        // SAFETY: an armed timer is valid, and the root is armed.
        unsafe { self.root.as_ref() }.map(|timer| timer.deadline)
    }

    /// The number of armed timers.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a timer.
    ///
    /// # Safety
    ///
    /// The timer is not armed, and stays in place until it is disarmed or expires.
    pub(crate) unsafe fn arm(&mut self, timer: *mut Timer) {
        // SAFETY: the caller promises that the timer is valid; armed timers are.
        unsafe {
            (*timer).armed = true;
            self.root = meld(self.root, timer);
        }
        self.count += 1;
    }

    /// Takes a timer out, if it is still armed.
    ///
    /// # Safety
    ///
    /// The timer was armed here, and is still valid.
    pub(crate) unsafe fn disarm(&mut self, timer: *mut Timer) {
        // SAFETY: the caller promises that the timer is valid; armed timers and their
        // links are.
        unsafe {
            if !(*timer).armed {
                return;
            }
            if timer == self.root {
                self.pop();
                return;
            }
            let (prev, next) = ((*timer).prev, (*timer).next);
            if (*prev).child == timer {
                (*prev).child = next;
            } else {
                (*prev).next = next;
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
            let children = merge((*timer).child);
            self.root = meld(self.root, children);
            clear(timer);
        }
        self.count -= 1;
    }

    /// Takes the earliest timer out, if it is due at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<*mut Timer> {
        // SAFETY: there is a root, because `next` returned a deadline.
        self.next().filter(|due| *due <= now).map(|_| unsafe { self.pop() })
    }

    /// Takes the root out.
    ///
    /// # Safety
    ///
    /// There is a root.
    unsafe fn pop(&mut self) -> *mut Timer {
        let timer = self.root;
        // SAFETY: the caller promises that there is a root, and it is armed.
        unsafe {
            self.root = merge((*timer).child);
            clear(timer);
        }
        self.count -= 1;
        timer
    }
}

/// Makes one heap of two roots, either of which may be null.
unsafe fn meld(one: *mut Timer, other: *mut Timer) -> *mut Timer {
    if one.is_null() || other.is_null() {
        return if one.is_null() { other } else { one };
    }
    // SAFETY: both are roots of armed timers.
    unsafe {
        let (parent, child) =
            if (*other).deadline < (*one).deadline { (other, one) } else { (one, other) };
        let first = (*parent).child;
        (*child).next = first;
        (*child).prev = parent;
        if !first.is_null() {
            (*first).prev = child;
        }
        (*parent).child = child;
        parent
    }
}

/// Makes one heap of a list of siblings: melds pairs from the left, and then the
/// pairs from the right.
unsafe fn merge(mut sibling: *mut Timer) -> *mut Timer {
    let mut pairs: *mut Timer = ptr::null_mut();
    // SAFETY: the caller's list is of armed timers.
    unsafe {
        while !sibling.is_null() {
            let one = detach(&mut sibling);
            let other = detach(&mut sibling);
            let pair = meld(one, other);
            (*pair).next = pairs;
            pairs = pair;
        }
        let mut root = ptr::null_mut();
        while !pairs.is_null() {
            let pair = detach(&mut pairs);
            root = meld(root, pair);
        }
        root
    }
}

/// Takes the first timer off a list, which may be empty.
unsafe fn detach(list: &mut *mut Timer) -> *mut Timer {
    let first = *list;
    if !first.is_null() {
        // SAFETY: the caller's list is of armed timers.
        unsafe {
            *list = (*first).next;
            (*first).next = ptr::null_mut();
            (*first).prev = ptr::null_mut();
        }
    }
    first
}

unsafe fn clear(timer: *mut Timer) {
    // SAFETY: the caller promises that the timer is valid.
    unsafe {
        (*timer).child = ptr::null_mut();
        (*timer).next = ptr::null_mut();
        (*timer).prev = ptr::null_mut();
        (*timer).armed = false;
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    fn timers(deadlines: impl IntoIterator<Item = u64>) -> Vec<Timer> {
        let at = |ns| Timer::new(Instant::from_ns(ns), ptr::null());
        deadlines.into_iter().map(at).collect()
    }

    #[test]
    fn no_timer_is_due_early() {
        let mut heap = Timers::new();
        let mut all = timers([30, 10, 20]);
        for timer in &mut all {
            // SAFETY: the vector stays in place, and the timers are not armed.
            unsafe { heap.arm(timer) };
        }
        assert_eq!(heap.next(), Some(Instant::from_ns(10)));
        assert!(heap.expire(Instant::from_ns(9)).is_none());
        // SAFETY: the vector stays in place.
        let deadline = |timer: *mut Timer| unsafe { (*timer).deadline };
        let mut due = || heap.expire(Instant::from_ns(20)).map(deadline);
        assert_eq!(due(), Some(Instant::from_ns(10)));
        assert_eq!(due(), Some(Instant::from_ns(20)));
        assert_eq!(due(), None);
        assert_eq!((heap.count(), heap.next()), (1, Some(Instant::from_ns(30))));
    }

    /// Compares with a sorted list, over a stream of pseudo-random steps.
    #[test]
    fn the_heap_agrees_with_a_sorted_list() {
        let mut random = tsumugi_core::random::SplitMix64::new(1);
        let mut draw = move |bound: u64| random.below(bound);
        let mut all = timers(std::iter::repeat_n(0, 200));
        let (mut heap, mut model) = (Timers::new(), std::collections::BTreeMap::new());
        for _ in 0..20_000 {
            let index = draw(200) as usize;
            let timer = &raw mut all[index];
            // SAFETY: the vector stays in place; a timer is armed if the model has
            // it.
            unsafe {
                match (draw(3), (*timer).armed) {
                    (0, false) => {
                        (*timer).deadline = Instant::from_ns(draw(50));
                        heap.arm(timer);
                        model.insert(((*timer).deadline, index), ());
                    }
                    (1, armed) => {
                        heap.disarm(timer);
                        let was = model.remove(&((*timer).deadline, index)).is_some();
                        assert_eq!(was, armed);
                    }
                    _ => {
                        let now = Instant::from_ns(draw(60));
                        let due = heap.expire(now).map(|timer| (*timer).deadline);
                        let first = model.keys().next().copied().filter(|(at, _)| *at <= now);
                        assert_eq!(due, first.map(|(at, _)| at));
                        // Equal deadlines may come in any order: this finds the timer that fired.
                        if let Some((at, _)) = first {
                            let gone = |index: usize| !all[index].armed;
                            let mut same = model.range((at, 0)..=(at, usize::MAX));
                            let taken = *same.find(|((_, index), ())| gone(*index)).unwrap().0;
                            model.remove(&taken);
                        }
                    }
                }
            }
            assert_eq!(heap.count(), model.len());
            assert_eq!(heap.next(), model.keys().next().map(|(at, _)| *at));
        }
    }
}
