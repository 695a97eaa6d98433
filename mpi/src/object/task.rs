//! What a request waits for: an operation that was begun, and what it has brought.

use crate::abi::MPI_Status;
use crate::fault::{Answer, Fault};
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::exchange::Exchanging;
use crate::object::generalized::Generalized;
use crate::object::partitioned::Partitioned;
use crate::object::receipt::received;
use crate::object::verification::Verification;
use std::mem;
use std::sync::Arc;
use tsumugi::group::StartedCollective;
use tsumugi_runtime::service::messages::{Messages, Under};

/// Begins an operation that was prepared.
pub(crate) type Begin = Box<dyn Fn() -> Answer<Task> + Send>;

/// An operation that was begun.
pub(crate) struct Task {
    pub(crate) work: Work,
    /// The communicator whose handler gets the error.
    pub(crate) comm: CommRef,
}

/// What a task waits for.
pub(crate) enum Work {
    /// Nothing.
    Ended(MPI_Status),
    /// Nothing: the error was found before.
    Failed(MPI_Status, Fault),
    Send(Under, Data),
    Receive(Under, Data),
    Collective(Box<CollectiveWork>),
    /// The same, for one of messages.
    Exchange(Exchanging, Box<dyn FnOnce() + Send>),
    /// An operation of the program.
    Generalized(Arc<Generalized>),
    Partitioned(Arc<Partitioned>),
    /// A receive, and a send that begins with it.
    Both(Box<[Task; 2]>),
}

/// A collective that was begun. In a box, because other tasks are half as large.
pub(crate) struct CollectiveWork {
    /// The call that has begun it.
    pub(crate) call: &'static str,
    pub(crate) started: StartedCollective,
    /// What is to be done at its end; has the memory that it uses.
    pub(crate) end: Box<dyn FnOnce() + Send>,
    /// In the checking mode the comparison of the members' calls.
    pub(crate) verification: Option<Verification>,
}

impl CollectiveWork {
    /// Whether it has ended. One whose members have called others may never end.
    fn is_done(&self) -> bool {
        match &self.verification {
            None => self.started.is_done(),
            Some(verification) => {
                verification.differs().is_some_and(|differs| differs || self.started.is_done())
            }
        }
    }

    /// Waits for the end.
    fn finish(self) -> Answer {
        let Self { call, started, end, verification } = self;
        if let Err(fault) = verification.map_or(Ok(()), |of| of.wait(call)) {
            // The collective goes on, with the memory that it uses.
            mem::forget(end);
            return Err(fault);
        }
        let result = started.wait_named(call);
        end();
        Ok(result?)
    }
}

/// A message that a matched probe has taken out of its queue.
pub(crate) struct Matched {
    pub(crate) bytes: Vec<u8>,
    pub(crate) status: MPI_Status,
    pub(crate) comm: CommRef,
}

/// What a task has brought: its status, and the error if it has failed.
pub(crate) struct Finished {
    pub(crate) status: MPI_Status,
    pub(crate) result: Answer,
    pub(crate) comm: Option<CommRef>,
}

impl Finished {
    /// Of a request that is null, or not active.
    pub(crate) const EMPTY: Self = Self { status: MPI_Status::EMPTY, result: Ok(()), comm: None };
}

impl Task {
    /// The message of which the end is waited for.
    pub(crate) fn under(&self) -> Option<Under> {
        match self.work {
            Work::Send(under, _) | Work::Receive(under, _) => Some(under),
            _ => None,
        }
    }

    /// The partitioned message that it is.
    pub(crate) fn partitioned(&self) -> Option<Arc<Partitioned>> {
        match &self.work {
            Work::Partitioned(side) => Some(side.clone()),
            _ => None,
        }
    }

    /// The operation of the program that it is.
    pub(crate) fn generalized(&self) -> Option<Arc<Generalized>> {
        match &self.work {
            Work::Generalized(operation) => Some(operation.clone()),
            _ => None,
        }
    }

    /// Whether the task has ended; moves it on. Never waits.
    pub(super) fn is_done(&self, messages: &Messages) -> bool {
        match &self.work {
            Work::Ended(_) | Work::Failed(..) => true,
            Work::Send(under, _) | Work::Receive(under, _) => messages.is_done(*under),
            Work::Collective(work) => work.is_done(),
            Work::Exchange(exchange, _) => exchange.is_done(messages),
            Work::Generalized(operation) => operation.is_complete(),
            Work::Partitioned(side) => side.is_done(messages),
            Work::Both(both) => both.iter().all(|task| task.is_done(messages)),
        }
    }

    /// Waits for the end.
    pub(crate) fn finish(self, messages: &Messages) -> Finished {
        let Self { work, comm } = self;
        let (status, result) = match work {
            Work::Ended(status) => (status, Ok(())),
            Work::Failed(status, fault) => (status, Err(fault)),
            Work::Send(under, data) => {
                let result = messages.finish(under);
                drop(data);
                (MPI_Status::EMPTY, result.map(drop).map_err(Fault::from))
            }
            Work::Receive(under, data) => received(messages, &comm, under, data),
            Work::Collective(work) => (MPI_Status::EMPTY, work.finish()),
            Work::Exchange(exchange, end) => {
                let result = exchange.finish(messages);
                end();
                (MPI_Status::EMPTY, result)
            }
            Work::Generalized(operation) => operation.finish(messages),
            Work::Partitioned(side) => side.finish(messages),
            Work::Both(both) => {
                let [receive, send] = (*both).map(|task| task.finish(messages));
                (receive.status, send.result.and(receive.result))
            }
        };
        Finished { status, result, comm: Some(comm) }
    }

    /// The status of a task that has ended, and the task that keeps it.
    pub(super) fn settled(self, messages: &Messages) -> (MPI_Status, Option<Self>) {
        let Finished { status, result, comm } = self.finish(messages);
        let work = match result {
            Ok(()) => Work::Ended(status),
            Err(fault) => Work::Failed(status, fault),
        };
        (status, comm.map(|comm| Self { work, comm }))
    }
}
