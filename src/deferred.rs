//! Operations that have not begun: one value for each call, and four ways to use it.
//!
//! [`Runtime::ops`](crate::Runtime::ops), [`Comm::ops`](crate::Comm::ops) and
//! [`GlobalArray::ops`](crate::GlobalArray::ops) have methods with the names of the
//! blocking calls. Each returns a [`Deferred`], which
//! does nothing by itself:
//!
//! | the caller | uses | and gets |
//! |---|---|---|
//! | sleeps | [`wait`](Deferred::wait) | the result |
//! | awaits | `.await` | the result |
//! | goes on | [`try_begin`](Deferred::try_begin) | [`Done`](Status::Done) with the result, [`Pending`](Status::Pending) with an [`InFlight`], or [`Busy`] with the operation |
//! | leaves a function | [`then`](Deferred::then) | nothing, or [`Busy`] with the operation and the function |
//!
//! ```
//! # fn main() -> Result<(), tsumugi::Error> {
//! # tsumugi::run(|rt| {
//! use tsumugi::Status;
//! use tsumugi::ult::block_on;
//!
//! let words = rt.share::<u64>(8)?;
//! let (ops, at) = (rt.ops(), words.at(rt.rank(), 0));
//! ops.put(at, 7).wait()?;
//! let old = block_on(async { ops.fetch_add(at, 1).await })?;
//! let now = match ops.get(at).try_begin() {
//!     Ok(Status::Done(result)) => result?,
//!     Ok(Status::Pending(in_flight)) => in_flight.wait()?,
//!     Err(busy) => busy.operation.wait()?,
//! };
//! assert_eq!((old, now), (7, 8));
//! ops.get(at).then(|result| assert_eq!(result, Ok(8))).map_err(tsumugi::Error::program)
//! # })
//! # }
//! ```
//!
//! # What is done at once
//!
//! The processors of a node reach the memory of all of its ranks, so an operation on a
//! rank of the same node is done when the call returns, unless [`Path`](crate::Path) sends
//! it through a queue; so is an access to a page of an array that is in reach. Operations
//! on ranks of other nodes are in flight at first.
//!
//! # Memory
//!
//! No operation allocates. A word lies in the operation, and its result in the operation's
//! completion slot; more bytes lie in a [`Buffer`](crate::Buffer) or a vector, which the
//! operation owns until it ends. So a value that is dropped or forgotten at any time
//! leaves no memory to a device that the program uses for something else.
//!
//! A function of [`then`](Deferred::then) lies in the slot, too, beside what the operation
//! owns. A function that captures too much is an error at compile time:
//!
//! ```compile_fail,E0080
//! # fn main() -> Result<(), tsumugi::Error> {
//! # tsumugi::run(|rt| {
//! let words = rt.share::<u64>(8)?;
//! let large = [0u64; 20];
//! let get = rt.ops().get(words.at(rt.rank(), 0));
//! let _ = get.then(move |result| assert_eq!(result, Ok(large[3])));
//! # Ok(()) })
//! # }
//! ```
//!
//! # Operations of several steps
//!
//! An operation that takes several steps with waits between them (a put of a buffer and
//! its signal, an array's page that is elsewhere, a barrier) is carried out by a ULT of
//! the rank, if it does not end at once. The ULT takes a descriptor and a stack from the
//! pools of its scheduler.

mod busy;
mod begin;
mod buffer;
mod carried;
mod word;
mod until;
mod steps;
mod view;

pub use begin::{Awaited, Begin, Deferred, InFlight, Status};
pub(crate) use begin::{Begun, Flight, sealed::Internal};
pub use buffer::OnBuffer;
pub use busy::Busy;
pub use carried::Carried;
pub(crate) use carried::{OfRank, Steps, carry_out};
pub use steps::{Barrier, PutSignal};
pub use until::WaitUntil;
pub use view::Ops;
pub use word::{Loaded, Nothing, OnWord};
pub(crate) use word::Value;
