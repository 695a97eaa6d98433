//! The dynamically connected transport: one pair that answers any number of peers
//! (the *target*, DCT), and few pairs that send requests, each to one peer at a
//! time (the *initiators*, DCI). Only NVIDIA's devices have it, by calls of
//! their driver's own library (libmlx5), which is optional.
//!
//! ```text
//!  wire ─┬─ target (DCT) ◄── any number of peers   its number is in the address
//!        └─ initiators (DCI) ─── lent to a connection while it has requests under way
//! ```
//!
//! A connection over it is made without a message to its peer: the connection takes an
//! initiator, and each request of it names the target. When the connection is closed, its
//! initiator goes to the next connection, so there are as many initiators as connections
//! at once, and the target rank keeps one pair for all peers. All requests of an
//! initiator that are under way go to one peer: an error concerns that peer alone, as
//! with a pair of its own, and requests stay in order.
//!
//! # Where it is used
//!
//! It is used where [`VerbsConfig::dct`](super::VerbsConfig::dct) requests it, both
//! ranks have it, and all trials of a device succeeded with it in this process;
//! otherwise pairs are used, as everywhere. **No such card was available**: this
//! code was run on simulated ones (`sim`), which follow the driver's source and its
//! manual, and was compared with the headers' layouts. Therefore it is used only on
//! request.
//!
//! A target answers any rank that knows its number, also a rank that was declared
//! dead: requests that such a rank still has under way may land. (A pair for one
//! peer is ended instead.)

pub(super) mod support;
pub mod sys;

use self::support::DctSupport;
use self::sys::*;
use super::address::Address;
use super::device::{VerbsDevice, errno};
use super::pair::{self, QpParams};
use super::sys::*;
use core::ffi::c_int;
use core::ptr::{null_mut, with_exposed_provenance_mut};

/// The pair that answers peers (DCT).
pub(super) struct DctTarget {
    qp: *mut ibv_qp,
}

impl DctTarget {
    /// Opens a target that answers any peer that knows its number.
    pub(super) fn open(device: &VerbsDevice, qp_params: &QpParams) -> Result<Self, c_int> {
        let qp = device.create_dc_qp(qp_params, MLX5DV_DCTYPE_DCT)?;
        let mut attr = pair::attr(IBV_QPS_INIT);
        attr.port_num = device.facts.port;
        attr.qp_access_flags = device.open_access();
        let mut steps = || {
            device.modify(qp, &mut attr, TO_INIT)?;
            attr.qp_state = IBV_QPS_RTR;
            let own = device.address(0, 0);
            (attr.path_mtu, attr.min_rnr_timer) = (own.mtu.into(), pair::RNR_TIMER);
            attr.ah_attr = device.ah_attr(&own);
            let mask = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER;
            device.modify(qp, &mut attr, mask)
        };
        steps().inspect_err(|_| device.destroy_qp(qp))?;
        Ok(Self { qp })
    }

    /// The number of the target for peers. (It has none before it is ready.)
    pub(super) fn number(&self) -> u32 {
        // SAFETY: the pair is open as long as this value.
        unsafe { pair::number_of(self.qp) }
    }

    pub(super) fn shut(self, device: &VerbsDevice) {
        device.destroy_qp(self.qp);
    }
}

impl VerbsDevice {
    /// Whether a peer is reached by this transport; a target has one packet length
    /// for all peers.
    pub(super) fn reaches_by_dct(&self, to: &Address) -> bool {
        self.facts.dct == DctSupport::Used && to.target != 0 && to.mtu >= self.address(0, 0).mtu
    }

    /// Makes a pair that sends requests (DCI), ready for any peer.
    pub(super) fn create_dci(&self, qp_params: &QpParams) -> Result<*mut ibv_qp, c_int> {
        let qp = self.create_dc_qp(qp_params, MLX5DV_DCTYPE_DCI)?;
        let mut attr = pair::attr(IBV_QPS_INIT);
        attr.port_num = self.facts.port;
        let mut steps = || {
            self.modify(qp, &mut attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)?;
            let own = self.address(0, 0);
            (attr.qp_state, attr.path_mtu) = (IBV_QPS_RTR, own.mtu.into());
            attr.ah_attr = self.ah_attr(&own);
            self.modify(qp, &mut attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV)?;
            attr.qp_state = IBV_QPS_RTS;
            attr.max_rd_atomic = self.facts.reads_asked_max;
            attr.timeout = qp_params.timeout;
            (attr.retry_cnt, attr.rnr_retry) = (pair::RETRIES, pair::RNR_FOREVER);
            self.modify(qp, &mut attr, TO_RTS)
        };
        steps().inspect_err(|_| self.destroy_qp(qp))?;
        Ok(qp)
    }

