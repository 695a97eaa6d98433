//! What a wire has done: completions, and how to sleep until there are some.

use super::super::sys::*;
use super::Wire;
use crate::net::Answer;
use core::ffi::c_int;

/// What a completion queue says of an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ofi) struct CqError {
    pub context: usize,
    pub code: c_int,
    pub provider_code: c_int,
}

impl Wire {
    /// Whether there are descriptors to sleep on.
    pub(in crate::ofi) fn has_events(&self) -> bool {
        self.waits != FI_WAIT_NONE
    }

    /// Adds those that [`try_wait`](Self::try_wait) has found.
    pub(in crate::ofi) fn events(&self, all: &mut Vec<libc::pollfd>) {
        all.extend_from_slice(&self.events);
    }

    /// Whether it is all right to sleep on [`events`](Self::events) now.
    pub(in crate::ofi) fn try_wait(&mut self) -> bool {
        if self.waits == FI_WAIT_NONE {
            return false;
        }
        // SAFETY: the slot was checked when the queue was opened.
        let quiet = unsafe {
            let mut cq = &raw mut (*self.cq).fid;
            match (*(*self.fabric.raw).ops).trywait {
                Some(trywait) => trywait(self.fabric.raw, &mut cq, 1) == 0,
                None => false,
            }
        };
        quiet && (self.waits == FI_WAIT_FD || self.find_events() == 0)
    }

    /// Asks the queue for its descriptors: there are others when peers come.
    pub(super) fn find_events(&mut self) -> c_int {
        let one = libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 };
        // SAFETY: the queue is open, and writes to as many as there are.
        unsafe {
            let cq = &raw mut (*self.cq).fid;
            let Some(control) = (*(*cq).ops).control else { return -ENOSYS };
            if self.waits == FI_WAIT_FD {
                self.events = vec![one];
                return control(cq, FI_GETWAIT, (&raw mut self.events[0].fd).cast());
            }
            loop {
                let (nfds, fd) = (self.events.len(), self.events.as_mut_ptr());
                let mut all = fi_wait_pollfd { change_index: 0, nfds, fd };
                let answer = control(cq, FI_GETWAIT, (&raw mut all).cast());
                self.events.resize(all.nfds, one);
                if answer == 0 || all.nfds <= nfds {
                    return answer;
                }
            }
        }
    }

    /// Reads completions; as `fi_cq_read` answers.
    #[inline]
    pub(in crate::ofi) fn completions(&mut self, entries: &mut [fi_cq_msg_entry]) -> Answer {
        // SAFETY: the table was checked, and the entries have the format that
        // the queue was opened with.
        unsafe {
            match (*(*self.cq).ops).read {
                Some(read) => read(self.cq, entries.as_mut_ptr().cast(), entries.len()),
                None => -ENOSYS as Answer,
            }
        }
    }

    /// What failed, after `completions` answered that something did.
    pub(in crate::ofi) fn failure(&mut self) -> Option<CqError> {
        // Later libraries write more, but only to who asked for their version.
        // SAFETY: a structure of integers and pointers.
        let mut entry: [fi_cq_err_entry; 2] = unsafe { core::mem::zeroed() };
        // SAFETY: the table was checked.
        let read = unsafe {
            let readerr = (*(*self.cq).ops).readerr?;
            readerr(self.cq, entry.as_mut_ptr(), 0)
        };
        let entry = &entry[0];
        (read == 1).then_some(CqError {
            context: entry.op_context as usize,
            code: entry.err,
            provider_code: entry.prov_errno,
        })
    }
}
