//! Messages between ranks: sent and received by source and tag.
//!
//! | | |
//! |---|---|
//! | [`Comm::send`], [`Comm::recv`], [`Comm::recv_vec`], [`Comm::send_recv`] | block |
//! | [`Comm::scope`]: [`Scope::isend`], [`Scope::irecv`] | nonblocking, with borrowed buffers |
//! | [`Comm::isend`], [`Comm::irecv`] | nonblocking, with buffers that the handle owns |
//! | [`Comm::probe`], [`Comm::try_probe`] | look for a message without receiving it |
//!
//! Within a node, data that is sent from or received in the memory of a rank's
//! partition is copied once, by one of the two ranks: its [`Buffer`]s, data on ULT
//! stacks, and all of its heap if the program uses
//! [`GlobalHeap`](crate::GlobalHeap) as its global allocator. A short message that
//! comes before its receive is copied twice. Other memory can be used, too: if both
//! ends lie outside of the partitions, the data is copied twice, and from 96 KiB on
//! (16 KiB between ranks that share a core) once by the kernel, where it permits
//! `process_vm_readv`.
//!
//! ```
//! use tsumugi::{Error, Rank, Source, Tags};
//!
//! fn main() -> Result<(), Error> {
//!     tsumugi::run(|rt| {
//!         let comm = rt.comm();
//!         comm.send(Rank(0), 7, &[f64::from(rt.rank().0)])?;
//!         if rt.rank() == Rank(0) {
//!             for _ in rt.ranks() {
//!                 let mut value = [0.0];
//!                 let received = comm.recv(Source::Any, Tags::Is(7), &mut value)?;
//!                 println!("{} from {}", value[0], received.source);
//!             }
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! The end: when the job has ended, no message moves any more. Calls of OS threads that
//! are still waiting end with [`MessageError::Ended`](crate::MessageError::Ended) as
//! soon as no rank can access their buffers, and so do later calls.
//!
//! Progress: messages move while a ULT of the rank waits for a message, or while a
//! worker is idle. Long messages also move when all workers compute.
//!
//! [`Buffer`]: crate::Buffer

mod communicator;
mod owned;
mod raw;
mod request;
mod scope;
mod ops;

pub use communicator::Comm;
pub use ops::{CommOps, OfMessage, Receives, Sends};
pub use owned::{Owned, OwnedValues};
pub use request::{Keep, Message, Receiving, Sending};
pub use scope::Scope;
