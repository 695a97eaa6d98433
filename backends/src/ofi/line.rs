//! The interface of a rail, implemented with libfabric.
//!
//! libfabric writes to the context of an operation: each context number has 64
//! bytes, and libfabric gets their address.

use super::choice::{Choice, Facts};
use super::config::OpenError;
use super::fabric::Fabric;
use super::sys::*;
use super::wire::Wire;
use crate::net::{self, Answer, Area, ENTRIES_MAX, End, Entry, Far, Key, Mr, Near, Nears, Probed};
use core::ffi::{c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::Arc;
use tsumugi_core::mem::{Access, Rank, Width};
use tsumugi_core::op::{Kind, Op};

/// A wire of libfabric, with the memory of its contexts.
pub struct Line {
    // The wire is dropped first, because it uses the contexts.
    wire: Wire,
    contexts: Area,
}

/// The properties that a provider reports, and the results of the trials.
#[derive(Debug)]
pub struct About {
    pub(super) facts: Facts,
    pub(super) probed: Probed,
}

// SAFETY: the pointer points to memory that the line owns.
unsafe impl Send for Line {}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.facts.provider, self.facts.device)
    }
}

impl Line {
    pub(super) fn open(
        fabric: &Arc<Fabric>,
        choice: &Choice,
        contexts: usize,
        event: bool,
    ) -> Result<Self, OpenError> {
        let wire = Wire::open(fabric, choice, contexts, event)?;
        Ok(Self { wire, contexts: Area::new(contexts * CONTEXT_BYTES) })
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

impl net::Wire for Line {
    const NAME: &'static str = "ofi";

    type About = About;

    fn event(&self) -> Option<RawFd> {
        self.wire.event()
    }

    fn try_wait(&mut self) -> bool {
        self.wire.try_wait()
    }

    fn address(&self) -> Result<Vec<u8>, c_int> {
        self.wire.address()
    }

    fn insert(&mut self, _: Rank, address: &[u8]) -> Result<u64, c_int> {
        self.wire.insert(address)
    }

    fn remove(&mut self, peer: u64) -> Option<u64> {
        // The peer stays known, and can be informed. Requests that its provider has
        // sent already may still be carried out here: nothing withdraws a key from
        // one peer.
        Some(peer)
    }

    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        key: u64,
    ) -> Result<Mr, c_int> {
        let far = match access {
            Access::Local => FI_RECV | FI_TRANSMIT,
            Access::Read => FI_REMOTE_READ,
            Access::ReadWrite => FI_REMOTE_READ | FI_REMOTE_WRITE,
        };
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { self.wire.register(base, bytes, far | FI_READ | FI_WRITE, key) }
    }

    fn close_mr(&mut self, mr: &Mr) {
        self.wire.close_mr(mr);
    }

    fn map_key(&mut self, key: &Key, origin: u64) -> Result<u64, c_int> {
        self.wire.map_key(key, origin)
    }

    fn unmap_key(&mut self, key: u64) {
        self.wire.unmap_key(key);
    }

    #[inline]
    unsafe fn put(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        more: bool,
        inject: bool,
    ) -> Answer {
        let flags = if more { FI_MORE } else { 0 } | if inject { FI_INJECT } else { 0 };
        // SAFETY: the caller keeps the contract of `put`; the context stays as long
        // as the wire.
        unsafe { self.wire.write(near, bytes, far, self.context(context), flags) }
    }

    #[inline]
    unsafe fn get(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        more: bool,
    ) -> Answer {
        let flags = if more { FI_MORE } else { 0 };
        // SAFETY: as in `put`.
        unsafe { self.wire.read(near, bytes, far, self.context(context), flags) }
    }

    unsafe fn word(
        &mut self,
        op: &Op,
        nears: Nears,
        far: Far,
        context: usize,
        atomics: bool,
    ) -> Answer {
        let Nears { operand, compare, result } = nears;
        let width = op.width().unwrap_or(Width::W8) as usize;
        let datatype = if width == 4 { FI_UINT32 } else { FI_UINT64 };
        let context = self.context(context);
        let wire = &mut self.wire;
        let mut fetch = |op| {
            // SAFETY: the caller keeps the contract of `word`, for all of these
            // calls.
            unsafe { wire.fetch((datatype, op), operand, result, far, context) }
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
                wire.compare(datatype, operand, compare, result, far, context)
            },
            // SAFETY: as above.
            Kind::PutWord if atomics => unsafe {
                wire.atomic((datatype, FI_ATOMIC_WRITE), operand, far, context)
            },
            // SAFETY: as above.
            Kind::GetWord => unsafe { wire.read(result, width, far, context, 0) },
            // SAFETY: as above.
            _ => unsafe { wire.write(operand, width, far, context, 0) },
        }
    }

    unsafe fn send(&mut self, near: Near, bytes: usize, peer: u64, context: usize) -> Answer {
        // SAFETY: the caller keeps the contract of `send`.
        unsafe { self.wire.send(near, bytes, peer, self.context(context)) }
    }

    #[inline]
    fn give(&mut self, bytes: &[u8], peer: u64) -> Answer {
        self.wire.give(bytes, peer)
    }

    unsafe fn receive(&mut self, near: Near, bytes: usize, context: usize) -> Answer {
        // SAFETY: the caller keeps the contract of `receive`.
        unsafe { self.wire.receive(near, bytes, self.context(context)) }
    }

    fn completions(&mut self, entries: &mut [Entry; ENTRIES_MAX]) -> Result<usize, c_int> {
        let mut place: [MaybeUninit<fi_cq_msg_entry>; ENTRIES_MAX] =
            [const { MaybeUninit::uninit() }; ENTRIES_MAX];
        // SAFETY: the queue only writes to the array; entries that it has not
        // written are not read.
        let place =
            unsafe { core::slice::from_raw_parts_mut(place.as_mut_ptr().cast(), ENTRIES_MAX) };
        let answer = self.wire.completions(place);
        if answer > 0 {
            for (to, from) in entries.iter_mut().zip(&place[..answer as usize]) {
                let context = self.number(from.op_context as usize);
                *to = Entry { context, end: End::Done(from.len) };
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
        self.wire.shut(mrs);
    }
}

impl Line {
    #[cold]
    fn failures(&mut self, entries: &mut [Entry; ENTRIES_MAX]) -> usize {
        for (count, entry) in entries.iter_mut().enumerate() {
            let Some(error) = self.wire.failure() else { return count };
            let end = End::Refused { code: error.code, provider_code: error.provider_code };
            *entry = Entry { context: self.number(error.context), end };
        }
        ENTRIES_MAX
    }
}

/// The bytes that a provider may require for each operation (`fi_context2`).
const CONTEXT_BYTES: usize = 64;
