//! Hands the memory files over where a site's launcher started the ranks.
//!
//! Such processes have no tsumugi launcher as their parent, from which they could
//! inherit descriptors. The first rank of a node leads: it makes the files, listens
//! on an abstract unix socket with a name made of user, node and job, and sends all
//! descriptors to every other rank. Then the socket is closed; the file system
//! never contained it.
//!
//! ```text
//!  leader                                   the others
//!  bind, listen ◄──────── connect ───────── again and again, within the limit
//!  user? ──────────────────────────────────  user?
//!        ◄── hello: job, node, rank, size ──
//!        ─── verdict, shape, policy ──────►
//!        ─── descriptors, 253 at a time ──►  map, attach
//! ```
//!
//! Each end asks the kernel which user runs the process at the other end. A rank
//! refuses a leader of another user that has taken the name, and a leader refuses a
//! rank of another user. Launchers draw names at random; a name that a user gives
//! (`TSUMUGI_JOB`) is as hard to guess as the user makes it, and a process of
//! another user that guesses it can keep the job from starting, no more. The caller
//! must know which ranks share a node, by [`NodeId`]s that it compares: the same
//! kernel, and sockets of the same network namespace.
//!
//! Progress: blocking, within the limit.

mod digest;
mod error;
mod exchange;
mod hello;
mod meeting;
mod node;

pub use error::{JoinVerdict, MeetError};
pub use meeting::Meeting;
pub use node::NodeId;
