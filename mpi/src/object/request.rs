//! Requests: operations that were begun by one call and are waited for by another.

use crate::abi::{self, MPI_Status};
use crate::fault::{Answer, fail};
use crate::object::table::lock;
use crate::object::task::{Begin, Task, Work};
use std::sync::Mutex;
use tsumugi_runtime::service::messages::Messages;

/// A request of the program.
pub(crate) struct Request(Mutex<State>);

enum State {
    /// One operation, which is taken out by the call that waits for it.
    Once(Option<Task>),
    /// An operation that is started again and again.
    Persistent { start: Begin, active: Option<Task> },
}

impl Request {
    /// A request for one operation.
    pub(crate) fn once(task: Task) -> Self {
        Self(Mutex::new(State::Once(Some(task))))
    }

    /// A request whose operation comes by [`fill`](Self::fill).
    pub(super) fn empty() -> Self {
        Self(Mutex::new(State::Once(None)))
    }

    /// Sets the operation of an empty request.
    pub(super) fn fill(&self, task: Task) {
        *lock(&self.0) = State::Once(Some(task));
    }

    /// A request for an operation that is started again and again.
    pub(crate) fn persistent(start: Begin) -> Self {
        Self(Mutex::new(State::Persistent { start, active: None }))
    }

    pub(crate) fn is_persistent(&self) -> bool {
        matches!(*lock(&self.0), State::Persistent { .. })
    }

    /// Whether a collective is under way, or has ended and waits to be taken.
    pub(crate) fn is_collective(&self) -> bool {
        self.look(|task| matches!(task.work, Work::Collective(_))).unwrap_or(false)
    }

    /// Whether an operation is under way, or has ended and waits to be taken.
    pub(crate) fn is_active(&self) -> bool {
        match &*lock(&self.0) {
            State::Once(task) => task.is_some(),
            State::Persistent { active, .. } => active.is_some(),
        }
    }

    /// Looks at the task, if there is one.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Task) -> R) -> Option<R> {
        match &*lock(&self.0) {
            State::Once(task) | State::Persistent { active: task, .. } => task.as_ref().map(look),
        }
    }

    /// Whether the task has ended; a request without one has.
    pub(crate) fn is_done(&self, messages: &Messages) -> bool {
        self.look(|task| task.is_done(messages)).unwrap_or(true)
    }

    /// Takes the task out.
    pub(crate) fn take(&self) -> Option<Task> {
        match &mut *lock(&self.0) {
            State::Once(task) | State::Persistent { active: task, .. } => task.take(),
        }
    }

    /// The status of a task that has ended, which stays to be taken.
    pub(crate) fn settle(&self, messages: &Messages) -> MPI_Status {
        if let Some(Some(operation)) = self.look(Task::generalized) {
            return operation.query().0;
        }
        let mut state = lock(&self.0);
        let (State::Once(task) | State::Persistent { active: task, .. }) = &mut *state;
        let Some(ended) = task.take() else { return MPI_Status::EMPTY };
        let (status, settled) = ended.settled(messages);
        *task = settled;
        status
    }

    /// Settles a collective that has ended: so it gives its room back before the program waits
    /// for it.
    pub(crate) fn reap(&self, messages: &Messages) {
        // Another thread that has the lock does the same, or starts the request.
        let Ok(mut state) = self.0.try_lock() else { return };
        let (State::Once(task) | State::Persistent { active: task, .. }) = &mut *state;
        let has_ended =
            |task: &mut Task| matches!(task.work, Work::Collective(..)) && task.is_done(messages);
        if let Some(ended) = task.take_if(has_ended) {
            *task = ended.settled(messages).1;
        }
    }

    /// Cancels a receive that has no message yet, and tells an operation of the program.
    pub(crate) fn cancel(&self, messages: &Messages) -> Answer {
        let operation = self.look(|task| {
            if let Work::Receive(under, _) = &task.work {
                messages.cancel(*under);
            }
            task.generalized()
        });
        operation.flatten().map_or(Ok(()), |operation| operation.cancel())
    }

    /// Starts the operation of a persistent request.
    pub(crate) fn start(&self) -> Answer {
        let mut state = lock(&self.0);
        let State::Persistent { start, active } = &mut *state else {
            fail!(abi::ERR_REQUEST, "the request is not a persistent one")
        };
        if active.is_some() {
            fail!(abi::ERR_REQUEST, "the request is active already");
        }
        *active = Some(start()?);
        Ok(())
    }
}
