//! Processes of one node that share an address space.
//!
//! Every rank owns a *partition*: a memory file that is mapped at the same
//! place in every process of the node, so that a peer's memory is reached by
//! ordinary loads, stores and CPU atomics:
//!
//! ```text
//!  base                base + (1 << shift)     base + (2 << shift)
//!  ├─ rank 0 ────────┬╌╌┼─ rank 1 ────────┬╌╌┼─ ...
//!  │ control starter │  │                 │
//!  │ exposed         │  │                 │     ╌╌ not mapped
//!  │ heap     stacks │  │                 │
//! ```
//!
//! A file uses only files above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | `sys` | the system calls |
//! | [`config`] | every number and every environment variable |
//! | [`futex`] | sleeping on a word that other processes see |
//! | [`fence`] | a fence in two halves between processes |
//! | [`mod@copy`] | how bytes move between partitions |
//! | [`distance`] | how far ranks are apart, and which way messages go there |
//! | [`gauge`] | noticing that the distance has changed |
//! | [`populate`] | pages before their first use |
//! | [`partition`] | what lies where in one partition |
//! | [`heap`] | the allocator of what is the rank's own |
//! | [`GlobalHeap`] | the allocator of a whole program |
//! | [`exposed`] | the allocator of what peers reach |
//! | [`space`] | the partitions of all ranks, mapped |
//! | [`cma`] | copies outside of partitions, by the kernel |
//! | [`meet`] | handing the partitions over without a launcher of ours |
//! | [`nodes`] | which rank of the job is on which node |
//! | [`direct`] | the load/store backend |
//! | [`culprit`] | whose death ended the job, as its launcher says |
//! | [`mod@attach`] | being a rank |
//! | `held` | ending a rank that was held off for too long |
//! | [`detector`] | noticing deaths where no launcher of ours watches |
//! | [`calibrate`] | measuring distances and ways |
//! | [`boot`] | finding each other |
//! | [`launch`] | starting ranks and watching over them |
//!
//! Ranks are the job's. Those of this node are also numbered by their place on
//! it: a *local* number, which a [`Space`] and what it is made of speak, and
//! nobody else.
//!
//! One process can also hold all ranks as threads ([`attach::Member::threads`]).

mod sys;
pub mod config;
pub mod futex;
pub mod fence;
pub mod copy;
pub mod distance;
pub mod gauge;
pub mod populate;
pub mod partition;
pub mod heap;
mod global;
pub mod exposed;
pub mod space;
pub mod cma;
pub mod meet;
pub mod nodes;
pub mod direct;
pub mod culprit;
pub mod attach;
mod held;
pub mod detector;
pub mod calibrate;
pub mod boot;
pub mod launch;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;

pub use attach::{AttachError, Member, attach};
pub use config::{Config, ConfigError, HugePages, Peers, Policy, Populate};
pub use culprit::Culprit;
pub use detector::{Detector, Rest};
pub use direct::Direct;
pub use distance::{Distance, Thresholds};
pub use exposed::ExposedArea;
pub use futex::SharedFutex;
pub use gauge::Gauge;
pub use global::GlobalHeap;
pub use heap::Heap;
pub use launch::{Job, Launch, LaunchError, Outcome};
pub use meet::{MeetError, Meeting, NodeId};
pub use nodes::Nodes;
pub use partition::{Control, State};
pub use space::{Space, SpaceError};