    fn create_dc_qp(&self, qp_params: &QpParams, kind: u32) -> Result<*mut ibv_qp, c_int> {
        let driver = self.driver.ok_or(libc::EOPNOTSUPP)?;
        let asks = kind == MLX5DV_DCTYPE_DCI;
        let mut attr = ibv_qp_init_attr_ex {
            qp_context: null_mut(),
            send_cq: qp_params.cq,
            recv_cq: qp_params.cq,
            srq: if asks { null_mut() } else { qp_params.srq },
            cap: ibv_qp_cap {
                max_send_wr: if asks { qp_params.depth } else { 1 },
                max_recv_wr: 0,
                max_send_sge: 1,
                max_recv_sge: 0,
                max_inline_data: if asks { qp_params.inline_bytes } else { 0 },
            },
            qp_type: IBV_QPT_DRIVER,
            sq_sig_all: 0,
            comp_mask: IBV_QP_INIT_ATTR_PD | if asks { IBV_QP_INIT_ATTR_SEND_OPS_FLAGS } else { 0 },
            pd: self.pd,
            xrcd: null_mut(),
            create_flags: 0,
            max_tso_header: 0,
            rwq_ind_tbl: null_mut(),
            rx_hash_conf: ibv_rx_hash_conf {
                rx_hash_function: 0,
                rx_hash_key_len: 0,
                rx_hash_key: null_mut(),
                rx_hash_fields_mask: 0,
            },
            source_qpn: 0,
            send_ops_flags: if asks { REQUESTS } else { 0 },
        };
        let mut of_driver = mlx5dv_qp_init_attr {
            comp_mask: MLX5DV_QP_INIT_ATTR_MASK_DC,
            create_flags: 0,
            dc_init_attr: mlx5dv_dc_init_attr {
                dc_type: kind,
                dct_access_key: if asks { 0 } else { ACCESS_KEY },
            },
            send_ops_flags: 0,
        };
        // SAFETY: the context is open, and the queues and the domain belong to it.
        let qp = unsafe { (driver.mlx5dv_create_qp)(self.context, &mut attr, &mut of_driver) };
        if qp.is_null() { Err(errno()) } else { Ok(qp) }
    }

    /// Posts a list of requests to an initiator, for one target, with one doorbell.
    /// Either all of them are posted, or none and an error is returned.
    ///
    /// # Safety
    ///
    /// `qp` must come from [`create_dci`](Self::create_dci) and have room for the
    /// requests, the list must be complete, and `ah` must be open.
    #[inline]
    pub(super) unsafe fn post_dci(
        &self,
        qp: *mut ibv_qp,
        first: *mut ibv_send_wr,
        ah: *mut ibv_ah,
        target: u32,
    ) -> c_int {
        // SAFETY: the caller guarantees that this driver made the pair with all of
        // these calls; each request has one piece, of a known kind.
        unsafe {
            let Some(driver) = self.driver else { return libc::EOPNOTSUPP };
            let qp = (driver.ibv_qp_to_qp_ex)(qp);
            let of_driver = (driver.mlx5dv_qp_ex_from_ibv_qp_ex)(qp);
            called((*qp).wr_start)(qp);
            let mut next = first.as_ref();
            while let Some(request) = next {
                (*qp).wr_id = request.wr_id;
                (*qp).wr_flags = request.send_flags & !IBV_SEND_INLINE;
                write_request(qp, request);
                called((*of_driver).wr_set_dc_addr)(of_driver, ah, target, ACCESS_KEY);
                let sge = &*request.sg_list;
                if request.send_flags & IBV_SEND_INLINE != 0 {
                    let from = with_exposed_provenance_mut(sge.addr as usize);
                    called((*qp).wr_set_inline_data)(qp, from, sge.length as usize);
                } else {
                    called((*qp).wr_set_sge)(qp, sge.lkey, sge.addr, sge.length);
                }
                next = request.next.as_ref();
            }
            called((*qp).wr_complete)(qp)
        }
    }
}

/// Writes the kind of a request.
///
/// # Safety
///
/// That of [`VerbsDevice::post_dci`].
#[inline]
unsafe fn write_request(qp: *mut ibv_qp_ex, request: &ibv_send_wr) {
    // SAFETY: the caller guarantees the request; the opcode determines the union's
    // field.
    unsafe {
        let (rdma, atomic) = (&request.wr.rdma, &request.wr.atomic);
        match request.opcode {
            IBV_WR_RDMA_WRITE => called((*qp).wr_rdma_write)(qp, rdma.rkey, rdma.remote_addr),
            IBV_WR_RDMA_WRITE_WITH_IMM => {
                let number = request.imm_data;
                called((*qp).wr_rdma_write_imm)(qp, rdma.rkey, rdma.remote_addr, number);
            }
            IBV_WR_RDMA_READ => called((*qp).wr_rdma_read)(qp, rdma.rkey, rdma.remote_addr),
            IBV_WR_SEND => called((*qp).wr_send)(qp),
            IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let add = called((*qp).wr_atomic_fetch_add);
                add(qp, atomic.rkey, atomic.remote_addr, atomic.compare_add);
            }
            IBV_WR_ATOMIC_CMP_AND_SWP => {
                let swap = called((*qp).wr_atomic_cmp_swp);
                swap(qp, atomic.rkey, atomic.remote_addr, atomic.compare_add, atomic.swap);
            }
            opcode => unreachable!("a wire writes no request of the opcode {opcode}"),
        }
    }
}

/// A call that was requested when the pair was made.
#[inline]
fn called<F>(slot: Option<F>) -> F {
    slot.expect("the call was requested when the pair was made")
}

/// The kinds of requests that a wire makes.
const REQUESTS: u64 = IBV_QP_EX_WITH_RDMA_WRITE
    | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | IBV_QP_EX_WITH_SEND
    | IBV_QP_EX_WITH_RDMA_READ
    | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// The key that requests must carry, as datagrams carry theirs: it distinguishes
/// requests of other programs, and is no secret.
const ACCESS_KEY: u64 = 0x7473_756d_7567_6921;
