//! Operations that have not begun: one value for each call, and four ways to use it.
//!
//! [`Runtime::ops`](crate::Runtime::ops), [`Comm::ops`](crate::Comm::ops),
//! [`Group::ops`](crate::Group::ops), [`GlobalArray::ops`](crate::GlobalArray::ops) and
//! [`Global::ops`](crate::Global::ops) have methods with the names of the blocking calls.
//! Each returns a [`Deferred`], which does nothing by itself:
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
//! # All operations
//!
//! Each of these has all four ways, and allocates in none of them. The columns say who
//! carries out an operation that is not done at once, and what happens to it if its
//! [`InFlight`] or its future is dropped; what the operation owns is dropped when it ends.
//!
//! | | operations | in flight with | dropped in flight |
//! |---|---|---|---|
//! | `rt.ops()` | `get`, `put`, all atomics, `signal` | the network or the queue; an atomic that a device lacks: a ULT | goes on |
//! | | `get_buffer`, `put_buffer` | the network or the queue, with the buffer | goes on |
//! | | `put_signal` | a ULT, with the buffer | goes on |
//! | | `barrier` | a ULT | goes on |
//! | | `wait_until` | no thread: a signal ends it | ends |
//! | `comm.ops()` | `send` | the workers, with the values | goes on |
//! | | `recv` | the workers, with the room | takes no message that has not begun to come |
//! | `group.ops()` | `barrier`, `broadcast`, `reduce`, `allreduce`, `scan`, `exscan`, `gather`, `scatter`, `allgather`, `alltoall`, `reduce_scatter`, and `gather_v`, `scatter_v`, `allgather_v`, `alltoall_v`, `reduce_scatter_v` | the workers, with the values and the room for the result | goes on: other members wait for it |
//! | `array.ops()` | `get`, `put`, all atomics | a ULT, if the page is not in reach | goes on |
//! | `global.ops()` | `get`, `put`, all atomics | a ULT, if the word is not at hand | goes on |
//! | | `copy`, `request` | the workers of the ranks at its ends | goes on |
//!
//! The first operations of a rank make its tables: 512 operations can be in flight that no
//! network carries out. Later operations use them again. A collective keeps scratch memory
//! with its group, as much as the longest one needed.
//!
//! # A function for the result
//!
//! A function gets the result on the thread that ends the operation. It may begin the next
//! operation, but not wait for one:
//!
//! ```
//! # fn main() -> Result<(), tsumugi::Error> {
//! # tsumugi::run(|rt| {
//! use std::sync::{Arc, mpsc};
//! use tsumugi::group::Sum;
//!
//! let (world, words) = (rt.world(), rt.share::<u64>(1)?);
//! let at = words.at(rt.rank(), 0);
//! let (tell, told) = mpsc::channel();
//! // A function has few bytes, and a handle of the rank is large.
//! let theirs = Arc::new(rt.clone());
//! // The sum of all ranks goes into a word of this one; then the program is told.
//! let sum = world.ops().allreduce(vec![u64::from(rt.rank().0) + 1], Sum);
//! let begun = sum.then(move |sum| {
//!     let sum = sum.expect("no rank has died")[0];
//!     let put = theirs.ops().put(at, sum).then(move |put| tell.send(put).expect("awaited"));
//!     put.expect("there is room");
//! });
//! begun.map_err(tsumugi::Error::program)?;
//! while told.try_recv().is_err() {
//!     tsumugi::ult::yield_now();
//! }
//! let ranks = u64::from(rt.size());
//! assert_eq!(rt.get(at)?, ranks * (ranks + 1) / 2);
//! # rt.barrier()
//! # })
//! # }
//! ```
//!
//! # The end of the rank
//!
//! After `main` has returned, a rank takes part in what it has begun: it ends when its collectives,
//! and the operations that ULTs carry out, have ended. If `main` fails or panics, they end
//! with [`AddrError::Ended`](crate::AddrError::Ended), in threads that wait and in functions
//! alike, and so do those that a thread begins later.
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
pub(crate) use word::Value;
pub use word::{Loaded, Nothing, OnWord};
