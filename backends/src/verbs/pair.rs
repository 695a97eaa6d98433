//! Queue pairs: made, brought from state to state, ended.
//!
//! ```text
//!  made ─ init ─► INIT ─ answer ─► RTR ─ ask ─► RTS ─ stop ─► ERR
//!                          reached by a peer    reaches it    everything flushed
//! ```

use super::address::Address;
use super::device::{VerbsDevice, errno};
use super::sys::*;
use core::ffi::c_int;

/// The parameters that all pairs of a NIC endpoint share.
#[derive(Clone, Copy)]
pub(super) struct QpParams {
    pub cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    /// The number of requests that a pair holds.
    pub depth: u32,
    pub inline_bytes: u32,
    pub timeout: u8,
}

/// The other end of a reliable pair.
#[derive(Clone, Copy)]
pub(super) struct RemoteQp {
    pub pair: u32,
    pub psn: u32,
    pub address: Address,
}

impl VerbsDevice {
    /// Makes a reliable pair in the state INIT. `asks`: it will send requests.
    pub(super) fn create_qp(&self, qp_params: &QpParams, asks: bool) -> Result<*mut ibv_qp, c_int> {
        let depth = if asks { qp_params.depth } else { 1 };
        let qp = self.create(qp_params, IBV_QPT_RC, qp_params.srq, depth, 0)?;
        let mut attr = attr(IBV_QPS_INIT);
        attr.port_num = self.facts.port;
        if !asks {
            attr.qp_access_flags = self.open_access();
        }
        self.modify(qp, &mut attr, TO_INIT).inspect_err(|_| self.destroy_qp(qp))?;
        Ok(qp)
    }

    /// Makes a pair for datagrams, ready for use.
    pub(super) fn create_cm_qp(
        &self,
        qp_params: &QpParams,
        sends: u32,
        receives: u32,
    ) -> Result<*mut ibv_qp, c_int> {
        let qp = self.create(qp_params, IBV_QPT_UD, core::ptr::null_mut(), sends, receives)?;
        let mut attr = attr(IBV_QPS_INIT);
        attr.port_num = self.facts.port;
        attr.qkey = QKEY;
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
        let mut steps = || {
            self.modify(qp, &mut attr, mask)?;
            attr.qp_state = IBV_QPS_RTR;
            self.modify(qp, &mut attr, IBV_QP_STATE)?;
            attr.qp_state = IBV_QPS_RTS;
            self.modify(qp, &mut attr, IBV_QP_STATE | IBV_QP_SQ_PSN)
        };
        steps().inspect_err(|_| self.destroy_qp(qp))?;
        Ok(qp)
    }

    /// Connects this pair to `remote`, so that it answers requests (state RTR).
    pub(super) fn answer(&self, qp: *mut ibv_qp, remote: &RemoteQp) -> Result<(), c_int> {
        let mut attr = attr(IBV_QPS_RTR);
        let own = self.address(0, 0);
        attr.path_mtu = own.mtu.min(remote.address.mtu).into();
        (attr.dest_qp_num, attr.rq_psn) = (remote.pair, remote.psn);
        attr.max_dest_rd_atomic = self.facts.reads_max;
        attr.min_rnr_timer = RNR_TIMER;
        attr.ah_attr = self.ah_attr(&remote.address);
        self.modify(qp, &mut attr, TO_RTR)
    }

    /// Lets this pair, which answers already, send requests (state RTS).
    pub(super) fn send_requests(
        &self,
        qp: *mut ibv_qp,
        remote: &RemoteQp,
        psn: u32,
        timeout: u8,
    ) -> Result<(), c_int> {
        let mut attr = attr(IBV_QPS_RTS);
        attr.sq_psn = psn;
        attr.max_rd_atomic = self.facts.reads_asked_max.min(remote.address.reads_max);
        (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (timeout, RETRIES, RNR_FOREVER);
        self.modify(qp, &mut attr, TO_RTS)
    }

    /// Flushes the requests that are under way.
    pub(super) fn stop(&self, qp: *mut ibv_qp) {
        // The call fails if the pair has stopped by itself.
        let _ = self.modify(qp, &mut attr(IBV_QPS_ERR), IBV_QP_STATE);
    }

    /// Ends a pair; the caller must not use it afterwards.
    pub(super) fn destroy_qp(&self, qp: *mut ibv_qp) {
        // SAFETY: this crate made the pair, and the caller does not use it any
        // more.
        unsafe { (self.library.ibv_destroy_qp)(qp) };
    }

    fn create(
        &self,
        qp_params: &QpParams,
        kind: u32,
        srq: *mut ibv_srq,
        sends: u32,
        receives: u32,
    ) -> Result<*mut ibv_qp, c_int> {
        let inline_bytes = if kind == IBV_QPT_RC { qp_params.inline_bytes } else { 0 };
        let mut attr = ibv_qp_init_attr {
            qp_context: core::ptr::null_mut(),
            send_cq: qp_params.cq,
            recv_cq: qp_params.cq,
            srq,
            cap: ibv_qp_cap {
                max_send_wr: sends,
                max_recv_wr: receives,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: inline_bytes,
            },
            qp_type: kind,
            sq_sig_all: 0,
        };
        // SAFETY: the domain is open, and the queues belong to it.
        let qp = unsafe { (self.library.ibv_create_qp)(self.pd, &mut attr) };
        if qp.is_null() { Err(errno()) } else { Ok(qp) }
    }

    /// The access rights of peers at a pair that answers.
    pub(super) fn open_access(&self) -> u32 {
        let atomics = self.facts.atomics != super::Atomics::None;
        let atomics = if atomics { IBV_ACCESS_REMOTE_ATOMIC } else { 0 };
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | atomics
    }

    pub(super) fn modify(
        &self,
        qp: *mut ibv_qp,
        attr: &mut ibv_qp_attr,
        mask: c_int,
    ) -> Result<(), c_int> {
        // SAFETY: the pair is open.
        match unsafe { (self.library.ibv_modify_qp)(qp, attr, mask) } {
            0 => Ok(()),
            code => Err(if code > 0 { code } else { errno() }),
        }
    }
}

/// The attributes for a change to that state.
pub(super) fn attr(qp_state: u32) -> ibv_qp_attr {
    // SAFETY: a structure of numbers; a mask selects those that are used.
    ibv_qp_attr { qp_state, ..unsafe { core::mem::zeroed() } }
}

/// The number of a pair.
///
/// # Safety
///
/// The pair must be open.
pub(super) unsafe fn number_of(qp: *mut ibv_qp) -> u32 {
    // SAFETY: the caller guarantees an open pair.
    unsafe { (*qp).qp_num }
}

/// The key that datagrams must carry.
pub(super) const QKEY: u32 = 0x7473_756d;

/// How often a request is sent again; with 7, Soft-RoCE would do so without end.
pub(super) const RETRIES: u8 = 6;

/// The time until a packet that found no buffer is sent again: 0.64 ms; without
/// end.
pub(super) const RNR_TIMER: u8 = 12;
pub(super) const RNR_FOREVER: u8 = 7;
