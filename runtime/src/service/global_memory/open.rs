//! The operations that callers have begun, and the callers that wait.
//!
//! Each operation that was begun has a place, in a table of fixed size, until its
//! caller has taken the result. A caller that keeps ended operations takes room
//! from others; letting an operation go frees its place.

use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::wait::Waker;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::order::Handle;

/// The result of an operation.
pub(super) type AccessOutcome = Result<u64, AddrError<GlobalAddr>>;

/// The operations of all callers.
pub(super) struct Open {
    pub(super) places: Vec<OperationPlace>,
    pub(super) free: Vec<u32>,
    /// The place of each operation of the machine.
    pub(super) place_of: Vec<u32>,
    /// The callers that wait until there is room.
    pub(super) stuck: Vec<Waker>,
}

#[derive(Default)]
pub(super) struct OperationPlace {
    pub(super) end: OperationEnd,
    pub(super) waker: Option<Waker>,
}

/// How far an operation is.
#[derive(Default)]
pub(super) enum OperationEnd {
    #[default]
    UnderWay,
    /// The caller has dropped the operation, so no result is needed.
    LetGo,
    /// It has ended.
    Result(AccessOutcome),
}

impl OperationPlace {
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.end, OperationEnd::Result(_))
    }
}

/// A caller that waits for a table; lies on the caller's stack and is accessed
/// under the lock.
pub(super) struct Missing {
    pub(super) rank: Rank,
    pub(super) result: Option<Result<(), AddrError>>,
    pub(super) waker: Option<Waker>,
}

/// The state of a caller's repeated lookups of an address.
#[derive(Debug, Default)]
pub struct TableSearch {
    /// The version of the table copy that did not list the region.
    pub(super) known: Option<u32>,
    pub(super) is_again: bool,
}

impl Open {
    /// Makes a table for `operations` operations in progress, and three times as
    /// many that have ended.
    pub(super) fn new(operations: usize) -> Self {
        let places = operations * 4;
        Self {
            places: (0..places).map(|_| OperationPlace::default()).collect(),
            free: (0..places as u32).rev().collect(),
            place_of: vec![0; operations],
            stuck: Vec::new(),
        }
    }

    /// Stores the result of an operation that has ended, and collects the wakers of
    /// its waiters.
    pub(super) fn end(&mut self, handle: Handle, result: AccessOutcome, wakers: &mut Vec<Waker>) {
        let at = self.place_of[slot_of(handle)];
        let place = &mut self.places[at as usize];
        if let OperationEnd::LetGo = place.end {
            self.give_back(at);
        } else {
            place.end = OperationEnd::Result(result);
            wakers.extend(place.waker.take());
        }
        wakers.append(&mut self.stuck);
    }

    pub(super) fn give_back(&mut self, at: u32) {
        self.places[at as usize] = OperationPlace::default();
        self.free.push(at);
    }
}

/// The bytes of the table for `operations` operations in progress.
pub const fn footprint(operations: usize) -> usize {
    operations * (4 * (size_of::<OperationPlace>() + size_of::<u32>()) + size_of::<u32>())
}

/// The slot of the machine that a handle names.
pub(super) fn slot_of(handle: Handle) -> usize {
    usize::from(handle.to_bits() as u16)
}
