//! Two pairs that are each other's peers, worked as a program without a runtime
//! would: requests written down, posted, polled for.

use std::mem::{ManuallyDrop, zeroed};
use std::ptr::null_mut;
use tsumugi_backends::verbs::Facts;
use tsumugi_backends::verbs::sys::*;

/// Two pairs, each other's peers.
pub struct Bare {
    qp: *mut ibv_qp,
    cq: *mut ibv_cq,
    near: u64,
    lkey: u32,
    rkey: u32,
}

impl Bare {
    /// `memory` is 8 KiB that stay.
    pub fn open(library: &Library, facts: [&Facts; 2], memory: *mut u64) -> Self {
        // SAFETY: calls as libibverbs documents them, each answer looked at;
        // nothing is ever closed.
        unsafe {
            let mut count = 0;
            let list = (library.ibv_get_device_list)(&mut count);
            let name = |device| {
                std::ffi::CStr::from_ptr((library.ibv_get_device_name)(device)).to_string_lossy()
            };
            let access = IBV_ACCESS_LOCAL_WRITE
                | IBV_ACCESS_REMOTE_READ
                | IBV_ACCESS_REMOTE_WRITE
                | IBV_ACCESS_REMOTE_ATOMIC;
            let pair = |facts: &Facts| {
                let device = (0..count as usize)
                    .map(|at| *list.add(at))
                    .find(|&device| name(device) == facts.device)
                    .expect("the device");
                let context = (library.ibv_open_device)(device);
                let pd = (library.ibv_alloc_pd)(context);
                let mr = (library.ibv_reg_mr)(pd, memory.cast(), 8192, access as i32);
                let cq = (library.ibv_create_cq)(
                    context,
                    UNDER_WAY_MAX as i32,
                    null_mut(),
                    null_mut(),
                    0,
                );
                assert!(!mr.is_null() && !cq.is_null());
                let mut attr: ibv_qp_init_attr = zeroed();
                (attr.send_cq, attr.recv_cq, attr.qp_type) = (cq, cq, IBV_QPT_RC);
                attr.cap = ibv_qp_cap {
                    max_send_wr: UNDER_WAY_MAX as u32,
                    max_recv_wr: 1,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: 64,
                };
                let qp = (library.ibv_create_qp)(pd, &mut attr);
                assert!(!qp.is_null());
                (qp, cq, mr)
            };
            let [(qp, cq, mr), (other, _, far_mr)] = facts.map(pair);
            let [near, far] = facts;
            for (qp, facts, peer, peer_facts) in [(qp, near, other, far), (other, far, qp, near)] {
                let mut attr: ibv_qp_attr = zeroed();
                (attr.qp_state, attr.port_num) = (IBV_QPS_INIT, facts.port);
                attr.qp_access_flags = access;
                assert_eq!((library.ibv_modify_qp)(qp, &mut attr, TO_INIT), 0);
                attr.qp_state = IBV_QPS_RTR;
                attr.path_mtu = (facts.mtu_bytes / 128).ilog2();
                (attr.dest_qp_num, attr.max_dest_rd_atomic) = ((*peer).qp_num, facts.reads_max);
                attr.min_rnr_timer = 12;
                attr.ah_attr.grh.dgid.raw = peer_facts.gid;
                attr.ah_attr.grh.sgid_index = facts.gid_index;
                attr.ah_attr.grh.hop_limit = 64;
                (attr.ah_attr.dlid, attr.ah_attr.port_num) = (peer_facts.lid, facts.port);
                attr.ah_attr.is_global = facts.ethernet.into();
                assert_eq!((library.ibv_modify_qp)(qp, &mut attr, TO_RTR), 0);
                attr.qp_state = IBV_QPS_RTS;
                (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (14, 6, 7);
                attr.max_rd_atomic = facts.reads_asked_max;
                assert_eq!((library.ibv_modify_qp)(qp, &mut attr, TO_RTS), 0);
            }
            Self { qp, cq, near: memory as u64, lkey: (*mr).lkey, rkey: (*far_mr).rkey }
        }
    }

    /// One request, and its end.
    pub fn once(&self, opcode: u32) {
        let mut sge = self.sge();
        let mut request = self.request(opcode, &mut sge, null_mut());
        // SAFETY: an open pair and queue; the memory stays.
        unsafe {
            assert_eq!(ibv_post_send(self.qp, &mut request, &mut null_mut()), 0);
            let mut done: ibv_wc = zeroed();
            while self.take(&raw mut done, 1) == 0 {}
        }
    }

    /// As many requests as the batch has room for, with one doorbell, and their
    /// ends.
    pub fn batch(&self, opcode: u32, batch: &mut Batch) {
        let mut next = null_mut();
        for (request, sge) in batch.requests.iter_mut().zip(&mut batch.sges).rev() {
            *sge = self.sge();
            *request = self.request(opcode, sge, next);
            next = request;
        }
        // SAFETY: an open pair and queue; the memory stays, and the requests do
        // until they have been read.
        unsafe {
            assert_eq!(ibv_post_send(self.qp, next, &mut null_mut()), 0);
            let mut left = batch.requests.len();
            while left > 0 {
                left -= self.take(batch.done.as_mut_ptr(), left.min(batch.done.len()));
            }
        }
    }

    #[inline(always)]
    fn sge(&self) -> ibv_sge {
        ibv_sge { addr: self.near + 64, length: 8, lkey: self.lkey }
    }

    #[inline(always)]
    fn request(&self, opcode: u32, sge: *mut ibv_sge, next: *mut ibv_send_wr) -> ibv_send_wr {
        let (remote_addr, rkey) = (self.near + 4096 + 128, self.rkey);
        let wr = if opcode == IBV_WR_ATOMIC_FETCH_AND_ADD {
            let atomic = ibv_wr_atomic { remote_addr, compare_add: 1, swap: 0, rkey };
            ibv_wr { atomic: ManuallyDrop::new(atomic) }
        } else {
            ibv_wr { rdma: ManuallyDrop::new(ibv_wr_rdma { remote_addr, rkey }) }
        };
        let inline = if opcode == IBV_WR_RDMA_WRITE { IBV_SEND_INLINE } else { 0 };
        ibv_send_wr {
            wr_id: 1,
            next,
            sg_list: sge,
            num_sge: 1,
            opcode,
            send_flags: IBV_SEND_SIGNALED | inline,
            imm_data: 0,
            wr,
            qp_type: 0,
            _last: [0; 6],
        }
    }

    /// Completions that have come, which are all well.
    ///
    /// # Safety
    ///
    /// There is room for as many.
    #[inline(always)]
    unsafe fn take(&self, into: *mut ibv_wc, room: usize) -> usize {
        // SAFETY: an open queue; the rest is the caller's.
        let came = unsafe { ibv_poll_cq(self.cq, room as i32, into) };
        assert!(came >= 0, "ibv_poll_cq: {came}");
        for at in 0..came as usize {
            // SAFETY: it has been written.
            assert_eq!(unsafe { (*into.add(at)).status }, IBV_WC_SUCCESS);
        }
        came as usize
    }
}

/// Room for requests that go out at once, and for their ends.
pub struct Batch {
    requests: Vec<ibv_send_wr>,
    sges: Vec<ibv_sge>,
    done: Vec<ibv_wc>,
}

impl Batch {
    /// For so many, at most [`UNDER_WAY_MAX`].
    pub fn new(requests: usize) -> Self {
        assert!(requests <= UNDER_WAY_MAX, "{requests} at once");
        // SAFETY: numbers, and pointers that are null.
        unsafe {
            Self {
                requests: (0..requests).map(|_| zeroed()).collect(),
                sges: (0..requests).map(|_| zeroed()).collect(),
                done: (0..TAKEN_MAX).map(|_| zeroed()).collect(),
            }
        }
    }
}

/// Requests that a pair holds.
pub const UNDER_WAY_MAX: usize = 64;
/// Completions that are taken at once, as a NIC endpoint takes them.
const TAKEN_MAX: usize = 16;
