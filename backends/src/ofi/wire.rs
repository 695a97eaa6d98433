//! The interface of a NIC endpoint, implemented with libfabric.
//!
//! libfabric writes to the context of an operation: each context number has 64
//! bytes, and libfabric gets their address.

use super::choice::{Choice, Facts};
use super::config::OpenError;
use super::endpoint::RdmEndpoint;
use super::fabric::Fabric;
use super::sys::*;
use crate::net::{
    self, CompletionEntry, CompletionStatus, ENTRIES_MAX, LocalBuffer, Mr, PostResult,
    RemoteBuffer, ShutOut, WireKey, WordBuffers, ZeroedPages,
};
use core::ffi::{c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::Arc;
use tsumugi_core::mem::{Access, Rank, Width};
use tsumugi_core::op::{Kind, Op};

/// A wire of libfabric, with the memory of its contexts.
pub struct OfiWire {
    // The wire is dropped first, because it uses the contexts.
    endpoint: RdmEndpoint,
    contexts: ZeroedPages,
}

/// The properties that a provider reports.
#[derive(Debug)]
pub struct OfiDescription {
    pub(super) facts: Facts,
}

// SAFETY: the pointer points to memory that the wire owns.
unsafe impl Send for OfiWire {}

impl fmt::Debug for OfiWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfiWire").finish_non_exhaustive()
    }
}

impl fmt::Display for OfiDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.facts.provider, self.facts.device)
    }
}

impl OfiWire {
    pub(super) fn open(
        fabric: &Arc<Fabric>,
        choice: &Choice,
        contexts: usize,
        event: bool,
    ) -> Result<Self, OpenError> {
        let endpoint = RdmEndpoint::open(fabric, choice, contexts, event)?;
        Ok(Self { endpoint, contexts: ZeroedPages::new(contexts * CONTEXT_BYTES) })
    }

    /// The address of a context. It cannot wrap: there are as many contexts.
    #[inline]
    fn context(&self, number: usize) -> *mut c_void {
        self.contexts.base.as_ptr().wrapping_add(number * CONTEXT_BYTES).cast()
    }

    #[inline]
    fn number(&self, context: usize) -> usize {
        context.wrapping_sub(self.contexts.base.as_ptr() as usize) / CONTEXT_BYTES
    }
}

impl net::NetWire for OfiWire {
    const NAME: &'static str = "ofi";

    type Description = OfiDescription;

    fn event(&self) -> Option<RawFd> {
        self.endpoint.event()
    }

    fn try_wait(&mut self) -> bool {
        self.endpoint.try_wait()
    }

    fn address(&self) -> Result<Vec<u8>, c_int> {
        self.endpoint.address()
    }

    fn insert(&mut self, _: Rank, address: &[u8]) -> Result<u64, c_int> {
        self.endpoint.insert(address)
    }

    const MEETS_UNKNOWN: bool = true;

    fn remove(&mut self, peer: u64, shut_out: ShutOut) -> Option<u64> {
        self.endpoint.fence(peer, shut_out);
        // The peer stays known, and can be informed.
        Some(peer)
    }

    fn send_notice(&mut self, bytes: &[u8], peer: u64) -> bool {
        self.endpoint.send_notice(bytes, peer)
    }

