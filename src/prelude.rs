//! The names with which a program begins.
//!
//! ```
//! use tsumugi::prelude::*;
//!
//! #[tsumugi::main]
//! fn main(rt: &Runtime) -> Result<(), Error> {
//!     let words = rt.share::<u64>(1)?;
//!     rt.signal(words.at(Rank(0), 0), Signal::Add(1))?;
//!     if rt.rank() == Rank(0) {
//!         rt.wait_until(words.at(Rank(0), 0), Until::AtLeast(rt.size().into()))?;
//!     }
//!     rt.barrier()
//! }
//! ```

pub use crate::{
    Buffer, Comm, Config, Error, Group, Plain, Rank, Runtime, Shared, Signal, Source, Tags, Until,
};
