//! The C interface: user-level threads, what they wait for, schedulers of
//! somebody else's, jobs of several ranks, and the memory of all ranks (feature
//! `capi`; header `include/tsumugi.h`).
//!
//! ```text
//! cargo rustc --release --lib --features capi --crate-type cdylib,staticlib -- \
//!     -C link-arg=-Wl,-soname,libtsumugi.so.0
//! ```
//!
//! makes `libtsumugi.so` and `libtsumugi.a` in `target/release`. The header is
//! made of these files, and a test compares it; see `include/README.md`.
//!
//! [`acp`] is a second interface, under ACP's names: `include/acp.h`.
//!
//! Rules:
//! - A function that can fail answers `TSUMUGI_OK` or a negative code, whose
//!   text `tsumugi_error_text` has; what it makes goes to an out-parameter,
//!   which is written only on success.
//! - A struct that the caller fills begins with its own size, so that it may
//!   grow; zero in a member is its default.
//! - A handle is the caller's until the function that is said to end it.
//! - No panic crosses the border: one that reaches it prints what was broken
//!   and aborts, and so does a C++ exception.
#![allow(non_camel_case_types)]

mod code;
mod parameter;
mod scheduler;
mod thread;
mod park;
mod lock;
mod key;
mod wait;
mod caller;
mod job;
mod region;
mod access;
mod operation;
pub mod acp;

pub use access::*;
pub use code::*;
pub use job::*;
pub use key::*;
pub use lock::*;
pub use operation::*;
pub use park::*;
pub use region::*;
pub use scheduler::*;
pub use thread::*;
pub use wait::*;
