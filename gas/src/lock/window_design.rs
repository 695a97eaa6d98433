//! The designs of a window's locks: what an access to targets locks.
//!
//! | design | locks | all targets | one target, shared | one target, exclusive |
//! |---|---|---|---|---|
//! | `Tree` | a group lock on a tree (`tree`, `vertex`), and one lock for each target | enter `All` | read the target's | enter `Exclusive`, write the target's |
//! | `Global` | one for the whole window | read it | read it | write it |
//! | `TwoLevel` | a word for the window and one for each target | count, poll | count, poll | count, seize, poll |
//!
//! `Tree` is the default of this crate. The other two are there for comparison:
//!
//! | | `Global` (`global`) | `TwoLevel` (`two_level`) |
//! |---|---|---|
//! | of | paper 4 of docs/papers.md, which has one lock for each window | foMPI, to which paper 4 compares |
//! | selected by | `Design::Global` of `WindowOptions::design` | `Design::TwoLevel` of the same |
//! | explored by | `gas/tests/lock/accesses.rs`, `gas/tests/lock/holds.rs` | the same |
//! | run by | `tests/window.rs`; `tests/job/locks.rs` | the same |
//! | measured by | `tsumugi bench lock`, rows of `algorithm=global` | the same, `algorithm=two_level` |

mod global;
mod plan;
mod two_level;
mod want;

pub(super) use global::would_wait_for_itself;
pub use plan::{LockDesign, LockPlan};
pub(super) use two_level::{TwoLevelClaim, window_word};
pub use want::Want;
