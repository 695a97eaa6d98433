//! The state of a channel under its lock, and the calls of both ends on it.

use super::state::{ChannelState, Put, Take};
use crate::lock::Lock;
use crate::sync::queue;

/// The state of a channel, which its ends and their futures share.
pub(super) type ChannelShared<T> = Lock<ChannelState<T>>;

/// Puts a value in, and wakes the receiver that it was handed to, if any.
pub(super) fn put<T>(shared: &ChannelShared<T>, value: &mut Option<T>) -> Put {
    let mut served = None;
    let outcome = loop {
        let outcome = shared.with(|state| match state.wants_room() {
            true => None,
            false => Some(state.put(value, &mut served)),
        });
        match outcome {
            Some(outcome) => break outcome,
            None => grow(shared),
        }
    };
    queue::tell(served);
    outcome
}

/// Makes an unbounded buffer larger; allocates and frees outside of the lock.
#[cold]
fn grow<T>(shared: &ChannelShared<T>) {
    let wanted = shared.with(|state| state.len().saturating_mul(2).max(FIRST_ROOM));
    let mut larger = alloc::collections::VecDeque::with_capacity(wanted);
    shared.with(|state| state.move_into(&mut larger));
}

/// Takes a value out. If a sender waits, its value fills the room, and it is woken.
pub(super) fn take<T>(shared: &ChannelShared<T>) -> Take<T> {
    let mut served = None;
    let outcome = shared.with(|state| state.take(&mut served));
    queue::tell(served);
    outcome
}

const FIRST_ROOM: usize = 16;
