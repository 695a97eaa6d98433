//! A queue with many producers and one consumer: the sequence number of each slot
//! decides which side may use the slot.
//!
//! ```text
//!  slot i, lap k (position p = k * N + i):
//!
//!    sequence = p          free for the producer that claims position p
//!      │ claim: CAS tail p → p + 1, write the element
//!      ▼ publish: Release
//!    sequence = p + 1      the consumer's, when its head is p
//!      │ read the element
//!      ▼ recycle: Release
//!    sequence = p + N      free for the next lap
//! ```
//!
//! A producer that finds a sequence smaller than its position has met the element of
//! the last lap. No producer has claimed the position yet, so the producer's tail
//! was not old, and the ring is full. If the sequence is greater, the tail was old.
//! Producers never access head.
//!
//! The consumer accesses tail only when it is about to sleep: it sets the highest
//! bit, by an exchange that succeeds only if the ring is empty. From its own
//! exchange the next producer then learns that it must wake the consumer. So a push
//! to a consumer that is awake needs neither a fence nor a check of a second word
//! ([`Marked`](super::Marked) is the paper's form).
//!
//! ```text
//!  tail   63               62 .. 0
//!         consumer sleeps  elements ever claimed
//! ```
//!
//! Progress: `try_push` is lock-free, `try_pop` wait-free.
//!
//! # References
//!
//! Dmitry Vyukov, "Bounded MPMC queue", 1024cores.net, of which this is the
//! single-consumer half.

mod slot;
mod view;
mod consumer;
mod owned;

pub use consumer::MpscConsumer;
pub use owned::Mpsc;
pub use view::MpscView;
