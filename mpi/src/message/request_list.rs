//! The requests of a call that has a list of them.

use crate::abi::{self, MPI_Request, MPI_Status};
use crate::arguments::list;
use crate::fault::{Answer, Fault, need};
use crate::job::Job;
use crate::message::status::tell;
use crate::object::held_request::FoundRequest;
use crate::object::task::{Finished, Task, Work};
use std::ffi::c_int;
use std::mem;

/// The requests of a list of handles.
pub(super) struct RequestList {
    job: &'static Job,
    /// The first handle in the program's memory, which has as many as there are requests.
    handles: *mut MPI_Request,
    all: Vec<(MPI_Request, FoundRequest)>,
}

/// What there is of the active requests of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ActiveRequests {
    /// None is active.
    None,
    /// None has ended.
    Pending,
    /// This is the first that has ended.
    Ended(usize),
}

/// The error of a call, with the request that has failed.
pub(super) type Failed = (Finished, Fault);

impl RequestList {
    /// # Safety
    ///
    /// The `count` handles at `handles` are valid for reads; for writes, too, if a request is
    /// ended. They are used until the list is dropped.
    pub(super) unsafe fn of(
        job: &'static Job,
        handles: *mut MPI_Request,
        count: c_int,
    ) -> Answer<Self> {
        need!(count >= 0, abi::ERR_COUNT, "{count} requests: the number is negative");
        // SAFETY: the caller's.
        let given = unsafe { list(handles, count, "requests") }?;
        let mut all = Vec::with_capacity(given.len());
        for handle in given {
            all.push((*handle, job.request(*handle)?));
        }
        Ok(Self { job, handles, all })
    }

    fn requests(&self) -> impl Iterator<Item = &FoundRequest> + Clone {
        self.all.iter().map(|(_, request)| request)
    }

    /// Whether all have ended.
    pub(super) fn is_done(&self) -> bool {
        self.requests().all(|request| request.is_done(&self.job.messages))
    }

    /// The places of active requests that have ended; each is found out when it is reached.
    pub(super) fn ended(&self) -> impl Iterator<Item = usize> {
        let has_ended = |request: &FoundRequest| {
            let is_done = request.is_done(&self.job.messages);
            request.is_active() && is_done
        };
        (0..self.all.len()).filter(move |at| has_ended(&self.all[*at].1))
    }

    /// Looks at the active requests.
    pub(super) fn active(&self) -> ActiveRequests {
        let mut active = ActiveRequests::None;
        for (at, request) in self.requests().enumerate() {
            if request.is_active() {
                active = ActiveRequests::Pending;
                if request.is_done(&self.job.messages) {
                    return ActiveRequests::Ended(at);
                }
            }
        }
        active
    }

    /// Waits until all have ended, as far as they are messages; the end of the others is waited
    /// for when they are ended.
    pub(super) fn wait(&self) {
        let unders = self.requests().filter_map(FoundRequest::under);
        if unders.clone().nth(1).is_some() {
            self.job.messages.wait_all(unders);
        }
    }

    /// Waits until an active request has ended. `None`: no request is active.
    pub(super) fn wait_any(&self) -> Option<usize> {
        loop {
            match self.active() {
                ActiveRequests::None => return None,
                ActiveRequests::Ended(at) => return Some(at),
                ActiveRequests::Pending => {}
            }
            let mut active = self.requests().filter(|request| request.is_active());
            let unders: Option<Vec<_>> = active.clone().map(FoundRequest::under).collect();
            match (unders, active.next(), active.next()) {
                (Some(unders), Some(_), _) => {
                    self.job.messages.wait_any(unders.iter().copied());
                }
                // No other thread may use the request of a collective meanwhile.
                (None, Some(FoundRequest::Shared(alone)), None) if alone.is_collective() => {
                    alone.settle(&self.job.messages);
                }
                // There is no word to sleep for.
                _ => self.job.give_way(),
            }
        }
    }

    /// Lets others run after a look that has found nothing.
    pub(super) fn give_way(&self) {
        self.job.give_way();
    }

    /// What a request that has ended has brought; it stays.
    pub(super) fn seen(&self, at: usize) -> Finished {
        let (handle, request) = &self.all[at];
        seen(self.job, *handle, request.clone())
    }

    /// Ends a request, and waits for that.
    pub(super) fn end(&self, at: usize) -> Finished {
        let (mut handle, request) = (self.all[at].0, &self.all[at].1);
        let finished = self.job.end(&mut handle, request);
        // SAFETY: the promise of `of`.
        unsafe { self.handles.add(at).write(handle) };
        finished
    }

