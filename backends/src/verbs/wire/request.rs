//! A request that is written down, in the form that libibverbs takes.

use super::super::sys::*;
use crate::net::RemoteBuffer;
use core::mem::ManuallyDrop;

/// A request and the description of its buffer.
#[repr(C)]
pub(super) struct SendRequest {
    pub wr: ibv_send_wr,
    pub sge: ibv_sge,
}

/// The remote end of a put or a get.
pub(super) fn rdma(remote: RemoteBuffer) -> ibv_wr {
    let rdma = ibv_wr_rdma { remote_addr: remote.addr, rkey: remote.key as u32 };
    ibv_wr { rdma: ManuallyDrop::new(rdma) }
}

/// The owner of a request that belongs to no link.
pub(super) const NOBODY: u32 = u32::MAX;
