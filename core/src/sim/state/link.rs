//! A link that keeps the order of its messages.

use alloc::collections::BTreeMap;

/// The messages from one queue to one node, numbered in the order of their sending.
#[derive(Default)]
pub(super) struct OrderedLink {
    pub(super) sent: u64,
    /// The number of the message that takes effect next.
    pub(super) next: u64,
    /// Flights that arrived before their turn; `None`: the flight was given up.
    pub(super) waiting: BTreeMap<u64, Option<u64>>,
}
