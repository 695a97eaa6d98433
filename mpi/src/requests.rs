//! The requests of the job by their handles: how they are added, looked at, ended and let go.

use crate::abi::{self, MPI_Request, MPI_Status};
use crate::fault::{Answer, fail};
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::generalized::Generalized;
use crate::object::held_request::{ArrivedMessage, FoundRequest, HeldMessage, HeldRequest, SENT};
use crate::object::request::Request;
use crate::object::table::lock;
use crate::object::task::{Finished, Task, Work};
use crate::tables::added;
use std::mem;
use std::sync::Arc;
use tsumugi::MessageError;
use tsumugi_runtime::service::messages::{Received, Under};

impl Job {
    /// The request of a handle.
    pub(crate) fn request(&self, handle: MPI_Request) -> Answer<FoundRequest> {
        match handle {
            MPI_Request::NULL => Ok(FoundRequest::Nothing),
            SENT => Ok(FoundRequest::Sent),
            _ => match self.requests.look(handle.0, HeldRequest::found).flatten() {
                Some(found) => Ok(found),
                None => fail!(
                    abi::ERR_REQUEST,
                    "no request has the handle {:#x}: it has ended or was freed, or it was never made",
                    handle.0
                ),
            },
        }
    }

    /// Adds a request for work on a communicator. Sends that have ended share one handle.
    #[inline]
    pub(crate) fn add_work(&self, work: Work, comm: &CommRef) -> Answer<MPI_Request> {
        match work {
            Work::Send(Under::Ended(Ok(_)), _) => Ok(SENT),
            _ => self.add_task(Task { work, comm: comm.clone() }),
        }
    }

    /// Adds a request for a receive.
    #[inline(always)]
    pub(crate) fn add_receive(
        &self,
        under: Under,
        data: Data,
        comm: &CommRef,
    ) -> Answer<MPI_Request> {
        let held = HeldRequest::Message(HeldMessage::receive(under, data, comm.clone()));
        Ok(MPI_Request(added(self.requests.add(held), "requests")?))
    }

    /// Adds a request for a message that was received whole when the receive began.
    #[inline(always)]
    pub(crate) fn add_arrived(&self, received: Received, comm: &CommRef) -> Answer<MPI_Request> {
        let held = HeldRequest::Arrived(ArrivedMessage { received, comm: comm.clone() });
        Ok(MPI_Request(added(self.requests.add(held), "requests")?))
    }

    /// Adds a request for a task.
    #[inline]
    pub(crate) fn add_task(&self, task: Task) -> Answer<MPI_Request> {
        let held = match HeldMessage::of(task) {
            Ok(message) => HeldRequest::Message(message),
            Err(task) => HeldRequest::Shared(Arc::new(Request::once(task))),
        };
        Ok(MPI_Request(added(self.requests.add(held), "requests")?))
    }

    pub(crate) fn add_request(&self, request: Request) -> Answer<MPI_Request> {
        let held = HeldRequest::Shared(Arc::new(request));
        Ok(MPI_Request(added(self.requests.add(held), "requests")?))
    }

    /// Begins a message. If too many are in progress, some that have ended may have no call that
    /// waits for them: then they are let go, and it is tried again.
    #[inline]
    pub(crate) fn begin<R>(
        &self,
        mut begin: impl FnMut() -> Result<R, MessageError>,
    ) -> Result<R, MessageError> {
        match begin() {
            Err(MessageError::TooMany { .. }) => {
                self.let_ended_go();
                begin()
            }
            result => result,
        }
    }

    /// Lets all messages go that have ended, and for which no call waits.
    #[cold]
    fn let_ended_go(&self) {
        self.buffered.reap(&self.messages);
        let sessions = lock(&self.open_sessions).clone();
        sessions.iter().for_each(|session| session.buffered.reap(&self.messages));
        let comms = self.comms.all(|comm| comm.clone());
        comms.iter().for_each(|comm| comm.buffered.reap(&self.messages));
        let ended = lock(&self.freed).look_at_all(|request| request.is_done(&self.messages));
        self.finish_freed(ended);
    }

    /// Waits until all operations have ended whose handles have gone.
    pub(crate) fn drain_freed(&self) {
        loop {
            let ended = lock(&self.freed).look_at_all(|request| request.is_done(&self.messages));
            self.finish_freed(ended);
            if lock(&self.freed).is_empty() {
                return;
            }
            self.give_way();
        }
    }

    /// Lets a request go whose handle has gone: its operation ends by itself.
    fn let_go(&self, request: Arc<Request>) {
        let ended = {
            let mut freed = lock(&self.freed);
            freed.add(request);
            freed.look(|request| request.is_done(&self.messages))
        };
        self.finish_freed(ended);
    }

    fn finish_freed(&self, ended: Vec<Arc<Request>>) {
        for request in ended {
            request.take().map(|task| task.finish(&self.messages));
        }
    }

