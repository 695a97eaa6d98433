//! The functions and structures of libmlx5 that the dynamically connected transport
//! uses, and libibverbs' requests by calls (`ibv_wr_*`), which are the only way to
//! post its requests. `ci/verbs_layout.c` prints the offsets from the headers.

#![allow(non_camel_case_types)]
#![allow(missing_docs, missing_debug_implementations)]

use super::super::sys::*;
use crate::foreign::{constants, structures};
use core::ffi::{CStr, c_int, c_uint, c_void};

structures! {
    ibv_rx_hash_conf {
        rx_hash_function: u8, rx_hash_key_len: u8, rx_hash_key: *mut u8,
        rx_hash_fields_mask: u64,
    }
    ibv_qp_init_attr_ex {
        qp_context: *mut c_void, send_cq: *mut ibv_cq, recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq, cap: ibv_qp_cap, qp_type: u32, sq_sig_all: c_int, comp_mask: u32,
        pd: *mut ibv_pd, xrcd: *mut c_void, create_flags: u32, max_tso_header: u16,
        rwq_ind_tbl: *mut c_void, rx_hash_conf: ibv_rx_hash_conf, source_qpn: u32,
        send_ops_flags: u64,
    }
    ibv_qp_ex {
        qp_base: ibv_qp, _mutex: libc::pthread_mutex_t, _cond: libc::pthread_cond_t,
        _events_completed: u32, comp_mask: u64, wr_id: u64, wr_flags: c_uint,
        wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut Self, u32, u64, u64, u64)>,
        wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut Self, u32, u64, u64)>,
        _first: [Unused; 2],
        wr_rdma_read: Option<unsafe extern "C" fn(*mut Self, u32, u64)>,
        wr_rdma_write: Option<unsafe extern "C" fn(*mut Self, u32, u64)>,
        wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut Self, u32, u64, u32)>,
        wr_send: Option<unsafe extern "C" fn(*mut Self)>,
        _second: [Unused; 5],
        wr_set_inline_data: Option<unsafe extern "C" fn(*mut Self, *mut c_void, usize)>,
        _third: [Unused; 1],
        wr_set_sge: Option<unsafe extern "C" fn(*mut Self, u32, u64, u32)>,
        _fourth: [Unused; 1],
        wr_start: Option<unsafe extern "C" fn(*mut Self)>,
        wr_complete: Option<unsafe extern "C" fn(*mut Self) -> c_int>,
        wr_abort: Option<unsafe extern "C" fn(*mut Self)>,
    }
    mlx5dv_dc_init_attr { dc_type: u32, dct_access_key: u64 }
    mlx5dv_qp_init_attr {
        comp_mask: u64, create_flags: u32, dc_init_attr: mlx5dv_dc_init_attr,
        send_ops_flags: u64,
    }
    mlx5dv_qp_ex {
        comp_mask: u64,
        wr_set_dc_addr: Option<unsafe extern "C" fn(*mut Self, *mut ibv_ah, u32, u64)>,
    }
}

constants! { u32:
    IBV_QPT_DRIVER = 0xff,
    IBV_QP_INIT_ATTR_PD = 1, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6,
    MLX5DV_DCTYPE_DCT = 1, MLX5DV_DCTYPE_DCI = 2,
}
constants! { u64:
    IBV_QP_EX_WITH_RDMA_WRITE = 1, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM = 1 << 1,
    IBV_QP_EX_WITH_SEND = 1 << 2, IBV_QP_EX_WITH_RDMA_READ = 1 << 4,
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP = 1 << 5, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD = 1 << 6,
    MLX5DV_QP_INIT_ATTR_MASK_DC = 1 << 1,
}

library! {
    /// The driver's library, and one function of libibverbs, which is installed
    /// with it.
    Driver of SONAME:
    mlx5dv_is_supported: fn(*mut Opaque) -> bool;
    mlx5dv_create_qp:
        fn(*mut ibv_context, *mut ibv_qp_init_attr_ex, *mut mlx5dv_qp_init_attr) -> *mut ibv_qp;
    mlx5dv_qp_ex_from_ibv_qp_ex: fn(*mut ibv_qp_ex) -> *mut mlx5dv_qp_ex;
    ibv_qp_to_qp_ex: fn(*mut ibv_qp) -> *mut ibv_qp_ex;
}

const SONAME: &CStr = c"libmlx5.so.1";
