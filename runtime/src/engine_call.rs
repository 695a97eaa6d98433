//! What calls of an engine have in common, of the network's and of the node's: the hint
//! by which tags and executor are chosen.

/// A hint which tags and which executor to prefer: the same for calls of one thread,
/// and mostly others for another thread. A ULT that has moved meanwhile may get the
/// hint of a thread on which it was before, which costs no more than a cache line.
pub(crate) fn hint() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| (&raw const *place).addr() >> 12)
}
