//! The end of a channel into which values go.

use super::error::{SendError, SendWithinError, TrySendError};
use super::future::Send;
use super::shared::{ChannelShared, put};
use super::state::Put;
use crate::limit::Limit;
use crate::sync::queue::{self, WaitNode, WaitSite};
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use tsumugi_core::wait::Reason;

/// A sender: one of the ends into which values go.
pub struct Sender<T>(pub(super) Arc<ChannelShared<T>>);

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

/// The place where senders wait.
struct Sending<'a, T>(&'a ChannelShared<T>);

impl<T> WaitSite for Sending<'_, T> {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(self.0, node, |state| &mut state.senders_waiting, |_| {}) }
    }

    /// There is nothing to pass on: the value was sent, or stays with the sender.
    unsafe fn pass_on(&self, _: *mut WaitNode, _: bool) {}
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.with(|state| state.senders += 1);
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

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({} values)", self.len())
    }
}