    /// Settles collectives that have ended, of requests for which the program has not waited:
    /// the rank has room for some hundreds at a time.
    pub(crate) fn reap(&self) {
        let shared = self.requests.all(|held| match held {
            HeldRequest::Shared(request) => Some(request.clone()),
            HeldRequest::Arrived(_) | HeldRequest::Message(_) | HeldRequest::Freed(_) => None,
        });
        shared.into_iter().flatten().for_each(|request| request.reap(&self.messages));
        self.let_ended_go();
    }

    /// The status of a request that has ended, which stays to be taken.
    pub(crate) fn settle(&self, handle: MPI_Request, found: FoundRequest) -> MPI_Status {
        match found {
            FoundRequest::Nothing | FoundRequest::Sent => MPI_Status::EMPTY,
            FoundRequest::Shared(request) => request.settle(&self.messages),
            FoundRequest::Message { .. } => {
                let shared = self.requests.change(handle.0, HeldRequest::shared).flatten();
                shared.map_or(MPI_Status::EMPTY, |request| request.settle(&self.messages))
            }
        }
    }

    /// The status of a message that has ended well and had no copy: its request is ended, and
    /// the handle null. `None`: the case is another, and nothing has happened. Never waits.
    #[inline]
    pub(crate) fn end_whole(&self, handle: &mut MPI_Request) -> Option<MPI_Status> {
        if *handle == SENT {
            *handle = MPI_Request::NULL;
            return Some(MPI_Status::EMPTY);
        }
        let status = self.requests.remove_if(handle.0, |held| match held {
            HeldRequest::Arrived(arrived) => Some(arrived.status()),
            HeldRequest::Message(message) => message.whole(&self.messages),
            HeldRequest::Shared(_) | HeldRequest::Freed(_) => None,
        })?;
        *handle = MPI_Request::NULL;
        Some(status)
    }

    /// The result of a request that has ended, or waits for its end. The handle becomes
    /// null, unless it is of a persistent request.
    pub(crate) fn end(&self, handle: &mut MPI_Request, found: &FoundRequest) -> Finished {
        found.wait(&self.messages);
        let task = match found {
            FoundRequest::Nothing | FoundRequest::Sent => None,
            FoundRequest::Message { .. } => match self.requests.remove(handle.0) {
                Some(HeldRequest::Arrived(arrived)) => Some(arrived.into_task()),
                Some(HeldRequest::Message(message)) => Some(message.into_task()),
                Some(HeldRequest::Shared(request)) => request.take(),
                Some(HeldRequest::Freed(_)) | None => None,
            },
            FoundRequest::Shared(request) => {
                let task = request.take();
                if request.is_persistent() {
                    return task.map_or(Finished::EMPTY, |task| task.finish(&self.messages));
                }
                self.requests.remove(handle.0);
                task
            }
        };
        *handle = MPI_Request::NULL;
        task.map_or(Finished::EMPTY, |task| task.finish(&self.messages))
    }

    /// Frees a request, whose operation goes on to its end.
    pub(crate) fn free_request(&self, handle: MPI_Request, found: &FoundRequest) -> Answer {
        if let Some(operation) = found.look(Task::generalized) {
            // The program has the handle until it has completed the operation.
            let freed = HeldRequest::Freed(operation.clone());
            self.requests.change(handle.0, |held| mem::replace(held, freed));
            return if operation.free() { self.end_freed(handle, &operation) } else { Ok(()) };
        }
        match self.requests.remove(handle.0) {
            Some(HeldRequest::Message(message)) => {
                self.let_go(Arc::new(Request::once(message.into_task())));
            }
            Some(HeldRequest::Shared(request)) => self.let_go(request),
            Some(HeldRequest::Arrived(_) | HeldRequest::Freed(_)) | None => {}
        }
        Ok(())
    }

    /// Completes an operation of the program.
    pub(crate) fn complete(&self, handle: MPI_Request) -> Answer {
        let found = self.requests.look(handle.0, |held| match held {
            HeldRequest::Freed(operation) => Err(operation.clone()),
            held => Ok(held.found()),
        });
        let operation = match found {
            Some(Err(freed)) => Some(freed),
            Some(Ok(found)) => found.and_then(|found| found.look(Task::generalized)),
            None => self.request(handle)?.look(Task::generalized),
        };
        let Some(operation) = operation else {
            fail!(abi::ERR_REQUEST, "the request is not a generalized one")
        };
        if operation.complete() { self.end_freed(handle, &operation) } else { Ok(()) }
    }

    /// Ends an operation of the program that is complete, and whose request was freed.
    fn end_freed(&self, handle: MPI_Request, operation: &Generalized) -> Answer {
        self.requests.remove(handle.0);
        operation.end()
    }
}
