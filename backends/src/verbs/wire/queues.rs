//! The queues of a wire: opened, tried, ended.

use super::super::cm;
use super::super::config::OpenError;
use super::super::dct::DctTarget;
use super::super::dct::support::DctSupport;
use super::super::device::{VerbsDevice, errno};
use super::super::pair::QpParams;
use super::super::sys::*;
use super::VerbsWire;
use crate::net::NetWire;
use core::ffi::c_int;
use core::ptr::null_mut;

impl VerbsWire {
    pub(super) fn open_queues(
        &mut self,
        event: bool,
        contexts: usize,
        receives: usize,
    ) -> Result<(), OpenError> {
        let failed = |name| OpenError::Call { name, code: errno() };
        let VerbsDevice { library, context, pd, .. } = self.device;
        if event {
            // SAFETY: the context is open.
            self.channel = unsafe { (library.ibv_create_comp_channel)(context) };
            if self.channel.is_null() {
                return Err(failed("ibv_create_comp_channel"));
            }
            // SAFETY: the channel's descriptor, which only this wire uses.
            unsafe { libc::fcntl((*self.channel).fd, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        let entries = (contexts + cm::COUNT + SPARE) as c_int;
        // SAFETY: the context is open, and the channel belongs to it or is null.
        self.qp_params.cq =
            unsafe { (library.ibv_create_cq)(context, entries, null_mut(), self.channel, 0) };
        if self.qp_params.cq.is_null() {
            return Err(failed("ibv_create_cq"));
        }
        let mut attr = ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: ibv_srq_attr { max_wr: receives as u32, max_sge: 1, srq_limit: 0 },
        };
        // SAFETY: the domain is open.
        self.qp_params.srq = unsafe { (library.ibv_create_srq)(pd, &mut attr) };
        if self.qp_params.srq.is_null() {
            return Err(failed("ibv_create_srq"));
        }
        Ok(())
    }

    /// Finds out how many bytes the device accepts inline in a request.
    pub(super) fn try_inline(&mut self) -> Result<(), OpenError> {
        let tried = self.try_pairs(|device, qp_params| device.create_qp(qp_params, true));
        tried.map_err(|code| OpenError::Call { name: "ibv_create_qp", code })
    }

    /// Makes this wire use the dynamically connected transport in both directions,
    /// if its device has it.
    pub(super) fn open_dct(&mut self) {
        let inline_bytes = self.qp_params.inline_bytes;
        let tried = self.try_pairs(VerbsDevice::create_dci);
        match tried.and_then(|()| DctTarget::open(&self.device, &self.qp_params)) {
            Ok(target) => {
                self.target = Some(target);
                self.device.facts.dct = DctSupport::Used;
            }
            Err(_) => self.qp_params.inline_bytes = inline_bytes,
        }
    }

    /// Makes a pair, with as many inline bytes as the device accepts, and ends it.
    fn try_pairs(
        &mut self,
        make: impl Fn(&VerbsDevice, &QpParams) -> Result<*mut ibv_qp, c_int>,
    ) -> Result<(), c_int> {
        loop {
            match make(&self.device, &self.qp_params) {
                Ok(qp) => {
                    self.device.destroy_qp(qp);
                    return Ok(());
                }
                Err(_) if self.qp_params.inline_bytes > 0 => self.qp_params.inline_bytes /= 2,
                Err(code) => return Err(code),
            }
        }
    }
}

impl Drop for VerbsWire {
    fn drop(&mut self) {
        NetWire::shut(self, core::iter::empty());
        let library = self.device.library;
        // SAFETY: each is owned or null, and is ended once, after the objects that
        // use it.
        unsafe {
            if !self.qp_params.srq.is_null() {
                (library.ibv_destroy_srq)(self.qp_params.srq);
            }
            if !self.qp_params.cq.is_null() {
                (library.ibv_destroy_cq)(self.qp_params.cq);
            }
            if !self.channel.is_null() {
                (library.ibv_destroy_comp_channel)(self.channel);
            }
        }
    }
}

/// The room of a queue for completions beyond those that can come.
const SPARE: usize = 64;
