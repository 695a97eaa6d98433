//! Words of global memory for which threads wait.
//!
//! ```text
//!  put_signal ── values ─► then the word ──► wakes waiters at its rank
//!  begin(copy.then_add(word, n)) ── the same, when a copy has landed
//!  begin(change.notifying()) ────── the same, of an atomic with an order
//! ```

use super::{Global, GlobalAddr, GlobalPtr};
use crate::{AddrError, Plain, Remote, Signal, Until};
use std::time::Duration;
use tsumugi_core::mem::Need;

impl Global {
    /// Changes the word `at`, wakes the threads that wait for it, and returns the
    /// old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn signal(&self, at: GlobalPtr<u64>, signal: Signal) -> Result<u64, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.signal(at, signal))
    }

    /// Writes `values` from `to` on, then changes the word `at` of the same or
    /// another rank and wakes the threads that wait for it. A thread that sees the
    /// signal sees the values.
    ///
    /// # Errors
    ///
    /// Those of [`put_slice`](Self::put_slice) for `to`: then the word `at` is
    /// unchanged. Those of [`signal`](Self::signal) for `at`: then the values have
    /// arrived.
    pub fn put_signal<T: Plain>(
        &self,
        to: GlobalPtr<T>,
        values: &[T],
        at: GlobalPtr<u64>,
        signal: Signal,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.put_slice(to, values)?;
        self.signal(at, signal).map(drop)
    }

    /// Waits until a word of this rank's own memory satisfies `until`, by a signal
    /// of any rank, and returns the value that did. The calling ULT or OS thread
    /// sleeps meanwhile. The memory must stay registered during the call.
    ///
    /// Changes by plain puts and atomics are seen, but do not wake a waiter.
    ///
    /// # Errors
    ///
    /// - [`AddrError::PeerLost`]: a rank of the job has died while the word did
    ///   not satisfy `until`.
    /// - [`AddrError::OtherRank`]: the word belongs to another rank.
    /// - Those of a [`put`](Self::put) to the word.
    pub fn wait_until(
        &self,
        at: GlobalPtr<u64>,
        until: Until,
    ) -> Result<u64, AddrError<GlobalAddr>> {
        let (addr, word) = (at.addr(), self.own_word(at)?);
        self.runtime.wait_until(word, until).map_err(|error| error.at(addr))
    }

    /// As [`wait_until`](Self::wait_until), for at most `limit`; returns `Ok(None)`
    /// if that has passed.
    ///
    /// # Errors
    ///
    /// Those of [`wait_until`](Self::wait_until). A limit that has passed is no
    /// error.
    pub fn wait_until_timeout(
        &self,
        at: GlobalPtr<u64>,
        until: Until,
        limit: Duration,
    ) -> Result<Option<u64>, AddrError<GlobalAddr>> {
        let (addr, word) = (at.addr(), self.own_word(at)?);
        let met = self.runtime.wait_until_timeout(word, until, limit);
        met.map_err(|error| error.at(addr))
    }

    /// The remote address of a word of this rank. The table is not held afterwards:
    /// a wait may be long, and it does not delay an unregistration by this rank.
    fn own_word(&self, at: GlobalPtr<u64>) -> Result<Remote<u64>, AddrError<GlobalAddr>> {
        let (addr, own) = (at.addr(), self.runtime.rank());
        match self.split().rank(addr) {
            Some(rank) if rank != own => Err(AddrError::OtherRank { addr }),
            _ => self.with(at, 1, Need::Read, Ok),
        }
    }
}
