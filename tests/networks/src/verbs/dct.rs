//! The driver's library of simulated cards: the dynamically connected transport, as
//! the driver's source and its manual define it.
//!
//! ```text
//!  wr_start ─ wr_rdma_write … wr_set_dc_addr, wr_set_sge ─ … ─► wr_complete
//!             └ written down ┘                                  └► pair.requests
//! ```
//!
//! - A target has no number before it is in RTR.
//! - A pair goes from state to state with the attributes that the kernel requires
//!   (`modify_dci_qp_is_ok`, `mlx5_ib_modify_dct`), and with no others.
//! - A request that was refused ends the pair of the initiator; the target goes on.

use super::devices::{Pair, Request, number, with};
use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ptr::null_mut;
use tsumugi_backends::verbs::dct::sys::*;
use tsumugi_backends::verbs::sys::*;

/// The part of a pair that only this transport has.
pub(super) struct Part {
    /// [`MLX5DV_DCTYPE_DCI`] or [`MLX5DV_DCTYPE_DCT`].
    pub kind: u32,
    /// The key that a target requires of requests.
    pub key: u64,
    draft: Draft,
}

/// The calls of a pair, and the requests that they have written down.
#[repr(C)]
struct Draft {
    raw: ibv_qp_ex,
    of_driver: mlx5dv_qp_ex,
    pair: *mut Pair,
    requests: Vec<Request>,
}

pub(super) static DRIVER: Driver = Driver {
    mlx5dv_is_supported: is_supported,
    mlx5dv_create_qp: create_qp,
    mlx5dv_qp_ex_from_ibv_qp_ex: of_driver,
    ibv_qp_to_qp_ex: to_ex,
};

unsafe extern "C" fn is_supported(_: *mut Opaque) -> bool {
    true
}

unsafe extern "C" fn create_qp(
    context: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
    of_driver: *mut mlx5dv_qp_init_attr,
) -> *mut ibv_qp {
    // SAFETY: the attributes are valid.
    let (attr, of_driver) = unsafe { (&*attr, &*of_driver) };
    let mlx5dv_dc_init_attr { dc_type: kind, dct_access_key: key } = of_driver.dc_init_attr;
    let asks = kind == MLX5DV_DCTYPE_DCI;
    let ops = if asks { IBV_QP_INIT_ATTR_SEND_OPS_FLAGS } else { 0 };
    let is_sound = attr.qp_type == IBV_QPT_DRIVER
        && of_driver.comp_mask == MLX5DV_QP_INIT_ATTR_MASK_DC
        && attr.comp_mask == IBV_QP_INIT_ATTR_PD | ops
        && attr.srq.is_null() == asks;
    assert!(is_sound, "attributes that do not fit a pair of the kind {kind}");
    let pair = super::calls::make(
        context,
        attr.pd,
        &super::calls::Asked {
            cqs: [attr.send_cq, attr.recv_cq],
            srq: attr.srq,
            kind: IBV_QPT_DRIVER,
            depth: attr.cap.max_send_wr as usize,
        },
    );
    let called = attr.send_ops_flags;
    let when = |op: u64| called & op != 0;
    // SAFETY: zeroes are valid: numbers, and slots that are not set are null.
    let (mut raw, mut calls): (ibv_qp_ex, mlx5dv_qp_ex) =
        unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    raw.wr_start = Some(start);
    raw.wr_complete = Some(complete);
    raw.wr_set_sge = Some(set_sge);
    raw.wr_set_inline_data = Some(set_inline);
    raw.wr_rdma_write = when(IBV_QP_EX_WITH_RDMA_WRITE).then_some(write as _);
    raw.wr_rdma_write_imm = when(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM).then_some(write_imm as _);
    raw.wr_rdma_read = when(IBV_QP_EX_WITH_RDMA_READ).then_some(read as _);
    raw.wr_send = when(IBV_QP_EX_WITH_SEND).then_some(send as _);
    raw.wr_atomic_fetch_add = when(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD).then_some(add as _);
    raw.wr_atomic_cmp_swp = when(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP).then_some(swap as _);
    calls.wr_set_dc_addr = Some(set_target);
    let draft = Draft { raw, of_driver: calls, pair, requests: Vec::new() };
    // SAFETY: the pair was made just now.
    unsafe {
        (*pair).part = Some(Box::new(Part { kind, key, draft }));
        if asks {
            (*pair).raw.qp_num = with(|world| number(world, pair));
        }
    }
    pair.cast()
}

