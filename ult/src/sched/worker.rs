//! A worker: one OS thread that runs ULTs. The hub is its scheduler loop, on the
//! worker's own stack, to which the ULTs switch when they leave.
//!
//! ```text
//!        ┌──────────────────────── worker's own stack ───────────────────────┐
//!        │ find ─► resume ═══════► ULT's stack: user code                    │
//!        │   ▲               ◄════ suspend(action) or end                    │
//!        │   └── do the action: queue it · commit its sleep · end it         │
//!        └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! With several workers a ULT never publishes itself. It requests that from its
//! worker, which does it after the switch, so no other worker can resume a ULT
//! that is still running. With one worker no other thread resumes ULTs, and a ULT
//! switches directly to the next one: see `pass`.

mod abort;
mod claim;
mod follow;
mod note;
mod pass;
mod queue;
mod rules;
mod scheduler_loop;
mod search;
mod steal;
mod supply;
mod thread;
mod yields;
mod first;

pub(crate) use claim::ClaimMode;
pub(in crate::sched) use first::LIVES;
pub(crate) use pass::SleepOutcome;
pub(crate) use thread::Worker;

#[cfg(all(test, not(tsumugi_loom)))]
pub(super) mod tests;
