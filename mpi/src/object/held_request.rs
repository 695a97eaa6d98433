//! What the table of requests has of a request, and what a call finds there.

use crate::abi::{MPI_Request, MPI_Status};
use crate::fault::Answer;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::generalized::Generalized;
use crate::object::request::Request;
use crate::object::table::kind;
use crate::object::task::{Task, Work};
use std::ffi::c_int;
use std::mem;
use std::sync::Arc;
use tsumugi_runtime::service::messages::{Messages, Received, Under};

/// What the table has of a request.
pub(crate) enum HeldRequest {
    /// A receive whose message was here when it began.
    Arrived(ArrivedMessage),
    /// One message.
    Message(HeldMessage),
    /// Anything else.
    Shared(Arc<Request>),
    /// One that the program has freed, and still completes. No other call finds it.
    Freed(Arc<Generalized>),
}

/// A message that was received whole.
pub(crate) struct ArrivedMessage {
    pub(crate) received: Received,
    pub(crate) comm: CommRef,
}

/// A message under way.
pub(crate) struct HeldMessage {
    under: Under,
    data: Data,
    is_receive: bool,
    comm: CommRef,
}

/// A request that a call has found by its handle.
#[derive(Clone)]
pub(crate) enum FoundRequest {
    /// The handle is null.
    Nothing,
    /// A send that had ended when it began.
    Sent,
    /// One message.
    Message { under: Under, is_receive: bool },
    /// Anything else.
    Shared(Arc<Request>),
}

impl HeldRequest {
    #[inline]
    pub(crate) fn found(&self) -> Option<FoundRequest> {
        Some(match self {
            Self::Arrived(ArrivedMessage { received, .. }) => {
                FoundRequest::Message { under: Under::Ended(Ok(*received)), is_receive: true }
            }
            Self::Message(HeldMessage { under, is_receive, .. }) => {
                FoundRequest::Message { under: *under, is_receive: *is_receive }
            }
            Self::Shared(request) => FoundRequest::Shared(request.clone()),
            Self::Freed(_) => return None,
        })
    }

    /// The same as a request that several calls may look at; `None`: the program has freed it.
    pub(crate) fn shared(&mut self) -> Option<Arc<Request>> {
        match self {
            Self::Shared(request) => return Some(request.clone()),
            Self::Freed(_) => return None,
            Self::Arrived(_) | Self::Message(_) => {}
        }
        let request = Arc::new(Request::empty());
        match mem::replace(self, Self::Shared(request.clone())) {
            Self::Arrived(arrived) => request.fill(arrived.into_task()),
            Self::Message(message) => request.fill(message.into_task()),
            Self::Shared(_) | Self::Freed(_) => {}
        }
        Some(request)
    }
}

impl ArrivedMessage {
    #[inline(always)]
    pub(crate) fn status(&self) -> MPI_Status {
        let Received { source, tag, bytes } = self.received;
        MPI_Status::new(self.comm.place_of(source), tag as c_int, bytes as u64)
    }

    pub(crate) fn into_task(self) -> Task {
        Task { work: Work::Ended(self.status()), comm: self.comm }
    }
}

impl HeldMessage {
    /// A receive.
    #[inline(always)]
    pub(crate) const fn receive(under: Under, data: Data, comm: CommRef) -> Self {
        Self { under, data, is_receive: true, comm }
    }

    /// A send or a receive on a communicator. `Err`: the work is another.
    #[inline(always)]
    pub(crate) fn of(task: Task) -> Result<Self, Task> {
        let (under, data, is_receive) = match task.work {
            Work::Send(under, data) => (under, data, false),
            Work::Receive(under, data) => (under, data, true),
            work => return Err(Task { work, ..task }),
        };
        Ok(Self { under, data, is_receive, comm: task.comm })
    }

    pub(crate) fn into_task(self) -> Task {
        let Self { under, data, is_receive, comm } = self;
        let work = if is_receive { Work::Receive(under, data) } else { Work::Send(under, data) };
        Task { work, comm }
    }

    /// The status of a message that has ended well and had no copy, whose result is taken.
    /// `None`: the case is another. Never waits.
    #[inline(always)]
    pub(crate) fn whole(&self, messages: &Messages) -> Option<MPI_Status> {
        if !self.data.is_in_place() {
            return None;
        }
        let Received { source, tag, bytes } = messages.take_whole(self.under)?;
        if !self.is_receive {
            return Some(MPI_Status::EMPTY);
        }
        Some(MPI_Status::new(self.comm.place_of(source), tag as c_int, bytes as u64))
    }
}

impl FoundRequest {
    /// Whether there is something to wait for, or a result that was not taken.
    pub(crate) fn is_active(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Sent | Self::Message { .. } => true,
            Self::Shared(request) => request.is_active(),
        }
    }

    /// Whether there is nothing to wait for; moves the operation on. Never waits.
    pub(crate) fn is_done(&self, messages: &Messages) -> bool {
        match self {
            Self::Nothing | Self::Sent => true,
            Self::Message { under, .. } => messages.is_done(*under),
            Self::Shared(request) => request.is_done(messages),
        }
    }

    /// The message of which the end is waited for.
    pub(crate) fn under(&self) -> Option<Under> {
        match self {
            Self::Nothing | Self::Sent => None,
            Self::Message { under, .. } => Some(*under),
            Self::Shared(_) => self.look(Task::under),
        }
    }

    /// Waits for the end of an operation that other threads may move on meanwhile by its handle:
    /// they cancel a receive, complete an operation of the program, or make partitions ready.
    pub(crate) fn wait(&self, messages: &Messages) {
        if let Some(under) = self.under() {
            messages.wait(under);
        } else if let Some(operation) = self.look(Task::generalized) {
            operation.wait(messages);
        } else if let Some(side) = self.look(Task::partitioned) {
            side.wait(messages);
        }
    }

    /// Cancels a receive that has no message yet.
    pub(crate) fn cancel(&self, messages: &Messages) -> Answer {
        match self {
            Self::Message { under, is_receive: true } => messages.cancel(*under),
            Self::Shared(request) => request.cancel(messages)?,
            _ => {}
        }
        Ok(())
    }

    /// Looks at the task of a request that is more than one message.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Task) -> Option<R>) -> Option<R> {
        match self {
            Self::Shared(request) => request.look(look).flatten(),
            _ => None,
        }
    }
}

/// The handle of all sends that had ended when they began.
pub(crate) const SENT: MPI_Request = MPI_Request(kind::REQUEST << 27 | 0xf_ffff);
