//! The path of an operation: by this node's processors at once, through the queue of
//! [`Path`](crate::config::Path), or over the network.

use crate::handle::RankHandle;
use crate::lasting::Lasting;
use crate::net::NetLayer;
use crate::queue::NodeQueue;
use std::ptr::NonNull;
use tsumugi_core::backend::{LoadStore, execute, load_bytes, store_bytes};
use tsumugi_core::mem::{Access, AddrError, Agent, LocalAddr, Need, Region, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::sync::mapped::AtomicU64;

/// The path of an operation.
#[derive(Debug)]
pub enum Route<'a> {
    /// The calling thread carries the operation out at once.
    Here,
    /// It goes through a queue of the node.
    Queue(&'a NodeQueue),
    /// It goes over the network.
    Net(&'a NetLayer),
}

impl RankHandle {
    /// The path of an operation.
    #[inline]
    pub fn route(&self, op: &Op) -> Route<'_> {
        match (&self.net, &self.queue) {
            (Some(net), _) if net.has(&op.remote) => Route::Net(net),
            (_, Some(queue)) => Route::Queue(queue),
            (_, None) => Route::Here,
        }
    }

    /// The word at `at`, if this rank's processors may change it directly, for
    /// callers that need atomics without further cost; otherwise they use
    /// [`carry`](Self::carry).
    #[inline(always)]
    pub fn word_at_hand(&self, at: RemoteAddr) -> Option<&AtomicU64> {
        if self.queue.is_some() {
            return None;
        }
        self.direct.word(at.rank, at.key, at.offset)
    }

    /// The address of these bytes, if this rank's processors may read them directly.
    /// Otherwise an operation returns the reason, or reads them by another way.
    #[inline(always)]
    pub fn bytes_at_hand(&self, at: RemoteAddr, bytes: u64) -> Option<NonNull<u8>> {
        if self.queue.is_some() {
            return None;
        }
        self.direct.resolve(at, bytes, Need::Read).ok()
    }

    /// Carries out an operation on a word.
    #[inline(always)]
    pub fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let result = match &self.queue {
            None => execute(&self.direct, op),
            Some(queue) => queue.run(op),
        };
        match result {
            Err(error) if is_elsewhere(error) => self.run_remote(op),
            result => result,
        }
    }

    /// Carries out an operation if this node's processors can do so at once, and
    /// returns its result.
    #[inline]
    pub fn carry_at_hand(&self, op: &Op) -> Option<Result<u64, AddrError>> {
        if self.queue.is_some() {
            return None;
        }
        let result = execute(&self.direct, op);
        (!matches!(result, Err(error) if is_elsewhere(error))).then_some(result)
    }

    /// Carries out an operation that may outlive its caller, as
    /// [`carry`](Self::carry) does.
    #[cold]
    pub fn carry_lasting(&self, lasting: &Lasting) -> Result<u64, AddrError> {
        if !lasting.is_remote() {
            let result = match &self.queue {
                None => execute(&self.direct, &lasting.op()),
                Some(queue) => queue.run_lasting(lasting),
            };
            match result {
                Err(error) if is_elsewhere(error) => lasting.goes_remote(),
                result => return result,
            }
        }
        match &self.net {
            Some(net) => net.run_lasting(lasting),
            None => Err(AddrError::OtherNode { rank: lasting.op().remote.rank }),
        }
    }

    /// Carries out an operation that this node's processors cannot.
    #[cold]
    #[inline(never)]
    pub fn run_remote(&self, op: &Op) -> Result<u64, AddrError> {
        match &self.net {
            Some(net) => net.run(op),
            None => Err(AddrError::OtherNode { rank: op.remote.rank }),
        }
    }

    /// Writes bytes from memory that need not be registered.
    ///
    /// # Errors
    ///
    /// [`AddrError`]: the operation was refused, or its rank has died.
    #[inline]
    pub fn store(&self, to: RemoteAddr, from: &[u8]) -> Result<(), AddrError> {
        let result = match &self.queue {
            None => store_bytes(&self.direct, to, from),
            // SAFETY: a put only reads its local end. That is borrowed until the
            // call returns, when the put is complete; if the ULT is cut off in the
            // call, it is borrowed for ever.
            Some(queue) => unsafe {
                self.lend(from.as_ptr().cast_mut(), from.len(), |region| {
                    let local = LocalAddr { key: region.key, offset: 0 };
                    queue.run(&Op::put(local, to, from.len() as u64))
                })
            },
        };
        match (result, &self.net) {
            (Err(error), Some(net)) if is_elsewhere(error) => net.store(to, from),
            (result, _) => result,
        }
    }

    /// Reads bytes to memory that need not be registered.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes, and is not otherwise used, until
    /// this returns; and for ever if this does not return because its ULT is cut
    /// off. (All that a frame of that ULT owns or borrows stays: no scope of ULTs
    /// ends under such a ULT.)
    #[inline]
    pub unsafe fn load(
        &self,
        from: RemoteAddr,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        let result = match &self.queue {
            // SAFETY: the caller's promise.
            None => unsafe { load_bytes(&self.direct, from, to, bytes) },
            // SAFETY: the caller's promise, also if the call does not return; the
            // get is complete when it does.
            Some(queue) => unsafe {
                self.lend(to, bytes, |region| {
                    let local = LocalAddr { key: region.key, offset: 0 };
                    queue.run(&Op::get(from, local, bytes as u64))
                })
            },
        };
        match (result, &self.net) {
            // SAFETY: the caller's promise. The first attempt was refused, so none
            // of it still writes.
            (Err(error), Some(net)) if is_elsewhere(error) => unsafe { net.load(from, to, bytes) },
            (result, _) => result,
        }
    }

    /// Registers borrowed memory for the time of a call.
    ///
    /// # Safety
    ///
    /// All accesses of `call` to the memory are over when it returns, and are such
    /// that the caller may make them. If `call` never returns because its ULT is cut
    /// off, the memory stays: no scope of ULTs ends under such a ULT.
    unsafe fn lend(
        &self,
        at: *mut u8,
        bytes: usize,
        call: impl FnOnce(&Region) -> Result<u64, AddrError>,
    ) -> Result<(), AddrError> {
        // Before an operation has the memory, which the caller would take back by a
        // panic.
        tsumugi_ult::assert_may_block("completion");
        let base = NonNull::new(at).unwrap_or(NonNull::dangling());
        loop {
            // SAFETY: the caller's promise, and it is unregistered below.
            match unsafe { self.direct.register(base, bytes as u64, Access::Local) } {
                Ok(region) => {
                    let result = call(&region);
                    self.direct.unregister(region.key);
                    return result.map(|_| ());
                }
                // Other threads have the slots, for the time of their calls.
                Err(_) => tsumugi_ult::yield_now(),
            }
        }
    }
}

/// Whether the device may be able to access memory that this node's processors
/// cannot.
#[inline]
fn is_elsewhere(error: AddrError) -> bool {
    match error {
        AddrError::OtherNode { .. } => true,
        AddrError::StaleKey { addr } => addr.key.agent() == Agent::Device,
        _ => false,
    }
}
