//! MassiveThreads' documented functions, over this project's user-level threads: the
//! library `libmyth.so.0`, for programs that were built with MassiveThreads' header or
//! with `include/compat/myth.h`.
//!
//! ```text
//! cargo build --release --package tsumugi-myth
//! ```
//!
//! makes `target/release/libmyth.so`, whose name for the loader is `libmyth.so.0`.
//! `docs/c.md` says what is there, and what differs.
//!
//! Rules:
//! - The objects have the sizes and the static initializers of MassiveThreads, and all
//!   of their state lies in them: an object needs no `destroy`.
//! - The first call makes the caller a ULT, and its thread the first worker.
//! - A function returns 0 or a number of `errno.h`. What MassiveThreads calls an
//!   error that ends the program, ends it here too.
#![allow(non_camel_case_types)]

mod bind;
mod process;
mod thread;
mod attr;
mod many;
mod mutex;
mod cond;
mod felock;
mod meeting;
mod rwlock;
mod once;
mod key;
mod wls;
mod sleep;

pub use attr::*;
pub use cond::*;
pub use felock::*;
pub use key::*;
pub use many::*;
pub use meeting::*;
pub use mutex::*;
pub use once::*;
pub use process::*;
pub use rwlock::*;
pub use sleep::*;
pub use thread::*;
pub use wls::*;
