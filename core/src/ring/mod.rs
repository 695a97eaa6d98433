//! Bounded queues between threads, in the caller's memory or in their own.
//!
//! | ring | producers | consumers | full is decided by |
//! |---|---|---|---|
//! | [`Mpsc`], [`MpscView`] | any number | one; a mark in the ring can say that it sleeps | the slot's sequence |
//! | [`Spsc`], [`SpscView`] | one | one | the other side's index |
//! | [`Marked`] | any number | one; a mark in the ring says that it sleeps | the head |
//!
//! Each algorithm is written once, on the view. A view lies over memory that the
//! caller gives and that may be shared with other processes: it is `#[repr(C)]` and
//! holds no pointer. The owned forms contain their slots and return a view of
//! themselves.
//!
//! ```text
//!  given memory:   tail        head, shape     slot 0   slot 1   ...
//!                  (128)         (128)         ────── a power of two ─────
//!                producers'    consumer's
//! ```
//!
//! # Example
//!
//! ```
//! use tsumugi_core::ring::Mpsc;
//!
//! let mut ring = Mpsc::<u64, 4>::new();
//! let (producer, mut consumer) = ring.split();
//! for value in 0..4 {
//!     producer.try_push(value).expect("there is room for four");
//! }
//! assert_eq!(producer.try_push(4), Err(4), "full: the value comes back");
//! assert_eq!(consumer.try_pop(), Some(0));
//! assert!(producer.try_push(4).is_ok());
//! ```
//!
//! # What it does not do
//!
//! A producer that is stopped between its claim of a slot and its publication delays
//! the producers behind it: they can push, but the consumer does not see their
//! elements. So the only work between the two steps is one copy of the element.

mod error;
mod header;
mod marked;
mod mpsc;
mod spsc;

pub use error::RingError;
pub use marked::{Marked, Pushed};
pub use mpsc::{Mpsc, MpscConsumer, MpscView};
pub use spsc::{Spsc, SpscConsumer, SpscProducer, SpscView};

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
