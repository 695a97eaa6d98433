//! Channels with any number of senders and receivers, first-in first-out.
//!
//! ```text
//!   Sender ─┐   ┌───────────────────────────┐   ┌─► Receiver
//!   Sender ─┼──►│ buffer: up to its capacity│───┼─► Receiver
//!           │   └───────────────────────────┘   │
//!      senders that wait                   receivers that wait
//!      (the buffer is full)                (the buffer is empty)
//! ```
//!
//! A value that is sent while a receiver waits goes directly to that receiver.
//! Room that becomes free while a sender waits takes the value of the first
//! sender. So a waiter that is woken has been served already, and with a capacity
//! of 0 a sender and a receiver meet.
//!
//! A channel is disconnected when all ends of one side are dropped. Receivers
//! still get the values that were sent before. When the last receiver is dropped,
//! the values in the channel are dropped, and every later `send` returns its
//! value as an error.
//!
//! Either end works from ULTs, OS threads and futures. A future that receives loses
//! no value when it is dropped; a future that sends may have sent its value by then.
//!
//! Progress: blocking; `try_` calls hold a lock of a few instructions.
//!
//! ```
//! use tsumugi_ult::sync::channel;
//!
//! let (sender, receiver) = channel::bounded(2);
//! let producer = std::thread::spawn(move || (0..5).for_each(|n| sender.send(n).unwrap()));
//! assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
//! producer.join().unwrap();
//! ```

mod error;
mod future;
mod state;

pub use error::{
    RecvError, RecvWithinError, SendError, SendWithinError, TryRecvError, TrySendError,
};
pub use future::{Recv, Send};

use super::queue::{self, Node, Place};
use crate::limit::Limit;
use crate::lock::Lock;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use state::{Put, State, Take};
use tsumugi_core::wait::Reason;

/// Makes a channel that keeps up to `capacity` values; `send` waits while it is
/// full. With a capacity of 0, `send` waits for a receiver.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    ends(State::bounded(capacity))
}

/// Makes a channel that keeps any number of values: `send` never waits, and
/// allocates now and then.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    ends(State::unbounded())
}

/// A sender: one of the ends into which values go.
pub struct Sender<T>(Arc<Shared<T>>);

/// A receiver: one of the ends from which values come. Each value goes to one
/// receiver.
pub struct Receiver<T>(Arc<Shared<T>>);

/// An iterator over the values that come until the channel is disconnected.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

type Shared<T> = Lock<State<T>>;

