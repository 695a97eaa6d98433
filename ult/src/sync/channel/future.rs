//! The futures of a channel's ends.
//!
//! A future that has to wait is a node in the same queue as the sleepers. When
//! the future is dropped, it takes the node out, and passes on the value that it
//! was handed in the meantime.
//!
//! The clone and the drop of a waker may run any code, also calls on the channel. So
//! wakers are cloned and dropped outside of the channel's lock.

use super::error::{RecvError, SendError};
use super::shared::{ChannelShared, put, take};
use super::state::{Put, Take};
use crate::sync::queue::{self, WaitNode, Wake};
use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Sends one value, see [`Sender::send_async`](super::Sender::send_async).
pub struct Send<'a, T> {
    shared: &'a ChannelShared<T>,
    value: Option<T>,
    node: WaitNode,
    waits: bool,
    _pinned: PhantomPinned,
}

/// Receives one value, see
/// [`Receiver::recv_async`](super::Receiver::recv_async).
pub struct Recv<'a, T> {
    shared: &'a ChannelShared<T>,
    value: Option<T>,
    node: WaitNode,
    waits: bool,
    _pinned: PhantomPinned,
}

// SAFETY: the node's pointers are followed under the channel's lock only.
unsafe impl<T: core::marker::Send> core::marker::Send for Send<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: core::marker::Send> core::marker::Send for Recv<'_, T> {}

impl<'a, T> Send<'a, T> {
    pub(super) fn new(shared: &'a ChannelShared<T>, value: T) -> Self {
        let (node, _pinned) = (WaitNode::new(), PhantomPinned);
        Self { shared, value: Some(value), node, waits: false, _pinned }
    }
}

impl<'a, T> Recv<'a, T> {
    pub(super) fn new(shared: &'a ChannelShared<T>) -> Self {
        Self { shared, value: None, node: WaitNode::new(), waits: false, _pinned: PhantomPinned }
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of the future except the value, which is
        // not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let mut wake = Some(Wake::Future(context.waker().clone()));
        if this.waits {
            let node = &raw mut this.node;
            // SAFETY: the node is in this pinned future, and was pushed to that
            // queue.
            if this.shared.with(|state| unsafe { state.senders_waiting.renew(node, &mut wake) }) {
                return Poll::Pending;
            }
            this.waits = false;
            // The receiver that took the node out took the value. If the value is
            // still here, the last receiver took the node out.
            return Poll::Ready(this.value.take().map_or(Ok(()), |value| Err(SendError(value))));
        }
        if let Put::Full = put(this.shared, &mut this.value) {
            let mut served = None;
            let (node, slot) = (&raw mut this.node, &raw mut this.value);
            let outcome = this.shared.with(|state| {
                // SAFETY: no other thread has a pointer to the value yet. The
                // future is pinned, and takes the node out before it is gone.
                unsafe {
                    let outcome = state.put(&mut *slot, &mut served);
                    if let Put::Full = outcome {
                        *node = WaitNode::new().with_slot(slot.cast());
                        state.senders_waiting.push(node, wake.take().expect("not pushed yet"));
                    }
                    outcome
                }
            });
            queue::tell(served);
            if let Put::Full = outcome {
                this.waits = true;
                return Poll::Pending;
            }
        }
        Poll::Ready(this.value.take().map_or(Ok(()), |value| Err(SendError(value))))
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: as for `Send`.
        let this = unsafe { self.get_unchecked_mut() };
        let mut wake = Some(Wake::Future(context.waker().clone()));
        if this.waits {
            let node = &raw mut this.node;
            // SAFETY: the node is in this pinned future, and was pushed to that
            // queue.
            if this.shared.with(|state| unsafe { state.receivers_waiting.renew(node, &mut wake) }) {
                return Poll::Pending;
            }
            this.waits = false;
            return Poll::Ready(this.value.take().ok_or(RecvError));
        }
        match take(this.shared) {
            Take::Value(value) => return Poll::Ready(Ok(value)),
            Take::Disconnected => return Poll::Ready(Err(RecvError)),
            Take::Empty => {}
        }
        let mut served = None;
        let (node, slot) = (&raw mut this.node, &raw mut this.value);
        let outcome = this.shared.with(|state| {
            let outcome = state.take(&mut served);
            if let Take::Empty = outcome {
                // SAFETY: the future is pinned, and takes the node out before it
                // is gone.
                unsafe {
                    *node = WaitNode::new().with_slot(slot.cast());
                    state.receivers_waiting.push(node, wake.take().expect("not pushed yet"));
                }
            }
            outcome
        });
        queue::tell(served);
        match outcome {
            Take::Value(value) => Poll::Ready(Ok(value)),
            Take::Disconnected => Poll::Ready(Err(RecvError)),
            Take::Empty => {
                this.waits = true;
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Send<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            let node = &raw mut self.node;
            // SAFETY: the node is in this future, and was pushed to that queue.
            // If it is no longer in the queue, a receiver has taken the value, or
            // the value is dropped with the future.
            self.shared.with(|state| unsafe { state.senders_waiting.remove(node) });
        }
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        if !self.waits {
            return;
        }
        let (node, slot, mut served) = (&raw mut self.node, &raw mut self.value, None);
        let lost = self.shared.with(|state| {
            // SAFETY: the node is in this future, and was pushed to that queue.
            // After the node is out, no other thread accesses the slot.
            unsafe {
                state.receivers_waiting.remove(node);
                (*slot).take().and_then(|value| state.put_back(value, &mut served))
            }
        });
        queue::tell(served);
        drop(lost);
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Send")
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recv")
    }
}
