//! Networks inside of one process, which need no device and no library.
//!
//! | module | what it is |
//! |---|---|
//! | [`hub`] | a network of threads, with faults; an example of another crate's network |
//! | [`verbs`] | simulated devices of libibverbs, for tests and for counting instructions |

pub mod hub;
pub mod verbs;