    fn take_notice(&mut self, into: &mut [u8]) -> Option<usize> {
        self.endpoint.take_notice(into)
    }

    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        key: u64,
    ) -> Result<Mr, c_int> {
        let remote = match access {
            Access::Local => FI_RECV | FI_TRANSMIT,
            Access::Read => FI_REMOTE_READ,
            Access::ReadWrite => FI_REMOTE_READ | FI_REMOTE_WRITE,
        };
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { self.endpoint.register(base, bytes, remote | FI_READ | FI_WRITE, key) }
    }

    fn close_mr(&mut self, mr: &Mr) {
        self.endpoint.close_mr(mr);
    }

    fn map_key(&mut self, key: &WireKey, origin: u64) -> Result<u64, c_int> {
        self.endpoint.map_key(key, origin)
    }

    fn unmap_key(&mut self, key: u64) {
        self.endpoint.unmap_key(key);
    }

    #[inline]
    unsafe fn put(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
        inject: bool,
    ) -> PostResult {
        let flags = if more { FI_MORE } else { 0 } | if inject { FI_INJECT } else { 0 };
        // SAFETY: the caller keeps the contract of `put`; the context stays as long
        // as the wire.
        unsafe { self.endpoint.write(local, bytes, remote, self.context(context), flags) }
    }

    #[inline]
    unsafe fn get(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
    ) -> PostResult {
        let flags = if more { FI_MORE } else { 0 };
        // SAFETY: as in `put`.
        unsafe { self.endpoint.read(local, bytes, remote, self.context(context), flags) }
    }

    unsafe fn word(
        &mut self,
        op: &Op,
        locals: WordBuffers,
        remote: RemoteBuffer,
        context: usize,
        atomics: bool,
    ) -> PostResult {
        let WordBuffers { operand, compare, result } = locals;
        let width = op.width().unwrap_or(Width::W8) as usize;
        let datatype = if width == 4 { FI_UINT32 } else { FI_UINT64 };
        let context = self.context(context);
        let endpoint = &mut self.endpoint;
        let mut fetch = |op| {
            // SAFETY: the caller keeps the contract of `word`, for all of these
            // calls.
            unsafe { endpoint.fetch((datatype, op), operand, result, remote, context) }
        };
        match op.kind {
            Kind::FetchAdd => fetch(FI_SUM),
            Kind::Swap => fetch(FI_ATOMIC_WRITE),
            Kind::FetchAnd => fetch(FI_BAND),
            Kind::FetchOr => fetch(FI_BOR),
            Kind::FetchXor => fetch(FI_BXOR),
            Kind::GetWord if atomics => fetch(FI_ATOMIC_READ),
            // SAFETY: as above.
            Kind::CompareSwap => unsafe {
                endpoint.compare(datatype, operand, compare, result, remote, context)
            },
            // SAFETY: as above.
            Kind::PutWord if atomics => unsafe {
                endpoint.atomic((datatype, FI_ATOMIC_WRITE), operand, remote, context)
            },
            // SAFETY: as above.
            Kind::GetWord => unsafe { endpoint.read(result, width, remote, context, 0) },
            // SAFETY: as above.
            _ => unsafe { endpoint.write(operand, width, remote, context, 0) },
        }
    }

    unsafe fn send(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        peer: u64,
        context: usize,
    ) -> PostResult {
        // SAFETY: the caller keeps the contract of `send`.
        unsafe { self.endpoint.send(local, bytes, peer, self.context(context)) }
    }

    #[inline]
    fn inject_packet(&mut self, bytes: &[u8], peer: u64) -> PostResult {
        self.endpoint.inject_packet(bytes, peer)
    }

    unsafe fn receive(&mut self, local: LocalBuffer, bytes: usize, context: usize) -> PostResult {
        // SAFETY: the caller keeps the contract of `receive`.
        unsafe { self.endpoint.receive(local, bytes, self.context(context)) }
    }

    fn completions(
        &mut self,
        entries: &mut [CompletionEntry; ENTRIES_MAX],
    ) -> Result<usize, c_int> {
        let mut place: [MaybeUninit<fi_cq_msg_entry>; ENTRIES_MAX] =
            [const { MaybeUninit::uninit() }; ENTRIES_MAX];
        // SAFETY: the queue only writes to the array; entries that it has not
        // written are not read.
        let place =
            unsafe { core::slice::from_raw_parts_mut(place.as_mut_ptr().cast(), ENTRIES_MAX) };
        let has_callers = self.endpoint.fence.has_callers();
        let answer = self.endpoint.completions(place);
        if has_callers {
            self.endpoint.shut_out();
        }
        if answer > 0 {
            for (to, from) in entries.iter_mut().zip(&place[..answer as usize]) {
                let context = self.number(from.op_context as usize);
                *to = CompletionEntry { context, end: CompletionStatus::Done(from.len) };
            }
            return Ok(answer as usize);
        }
        match answer as c_int {
            code if code == -FI_EAVAIL => Ok(self.failures(entries)),
            0 => Ok(0),
            code if code == -EAGAIN => Ok(0),
            code => Err(-code),
        }
    }

    fn shut(&mut self, mrs: impl Iterator<Item = Mr>) {
        self.endpoint.shut(mrs);
    }
}

impl OfiWire {
    #[cold]
    fn failures(&mut self, entries: &mut [CompletionEntry; ENTRIES_MAX]) -> usize {
        for (count, entry) in entries.iter_mut().enumerate() {
            let Some(error) = self.endpoint.failure() else { return count };
            let (code, provider_code) = (error.code, error.provider_code);
            // A connection ends with its peer, or because the peer has given this rank
            // up: the operation must not be tried again on the next connection.
            let end = match CONNECTION_ENDED.contains(&code) {
                true => CompletionStatus::Gone { code, provider_code },
                false => CompletionStatus::Refused { code, provider_code },
            };
            *entry = CompletionEntry { context: self.number(error.context), end };
        }
        ENTRIES_MAX
    }
}

/// The errors of an operation whose connection has ended.
const CONNECTION_ENDED: [c_int; 5] =
    [libc::ENOTCONN, libc::ECONNRESET, libc::ECONNABORTED, libc::EPIPE, libc::ESHUTDOWN];

/// The bytes that a provider may require for each operation (`fi_context2`).
const CONTEXT_BYTES: usize = 64;
