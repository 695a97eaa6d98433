//! The completions of an endpoint, and how to sleep until some have come.

use super::super::sys::*;
use super::RdmEndpoint;
use crate::net::PostResult;
use core::ffi::c_int;
use std::os::fd::RawFd;

/// The entry of a completion queue for an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ofi) struct CqError {
    pub context: usize,
    pub code: c_int,
    pub provider_code: c_int,
}

impl RdmEndpoint {
    /// The descriptor that becomes readable when something completes.
    pub(in crate::ofi) fn event(&self) -> Option<RawFd> {
        self.event
    }

    /// Prepares a sleep: returns whether the caller may sleep on
    /// [`event`](Self::event) now.
    pub(in crate::ofi) fn try_wait(&mut self) -> bool {
        if self.event.is_none() {
            return false;
        }
        // SAFETY: the slot was checked when the event was made.
        unsafe {
            let mut cq = &raw mut (*self.cq).fid;
            match (*(*self.fabric.raw).ops).trywait {
                Some(trywait) => trywait(self.fabric.raw, &mut cq, 1) == 0,
                None => false,
            }
        }
    }

    /// Reads completions; returns the result of `fi_cq_read`.
    #[inline]
    pub(in crate::ofi) fn completions(&mut self, entries: &mut [fi_cq_msg_entry]) -> PostResult {
        // SAFETY: the table was checked, and the entries have the format that
        // the queue was opened with.
        unsafe {
            match (*(*self.cq).ops).read {
                Some(read) => read(self.cq, entries.as_mut_ptr().cast(), entries.len()),
                None => -ENOSYS as PostResult,
            }
        }
    }

    /// The entry of a failed operation, after `completions` has returned that there
    /// is one.
    pub(in crate::ofi) fn failure(&mut self) -> Option<CqError> {
        // Later libraries write more, but only for a caller that requested their
        // version.
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
