//! Sleeping and waking: the interface between communication and the schedulers of
//! its callers.
//!
//! A caller that must wait passes a closure to its scheduler through
//! [`Wait::sleep`]. The scheduler first switches away from the caller's stack and
//! only then runs the closure, which publishes the [`Waker`] where the event will
//! find it. So a thread that is still running can never be woken. The closure also
//! makes the final decision: if the event came meanwhile, it returns false and the
//! caller continues at once.
//!
//! ```text
//!  caller            scheduler                    event
//!    │ sleep(commit)     │
//!    └──── switch ──────►│ commit(waker) ──► publish waker, look again
//!                        │   true: asleep          │ happens
//!                        │◄──────── waker.wake() ──┘
//!    ┌──── switch ───────┘
//! ```
//!
//! Below this interface are the words on which OS threads themselves sleep:
//! [`EventWord`] for one thread, [`DoorbellSet`] (doorbells) for all workers of a rank.
//! They live in memory that other processes can access, so that a peer can wake a
//! rank.
//!
//! A sleep with a limit ([`WaitFor`]) is a [`Race`] between the event and the clock.
//! A scheduler of another library does not have to implement any of this: if it can
//! park and unpark, it implements [`Foreign`], and [`ForeignWait`] is its [`Wait`].

mod attendance;
mod doorbells;
mod event;
mod foreign;
mod futex;
mod race;
mod scheduler;
mod waker;
#[cfg(all(test, not(tsumugi_loom)))]
pub(crate) mod threads;

pub use attendance::Attendance;
pub use doorbells::DoorbellSet;
pub use event::{EventWord, Ticket};
pub use foreign::{Foreign, ForeignTask, ForeignWait};
pub use futex::Futex;
pub use race::Race;
pub use scheduler::{Interrupted, Spawn, Wait, WaitFor};
pub use waker::{Reason, Waker};