fn ends<T>(state: State<T>) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Lock::new(state));
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Sends a value; waits for room.
    ///
    /// # Errors
    ///
    /// [`SendError`] with the value, if all receivers are gone.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.send_within(value, Limit::NONE).map_err(|error| SendError(error.into_inner()))
    }

    /// Sends a value if there is room now.
    ///
    /// # Errors
    ///
    /// The value: in [`TrySendError::Full`] if there is no room, in
    /// [`TrySendError::Disconnected`] if all receivers are gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut value = Some(value);
        match put(&self.0, &mut value) {
            Put::Sent => Ok(()),
            Put::Full => Err(TrySendError::Full(value.expect("not sent"))),
            Put::Disconnected => Err(TrySendError::Disconnected(value.expect("not sent"))),
        }
    }

    /// Sends a value, if there is room within `limit`.
    ///
    /// # Errors
    ///
    /// The value: in [`SendWithinError::Interrupted`] if there was no room in
    /// time, in [`SendWithinError::Disconnected`] if all receivers are gone.
    pub fn send_timeout(&self, value: T, limit: Duration) -> Result<(), SendWithinError<T>> {
        self.send_within(value, limit)
    }

    /// Sends a value, if there is room within a limit.
    ///
    /// # Errors
    ///
    /// The value: in [`SendWithinError::Interrupted`] if the limit's point in time, or a
    /// cancellation of the ULT, ended the wait; in [`SendWithinError::Disconnected`] if all
    /// receivers are gone.
    pub fn send_within(&self, value: T, limit: impl Into<Limit>) -> Result<(), SendWithinError<T>> {
        let mut value = Some(value);
        let mut outcome = put(&self.0, &mut value);
        if let Put::Full = outcome {
            let slot = &raw mut value;
            let mut served = None;
            let waited = queue::wait(
                &Sending(&self.0),
                &self.0,
                Reason { what: "send", at: Arc::as_ptr(&self.0) as u64, wanted: 0 },
                limit.into(),
                |node| node.with_slot(slot.cast()),
                |state| &mut state.senders_waiting,
                |state| {
                    // SAFETY: the node is in no queue yet, so no other thread has
                    // a pointer to the value.
                    outcome = state.put(unsafe { &mut *slot }, &mut served);
                    matches!(outcome, Put::Full)
                },
            );
            queue::tell(served);
            match (waited, value.is_some()) {
                (Err(why), _) => {
                    return Err(SendWithinError::Interrupted(why, value.expect("not sent")));
                }
                // The receiver that woke this sender took the value.
                (Ok(()), false) => return Ok(()),
                (Ok(()), true) => outcome = Put::Disconnected,
            }
        }
        match outcome {
            Put::Disconnected => Err(SendWithinError::Disconnected(value.expect("not sent"))),
            _ => Ok(()),
        }
    }

    /// Returns a future that sends a value when there is room.
    pub fn send_async(&self, value: T) -> Send<'_, T> {
        Send::new(&self.0, value)
    }

    /// Returns how many values are in the channel.
    pub fn len(&self) -> usize {
        self.0.with(|state| state.len())
    }

    /// Whether there is no value in the channel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Receiver<T> {
    /// Waits for a value.
    ///
    /// # Errors
    ///
    /// [`RecvError`] if all senders are gone and the channel is empty.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_within(Limit::NONE).map_err(|_| RecvError)
    }

    /// Takes a value, if there is one now.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if there is none now,
    /// [`TryRecvError::Disconnected`] if all senders are gone, too.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match take(&self.0) {
            Take::Value(value) => Ok(value),
            Take::Empty => Err(TryRecvError::Empty),
            Take::Disconnected => Err(TryRecvError::Disconnected),
        }
    }

    /// Waits for a value, for at most `limit`.
    ///
    /// # Errors
    ///
    /// [`RecvWithinError::Interrupted`] if none came in time,
    /// [`RecvWithinError::Disconnected`] if there is none and all senders are
    /// gone.
    pub fn recv_timeout(&self, limit: Duration) -> Result<T, RecvWithinError> {
        self.recv_within(limit)
    }

    /// Waits for a value within a limit.
    ///
    /// # Errors
    ///
    /// [`RecvWithinError::Interrupted`] if the limit's point in time, or a cancellation of
    /// the ULT, ended the wait; [`RecvWithinError::Disconnected`] if there is no value and
    /// all senders are gone.
    pub fn recv_within(&self, limit: impl Into<Limit>) -> Result<T, RecvWithinError> {
        match take(&self.0) {
            Take::Value(value) => return Ok(value),
            Take::Disconnected => return Err(RecvWithinError::Disconnected),
            Take::Empty => {}
        }
        let mut value = None;
        let slot = &raw mut value;
        let mut served = None;
        let waited = queue::wait(
            &Receiving(&self.0),
            &self.0,
            Reason { what: "recv", at: Arc::as_ptr(&self.0) as u64, wanted: 0 },
            limit.into(),
            |node| node.with_slot(slot.cast()),
            |state| &mut state.receivers_waiting,
            |state| match state.take_again(&mut served) {
                Take::Value(taken) => {
                    // SAFETY: the node is in no queue yet, so no other thread has
                    // a pointer to the slot.
                    unsafe { *slot = Some(taken) };
                    false
                }
                Take::Disconnected => false,
                Take::Empty => true,
            },
        );
        queue::tell(served);
        waited.map_err(RecvWithinError::Interrupted)?;
        value.ok_or(RecvWithinError::Disconnected)
    }

    /// Returns a future of the next value.
    pub fn recv_async(&self) -> Recv<'_, T> {
        Recv::new(&self.0)
    }

    /// Returns an iterator over the values that come until the channel is
    /// disconnected; it waits for each.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Returns an iterator over the values that are in the channel now.
    pub fn try_iter(&self) -> impl Iterator<Item = T> + '_ {
        core::iter::from_fn(|| self.try_recv().ok())
    }

    /// Returns how many values are in the channel.
    pub fn len(&self) -> usize {
        self.0.with(|state| state.len())
    }

    /// Whether there is no value in the channel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The place where senders wait.
