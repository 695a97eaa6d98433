//! The states of a ULT, and their values in the word of the state.

/// The state of a ULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UltState {
    /// Created, and never run.
    New,
    /// Ready to run, in a queue.
    Ready,
    /// Running on a worker.
    Running,
    /// Sleeping, until it is woken.
    Sleeping,
    /// Waiting for a joined ULT that runs in its place.
    Lending,
    /// Ended, and not joined yet.
    Done,
}

/// The state that a word shows; `None` for a free slot.
pub(super) fn state_of(word: u32) -> Option<UltState> {
    match word & STATE_MASK {
        NEW => Some(UltState::New),
        RUNNABLE => Some(UltState::Ready),
        SLEEPING | PARKED => Some(UltState::Sleeping),
        DONE => Some(UltState::Done),
        LENDING => Some(UltState::Lending),
        _ => None,
    }
}

pub(super) const FREE: u32 = 0;
pub(super) const NEW: u32 = 1;
/// In a queue, or on a worker: the workers' data tell which of the two.
pub(super) const RUNNABLE: u32 = 2;
pub(super) const SLEEPING: u32 = 3;
pub(super) const DONE: u32 = 4;
pub(super) const LENDING: u32 = 5;
/// Sleeping in a park. A ULT that parks on the only worker, which has the park words
/// to itself, shows that in its park word and stays `RUNNABLE` here.
pub(super) const PARKED: u32 = 6;
pub(super) const STATE_MASK: u32 = 7;
