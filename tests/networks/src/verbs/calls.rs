//! The calls of a simulated library, as functions of C.

use super::dct;
use super::devices::{Buffer, Buffers, Pair, Queue, Request, World, number, with};
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use std::collections::VecDeque;
use tsumugi_backends::verbs::sys::*;

/// The simulated library.
pub(super) static LIBRARY: Library = Library {
    ibv_get_device_list: list,
    ibv_free_device_list: free_list,
    ibv_get_device_name: name,
    ibv_open_device: open,
    ibv_close_device: close,
    ibv_query_device: query_device,
    ibv_query_port: query_port,
    ibv_query_gid: query_gid,
    ibv_alloc_pd: alloc_pd,
    ibv_dealloc_pd: dealloc_pd,
    ibv_reg_mr: reg_mr,
    ibv_dereg_mr: dereg_mr,
    ibv_create_comp_channel: create_channel,
    ibv_destroy_comp_channel: destroy_channel,
    ibv_get_cq_event: get_event,
    ibv_ack_cq_events: ack_events,
    ibv_create_cq: create_cq,
    ibv_destroy_cq: destroy_cq,
    ibv_create_srq: create_srq,
    ibv_destroy_srq: destroy_srq,
    ibv_create_qp: create_qp,
    ibv_modify_qp: modify_qp,
    ibv_destroy_qp: destroy_qp,
    ibv_create_ah: create_ah,
    ibv_destroy_ah: destroy_ah,
};

unsafe extern "C" fn list(count: *mut c_int) -> *mut *mut Opaque {
    // SAFETY: the caller passes a place for the number.
    unsafe { *count = 1 };
    // The device is never dereferenced.
    Box::into_raw(Box::new(core::ptr::dangling_mut::<Opaque>()))
}

unsafe extern "C" fn free_list(list: *mut *mut Opaque) {
    // SAFETY: the pointer comes from `list`.
    drop(unsafe { Box::from_raw(list) });
}

unsafe extern "C" fn name(_: *mut Opaque) -> *const c_char {
    c"simulated".as_ptr()
}

unsafe extern "C" fn open(device: *mut Opaque) -> *mut ibv_context {
    // SAFETY: zeroes are valid: slots that are not set are null.
    let mut context: ibv_context = unsafe { core::mem::zeroed() };
    context.device = device;
    context.ops.poll_cq = Some(poll_cq);
    context.ops.req_notify_cq = Some(notify);
    context.ops.post_srq_recv = Some(post_srq);
    context.ops.post_send = Some(post_send);
    context.ops.post_recv = Some(post_recv);
    Box::into_raw(Box::new(context))
}

unsafe extern "C" fn close(context: *mut ibv_context) -> c_int {
    // SAFETY: the pointer comes from `open`.
    drop(unsafe { Box::from_raw(context) });
    0
}

unsafe extern "C" fn query_device(_: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
    // SAFETY: the caller passes a place for the result, a structure of numbers.
    let attr = unsafe {
        attr.write(core::mem::zeroed());
        &mut *attr
    };
    (attr.max_qp, attr.max_qp_wr, attr.max_cqe) = (1 << 16, 1 << 14, 1 << 20);
    (attr.max_qp_rd_atom, attr.max_qp_init_rd_atom) = (16, 16);
    attr.atomic_cap = IBV_ATOMIC_HCA;
    0
}

unsafe extern "C" fn query_port(_: *mut ibv_context, _: u8, attr: *mut ibv_port_attr) -> c_int {
    // SAFETY: the caller passes a place for the result, a structure of numbers.
    let attr = unsafe {
        attr.write(core::mem::zeroed());
        &mut *attr
    };
    (attr.state, attr.active_mtu, attr.max_msg_sz) = (IBV_PORT_ACTIVE, IBV_MTU_4096, 1 << 30);
    (attr.gid_tbl_len, attr.lid) = (1, 1);
    0
}

unsafe extern "C" fn query_gid(_: *mut ibv_context, _: u8, _: c_int, gid: *mut ibv_gid) -> c_int {
    // SAFETY: the caller passes a place for the result.
    unsafe { gid.write(ibv_gid { raw: [1; 16] }) };
    0
}

unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    Box::into_raw(Box::new(ibv_pd { context, handle: 0 }))
}

unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: the pointer comes from `alloc_pd`.
    drop(unsafe { Box::from_raw(pd) });
    0
}

unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    with(|world| {
        let key = world.number();
        world.regions.insert(key, (addr as u64, length as u64, access));
        // SAFETY: the domain is open.
        let context = unsafe { (*pd).context };
        Box::into_raw(Box::new(ibv_mr {
            context,
            pd,
            addr,
            length,
            handle: 0,
            lkey: key,
            rkey: key,
        }))
    })
}

unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    // SAFETY: the pointer comes from `reg_mr`.
    let mr = unsafe { Box::from_raw(mr) };
    with(|world| world.regions.remove(&mr.rkey));
    0
}

unsafe extern "C" fn create_channel(_: *mut ibv_context) -> *mut ibv_comp_channel {
    null_mut()
}

unsafe extern "C" fn destroy_channel(_: *mut ibv_comp_channel) -> c_int {
    0
}

unsafe extern "C" fn get_event(
    _: *mut ibv_comp_channel,
    _: *mut *mut ibv_cq,
    _: *mut *mut c_void,
) -> c_int {
    -1
}

unsafe extern "C" fn ack_events(_: *mut ibv_cq, _: c_uint) {}

unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    _: c_int,
) -> *mut ibv_cq {
    let raw = ibv_cq { context, channel, cq_context, handle: 0, cqe };
    Box::into_raw(Box::new(Queue { raw, entries: VecDeque::new() })).cast()
}

unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: the pointer comes from `create_cq`.
    drop(unsafe { Box::from_raw(cq.cast::<Queue>()) });
    0
}

unsafe extern "C" fn create_srq(pd: *mut ibv_pd, _: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: the domain is open.
    let context = unsafe { (*pd).context };
    let raw = ibv_srq { context, srq_context: null_mut(), pd, handle: 0 };
    Box::into_raw(Box::new(Buffers { raw, free: VecDeque::new() })).cast()
}

unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: the pointer comes from `create_srq`.
    drop(unsafe { Box::from_raw(srq.cast::<Buffers>()) });
    0
}

unsafe extern "C" fn create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: the domain is open, and the attributes are valid.
    let (context, attr) = unsafe { ((*pd).context, &*attr) };
    let pair = make(
        context,
        pd,
        &Asked {
            cqs: [attr.send_cq, attr.recv_cq],
            srq: attr.srq,
            kind: attr.qp_type,
            depth: attr.cap.max_send_wr as usize,
        },
    );
    // SAFETY: the pair was made just now.
    unsafe { (*pair).raw.qp_num = with(|world| number(world, pair)) };
    pair.cast()
}

/// The parameters of a new pair.
pub(super) struct Asked {
    pub cqs: [*mut ibv_cq; 2],
    pub srq: *mut ibv_srq,
    pub kind: u32,
    /// The number of requests that the pair holds; at most one: the pair only
    /// answers.
    pub depth: usize,
}

/// Makes a pair without a number.
pub(super) fn make(context: *mut ibv_context, pd: *mut ibv_pd, asked: &Asked) -> *mut Pair {
    let &Asked { cqs: [send_cq, recv_cq], srq, kind: qp_type, depth } = asked;
    let raw = ibv_qp {
        context,
        qp_context: null_mut(),
        pd,
        send_cq,
        recv_cq,
        srq,
        handle: 0,
        qp_num: 0,
        state: 0,
        qp_type,
    };
    let (requests, own) = (VecDeque::new(), VecDeque::new());
    let pair = Pair { raw, peer: 0, access: 0, depth, requests, own, is_busy: false, part: None };
    if pair.asks() {
        with(|world| {
            let (alive, max) = world.alive_max.entry(context.addr()).or_default();
            *alive += 1;
            *max = (*max).max(*alive);
        });
    }
    Box::into_raw(Box::new(pair))
}

unsafe extern "C" fn modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    // SAFETY: the pair comes from `create_qp`, and the attributes are valid.
    let (pair, attr) = unsafe { (&mut *qp.cast::<Pair>(), &*attr) };
    if mask & IBV_QP_STATE != 0 {
        let code = dct::step(pair, attr.qp_state, mask);
        if code != 0 {
            return code;
        }
        pair.raw.state = attr.qp_state;
    }
    if mask & IBV_QP_ACCESS_FLAGS != 0 {
        pair.access = attr.qp_access_flags;
    }
    if mask & IBV_QP_DEST_QPN != 0 {
        pair.peer = attr.dest_qp_num;
    }
    if !pair.requests.is_empty() {
        with(|world| world.wake(pair));
    }
    0
}

unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: the pointer comes from `create_qp`.
    let pair = unsafe { Box::from_raw(qp.cast::<Pair>()) };
    with(|world| {
        world.pairs.remove(&pair.raw.qp_num);
        if pair.asks() {
            world.alive_max.entry(pair.raw.context.addr()).or_default().0 -= 1;
        }
    });
    0
}

unsafe extern "C" fn create_ah(_: *mut ibv_pd, _: *mut ibv_ah_attr) -> *mut ibv_ah {
    Box::into_raw(Box::new(0u8)).cast()
}

unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: the pointer comes from `create_ah`.
    drop(unsafe { Box::from_raw(ah.cast::<u8>()) });
    0
}

unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, into: *mut ibv_wc) -> c_int {
    with(World::step);
    // SAFETY: the pointer comes from `create_cq`.
    let queue = unsafe { &mut (*cq.cast::<Queue>()).entries };
    let came = queue.len().min(count.max(0) as usize);
    for (at, entry) in queue.drain(..came).enumerate() {
        // SAFETY: the caller passes room for `count` entries.
        unsafe { into.add(at).write(entry) };
    }
    came as c_int
}

unsafe extern "C" fn notify(_: *mut ibv_cq, _: c_int) -> c_int {
    0
}

unsafe extern "C" fn post_srq(
    srq: *mut ibv_srq,
    first: *mut ibv_recv_wr,
    _: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the queue comes from `create_srq`, and there is one request.
    unsafe { (*srq.cast::<Buffers>()).free.push_back(buffer(&*first)) };
    0
}

unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    _: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the pair comes from `create_qp`, and there is one request.
    unsafe { (*qp.cast::<Pair>()).own.push_back(buffer(&*first)) };
    0
}

fn buffer(request: &ibv_recv_wr) -> Buffer {
    // SAFETY: a request has one piece.
    let sge = unsafe { &*request.sg_list };
    Buffer { wr_id: request.wr_id, at: sge.addr, bytes: sge.length }
}

unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the pair comes from `create_qp`.
    let pair = unsafe { &mut *qp.cast::<Pair>() };
    let mut next = first;
    // SAFETY: the caller passes a complete list.
    while let Some(wr) = unsafe { next.as_ref() } {
        if pair.requests.len() >= pair.depth {
            // SAFETY: the caller passes a place for the first request that is
            // refused.
            unsafe { bad.write(next) };
            return libc::ENOMEM;
        }
        pair.requests.push_back(read(wr, pair.raw.qp_type));
        next = wr.next;
    }
    with(|world| world.wake(pair));
    0
}

fn read(wr: &ibv_send_wr, kind: u32) -> Request {
    // SAFETY: a request has one piece.
    let sge = unsafe { &*wr.sg_list };
    let mut request = Request {
        wr_id: wr.wr_id,
        opcode: wr.opcode,
        imm: wr.imm_data,
        inline: None,
        at: sge.addr,
        bytes: sge.length,
        remote: 0,
        operands: (0, 0),
        key: 0,
        to: 0,
        access_key: 0,
    };
    if wr.send_flags & IBV_SEND_INLINE != 0 {
        // SAFETY: the bytes are the initiator's, which may change them after this
        // call.
        let bytes =
            unsafe { core::slice::from_raw_parts(sge.addr as *const u8, sge.length as usize) };
        request.inline = Some(bytes.to_vec());
    }
    // SAFETY: the kind and the opcode determine the union's field.
    unsafe {
        match wr.opcode {
            _ if kind == IBV_QPT_UD => request.to = wr.wr.ud.remote_qpn,
            IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let atomic = &wr.wr.atomic;
                (request.remote, request.key) = (atomic.remote_addr, atomic.rkey);
                request.operands = (atomic.compare_add, atomic.swap);
            }
            _ => {
                (request.remote, request.key) = (wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
            }
        }
    }
    request
}
