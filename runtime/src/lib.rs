//! A rank of a job: its start, the services that it runs for other ranks, its messages
//! and its network.
//!
//! The interface is for the facade (the package `tsumugi`) and for the C interfaces. It
//! has none of the rules of the facade: keys of any memory, words without a type. It
//! changes without notice; programs use the facade.
//!
//! | | |
//! |---|---|
//! | [`RankHandle`], [`Route`](route::Route) | a rank, and the paths of its operations |
//! | [`Error`], [`config`], [`inside`] | errors, settings, views from outside |
//! | [`job`], [`start`] | finding the job; the life of a rank |
//! | [`node`], [`service`] | the parts of a rank, and the services that its idle workers run: active messages, messages, the global memory |
//! | [`net`] | the network to the ranks of other nodes |
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `testing` | a simulated network, and the counters and switches with which tests observe a rank; no default |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod affinity;
pub mod variable;
pub mod own_rank;
pub mod error;
pub mod panic;
pub mod inside;
pub mod config;
pub mod guest;
mod deadline;
mod cas_loop;
pub mod lasting;
mod engine_call;
mod completion_memory;
mod block_pool;
pub mod host_operations;
pub mod node_queue;
pub mod leaked_slice;
mod endpoint_card;
pub mod node_ranks;
mod death;
mod word_wait;
mod peers;
pub mod net;
pub mod service;
pub mod node;
mod node_barrier;
mod progress_thread;
mod handle;
pub mod route;
pub mod carried;
pub mod signal_wait;
pub mod job;
pub mod start;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use error::{ArrayError, Error, MessageError, NoNetwork, WindowError};
pub use handle::RankHandle;