struct Sending<'a, T>(&'a Shared<T>);

/// The place where receivers wait.
struct Receiving<'a, T>(&'a Shared<T>);

impl<T> Place for Sending<'_, T> {
    unsafe fn take_out(&self, node: *mut Node) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(self.0, node, |state| &mut state.senders_waiting, |_| {}) }
    }

    /// There is nothing to pass on: the value was sent, or stays with the sender.
    unsafe fn pass_on(&self, _: *mut Node, _: bool) {}
}

impl<T> Place for Receiving<'_, T> {
    unsafe fn take_out(&self, node: *mut Node) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(self.0, node, |state| &mut state.receivers_waiting, |_| {}) }
    }

    unsafe fn pass_on(&self, node: *mut Node, _: bool) {
        let mut served = None;
        // SAFETY: by the caller's contract the node is there and in no queue, so
        // no other thread accesses its slot, which is a receiver's.
        let value = unsafe { (*(*node).slot.cast::<Option<T>>()).take() };
        let lost = value.and_then(|value| self.0.with(|state| state.put_back(value, &mut served)));
        queue::tell(served);
        // All receivers are gone. The value is forgotten, as all values of a ULT
        // that is cut off: its destructor must not run on this thread.
        core::mem::forget(lost);
    }
}

/// Puts a value in, and wakes the receiver that it was handed to, if any.
fn put<T>(shared: &Shared<T>, value: &mut Option<T>) -> Put {
    let mut served = None;
    let outcome = loop {
        let outcome = shared.with(|state| match state.wants_room() {
            true => None,
            false => Some(state.put(value, &mut served)),
        });
        match outcome {
            Some(outcome) => break outcome,
            None => grow(shared),
        }
    };
    queue::tell(served);
    outcome
}

/// Makes an unbounded buffer larger; allocates and frees outside of the lock.
#[cold]
fn grow<T>(shared: &Shared<T>) {
    let wanted = shared.with(|state| state.len().saturating_mul(2).max(FIRST_ROOM));
    let mut larger = alloc::collections::VecDeque::with_capacity(wanted);
    shared.with(|state| state.move_into(&mut larger));
}

/// Takes a value out. If a sender waits, its value fills the room, and it is woken.
fn take<T>(shared: &Shared<T>) -> Take<T> {
    let mut served = None;
    let outcome = shared.with(|state| state.take(&mut served));
    queue::tell(served);
    outcome
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.with(|state| state.senders += 1);
        Self(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.with(|state| state.receivers += 1);
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let last = self.0.with(|state| {
            state.senders -= 1;
            state.senders == 0
        });
        if last {
            // The receivers find their slots empty.
            queue::wake_each(&self.0, |state| state.receivers_waiting.pop());
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let left = self.0.with(|state| {
            state.receivers -= 1;
            (state.receivers == 0).then(|| state.empty())
        });
        if left.is_some() {
            // The senders find their values in their slots.
            queue::wake_each(&self.0, |state| state.senders_waiting.pop());
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({} values)", self.len())
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({} values)", self.len())
    }
}

const FIRST_ROOM: usize = 16;
