//! Signals: a ULT can wait for a word, and a put or an atomic of any rank that
//! changes the word wakes the ULT.
//!
//! A thread can wait for any aligned 8-byte word of registered memory. Each rank has
//! a *parking lot* (a table of waiters by the address of the word), like a
//! futex without the kernel:
//!
//! ```text
//!   shared with peers (ParkingLot)       the owner's own (Waiters)
//!   waiting[bucket]  how many park here  parked[bucket] ─► node ─► node
//!   fired            one bit a bucket
//!
//!   waiter (owner)                     notifier (any rank)
//!   1 waiting[b] + 1                   1 change the word
//!   2 push the node on parked[b]       2 waiting[b] = 0? done: one load
//!   3 look at the word again           3 fired |= b, ring the owner's bells
//!   4 sleep                            owner, drain: take parked[b], look at
//!                                      each word, wake or put back
//! ```
//!
//! Step 1 comes before step 3 on the left, and step 1 before step 2 on the right,
//! all sequentially consistent (the Dekker pattern): the waiter sees the change, or
//! the notifier sees the waiter. No pointer crosses processes, and a notifier that
//! dies half-way leaves no lock taken. When a rank has died, the change of a word
//! may never come: every wait then ends with [`AddrError::PeerLost`](crate::mem::AddrError::PeerLost).
//!
//! Progress: `announce` is wait-free, `drain` and parking are lock-free.

mod parking_lot;
mod detached;

pub use detached::DetachedWaiter;
pub use parking_lot::{ParkingLot, Until, Waiters};
