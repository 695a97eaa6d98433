//! The operations that callers have begun, and the callers that wait.
//!
//! Each operation that was begun has a place, in a table of fixed size, until its
//! caller has taken the result. A caller that keeps ended operations takes room
//! from others; letting an operation go frees its place.

use std::task;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::tag::Tag;
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
    /// The tasks that await operations, by place.
    tasks: Vec<(u32, task::Waker)>,
}

/// What the end of an operation wakes, after the lock was given back.
pub(super) enum Woken {
    Thread(Waker),
    Task(task::Waker),
    /// The operation with this tag of the rank's host table ends.
    Host(Tag),
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
    /// A function gets the result, in the operation with this tag of the host table.
    Host(Tag),
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
            tasks: Vec::with_capacity(TASKS),
        }
    }

    /// Stores the result of an operation that has ended, and collects the wakers of
    /// its waiters.
    pub(super) fn end(&mut self, handle: Handle, result: AccessOutcome, woken: &mut Vec<Woken>) {
        let at = self.place_of[slot_of(handle)];
        let place = &mut self.places[at as usize];
        match std::mem::replace(&mut place.end, OperationEnd::Result(result)) {
            OperationEnd::LetGo => self.give_back(at),
            OperationEnd::Host(tag) => woken.push(Woken::Host(tag)),
            OperationEnd::UnderWay | OperationEnd::Result(_) => {
                woken.extend(place.waker.take().map(Woken::Thread));
                woken.extend(self.take_task(at).map(Woken::Task));
            }
        }
        woken.extend(self.stuck.drain(..).map(Woken::Thread));
    }

    /// Keeps the waker of a task that awaits the operation with this place, instead of an
    /// earlier one.
    pub(super) fn keep_task(&mut self, at: u32, task: &task::Waker) {
        drop(self.take_task(at));
        self.tasks.push((at, task.clone()));
    }

    /// Takes the waker of the task that awaits the operation with this place, if there is
    /// one.
    pub(super) fn take_task(&mut self, at: u32) -> Option<task::Waker> {
        let index = self.tasks.iter().position(|(place, _)| *place == at)?;
        Some(self.tasks.swap_remove(index).1)
    }

    /// Takes the result of an operation that has ended, and frees its place.
    pub(super) fn take(&mut self, at: u32) -> Option<AccessOutcome> {
        match std::mem::take(&mut self.places[at as usize].end) {
            OperationEnd::Result(result) => {
                self.give_back(at);
                Some(result)
            }
            other => {
                self.places[at as usize].end = other;
                None
            }
        }
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

/// Tasks for which there is room from the start.
const TASKS: usize = 64;
