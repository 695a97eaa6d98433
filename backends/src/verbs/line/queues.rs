//! The queues of a line: opened, tried, ended.

use super::super::config::OpenError;
use super::super::device::{Device, errno};
use super::super::door;
use super::super::dynamic::Target;
use super::super::dynamic::support::Dynamic;
use super::super::pair::Terms;
use super::super::sys::*;
use super::Line;
use crate::net::Wire;
use core::ffi::c_int;
use core::ptr::null_mut;

impl Line {
    pub(super) fn open_queues(
        &mut self,
        event: bool,
        contexts: usize,
        receives: usize,
    ) -> Result<(), OpenError> {
        let failed = |name| OpenError::Call { name, code: errno() };
        let Device { library, context, pd, .. } = self.device;
        if event {
            // SAFETY: the context is open.
            self.channel = unsafe { (library.ibv_create_comp_channel)(context) };
            if self.channel.is_null() {
                return Err(failed("ibv_create_comp_channel"));
            }
            // SAFETY: the channel's descriptor, which only this line uses.
            unsafe { libc::fcntl((*self.channel).fd, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        let entries = (contexts + door::COUNT + SPARE) as c_int;
        // SAFETY: the context is open, and the channel belongs to it or is null.
        self.terms.cq =
            unsafe { (library.ibv_create_cq)(context, entries, null_mut(), self.channel, 0) };
        if self.terms.cq.is_null() {
            return Err(failed("ibv_create_cq"));
        }
        let mut attr = ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: ibv_srq_attr { max_wr: receives as u32, max_sge: 1, srq_limit: 0 },
        };
        // SAFETY: the domain is open.
        self.terms.srq = unsafe { (library.ibv_create_srq)(pd, &mut attr) };
        if self.terms.srq.is_null() {
            return Err(failed("ibv_create_srq"));
        }
        Ok(())
    }

    /// Finds out how many bytes the device accepts inline in a request.
    pub(super) fn try_inline(&mut self) -> Result<(), OpenError> {
        let tried = self.try_pairs(|device, terms| device.make_pair(terms, true));
        tried.map_err(|code| OpenError::Call { name: "ibv_create_qp", code })
    }

    /// Makes this line use the dynamically connected transport in both directions,
    /// if its device has it.
    pub(super) fn open_target(&mut self) {
        let inline_bytes = self.terms.inline_bytes;
        let tried = self.try_pairs(Device::make_asker);
        match tried.and_then(|()| Target::open(&self.device, &self.terms)) {
            Ok(target) => {
                self.target = Some(target);
                self.device.facts.dynamic = Dynamic::Used;
            }
            Err(_) => self.terms.inline_bytes = inline_bytes,
        }
    }

    /// Makes a pair, with as many inline bytes as the device accepts, and ends it.
    fn try_pairs(
        &mut self,
        make: impl Fn(&Device, &Terms) -> Result<*mut ibv_qp, c_int>,
    ) -> Result<(), c_int> {
        loop {
            match make(&self.device, &self.terms) {
                Ok(qp) => {
                    self.device.end_pair(qp);
                    return Ok(());
                }
                Err(_) if self.terms.inline_bytes > 0 => self.terms.inline_bytes /= 2,
                Err(code) => return Err(code),
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        Wire::shut(self, core::iter::empty());
        let library = self.device.library;
        // SAFETY: each is owned or null, and is ended once, after the objects that
        // use it.
        unsafe {
            if !self.terms.srq.is_null() {
                (library.ibv_destroy_srq)(self.terms.srq);
            }
            if !self.terms.cq.is_null() {
                (library.ibv_destroy_cq)(self.terms.cq);
            }
            if !self.channel.is_null() {
                (library.ibv_destroy_comp_channel)(self.channel);
            }
        }
    }
}

/// The room of a queue for completions beyond those that can come.
const SPARE: usize = 64;
