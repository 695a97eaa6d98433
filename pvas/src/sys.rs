//! The system calls: every `libc` call of this crate but the allocator's.
//!
//! | file | calls for |
//! |---|---|
//! | `check` | the error number of a call |
//! | `memory` | memory files and mappings |
//! | `remote` | another process's memory |
//! | `futex` | sleeping on a word, barriers in other processes |
//! | `process` | limits, processors, descriptors of processes |
//! | `signal` | signals |
//! | `descriptor` | waiting for descriptors, pipes |
//! | `socket` | descriptors that go through a socket |
//! | `forked` | calls that a forked process may make |

mod check;
mod descriptor;
pub mod forked;
mod futex;
mod memory;
mod process;
mod remote;
mod signal;
mod socket;

pub use descriptor::*;
pub use futex::*;
pub use memory::*;
pub use process::*;
pub use remote::*;
pub use signal::*;
pub use socket::*;
