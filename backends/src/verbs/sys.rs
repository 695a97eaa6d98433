//! The functions and structures of libibverbs that are used.
//!
//! The library is loaded at run time. The functions that it exports by name make
//! and end objects; the calls of the data path are slots of a table in the context,
//! which `verbs.h` calls by inline functions:
//!
//! ```text
//!  ibv_get_device_list ─► ibv_open_device ─► ibv_context
//!    ibv_context.ops ─ {poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv}
//! ```
//!
//! The bindings are written for this crate: of the packages that have some,
//! rdma-core-sys has had no release since 2018 and does not build, and the others
//! need headers, cmake or libclang. Layouts are those of the interface IBVERBS_1.1,
//! which does not change. Names are libibverbs' own; `ci/verbs_layout.c` prints the
//! offsets from its headers, and a test compares.

#![allow(non_camel_case_types)]
#![allow(missing_docs, missing_debug_implementations)]

use crate::foreign::{constants, structures};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// An object of the library of which the fields are not used.
#[repr(C)]
pub struct Opaque {
    _inside: [u8; 0],
}

/// A slot of a table that is not used here.
pub type Unused = *const c_void;

structures! {
    ibv_pd { context: *mut ibv_context, handle: u32 }
    ibv_comp_channel { context: *mut ibv_context, fd: c_int, refcnt: c_int }
    ibv_cq {
        context: *mut ibv_context, channel: *mut ibv_comp_channel, cq_context: *mut c_void,
        handle: u32, cqe: c_int,
    }
    ibv_srq {
        context: *mut ibv_context, srq_context: *mut c_void, pd: *mut ibv_pd, handle: u32,
    }
    ibv_mr {
        context: *mut ibv_context, pd: *mut ibv_pd, addr: *mut c_void, length: usize,
        handle: u32, lkey: u32, rkey: u32,
    }
    ibv_qp {
        context: *mut ibv_context, qp_context: *mut c_void, pd: *mut ibv_pd,
        send_cq: *mut ibv_cq, recv_cq: *mut ibv_cq, srq: *mut ibv_srq,
        handle: u32, qp_num: u32, state: u32, qp_type: u32,
    }
    ibv_context_ops {
        _first: [Unused; 11],
        poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
        req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
        _second: [Unused; 7],
        post_srq_recv: Option<unsafe extern "C" fn(
            *mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
        _third: [Unused; 4],
        post_send: Option<unsafe extern "C" fn(
            *mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
        post_recv: Option<unsafe extern "C" fn(
            *mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
        _fourth: [Unused; 5],
    }
    ibv_context { device: *mut Opaque, ops: ibv_context_ops, cmd_fd: c_int, async_fd: c_int }
    ibv_device_attr {
        fw_ver: [c_char; 64], node_guid: u64, sys_image_guid: u64, max_mr_size: u64,
        page_size_cap: u64, vendor_id: u32, vendor_part_id: u32, hw_ver: u32,
        max_qp: c_int, max_qp_wr: c_int, device_cap_flags: c_uint, max_sge: c_int,
        max_sge_rd: c_int, max_cq: c_int, max_cqe: c_int, max_mr: c_int, max_pd: c_int,
        max_qp_rd_atom: c_int, max_ee_rd_atom: c_int, max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int, max_ee_init_rd_atom: c_int, atomic_cap: u32,
        max_ee: c_int, max_rdd: c_int, max_mw: c_int, max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int, max_mcast_grp: c_int, max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int, max_ah: c_int, max_fmr: c_int,
        max_map_per_fmr: c_int, max_srq: c_int, max_srq_wr: c_int, max_srq_sge: c_int,
        max_pkeys: u16, local_ca_ack_delay: u8, phys_port_cnt: u8,
    }
    ibv_port_attr {
        state: u32, max_mtu: u32, active_mtu: u32, gid_tbl_len: c_int, port_cap_flags: u32,
        max_msg_sz: u32, bad_pkey_cntr: u32, qkey_viol_cntr: u32, pkey_tbl_len: u16, lid: u16,
        sm_lid: u16, lmc: u8, max_vl_num: u8, sm_sl: u8, subnet_timeout: u8,
        init_type_reply: u8, active_width: u8, active_speed: u8, phys_state: u8,
        link_layer: u8, flags: u8, port_cap_flags2: u16,
    }
    ibv_global_route {
        dgid: ibv_gid, flow_label: u32, sgid_index: u8, hop_limit: u8, traffic_class: u8,
    }
    ibv_ah_attr {
        grh: ibv_global_route, dlid: u16, sl: u8, src_path_bits: u8, static_rate: u8,
        is_global: u8, port_num: u8,
    }
    ibv_srq_attr { max_wr: u32, max_sge: u32, srq_limit: u32 }
    ibv_srq_init_attr { srq_context: *mut c_void, attr: ibv_srq_attr }
    ibv_qp_cap {
        max_send_wr: u32, max_recv_wr: u32, max_send_sge: u32, max_recv_sge: u32,
        max_inline_data: u32,
    }
    ibv_qp_init_attr {
        qp_context: *mut c_void, send_cq: *mut ibv_cq, recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq, cap: ibv_qp_cap, qp_type: u32, sq_sig_all: c_int,
    }
    ibv_qp_attr {
        qp_state: u32, cur_qp_state: u32, path_mtu: u32, path_mig_state: u32, qkey: u32,
        rq_psn: u32, sq_psn: u32, dest_qp_num: u32, qp_access_flags: c_uint, cap: ibv_qp_cap,
        ah_attr: ibv_ah_attr, alt_ah_attr: ibv_ah_attr, pkey_index: u16, alt_pkey_index: u16,
        en_sqd_async_notify: u8, sq_draining: u8, max_rd_atomic: u8, max_dest_rd_atomic: u8,
        min_rnr_timer: u8, port_num: u8, timeout: u8, retry_cnt: u8, rnr_retry: u8,
        alt_port_num: u8, alt_timeout: u8, rate_limit: u32,
    }
    ibv_sge { addr: u64, length: u32, lkey: u32 }
    ibv_recv_wr {
        wr_id: u64, next: *mut ibv_recv_wr, sg_list: *mut ibv_sge, num_sge: c_int,
    }
    ibv_wr_rdma { remote_addr: u64, rkey: u32 }
    ibv_wr_atomic { remote_addr: u64, compare_add: u64, swap: u64, rkey: u32 }
    ibv_wr_ud { ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32 }
    ibv_send_wr {
        wr_id: u64, next: *mut ibv_send_wr, sg_list: *mut ibv_sge, num_sge: c_int,
        opcode: u32, send_flags: c_uint, imm_data: u32, wr: ibv_wr, qp_type: u32,
        _last: [u64; 6],
    }
    ibv_wc {
        wr_id: u64, status: u32, opcode: u32, vendor_err: u32, byte_len: u32, imm_data: u32,
        qp_num: u32, src_qp: u32, wc_flags: c_uint, pkey_index: u16, slid: u16, sl: u8,
        dlid_path_bits: u8,
    }
}

/// The part of a request that depends on its kind.
#[repr(C)]
pub union ibv_wr {
    pub rdma: core::mem::ManuallyDrop<ibv_wr_rdma>,
    pub atomic: core::mem::ManuallyDrop<ibv_wr_atomic>,
    pub ud: core::mem::ManuallyDrop<ibv_wr_ud>,
}

/// 16 bytes, as they go over the network; aligned as in C.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ibv_gid {
    pub raw: [u8; 16],
}

pub type ibv_ah = Opaque;

constants! { u32:
    IBV_QPT_RC = 2, IBV_QPT_UD = 4,
    IBV_QPS_INIT = 1, IBV_QPS_RTR = 2, IBV_QPS_RTS = 3, IBV_QPS_ERR = 6,
    IBV_WR_RDMA_WRITE = 0, IBV_WR_RDMA_WRITE_WITH_IMM = 1, IBV_WR_SEND = 2, IBV_WR_RDMA_READ = 4,
    IBV_WR_ATOMIC_CMP_AND_SWP = 5, IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
    IBV_SEND_SIGNALED = 1 << 1, IBV_SEND_INLINE = 1 << 3,
    IBV_ACCESS_LOCAL_WRITE = 1, IBV_ACCESS_REMOTE_WRITE = 1 << 1,
    IBV_ACCESS_REMOTE_READ = 1 << 2, IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
    IBV_ATOMIC_NONE = 0, IBV_ATOMIC_HCA = 1, IBV_ATOMIC_GLOB = 2,
    IBV_PORT_ACTIVE = 4, IBV_MTU_256 = 1, IBV_MTU_4096 = 5,
    IBV_WC_SUCCESS = 0, IBV_WC_WR_FLUSH_ERR = 5, IBV_WC_REM_INV_REQ_ERR = 9,
    IBV_WC_REM_ACCESS_ERR = 10, IBV_WC_REM_OP_ERR = 11, IBV_WC_RETRY_EXC_ERR = 12,
    IBV_WC_RNR_RETRY_EXC_ERR = 13,
    IBV_WC_RECV_RDMA_WITH_IMM = 129, IBV_WC_WITH_IMM = 1 << 1,
    IBV_LINK_LAYER_ETHERNET = 2,
}
constants! { c_int:
    IBV_QP_STATE = 1, IBV_QP_ACCESS_FLAGS = 1 << 3, IBV_QP_PKEY_INDEX = 1 << 4,
    IBV_QP_PORT = 1 << 5, IBV_QP_QKEY = 1 << 6, IBV_QP_AV = 1 << 7, IBV_QP_PATH_MTU = 1 << 8,
    IBV_QP_TIMEOUT = 1 << 9, IBV_QP_RETRY_CNT = 1 << 10, IBV_QP_RNR_RETRY = 1 << 11,
    IBV_QP_RQ_PSN = 1 << 12, IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    IBV_QP_MIN_RNR_TIMER = 1 << 15, IBV_QP_SQ_PSN = 1 << 16,
    IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17, IBV_QP_DEST_QPN = 1 << 20,
}

/// The attributes that a reliable pair needs for the change to INIT.
pub const TO_INIT: c_int = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
/// The same, for RTR.
pub const TO_RTR: c_int = IBV_QP_STATE
    | IBV_QP_AV
    | IBV_QP_PATH_MTU
    | IBV_QP_DEST_QPN
    | IBV_QP_RQ_PSN
    | IBV_QP_MAX_DEST_RD_ATOMIC
    | IBV_QP_MIN_RNR_TIMER;
/// The same, for RTS.
pub const TO_RTS: c_int = IBV_QP_STATE
    | IBV_QP_TIMEOUT
    | IBV_QP_RETRY_CNT
    | IBV_QP_RNR_RETRY
    | IBV_QP_SQ_PSN
    | IBV_QP_MAX_QP_RD_ATOMIC;

/// Declares a library, with the functions that it exports by name, loaded at run
/// time.
macro_rules! library {
    (
        $(#[$doc:meta])*
        $library:ident of $soname:ident:
        $($name:ident: fn($($type:ty),* $(,)?) -> $answer:ty;)*
    ) => {
        $(#[$doc])*
        pub struct $library {
            $(pub $name: unsafe extern "C" fn($($type),*) -> $answer,)*
        }

        impl $library {
            /// Loads the library, which is never unloaded.
            ///
            /// # Errors
            ///
            /// [`LoadError::NotFound`] if the system has no such library;
            /// [`LoadError::NoSuchFunction`] if the library lacks a function.
            pub fn load() -> Result<Self, LoadError> {
                // SAFETY: the name is a C string; loading the library runs its
                // constructors.
                let handle = unsafe { libc::dlopen($soname.as_ptr(), LOAD_FLAGS) };
                if handle.is_null() {
                    return Err(LoadError::NotFound { library: $soname });
                }
                Ok(Self {$(
                    $name: {
                        const NAME: &CStr = match CStr::from_bytes_with_nul(
                            concat!(stringify!($name), "\0").as_bytes(),
                        ) {
                            Ok(name) => name,
                            Err(_) => panic!("a function's name contains a zero byte"),
                        };
                        // SAFETY: the handle is open and the name is a C string.
                        let found = unsafe { libc::dlsym(handle, NAME.as_ptr()) };
                        if found.is_null() {
                            return Err(LoadError::NoSuchFunction { library: $soname, name: NAME });
                        }
                        // SAFETY: the library's function of this name has this
                        // type, and the library is never unloaded.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($type),*) -> $answer,
                            >(found)
                        }
                    },
                )*})
            }
        }
    };
}

pub(super) use library;

library! {
    /// libibverbs.
    Library of SONAME:
    ibv_get_device_list: fn(*mut c_int) -> *mut *mut Opaque;
    ibv_free_device_list: fn(*mut *mut Opaque) -> ();
    ibv_get_device_name: fn(*mut Opaque) -> *const c_char;
    ibv_open_device: fn(*mut Opaque) -> *mut ibv_context;
    ibv_close_device: fn(*mut ibv_context) -> c_int;
    ibv_query_device: fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    ibv_query_port: fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
    ibv_query_gid: fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
    ibv_alloc_pd: fn(*mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd: fn(*mut ibv_pd) -> c_int;
    ibv_reg_mr: fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    ibv_dereg_mr: fn(*mut ibv_mr) -> c_int;
    ibv_create_comp_channel: fn(*mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel: fn(*mut ibv_comp_channel) -> c_int;
    ibv_get_cq_event: fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    ibv_ack_cq_events: fn(*mut ibv_cq, c_uint) -> ();
    ibv_create_cq:
        fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    ibv_destroy_cq: fn(*mut ibv_cq) -> c_int;
    ibv_create_srq: fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_destroy_srq: fn(*mut ibv_srq) -> c_int;
    ibv_create_qp: fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp: fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    ibv_destroy_qp: fn(*mut ibv_qp) -> c_int;
    ibv_create_ah: fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah: fn(*mut ibv_ah) -> c_int;
}

/// Why a library cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The system has no library of that name.
    NotFound {
        /// The name of the library.
        library: &'static CStr,
    },
    /// The library lacks a function.
    NoSuchFunction {
        /// The library.
        library: &'static CStr,
        /// The name of the function.
        name: &'static CStr,
    },
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotFound { library } => {
                write!(f, "this machine has no {library:?}: install it, or set LD_LIBRARY_PATH")
            }
            Self::NoSuchFunction { library, name } => {
                write!(f, "{library:?} has no function {name:?}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Posts a list of requests with one doorbell. Returns an errno; `bad` is then the
/// first request that was not posted.
///
/// # Safety
///
/// `qp` must be open, and the list complete.
#[inline]
pub unsafe fn ibv_post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: &mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller guarantees the pair and the list; every driver has the
    // slot.
    unsafe { (*(*qp).context).ops.post_send.map_or(libc::ENOSYS, |slot| slot(qp, first, bad)) }
}

/// Posts a list of receive buffers.
///
/// # Safety
///
/// That of [`ibv_post_send`].
pub unsafe fn ibv_post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad: &mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as in `ibv_post_send`.
    unsafe { (*(*qp).context).ops.post_recv.map_or(libc::ENOSYS, |slot| slot(qp, first, bad)) }
}

/// Posts a list of receive buffers to a shared receive queue.
///
/// # Safety
///
/// `srq` must be open, and the list complete.
pub unsafe fn ibv_post_srq_recv(
    srq: *mut ibv_srq,
    first: *mut ibv_recv_wr,
    bad: &mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller guarantees the queue and the list; every driver has the
    // slot.
    unsafe {
        (*(*srq).context).ops.post_srq_recv.map_or(libc::ENOSYS, |slot| slot(srq, first, bad))
    }
}

/// Takes completions; returns how many, or a negative number.
///
/// # Safety
///
/// `cq` must be open, and `into` must have room for `count` entries.
#[inline]
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, count: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: the caller guarantees the queue and the room; every driver has the
    // slot.
    unsafe { (*(*cq).context).ops.poll_cq.map_or(-libc::ENOSYS, |slot| slot(cq, count, into)) }
}

/// Requests an event at the next completion.
///
/// # Safety
///
/// `cq` must be open and have a channel.
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: the caller guarantees the queue; every driver has the slot.
    unsafe { (*(*cq).context).ops.req_notify_cq.map_or(libc::ENOSYS, |slot| slot(cq, 0)) }
}

pub(super) const LOAD_FLAGS: c_int = libc::RTLD_NOW | libc::RTLD_LOCAL;
const SONAME: &CStr = c"libibverbs.so.1";

#[cfg(test)]
mod tests;
