//! The posts of an endpoint: puts and gets, words, packets.
//!
//! The endpoint's tables were checked when it was opened.

use super::super::probe::Atomic;
use super::super::sys::*;
use super::RdmEndpoint;
use crate::net::{LocalBuffer, PostResult, RemoteBuffer};
use core::ffi::{c_int, c_void};

/// Calls a function of a table of the endpoint, if the provider has it.
macro_rules! call {
    ($function:expr, $($argument:expr),+) => {
        match $function {
            Some(function) => function($($argument),+),
            None => -ENOSYS as PostResult,
        }
    };
}

impl RdmEndpoint {
    /// Writes bytes to a peer.
    ///
    /// # Safety
    ///
    /// `local` must be valid for `bytes` bytes, and both it and `context` must stay
    /// until the completion.
    #[inline]
    pub(in crate::ofi) unsafe fn write(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: *mut c_void,
        flags: u64,
    ) -> PostResult {
        // SAFETY: the table was checked; the caller guarantees the buffer and the
        // context.
        unsafe {
            let rma = &*(*self.ep).rma;
            if flags == 0 {
                let (at, desc) = (local.at.cast_const().cast(), local.desc);
                let (peer, addr, key) = (remote.peer, remote.addr, remote.key);
                return call!(rma.write, self.ep, at, bytes, desc, peer, addr, key, context);
            }
            let flags = flags | FI_COMPLETION | self.delivery;
            self.message(rma.writemsg, local, bytes, remote, context, flags)
        }
    }

    /// Reads bytes from a peer.
    ///
    /// # Safety
    ///
    /// That of [`write`](Self::write).
    #[inline]
    pub(in crate::ofi) unsafe fn read(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: *mut c_void,
        flags: u64,
    ) -> PostResult {
        // SAFETY: as in `write`.
        unsafe {
            let rma = &*(*self.ep).rma;
            if flags == 0 {
                let (at, desc) = (local.at.cast(), local.desc);
                let (peer, addr, key) = (remote.peer, remote.addr, remote.key);
                return call!(rma.read, self.ep, at, bytes, desc, peer, addr, key, context);
            }
            self.message(rma.readmsg, local, bytes, remote, context, flags | FI_COMPLETION)
        }
    }

