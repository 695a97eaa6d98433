//! The options of a window.

use super::design::Design;
use crate::Agent;

/// The options of a window: the design of its locks, and the agent of their atomics.
///
/// ```
/// use tsumugi::window::{Design, WindowOptions};
///
/// tsumugi::run_ranks(2, |rt| {
///     let window = WindowOptions::new().design(Design::Tree).create::<u64>(rt, 10)?;
///     assert_eq!(window.design(), Design::Tree);
///     rt.barrier()
/// })
/// # .map(drop)
/// # .unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the options make no window by themselves"]
pub struct WindowOptions {
    pub(super) agent: Agent,
    pub(super) design: Option<Design>,
}

impl WindowOptions {
    /// The defaults, with which [`Runtime::window`](crate::Runtime::window) makes a window.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the agent that carries out the atomics on the words of the locks, as
    /// [`MemoryOptions::agent`](crate::MemoryOptions::agent) does; by default
    /// [`Agent::Cpu`]. Processors run the vertices of [`Design::Tree`] and carry out all
    /// atomics on their words.
    pub fn agent(self, agent: Agent) -> Self {
        Self { agent, ..self }
    }

    /// Sets the design of the locks; by default [`Design::Each`] with up to
    /// [`EACH_MAX`](super::EACH_MAX) ranks, else [`Design::Tree`]. If the ranks' designs
    /// differ, the window has that of rank 0.
    pub fn design(self, design: Design) -> Self {
        Self { design: Some(design), ..self }
    }
}
