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
//! | first of all | |
//! |---|---|
//! | [`Member`], [`SpaceConfig`] | a rank of the node, and the sizes of its partition |
//! | [`Direct`] | loads, stores and atomics on the memory of all ranks |
//! | [`Heap`], [`ExposedArea`] | memory of the rank alone, and memory that peers reach |
//! | [`launch`], [`attach()`] | starts ranks; makes a process a rank |
//! | [`Detector`] | the failure detector |
//!
//! ```
//! use std::alloc::Layout;
//! use tsumugi_core::backend::{LoadStore, execute};
//! use tsumugi_core::mem::{Access, RemoteAddr, Width};
//! use tsumugi_core::op::Op;
//! use tsumugi_pvas::{Member, SpaceConfig};
//!
//! // Two ranks that are threads of this process. Rank 1 shows a word to rank 0.
//! let config = SpaceConfig::default().heap_bytes(64 << 20).stack_bytes(16 << 20);
//! let members = Member::threads(2, &config)?;
//! let memory = members[1].exposed().allocate_zeroed(Layout::new::<u64>()).unwrap();
//! // SAFETY: fresh exposed memory of the rank, which is not freed.
//! let region = unsafe { members[1].direct().register(memory, 8, Access::ReadWrite)? };
//!
//! let at = RemoteAddr { rank: members[1].rank(), key: region.key, offset: 0 };
//! execute(&members[0].direct(), &Op::put_word(at, Width::W8, 7))?;
//! assert_eq!(execute(&members[1].direct(), &Op::get_word(at, Width::W8))?, 7);
//! members.iter().for_each(Member::finish);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file in this list uses only files above it:
//!
//! | module | what it is |
//! |---|---|
//! | `sys` | the system calls |
//! | [`system`] | the oldest kernel and C library |
//! | [`mod@thread`] | starts OS threads |
//! | [`own_process`] | the process of a rank, which a child that it forks is not |
//! | [`config`] | every number and every environment variable |
//! | [`futex`] | a futex on a word that other processes see |
//! | [`fence`] | an asymmetric fence between processes |
//! | [`mod@copy`] | how bytes move between partitions |
//! | [`distance`] | how far ranks are apart, and the thresholds for messages between them |
//! | [`distance_probe`] | notices that the distance has changed |
//! | [`populate`] | allocates pages before their first use |
//! | [`partition`] | the layout of one partition |
//! | [`heap`] | the allocator of the rank's own memory |
//! | [`GlobalHeap`] | the global allocator of a program |
//! | [`exposed`] | the allocator of the memory that peers reach |
//! | [`space`] | the partitions of all ranks, mapped |
//! | [`cma`] | copies outside of partitions, by the kernel |
//! | [`numa`] | the memory node of a partition's pages |
//! | [`meet`] | hands the partitions over where a site's launcher started the ranks |
//! | [`nodes`] | which rank of the job is on which node |
//! | [`direct`] | the load/store backend |
//! | [`first_failure`] | the rank that failed first, as the launcher reports it |
//! | [`mod@attach`] | how a process becomes a rank |
//! | `fencing` | ends a rank that was held off its processor for too long |
//! | [`detector`] | the failure detector where tsumugi's launcher does not watch |
//! | [`calibrate`] | measures distances and thresholds |
//! | [`boot`] | bootstrap within a node |
//! | [`launch`] | starts ranks and watches over them |
//!
//! Ranks are numbered as in the job. The ranks of this node also have a *local*
//! number, their place on the node; only a [`Space`] and its parts use local
//! numbers.
//!
//! One process can also hold all ranks as threads ([`attach::Member::threads`]).

mod sys;
pub mod system;
pub mod thread;
pub mod own_process;
pub mod config;
pub mod futex;
pub mod fence;
pub mod copy;
pub mod distance;
pub mod distance_probe;
pub mod populate;
pub mod partition;
pub mod heap;
mod global;
pub mod exposed;
pub mod space;
pub mod cma;
pub mod numa;
pub mod meet;
pub mod nodes;
pub mod direct;
pub mod first_failure;
pub mod attach;
mod fencing;
pub mod detector;
pub mod calibrate;
pub mod boot;
pub mod launch;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;

pub use attach::{AttachError, Member, attach};
pub use config::{ConfigError, HugePages, Peers, Policy, Populate, SpaceConfig};
pub use detector::{Detector, Rest};
pub use direct::Direct;
pub use distance::{Distance, Thresholds};
pub use distance_probe::DistanceProbe;
pub use exposed::ExposedArea;
pub use first_failure::FirstFailure;
pub use futex::SharedFutex;
pub use global::GlobalHeap;
pub use heap::Heap;
pub use launch::{JobOutcome, Launch, LaunchError, LaunchedJob};
pub use meet::{MeetError, Meeting, NodeId};
pub use nodes::Nodes;
pub use partition::{ControlBlock, RankState};
pub use space::{Space, SpaceError};
