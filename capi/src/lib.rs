//! The C interface: user-level threads and their synchronization, schedulers of
//! other libraries, jobs of several ranks, and what these have together: memory,
//! signals, messages, collectives of groups, active messages, locks, windows, a heap,
//! deques of work and arrays. The header is
//! `include/tsumugi.h`.
//!
//! ```text
//! cargo build --release --package tsumugi-library
//! ```
//!
//! makes `libtsumugi.so` and `libtsumugi.a` in `target/release`, with the functions
//! of the package `tsumugi-acp` (`include/acp.h`) too; `libmpi_abi.so.1` (package
//! `tsumugi-mpi`) has them beside those of MPI. The headers are generated from
//! the sources of the two packages, and a test compares them; see
//! `docs/c.md`.
//!
//! Rules:
//! - A function that can fail returns `TSUMUGI_OK` or a negative code;
//!   `tsumugi_error_text` has the text of a code. A function that makes an object
//!   writes it to an out-parameter, only on success.
//! - A struct that the caller fills begins with its own size, so that later
//!   versions can add members; zero in a member is its default.
//! - A handle belongs to the caller until the function that is documented to end
//!   it.
//! - No panic crosses the border: a panic that reaches it prints its message and
//!   aborts the process, and so does a C++ exception.
#![allow(non_camel_case_types)]

mod version;
mod code;
mod parameter;
mod object;
mod body;
mod scheduler;
mod thread;
mod spawn;
mod worker;
mod park;
mod lock;
mod rwlock;
mod semaphore;
mod latch;
mod meeting;
mod once;
mod full;
mod key;
mod wait;
mod job;
mod region;
mod access;
mod operation;
mod signal;
mod private_heap;
mod comm;
mod request;
mod group;
mod reduction;
mod collective;
mod combine;
mod active_message;
mod rank_lock;
mod window;
mod epoch;
mod heap;
mod deque;
mod array;
mod array_elements;
mod array_atomics;
mod array_pages;
mod checkout;

pub use access::*;
pub use active_message::*;
pub use array::*;
pub use array_atomics::*;
pub use array_elements::*;
pub use array_pages::*;
pub use checkout::*;
pub use code::*;
pub use collective::*;
pub use combine::*;
pub use comm::*;
pub use deque::*;
pub use epoch::*;
pub use full::*;
pub use group::*;
pub use heap::*;
pub use job::*;
pub use key::*;
pub use latch::*;
pub use lock::*;
pub use meeting::*;
pub use once::*;
pub use operation::*;
pub use park::*;
pub use private_heap::*;
pub use rank_lock::*;
pub use reduction::*;
pub use region::*;
pub use request::*;
pub use rwlock::*;
pub use scheduler::*;
pub use semaphore::*;
pub use signal::*;
pub use spawn::*;
pub use thread::*;
pub use version::*;
pub use wait::*;
pub use window::*;
pub use worker::*;

pub use tsumugi_acp::process;
