//! Windows: one array on every rank, and the means by which ranks agree which of
//! them may access it at which time: fences, epochs, and locks of one target or of
//! all.
//!
//! ```
//! use tsumugi::{Error, Rank};
//!
//! tsumugi::run_ranks(3, |rt| {
//!     let window = rt.window::<u64>(4)?;
//!     let next = Rank((rt.rank().0 + 1) % 3);
//!     window.put(next, 0, &[7])?;
//!     window.fence()?;
//!     let held = window.exclusive(Rank(0))?;
//!     let value = window.get(Rank(0), 1)?;
//!     window.put(Rank(0), 1, &[value + 1])?;
//!     held.release()?;
//!     rt.barrier()?;
//!     let all = window.lock_all()?;
//!     assert_eq!((window.get(Rank(0), 0)?, window.get(Rank(0), 1)?), (7, 3));
//!     all.release()?;
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | |
//! |---|---|
//! | [`Window::fence`] | all ranks' puts have landed |
//! | [`Window::post`], [`Window::start`] | epochs between some ranks |
//! | [`Window::shared`], [`Window::exclusive`], [`Window::lock_all`] | targets, locked by this rank alone or shared with others |
//! | [`Window::flush`], [`Window::flush_all`] | own puts have landed |
//!
//! A [`put`](Window::put) may land later: flushes, fences and the end of an epoch or
//! of a hold wait for it. Gets and atomics are complete when they return. Memory is
//! unified: a rank reads the values that have landed without a call.
//! [`Window::private`] is a rank's own array in the separate model.
//!
//! # The locks
//!
//! | [`Design`] | all | one target, shared | exclusively | contended |
//! |---|---|---|---|---|
//! | `Each` | a lock per rank | 1 + 1 atomics | 1 + 1 | waiters sleep |
//! | `Tree` | 1 + 1, on the own node | 1 + 1 | 2 + 2 | waiters sleep; holders of all meet at their leaf only |
//! | `Global` | 1 + 1 | 1 + 1 | 1 + 1 | all in one queue |
//! | `TwoLevel` | 1 + 1 | 1 + 1 | 2 + 2 | polls with growing pauses |
//!
//! By default `Each` up to [`EACH_MAX`] ranks, and `Tree` beyond.
//!
//! After a rank has died, each caller that waits for a lock, or would have to wait
//! later, gets [`AddrError::PeerLost`], which names the rank. Locks that are held
//! stay held.
//!
//! [`AddrError::PeerLost`]: crate::AddrError::PeerLost

mod active;
mod design;
mod options;
mod epoch_counts;
mod gate;
mod handle;
mod hold;
mod inner;
mod private;
mod puts;
mod tree_service;
mod words;

pub use active::{Epoch, Exposure};
pub use design::{Design, EACH_MAX};
pub use handle::Window;
pub use hold::Hold;
pub use options::WindowOptions;
pub use private::Private;
pub use tsumugi_gas::lock::AccessRefused;
pub use tsumugi_runtime::WindowError;
