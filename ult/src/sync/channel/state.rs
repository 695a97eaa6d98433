//! The state of a channel: the values in it, and the queues of waiters. The
//! caller of each function holds the channel's lock.
//!
//! While there are both senders and receivers: either the buffer is empty or no
//! receiver waits, and either the buffer has room or no sender waits.

use crate::sync::queue::{WaitQueue, Wake};
use alloc::collections::VecDeque;
use tsumugi_core::mutate;

pub(super) struct ChannelState<T> {
    buffer: VecDeque<T>,
    /// How many values fit; `usize::MAX` for any number.
    capacity: usize,
    pub(super) senders: usize,
    pub(super) receivers: usize,
    /// The senders that wait. Their slots are `Option<T>`, full.
    pub(super) senders_waiting: WaitQueue,
    /// The receivers that wait. Their slots are `Option<T>`, empty.
    pub(super) receivers_waiting: WaitQueue,
}

/// What `put` did with a value.
pub(super) enum Put {
    Sent,
    Full,
    Disconnected,
}

/// What `take` returned.
pub(super) enum Take<T> {
    Value(T),
    Empty,
    Disconnected,
}

// SAFETY: the slots to which the queues point are `Option<T>`s of waiters.
unsafe impl<T: Send> Send for ChannelState<T> {}

impl<T> ChannelState<T> {
    pub(super) fn bounded(capacity: usize) -> Self {
        Self::new(VecDeque::with_capacity(capacity), capacity)
    }

    pub(super) fn unbounded() -> Self {
        Self::new(VecDeque::new(), usize::MAX)
    }

    fn new(buffer: VecDeque<T>, capacity: usize) -> Self {
        Self {
            buffer,
            capacity,
            senders: 1,
            receivers: 1,
            senders_waiting: WaitQueue::new(),
            receivers_waiting: WaitQueue::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether `put` would have to allocate.
    pub(super) fn wants_room(&self) -> bool {
        self.capacity == usize::MAX && self.buffer.len() == self.buffer.capacity()
    }

    /// Moves the values to a larger buffer, unless that has been done.
    pub(super) fn move_into(&mut self, larger: &mut VecDeque<T>) {
        if larger.capacity() > self.buffer.capacity() {
            larger.append(&mut self.buffer);
            core::mem::swap(larger, &mut self.buffer);
        }
    }

    /// Takes the value unless there is no room. The caller must wake `served`.
    pub(super) fn put(&mut self, value: &mut Option<T>, served: &mut Option<Wake>) -> Put {
        if self.receivers == 0 {
            return Put::Disconnected;
        }
        if let Some(first) = self.receivers_waiting.first() {
            // SAFETY: a waiting receiver's slot is there, and only the holder of
            // the channel's lock accesses it.
            unsafe { *first.slot.cast::<Option<T>>() = value.take() };
            *served = self.receivers_waiting.pop();
            return Put::Sent;
        }
        if self.buffer.len() >= self.capacity {
            return Put::Full;
        }
        self.buffer.extend(value.take());
        Put::Sent
    }

    /// Takes the oldest value. The caller must wake `served`.
    pub(super) fn take(&mut self, served: &mut Option<Wake>) -> Take<T> {
        let oldest = self.buffer.pop_front();
        // `put_back` may have left one value above the capacity.
        let room = oldest.is_none() || self.buffer.len() < self.capacity;
        let waiting = match self.senders_waiting.first() {
            // SAFETY: a waiting sender's slot is there, and only the holder of
            // the channel's lock accesses it.
            Some(first) if room => unsafe { (*first.slot.cast::<Option<T>>()).take() },
            _ => None,
        };
        if waiting.is_some() {
            *served = self.senders_waiting.pop();
        }
        match (oldest, waiting) {
            (Some(value), waiting) => {
                self.buffer.extend(waiting);
                Take::Value(value)
            }
            (None, Some(value)) => Take::Value(value),
            (None, None) if self.senders == 0 => Take::Disconnected,
            (None, None) => Take::Empty,
        }
    }

    /// Does what [`take`](Self::take) does, for a receiver that is about to wait.
    pub(super) fn take_again(&mut self, served: &mut Option<Wake>) -> Take<T> {
        mutate!("channel_no_second_look": self.take(served) => Take::Empty)
    }

    /// Puts back a value that a receiver was handed and did not take. The caller
    /// must wake `served`. The value is returned if all receivers are gone.
    pub(super) fn put_back(&mut self, value: T, served: &mut Option<Wake>) -> Option<T> {
        if self.receivers == 0 {
            return Some(value);
        }
        if self.receivers_waiting.is_empty() {
            // The buffer is one above the capacity until the next `take`.
            self.buffer.push_front(value);
            return None;
        }
        let mut value = Some(value);
        self.put(&mut value, served);
        value
    }

    /// Takes all values out, because all receivers are gone.
    pub(super) fn empty(&mut self) -> VecDeque<T> {
        core::mem::take(&mut self.buffer)
    }
}
