//! Starts the ranks of a program on this node and watches over them.
//!
//! ```text
//!  Launch ──start──► LaunchedJob ──wait──► JobOutcome
//!    │ memory files      │ pidfds: a rank has ended     the first failure:
//!    │ fork, exec        │ signals: passed on           its exit code, or
//!    ▼                   │ output: whole lines            128 + its signal
//!  ranks                 │ once a second: all quiet?
//! ```
//!
//! A rank that ends before it reported that it is done ends the job:
//!
//! ```text
//!  0 s     declared lost: peers' operations return PeerLost, sleepers wake
//!  0.3 s   SIGTERM to the ranks that are left
//!  1 s     SIGKILL, also to the processes that the ranks have started
//! ```
//!
//! (0.3 s is the default of `TSUMUGI_GRACE_TIMEOUT`; SIGKILL comes 0.7 s later.) A rank
//! that learns of the death and ends by itself in that time gets no signal.
//!
//! A [`part`](Launch::part) of a job, of which the other ranks are started
//! elsewhere, gets no memory files: its ranks meet those of their node by
//! themselves. The launcher of a part has a [`Superior`], which sees the ends of
//! all parts: the part sends it each end, and the superior sends back the dead rank
//! that ends the job; all ranks learn of this death and have at least 1.2 s to
//! react.
//!
//! A program that never attaches may be launched too, and may exit in any way.
//! Nothing outlives a job: the memory files have no name, the ranks die with the
//! thread that started them (so this thread must live until the job is over), and
//! processes that ranks have started are found by a mark in their environment: by
//! the launcher, or, if the launcher is killed, by a [`Guardian`], a child of this
//! process while the job runs. A process without the mark is not found: a daemon
//! that clears its environment, or a process of another user.

mod child;
mod error;
mod follower;
mod guardian;
mod job;
mod lines;
mod losses;
mod options;
mod outcome;
mod signals;
mod stall;
mod start;
mod superior;
mod process_scan;
mod relay;
mod watch;

pub use error::LaunchError;
pub use follower::followers_sentence;
pub use guardian::Guardian;
pub use job::LaunchedJob;
pub use lines::Stream;
pub use options::Launch;
pub use outcome::{JobOutcome, RankEnd, RankFailure, out_of_time};
pub use relay::Relay;
pub use signals::{Caught, Signals};
pub use stall::Stall;
pub use superior::{EndReport, Superior};