    /// # Safety
    ///
    /// That of [`write`](Self::write).
    unsafe fn message(
        &mut self,
        slot: Option<unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> PostResult>,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: *mut c_void,
        flags: u64,
    ) -> PostResult {
        let mut desc = local.desc;
        let local_iov = libc::iovec { iov_base: local.at.cast(), iov_len: bytes };
        let remote_iov = fi_rma_iov { addr: remote.addr, len: bytes, key: remote.key };
        let message = fi_msg_rma {
            msg_iov: &local_iov,
            desc: &mut desc,
            iov_count: 1,
            addr: remote.peer,
            rma_iov: &remote_iov,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        // SAFETY: the caller guarantees the buffer; the vectors are read inside the
        // call.
        unsafe { call!(slot, self.ep, &message, flags) }
    }

    /// Stores or changes a word, without a result.
    ///
    /// # Safety
    ///
    /// `operand` must be a word of that type, and it and `context` must stay until
    /// the completion.
    #[inline]
    pub(in crate::ofi) unsafe fn atomic(
        &mut self,
        (datatype, op): (c_int, c_int),
        operand: LocalBuffer,
        remote: RemoteBuffer,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: the table was checked; the caller guarantees the word and the
        // context.
        unsafe {
            let (write, desc) = (self.atomics().and_then(|table| table.write), operand.desc);
            let at = operand.at.cast_const().cast();
            let (peer, addr, key) = (remote.peer, remote.addr, remote.key);
            call!(write, self.ep, at, 1, desc, peer, addr, key, datatype, op, context)
        }
    }

    /// Changes a word and writes its old value to `result`.
    ///
    /// # Safety
    ///
    /// That of [`atomic`](Self::atomic), for `result` too.
    #[inline]
    pub(in crate::ofi) unsafe fn fetch(
        &mut self,
        (datatype, op): (c_int, c_int),
        operand: LocalBuffer,
        result: LocalBuffer,
        remote: RemoteBuffer,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: as in `atomic`.
        unsafe {
            let change = self.atomics().and_then(|table| table.readwrite);
            let (at, desc) = (operand.at.cast_const().cast(), operand.desc);
            let (into, old) = (result.at.cast(), result.desc);
            let (to, addr, key) = (remote.peer, remote.addr, remote.key);
            call!(change, self.ep, at, 1, desc, into, old, to, addr, key, datatype, op, context)
        }
    }

    /// Replaces a word if its value equals `compare`.
    ///
    /// # Safety
    ///
    /// That of [`atomic`](Self::atomic), for `result` and `compare` too.
    #[inline]
    pub(in crate::ofi) unsafe fn compare(
        &mut self,
        datatype: c_int,
        operand: LocalBuffer,
        compare: LocalBuffer,
        result: LocalBuffer,
        remote: RemoteBuffer,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: as in `atomic`.
        unsafe {
            let swap = self.atomics().and_then(|table| table.compwrite);
            let (at, desc) = (operand.at.cast_const().cast(), operand.desc);
            let (with, expected) = (compare.at.cast_const().cast(), compare.desc);
            let (into, old) = (result.at.cast(), result.desc);
            let (to, addr, key, op) = (remote.peer, remote.addr, remote.key, FI_CSWAP);
            call!(
                swap, self.ep, at, 1, desc, with, expected, into, old, to, addr, key, datatype, op,
                context
            )
        }
    }

    /// Whether the provider reports that it supports this atomic.
    pub(in crate::ofi) fn is_valid(&self, of: Atomic, datatype: c_int, op: c_int) -> bool {
        let Some(table) = self.atomics() else { return false };
        let slot = match of {
            Atomic::Store => table.writevalid,
            Atomic::Fetch => table.readwritevalid,
            Atomic::Compare => table.compwritevalid,
        };
        let mut count = 0;
        // SAFETY: the table was checked.
        slot.is_some_and(
            |slot| unsafe { slot(self.ep, datatype, op, &mut count) } == 0 && count > 0,
        )
    }

    fn atomics(&self) -> Option<&fi_ops_atomic> {
        // SAFETY: the pointer is null, or the endpoint's own table.
        unsafe { (*self.ep).atomic.as_ref() }
    }

    /// Sends a packet.
    ///
    /// # Safety
    ///
    /// `local` must be valid for `bytes` bytes, and both it and `context` must stay
    /// until the completion.
    pub(in crate::ofi) unsafe fn send(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        peer: fi_addr_t,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: the table was checked; the caller guarantees the buffer and the
        // context.
        unsafe {
            call!(
                (*(*self.ep).msg).send,
                self.ep,
                local.at.cast_const().cast(),
                bytes,
                local.desc,
                peer,
                context
            )
        }
    }

    /// Injects a packet: the bytes are read inside the call, and it never
    /// completes.
    #[inline]
    pub(in crate::ofi) fn inject_packet(&mut self, bytes: &[u8], peer: fi_addr_t) -> PostResult {
        // SAFETY: the table was checked; the bytes are read inside the call.
        unsafe {
            call!((*(*self.ep).msg).inject, self.ep, bytes.as_ptr().cast(), bytes.len(), peer)
        }
    }

    /// Posts a receive buffer.
    ///
    /// # Safety
    ///
    /// That of [`send`](Self::send).
    pub(in crate::ofi) unsafe fn receive(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: as in `send`.
        unsafe {
            call!(
                (*(*self.ep).msg).recv,
                self.ep,
                local.at.cast(),
                bytes,
                local.desc,
                FI_ADDR_UNSPEC,
                context
            )
        }
    }
}
