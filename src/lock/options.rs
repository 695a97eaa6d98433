//! The options of a lock.

use super::LockKind;
use crate::Agent;

/// The options of a lock: its kind, and the agent of its atomics.
///
/// ```
/// use tsumugi::Rank;
/// use tsumugi::lock::{LockKind, LockOptions};
///
/// tsumugi::run_ranks(2, |rt| {
///     let lock = LockOptions::new().kind(LockKind::Mutex).create(rt, Rank(0))?;
///     lock.write()?.release()?;
///     rt.barrier()
/// })
/// # .map(drop)
/// # .unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the options make no lock by themselves"]
pub struct LockOptions {
    pub(super) agent: Agent,
    pub(super) kind: LockKind,
}

impl LockOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the agent that carries out the atomics on the words of the lock, as
    /// [`MemoryOptions::agent`](crate::MemoryOptions::agent) does; by default
    /// [`Agent::Cpu`].
    pub fn agent(self, agent: Agent) -> Self {
        Self { agent, ..self }
    }

    /// Sets which claims wait for which; by default [`LockKind::Neutral`].
    pub fn kind(self, kind: LockKind) -> Self {
        Self { kind, ..self }
    }
}
