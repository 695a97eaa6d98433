//! The posts of an endpoint: puts and gets, words, packets.
//!
//! The endpoint's tables were checked when it was opened.

use super::super::probe::Atomic;
use super::super::sys::*;
use super::RdmEndpoint;
use crate::net::{LocalBuffer, PostResult, RemoteBuffer};
use core::ffi::{c_int, c_void};

impl RdmEndpoint {
    /// Writes bytes to a peer.
    ///
    /// # Safety
    ///
    /// `near` must be valid for `bytes` bytes, and both it and `context` must stay
    /// until the completion.
    #[inline]
    pub(in crate::ofi) unsafe fn write(
        &mut self,
        near: LocalBuffer,
        bytes: usize,
        far: RemoteBuffer,
        context: *mut c_void,
        flags: u64,
    ) -> PostResult {
        // SAFETY: the table was checked; the caller guarantees the buffer and the
        // context.
        unsafe {
            let rma = &*(*self.ep).rma;
            if flags == 0 {
                let Some(write) = rma.write else { return -ENOSYS as PostResult };
                let at = near.at.cast_const().cast();
                return write(self.ep, at, bytes, near.desc, far.peer, far.addr, far.key, context);
            }
            let flags = flags | FI_COMPLETION | self.delivery;
            self.message(rma.writemsg, near, bytes, far, context, flags)
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
        near: LocalBuffer,
        bytes: usize,
        far: RemoteBuffer,
        context: *mut c_void,
        flags: u64,
    ) -> PostResult {
        // SAFETY: as in `write`.
        unsafe {
            let rma = &*(*self.ep).rma;
            if flags == 0 {
                let Some(read) = rma.read else { return -ENOSYS as PostResult };
                let at = near.at.cast();
                return read(self.ep, at, bytes, near.desc, far.peer, far.addr, far.key, context);
            }
            self.message(rma.readmsg, near, bytes, far, context, flags | FI_COMPLETION)
        }
    }

    /// # Safety
    ///
    /// That of [`write`](Self::write).
    unsafe fn message(
        &mut self,
        slot: Option<unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> PostResult>,
        near: LocalBuffer,
        bytes: usize,
        far: RemoteBuffer,
        context: *mut c_void,
        flags: u64,
    ) -> PostResult {
        let Some(slot) = slot else { return -ENOSYS as PostResult };
        let mut desc = near.desc;
        let local = libc::iovec { iov_base: near.at.cast(), iov_len: bytes };
        let remote = fi_rma_iov { addr: far.addr, len: bytes, key: far.key };
        let message = fi_msg_rma {
            msg_iov: &local,
            desc: &mut desc,
            iov_count: 1,
            addr: far.peer,
            rma_iov: &remote,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        // SAFETY: the caller guarantees the buffer; the vectors are read inside the
        // call.
        unsafe { slot(self.ep, &message, flags) }
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
        far: RemoteBuffer,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: the table was checked; the caller guarantees the word and the
        // context.
        unsafe {
            let Some(slot) = self.atomics().and_then(|table| table.write) else {
                return -ENOSYS as PostResult;
            };
            let at = operand.at.cast_const().cast();
            let (peer, addr, key) = (far.peer, far.addr, far.key);
            slot(self.ep, at, 1, operand.desc, peer, addr, key, datatype, op, context)
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
        far: RemoteBuffer,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: as in `atomic`.
        unsafe {
            let Some(slot) = self.atomics().and_then(|table| table.readwrite) else {
                return -ENOSYS as PostResult;
            };
            let (at, into) = (operand.at.cast_const().cast(), result.at.cast());
            let (peer, addr, key) = (far.peer, far.addr, far.key);
            slot(
                self.ep,
                at,
                1,
                operand.desc,
                into,
                result.desc,
                peer,
                addr,
                key,
                datatype,
                op,
                context,
            )
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
        far: RemoteBuffer,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: as in `atomic`.
        unsafe {
            let Some(slot) = self.atomics().and_then(|table| table.compwrite) else {
                return -ENOSYS as PostResult;
            };
            let (at, with) = (operand.at.cast_const().cast(), compare.at.cast_const().cast());
            let into = result.at.cast();
            let (peer, addr, key) = (far.peer, far.addr, far.key);
            slot(
                self.ep,
                at,
                1,
                operand.desc,
                with,
                compare.desc,
                into,
                result.desc,
                peer,
                addr,
                key,
                datatype,
                FI_CSWAP,
                context,
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
    /// `near` must be valid for `bytes` bytes, and both it and `context` must stay
    /// until the completion.
    pub(in crate::ofi) unsafe fn send(
        &mut self,
        near: LocalBuffer,
        bytes: usize,
        peer: fi_addr_t,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: the table was checked; the caller guarantees the buffer and the
        // context.
        unsafe {
            let Some(slot) = (*(*self.ep).msg).send else { return -ENOSYS as PostResult };
            slot(self.ep, near.at.cast_const().cast(), bytes, near.desc, peer, context)
        }
    }

    /// Injects a packet: the bytes are read inside the call, and it never
    /// completes.
    #[inline]
    pub(in crate::ofi) fn inject_packet(&mut self, bytes: &[u8], peer: fi_addr_t) -> PostResult {
        // SAFETY: the table was checked; the bytes are read inside the call.
        unsafe {
            let Some(slot) = (*(*self.ep).msg).inject else { return -ENOSYS as PostResult };
            slot(self.ep, bytes.as_ptr().cast(), bytes.len(), peer)
        }
    }

    /// Posts a receive buffer.
    ///
    /// # Safety
    ///
    /// That of [`send`](Self::send).
    pub(in crate::ofi) unsafe fn receive(
        &mut self,
        near: LocalBuffer,
        bytes: usize,
        context: *mut c_void,
    ) -> PostResult {
        // SAFETY: as in `send`.
        unsafe {
            let Some(slot) = (*(*self.ep).msg).recv else { return -ENOSYS as PostResult };
            slot(self.ep, near.at.cast(), bytes, near.desc, FI_ADDR_UNSPEC, context)
        }
    }
}