/// Checks a change to state `to` with these attributes; returns an errno, or 0. A
/// target gets its number here.
pub(super) fn step(pair: &mut Pair, to: u32, mask: c_int) -> c_int {
    let Some(part) = &pair.part else { return 0 };
    let (kind, from) = (part.kind, pair.raw.state);
    let mask = mask & !IBV_QP_STATE;
    let (needs, may) = match (kind, from, to) {
        (_, _, IBV_QPS_ERR) => (0, 0),
        (MLX5DV_DCTYPE_DCT, 0, IBV_QPS_INIT) => {
            (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0)
        }
        (MLX5DV_DCTYPE_DCT, IBV_QPS_INIT, IBV_QPS_RTR) => {
            (IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU, 0)
        }
        (MLX5DV_DCTYPE_DCI, 0, IBV_QPS_INIT) => (IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0),
        (MLX5DV_DCTYPE_DCI, IBV_QPS_INIT, IBV_QPS_RTR) => {
            (IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV)
        }
        (MLX5DV_DCTYPE_DCI, IBV_QPS_RTR, IBV_QPS_RTS) => (
            IBV_QP_TIMEOUT
                | IBV_QP_RETRY_CNT
                | IBV_QP_RNR_RETRY
                | IBV_QP_MAX_QP_RD_ATOMIC
                | IBV_QP_SQ_PSN,
            IBV_QP_MIN_RNR_TIMER,
        ),
        _ => return libc::EINVAL,
    };
    if mask & needs != needs || mask & !(needs | may) != 0 {
        return libc::EINVAL;
    }
    if (kind, to) == (MLX5DV_DCTYPE_DCT, IBV_QPS_RTR) {
        let place: *mut Pair = pair;
        pair.raw.qp_num = with(|world| number(world, place));
    }
    0
}

unsafe extern "C" fn to_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    // SAFETY: the pair comes from `create_qp`.
    let part = unsafe { &mut (*qp.cast::<Pair>()).part };
    part.as_mut().map_or(null_mut(), |part| (&raw mut part.draft).cast())
}

unsafe extern "C" fn of_driver(qp: *mut ibv_qp_ex) -> *mut mlx5dv_qp_ex {
    // SAFETY: the pointer comes from `to_ex`: it is a draft, which starts with this
    // field.
    unsafe { &raw mut (*qp.cast::<Draft>()).of_driver }
}

/// The draft to which a call belongs.
///
/// # Safety
///
/// `qp` must come from `to_ex`.
unsafe fn draft<'d>(qp: *mut ibv_qp_ex) -> &'d mut Draft {
    // SAFETY: the caller guarantees the pointer; there is one thread, and one call
    // at a time.
    unsafe { &mut *qp.cast() }
}

unsafe extern "C" fn start(qp: *mut ibv_qp_ex) {
    // SAFETY: the caller passes a pointer of `to_ex`.
    let draft = unsafe { draft(qp) };
    assert!(draft.requests.is_empty(), "the last requests were not completed");
}

/// Begins a request with that opcode.
///
/// # Safety
///
/// `qp` must come from `to_ex`.
unsafe fn begin(
    qp: *mut ibv_qp_ex,
    opcode: u32,
    (remote, key): (u64, u32),
) -> &'static mut Request {
    // SAFETY: the caller's.
    let draft = unsafe { draft(qp) };
    draft.requests.push(Request {
        wr_id: draft.raw.wr_id,
        opcode,
        imm: 0,
        inline: None,
        at: 0,
        bytes: 0,
        remote,
        operands: (0, 0),
        key,
        to: 0,
        access_key: 0,
    });
    draft.requests.last_mut().expect("the request was pushed above")
}

