//! Words of global memory that somebody waits for.
//!
//! ```text
//!  put_signal ── values ─► then the word ──► wakes who waits at its rank
//!  begin(copy.then_add(word, n)) ── the same, when a copy has landed
//!  begin(change.notifying()) ────── the same, of an atomic with an order
//! ```

use super::{AccessError, Global, GlobalPtr};
use crate::{Plain, Remote, Signal, Until};
use std::time::Duration;
use tsumugi_core::mem::Need;

impl Global {
    /// Changes the word `at`, wakes whoever waits for it, and answers what
    /// was there.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn signal(&self, at: GlobalPtr<u64>, signal: Signal) -> Result<u64, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.signal(at, signal))
    }

    /// Writes `values` from `to` on, then changes the word `at` of the same or
    /// another rank and wakes whoever waits for it: who sees the signal sees
    /// the values.
    ///
    /// # Errors
    ///
    /// [`AccessError`]. Of an error in `to`, nothing has happened; of one in
    /// `at`, the values have arrived.
    pub fn put_signal<T: Plain>(
        &self,
        to: GlobalPtr<T>,
        values: &[T],
        at: GlobalPtr<u64>,
        signal: Signal,
    ) -> Result<(), AccessError> {
        self.put_slice(to, values)?;
        self.signal(at, signal).map(drop)
    }

    /// Waits until a word of this rank's own memory, changed by a signal of any
    /// rank, satisfies `until`, and answers the value that did. A ULT sleeps
    /// meanwhile, and an OS thread too. The memory must stay as long.
    ///
    /// Changes by plain puts and atomics are seen, but wake nobody.
    ///
    /// # Errors
    ///
    /// [`AccessError::PeerLost`] when a rank has died; the errors of a get;
    /// [`AccessError::Elsewhere`] if the word is another rank's.
    pub fn wait_until(&self, at: GlobalPtr<u64>, until: Until) -> Result<u64, AccessError> {
        let (addr, word) = (at.addr(), self.own_word(at)?);
        self.runtime.wait_until(word, until).map_err(|error| AccessError::of(error, addr))
    }

    /// As [`wait_until`](Self::wait_until), for `limit` at most: `Ok(None)` if
    /// it has passed.
    ///
    /// # Errors
    ///
    /// Those of [`wait_until`](Self::wait_until).
    pub fn wait_until_within(
        &self,
        at: GlobalPtr<u64>,
        until: Until,
        limit: Duration,
    ) -> Result<Option<u64>, AccessError> {
        let (addr, word) = (at.addr(), self.own_word(at)?);
        let met = self.runtime.wait_until_within(word, until, limit);
        met.map_err(|error| AccessError::of(error, addr))
    }

    /// Where a word of this rank's is. Nothing is held: somebody may wait for
    /// long, and what this rank unregisters meanwhile is not kept for that.
    fn own_word(&self, at: GlobalPtr<u64>) -> Result<Remote<u64>, AccessError> {
        let (addr, own) = (at.addr(), self.runtime.rank());
        match self.split().rank(addr) {
            Some(rank) if rank != own => Err(AccessError::Elsewhere { addr }),
            _ => self.with(at, 1, Need::Read, Ok),
        }
    }
}
