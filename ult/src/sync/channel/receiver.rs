//! The end of a channel from which values come.

use super::error::{RecvError, RecvWithinError, TryRecvError};
use super::future::Recv;
use super::shared::{ChannelShared, take};
use super::state::Take;
use crate::limit::Limit;
use crate::sync::queue::{self, WaitNode, WaitSite};
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use tsumugi_core::wait::Reason;

/// A receiver: one of the ends from which values come. Each value goes to one
/// receiver.
pub struct Receiver<T>(pub(super) Arc<ChannelShared<T>>);

/// An iterator over the values that come until the channel is disconnected.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

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

/// The place where receivers wait.
struct Receiving<'a, T>(&'a ChannelShared<T>);

impl<T> WaitSite for Receiving<'_, T> {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(self.0, node, |state| &mut state.receivers_waiting, |_| {}) }
    }

    unsafe fn pass_on(&self, node: *mut WaitNode, _: bool) {
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

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.with(|state| state.receivers += 1);
        Self(self.0.clone())
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

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({} values)", self.len())
    }
}
