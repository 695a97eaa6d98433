//! Compares the declared structures with those of the installed headers, if there
//! are any.

use super::super::dct::sys as driver;
use super::*;
use std::collections::HashMap;
use tsumugi_conformance::left_out;

fn of_the_headers() -> Option<HashMap<String, usize>> {
    let header = "/usr/include/infiniband/verbs.h";
    crate::foreign::of_the_headers("verbs_layout.c", header, "ci/verbs.sh")
}

#[test]
fn layouts_equal_those_of_the_headers() {
    let Some(theirs) = of_the_headers() else { return };
    let mut fields_seen = 0;
    for (name, size, fields) in LAYOUT.iter().chain(driver::LAYOUT) {
        let of = |what: &str| *theirs.get(what).unwrap_or_else(|| panic!("{what} was not printed"));
        if OF_THE_LIBRARY.contains(name) {
            assert!(*size <= of(name), "{name} is larger than the header's");
        } else {
            assert_eq!(*size, of(name), "{name}");
        }
        for (field, offset) in fields.iter().filter(|(field, _)| !field.starts_with('_')) {
            let what = format!("{name}.{field}");
            assert_eq!(*offset, of(&what), "{what}");
            fields_seen += 1;
        }
    }
    assert_eq!((size_of::<ibv_gid>(), align_of::<ibv_gid>()), (theirs["ibv_gid"], 8));
    println!("{} structures, {fields_seen} fields", LAYOUT.len() + driver::LAYOUT.len());
}

#[test]
fn constants_equal_those_of_the_headers() {
    let Some(theirs) = of_the_headers() else { return };
    macro_rules! same {
        ($($name:ident),* $(,)?) => {
            $(assert_eq!($name as usize, theirs[stringify!($name)], stringify!($name));)*
        };
    }
    same!(
        IBV_QPT_RC,
        IBV_QPT_UD,
        IBV_QPS_INIT,
        IBV_QPS_RTR,
        IBV_QPS_RTS,
        IBV_QPS_ERR,
        IBV_WR_RDMA_WRITE,
        IBV_WR_SEND,
        IBV_WR_RDMA_READ,
        IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD,
        IBV_SEND_SIGNALED,
        IBV_SEND_INLINE,
        IBV_ACCESS_LOCAL_WRITE,
        IBV_ACCESS_REMOTE_WRITE,
        IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_REMOTE_ATOMIC,
        IBV_ATOMIC_NONE,
        IBV_ATOMIC_HCA,
        IBV_ATOMIC_GLOB,
        IBV_PORT_ACTIVE,
        IBV_MTU_256,
        IBV_MTU_4096,
        IBV_WC_SUCCESS,
        IBV_WC_WR_FLUSH_ERR,
        IBV_WC_REM_INV_REQ_ERR,
        IBV_WC_REM_ACCESS_ERR,
        IBV_WC_REM_OP_ERR,
        IBV_WC_RETRY_EXC_ERR,
        IBV_WC_RNR_RETRY_EXC_ERR,
        IBV_LINK_LAYER_ETHERNET,
        IBV_QP_STATE,
        IBV_QP_ACCESS_FLAGS,
        IBV_QP_PKEY_INDEX,
        IBV_QP_PORT,
        IBV_QP_QKEY,
        IBV_QP_AV,
        IBV_QP_PATH_MTU,
        IBV_QP_TIMEOUT,
        IBV_QP_RETRY_CNT,
        IBV_QP_RNR_RETRY,
        IBV_QP_RQ_PSN,
        IBV_QP_MAX_QP_RD_ATOMIC,
        IBV_QP_MIN_RNR_TIMER,
        IBV_QP_SQ_PSN,
        IBV_QP_MAX_DEST_RD_ATOMIC,
        IBV_QP_DEST_QPN,
    );
    use driver::*;
    same!(
        IBV_QPT_DRIVER,
        IBV_QP_INIT_ATTR_PD,
        IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        IBV_QP_EX_WITH_RDMA_WRITE,
        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
        IBV_QP_EX_WITH_SEND,
        IBV_QP_EX_WITH_RDMA_READ,
        IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
        MLX5DV_DCTYPE_DCT,
        MLX5DV_DCTYPE_DCI,
        MLX5DV_QP_INIT_ATTR_MASK_DC,
    );
}

#[test]
fn the_libraries_have_all_declared_symbols() {
    for loaded in [Library::load().map(drop), driver::Driver::load().map(drop)] {
        match loaded {
            Ok(()) => {}
            Err(error @ LoadError::NotFound { .. }) => {
                left_out("a library's symbols", &error.to_string(), "ci/verbs.sh");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Structures that the library allocates, of which only the start is declared.
const OF_THE_LIBRARY: [&str; 7] =
    ["ibv_cq", "ibv_qp", "ibv_srq", "ibv_context", "ibv_mr", "ibv_qp_ex", "mlx5dv_qp_ex"];