unsafe extern "C" fn write(qp: *mut ibv_qp_ex, key: u32, remote: u64) {
    // SAFETY: the caller passes a pointer of `to_ex`, as for the next functions.
    unsafe { begin(qp, IBV_WR_RDMA_WRITE, (remote, key)) };
}

unsafe extern "C" fn write_imm(qp: *mut ibv_qp_ex, key: u32, remote: u64, imm: u32) {
    // SAFETY: the caller's.
    unsafe { begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM, (remote, key)).imm = imm };
}

unsafe extern "C" fn read(qp: *mut ibv_qp_ex, key: u32, remote: u64) {
    // SAFETY: the caller's.
    unsafe { begin(qp, IBV_WR_RDMA_READ, (remote, key)) };
}

unsafe extern "C" fn send(qp: *mut ibv_qp_ex) {
    // SAFETY: the caller's.
    unsafe { begin(qp, IBV_WR_SEND, (0, 0)) };
}

unsafe extern "C" fn add(qp: *mut ibv_qp_ex, key: u32, remote: u64, value: u64) {
    // SAFETY: the caller's.
    unsafe { begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, (remote, key)).operands = (value, 0) };
}

unsafe extern "C" fn swap(qp: *mut ibv_qp_ex, key: u32, remote: u64, compare: u64, new: u64) {
    // SAFETY: the caller's.
    unsafe { begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP, (remote, key)).operands = (compare, new) };
}

unsafe extern "C" fn set_sge(qp: *mut ibv_qp_ex, _: u32, at: u64, bytes: u32) {
    // SAFETY: the caller's.
    let request = unsafe { draft(qp) }.requests.last_mut().expect("a request was begun");
    (request.at, request.bytes) = (at, bytes);
}

unsafe extern "C" fn set_inline(qp: *mut ibv_qp_ex, at: *mut c_void, bytes: usize) {
    // SAFETY: the caller passes a pointer of `to_ex`, and the initiator's bytes.
    let (draft, bytes) =
        unsafe { (draft(qp), core::slice::from_raw_parts(at.cast::<u8>(), bytes)) };
    let request = draft.requests.last_mut().expect("a request was begun");
    (request.inline, request.bytes) = (Some(bytes.to_vec()), bytes.len() as u32);
}

unsafe extern "C" fn set_target(qp: *mut mlx5dv_qp_ex, ah: *mut ibv_ah, to: u32, key: u64) {
    assert!(!ah.is_null(), "the address handle is null");
    // SAFETY: the pointer comes from `of_driver`: it is a field of a draft.
    let draft = unsafe { &mut *qp.byte_sub(offset_of!(Draft, of_driver)).cast::<Draft>() };
    let request = draft.requests.last_mut().expect("a request was begun");
    (request.to, request.access_key) = (to, key);
}

unsafe extern "C" fn complete(qp: *mut ibv_qp_ex) -> c_int {
    // SAFETY: the caller's.
    let draft = unsafe { draft(qp) };
    // SAFETY: the pair of the draft lives; there is one thread.
    let (requests, depth, state) =
        unsafe { (&mut (*draft.pair).requests, (*draft.pair).depth, (*draft.pair).raw.state) };
    let fits = requests.len() + draft.requests.len() <= depth;
    if !fits || !matches!(state, IBV_QPS_RTS | IBV_QPS_ERR) {
        draft.requests.clear();
        return libc::ENOMEM;
    }
    for request in draft.requests.drain(..) {
        assert!(request.to != 0, "a request has no target");
        let is_one = requests.back().is_none_or(|last| last.to == request.to);
        assert!(is_one, "requests to two peers at the same time");
        requests.push_back(request);
    }
    // SAFETY: as above.
    with(|world| world.wake(unsafe { &mut *draft.pair }));
    0
}
