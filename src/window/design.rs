//! The designs of a window's locks.

use tsumugi_gas::lock::LockDesign;

/// The design of a window's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Design {
    /// A lock for each target; a hold of all targets takes all of them.
    Each,
    /// A lock for each target, and a tree over the nodes for holds of all targets.
    Tree,
    /// One lock for the window, as in paper 4 of `docs/papers.md`; for comparison.
    Global,
    /// A word for holds of all targets, and one for each target, as in foMPI;
    /// for comparison.
    TwoLevel,
}

impl Design {
    pub(super) const ALL: [Self; 4] = [Self::Each, Self::Tree, Self::Global, Self::TwoLevel];

    /// The plan of accesses of this design, where they go through the gate.
    pub(super) const fn plan(self) -> LockDesign {
        match self {
            Self::Each | Self::Tree => LockDesign::Tree,
            Self::Global => LockDesign::Global,
            Self::TwoLevel => LockDesign::TwoLevel,
        }
    }
}

/// The largest number of ranks at which [`Design::Each`] is the default.
///
/// With 16 ranks on two cores a hold of all takes 1.3 us by `Each` and 0.5 us by the
/// tree, an exclusive hold 22 ns and 580 ns; with 8 ranks, one hold of each kind takes
/// as long by both. Open MPI takes 14 us, and some 30 to 270 ns: only with `Each` both
/// are faster than that.
pub const EACH_MAX: u32 = 16;
