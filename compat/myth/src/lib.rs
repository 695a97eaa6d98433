//! MassiveThreads' documented functions, over this project's user-level threads: the
//! library `libmyth.so.0`, for programs that were built with MassiveThreads' header or
//! with `include/compat/myth.h`.
//!
//! ```text
//! cargo build --release --package tsumugi-myth
//! ```
//!
//! makes `target/release/libmyth.so`, whose name for the loader is `libmyth.so.0`.
//! `docs/myth.md` lists the functions.
//!
//! Rules:
//! - The objects have the sizes and the static initializers of MassiveThreads, and all
//!   of their state lies in them: an object needs no `destroy`.
//! - The first call makes the caller a ULT, and its thread the first worker.
//! - A function returns 0 or a number of `errno.h`. What MassiveThreads calls an
//!   error that ends the program, ends it here too.
#![allow(non_camel_case_types)]

mod process;
mod thread;
mod key;

pub use key::*;
pub use process::*;
pub use thread::*;
