//! The descriptor of a ULT: its closure and result, its state, and its joiner.
//!
//! ```text
//!             first run            sleep: commit true
//!  Free ─► New ───────► Running ─────────────────────► Sleeping
//!   ▲       ▲              │ ▲ │ yield                    │ wake
//!   │       └── spawn      │ │ └──────► Ready ◄───────────┘
//!   │                      │ └────────────┘ next run
//!   │  handle and ULT      ▼ end
//!   └──────────────────── Done
//!
//!  Running ──join of an unstarted child──► Lending ──the child's end──► Running
//! ```
//!
//! `Ready` and `Running` are one value of the state, and the workers' data tell which
//! of the two it is. So a switch from one ULT to the next changes the state of
//! neither. A ULT that parks on the only worker shows that in its park word alone.
//!
//! The right to access a task's fields depends on its state. The fields of a
//! `Running` task belong to its worker; those of a `New` or `Ready` task to the
//! thread that takes it from a queue; those of a `Sleeping` task to no thread until
//! its waker is used, and then to the thread that uses it; those of a `Lending` task
//! to the child that runs in its place. The ULT writes the result, and the join word
//! determines which side reads it:
//!
//! ```text
//!   join word   ALONE ──join──► a Joiner ──end──► FINISHED: wake the joiner
//!                 │ ──end───► FINISHED            the handle takes the result
//!                 └ ──detach► DETACHED ──end────► FINISHED: the end drops the result
//! ```
//!
//! One swap on each side decides. A child that runs in its joiner's place, see
//! `join`, needs neither. Descriptors are slots of a `slab` and are never unmapped
//! while the scheduler lives, so a late wake hits a descriptor, perhaps of another
//! ULT, but never freed memory.
//!
//! A descriptor is two cache lines. The first has all that a yield looks at, including
//! the place where the ULT left off, and the fields that queues, switches and wakes
//! change. The second has the closure, and the fields that a waker reads, which do not
//! change while the ULT sleeps. So a yield among many ULTs touches one line of each
//! ULT's descriptor and one of its frames. Data that a ULT needs only once it has a
//! stack lie at the top of the stack, in its [`StackHead`](crate::stack::StackHead).
//! Data that few ULTs have, and data that all descriptors of a chunk share
//! ([`Origin`]), lie elsewhere.

mod descriptor;
mod end;
mod join_word;
mod origin;
mod particulars;
mod request;
mod run;
mod state;
mod state_word;
mod traits;

pub(crate) use descriptor::Task;
pub(crate) use join_word::{HandleState, Joiner};
pub(crate) use origin::Origin;
pub(crate) use request::{Follow, SuspendRequest};
pub use state::UltState;
pub(crate) use traits::Traits;
