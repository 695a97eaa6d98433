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
mod receiver;
mod sender;
mod shared;
mod state;

pub use error::{
    RecvError, RecvWithinError, SendError, SendWithinError, TryRecvError, TrySendError,
};
pub use future::{Recv, Send};
pub use receiver::{Iter, Receiver};
pub use sender::Sender;

use crate::lock::Lock;
use alloc::sync::Arc;
use state::ChannelState;

/// Makes a channel that keeps up to `capacity` values; `send` waits while it is
/// full. With a capacity of 0, `send` waits for a receiver.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    ends(ChannelState::bounded(capacity))
}

/// Makes a channel that keeps any number of values: `send` never waits, and
/// allocates now and then.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    ends(ChannelState::unbounded())
}

fn ends<T>(state: ChannelState<T>) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Lock::new(state));
    (Sender(shared.clone()), Receiver(shared))
}
