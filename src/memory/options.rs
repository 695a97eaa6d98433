//! The options of registered memory that peers can reach.

use crate::Agent;

/// The options of memory that peers can reach: the agent of its atomics.
///
/// ```
/// use tsumugi::{Agent, MemoryOptions, Rank};
///
/// tsumugi::run_ranks(2, |rt| {
///     let counters = MemoryOptions::new().agent(Agent::Device).share::<u64>(rt, 4)?;
///     // In a job of one node no device can be the agent.
///     assert_eq!(counters.agent(), Agent::Cpu);
///     rt.fetch_add(counters.at(Rank(0), 3), 1).map(drop)?;
///     Ok::<(), tsumugi::Error>(())
/// })
/// # .map(drop)
/// # .unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the options make no memory by themselves"]
pub struct MemoryOptions {
    pub(super) agent: Agent,
}

impl MemoryOptions {
    /// The defaults, with which [`Runtime::share`](crate::Runtime::share) and
    /// [`Runtime::expose`](crate::Runtime::expose) make memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the agent that carries out the atomics on the memory; by default
    /// [`Agent::Cpu`].
    ///
    /// With [`Agent::Device`], every operation on the memory is carried out by the
    /// device, also for ranks of the same node and for the memory's own rank. So
    /// atomics by ranks of other nodes do not need a processor of the target.
    /// Atomics that the device does not have (all but
    /// [`fetch_add`](crate::Runtime::fetch_add) and [`compare_swap`](crate::Runtime::compare_swap) of
    /// 8 bytes) are emulated by its compare-and-swap. A put is a plain write by the
    /// device: concurrent atomics on the same word may overwrite it; a
    /// [`swap`](crate::Runtime::swap) is not lost in this way.
    ///
    /// If no device can be the agent (in a job of one node, or with a device
    /// without atomics), processors are the agent, and that is no error:
    /// [`Shared::agent`](crate::Shared::agent) returns which of the two it is.
    pub fn agent(self, agent: Agent) -> Self {
        Self { agent }
    }
}
