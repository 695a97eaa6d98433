//! The epochs of a window that a rank has waited for.

use crate::Rank;
use std::collections::HashMap;

/// How many epochs this rank has waited for, to be compared with the words that
/// peers count up.
#[derive(Default)]
pub(super) struct EpochCounts {
    pub(super) started: HashMap<Rank, u64>,
    pub(super) completed: u64,
}