    /// Ends all requests. If one has failed, each status gets an error.
    ///
    /// # Safety
    ///
    /// `statuses` is NULL or valid for a write of as many.
    pub(super) unsafe fn end_all(&self, statuses: *mut MPI_Status) -> Result<(), Failed> {
        let mut results = RequestResults::default();
        for at in 0..self.all.len() {
            // SAFETY: the caller's.
            unsafe { results.add(self.end(at), statuses) };
        }
        // SAFETY: the caller's.
        unsafe { results.end(statuses) }
    }

    /// Ends all active requests that have ended by themselves, and writes their number and their
    /// places. If one has failed, each status gets an error.
    ///
    /// # Safety
    ///
    /// The lists have room for as many as there are handles.
    pub(super) unsafe fn end_some(
        &self,
        (outcount, indices, statuses): (*mut c_int, *mut c_int, *mut MPI_Status),
    ) -> Result<(), Failed> {
        let mut results = RequestResults::default();
        for at in self.ended() {
            // SAFETY: the caller's.
            unsafe {
                indices.add(results.count).write(at as c_int);
                results.add(self.end(at), statuses);
            }
        }
        // SAFETY: the caller's.
        unsafe {
            outcount.write(results.count as c_int);
            results.end(statuses)
        }
    }
}

/// The results of requests, in the order of their statuses.
#[derive(Default)]
pub(super) struct RequestResults {
    pub(super) count: usize,
    /// The classes of those until the last that has failed.
    codes: Vec<c_int>,
    first: Option<Failed>,
}

impl RequestResults {
    /// Adds a result, and writes its status.
    ///
    /// # Safety
    ///
    /// `statuses` is NULL or valid for a write of so many.
    pub(super) unsafe fn add(&mut self, mut finished: Finished, statuses: *mut MPI_Status) {
        // SAFETY: the caller's.
        unsafe { tell_at(statuses, self.count, finished.status) };
        if let Err(fault) = mem::replace(&mut finished.result, Ok(())) {
            self.codes.resize(self.count, abi::SUCCESS);
            self.codes.push(fault.class);
            self.first.get_or_insert((finished, fault));
        }
        self.count += 1;
    }

    /// The result of the call. If a request has failed, each status gets its error.
    ///
    /// # Safety
    ///
    /// As for [`add`](Self::add).
    pub(super) unsafe fn end(mut self, statuses: *mut MPI_Status) -> Result<(), Failed> {
        let Some((finished, fault)) = self.first else { return Ok(()) };
        if statuses.is_null() {
            return Err((finished, fault));
        }
        self.codes.resize(self.count, abi::SUCCESS);
        for (at, code) in self.codes.into_iter().enumerate() {
            // SAFETY: the caller's.
            unsafe { (*statuses.add(at)).error = code };
        }
        let text = format!("{} (the statuses have the errors)", fault.text);
        Err((finished, fault.saying(text).of_class(abi::ERR_IN_STATUS)))
    }
}

/// What a request that has ended has brought; it stays.
pub(super) fn seen(job: &Job, handle: MPI_Request, found: FoundRequest) -> Finished {
    let status = job.settle(handle, found);
    let failed = |task: &Task| match &task.work {
        Work::Failed(_, fault) => Some((fault.clone(), task.comm.clone())),
        _ => None,
    };
    match job.request(handle).ok().and_then(|settled| settled.look(failed)) {
        None => Finished { status, ..Finished::EMPTY },
        Some((fault, comm)) => Finished { status, result: Err(fault), comm: Some(comm) },
    }
}

/// Ends the first requests of a list, as long as they are messages that have ended well; polls
/// once for the first one that has not. Returns how many it has ended. Never waits.
///
/// # Safety
///
/// The `count` handles at `handles` are valid for reads and writes, and `statuses` is NULL or
/// valid for a write of as many.
pub(super) unsafe fn end_whole(
    job: &Job,
    handles: *mut MPI_Request,
    count: c_int,
    statuses: *mut MPI_Status,
) -> Answer<usize> {
    let (mut at, mut polled) = (0, None);
    while at < count.max(0) as usize && !handles.is_null() {
        // SAFETY: the caller's.
        let handle = unsafe { &mut *handles.add(at) };
        if let Some(whole) = job.end_whole(handle) {
            // SAFETY: the caller's.
            unsafe { tell_at(statuses, at, whole) };
            at += 1;
        } else if polled.replace(at) == Some(at) || !job.request(*handle)?.is_done(&job.messages) {
            break;
        }
    }
    Ok(at)
}

/// Writes a status of a list; nothing if the program ignores them.
///
/// # Safety
///
/// `at` is NULL or valid for a write of more than `index` statuses.
pub(super) unsafe fn tell_at(at: *mut MPI_Status, index: usize, status: MPI_Status) {
    if !at.is_null() {
        // SAFETY: the caller's.
        unsafe { tell(status, at.add(index)) };
    }
}
