//! The path of an operation: by this node's processors at once, through the queue of
//! [`Path`](crate::config::Path), or over the network.

use crate::handle::RankHandle;
use crate::lasting::Lasting;
use crate::net::NetLayer;
use crate::node_queue::NodeQueue;
use std::ptr::NonNull;
use tsumugi_core::backend::{LoadStore, copy_bytes, execute, load_bytes};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Need, Region, RemoteAddr};
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
    /// The path of an operation on the memory at `at`.
    #[inline(always)]
    pub fn route(&self, at: &RemoteAddr) -> Route<'_> {
        match (&self.net, &self.queue) {
            // Mostly the rank is a neighbour, which takes a subtraction to find.
            (Some(net), _) if !self.direct.is_at_hand(at) && net.has(at) => Route::Net(net),
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
        match self.route(&op.remote) {
            Route::Here => execute(&self.direct, op),
            Route::Queue(queue) => queue.run(op),
            Route::Net(net) => net.run(op),
        }
    }

    /// Carries out an operation on a word, past the queue of the node if there is one.
    pub(crate) fn execute(&self, op: &Op) -> Result<u64, AddrError> {
        match self.route(&op.remote) {
            Route::Here | Route::Queue(_) => execute(&self.direct, op),
            Route::Net(net) => net.run(op),
        }
    }

    /// Carries out an operation if this node's processors can do so at once, and
    /// returns its result.
    #[inline]
    pub fn carry_at_hand(&self, op: &Op) -> Option<Result<u64, AddrError>> {
        matches!(self.route(&op.remote), Route::Here).then(|| execute(&self.direct, op))
    }

    /// Carries out an operation that may outlive its caller, as
    /// [`carry`](Self::carry) does.
    #[cold]
    pub fn carry_lasting(&self, lasting: &Lasting) -> Result<u64, AddrError> {
        match self.route(&lasting.op().remote) {
            Route::Here => execute(&self.direct, &lasting.op()),
            Route::Queue(queue) => queue.run_lasting(lasting),
            Route::Net(net) => net.run_lasting(lasting),
        }
    }

    /// Writes bytes from memory that need not be registered.
    ///
    /// # Errors
    ///
    /// [`AddrError`]: the operation was refused, or its rank has died.
    #[inline]
    pub fn store(&self, to: RemoteAddr, from: &[u8]) -> Result<(), AddrError> {
        // SAFETY: the bytes are borrowed until the call returns; if the ULT is cut off
        // in the call, they are borrowed for ever.
        unsafe { self.store_from(to, from.as_ptr(), from.len()) }
    }

    /// Writes bytes from memory that need not be registered, and that may overlap the
    /// bytes at `to`: then this node's processors copy as by `memmove`.
    ///
    /// # Errors
    ///
    /// Those of [`store`](Self::store); `from` is not read if the range of `to` is
    /// refused.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `bytes` bytes until this returns; and for ever if
    /// this does not return because its ULT is cut off.
    #[inline]
    pub unsafe fn store_from(
        &self,
        to: RemoteAddr,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        match self.route(&to) {
            Route::Here => {
                let at = self.direct.resolve(to, bytes as u64, Need::Write)?;
                // SAFETY: `bytes` bytes were resolved, which other ranks may read
                // meanwhile; `from` is the caller's promise.
                unsafe { copy_bytes(from, at.as_ptr(), bytes) };
                Ok(())
            }
            // SAFETY: a put only reads its local end, and is complete when the call
            // returns; the caller's promise.
            Route::Queue(queue) => unsafe {
                self.lend(from.cast_mut(), bytes, |region| {
                    let local = LocalAddr { key: region.key, offset: 0 };
                    queue.run(&Op::put(local, to, bytes as u64))
                })
            },
            // SAFETY: the caller's promise.
            Route::Net(net) => unsafe { net.store(to, from, bytes) },
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
        match self.route(&from) {
            // SAFETY: the caller's promise.
            Route::Here => unsafe { load_bytes(&self.direct, from, to, bytes) },
            // SAFETY: the caller's promise, also if the call does not return; the
            // get is complete when it does.
            Route::Queue(queue) => unsafe {
                self.lend(to, bytes, |region| {
                    let local = LocalAddr { key: region.key, offset: 0 };
                    queue.run(&Op::get(from, local, bytes as u64))
                })
            },
            // SAFETY: the caller's promise.
            Route::Net(net) => unsafe { net.load(from, to, bytes) },
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
