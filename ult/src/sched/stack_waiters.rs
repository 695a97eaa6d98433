//! New ULTs that wait for a stack.

use crate::lock::Lock;
use crate::slab::TaskSlot;
use alloc::collections::VecDeque;
use tsumugi_core::sync::{AtomicUsize, Ordering};

/// New ULTs for which there was no stack.
pub(crate) struct StackWaiters {
    count: AtomicUsize,
    queue: Lock<VecDeque<TaskSlot>>,
}

impl StackWaiters {
    pub(super) fn new() -> Self {
        Self { count: AtomicUsize::new(0), queue: Lock::new(VecDeque::new()) }
    }

    pub(crate) fn push(&self, slot: TaskSlot) {
        self.queue.with(|queue| queue.push_back(slot));
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the ULT that waits longest, if `can` returns true for it: it can run
    /// now.
    pub(crate) fn pop(&self, can: impl FnOnce(TaskSlot) -> bool) -> Option<TaskSlot> {
        let slot = self.queue.with(|queue| {
            let first = *queue.front()?;
            if can(first) { queue.pop_front() } else { None }
        })?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(slot)
    }

    /// Whether `can` returns true for the ULT that waits longest.
    pub(crate) fn is_first(&self, can: impl FnOnce(TaskSlot) -> bool) -> bool {
        self.queue.with(|queue| queue.front().is_some_and(|slot| can(*slot)))
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }
}
