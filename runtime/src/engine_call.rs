//! What calls of an engine have in common, of the network's and of the node's: the hint
//! by which tags and executor are chosen, and the yield of a future that found no room.

use std::future::poll_fn;
use std::task::Poll;

/// A hint which tags and which executor to prefer: the same for calls of one thread,
/// and mostly others for another thread. A ULT that has moved meanwhile may get the
/// hint of a thread on which it was before, which costs no more than a cache line.
pub(crate) fn hint() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| (&raw const *place).addr() >> 12)
}

/// Lets other tasks run once.
pub(crate) async fn come_again() {
    let mut first = true;
    poll_fn(|context| {
        if std::mem::take(&mut first) {
            context.waker().wake_by_ref();
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}
