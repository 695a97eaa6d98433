//! What executor and completer do with one endpoint. The caller is the thread
//! that owns the endpoint at the moment.
//!
//! ```text
//!  gather ─► [ op op op .. 16 ] ─ flush: one doorbell ─► endpoint
//!                                                           │ poll
//!  caller ◄─ callback · wake · flag ◄── completions ◄───────┘
//! ```

use crate::backend::{Completion, Endpoint};
use crate::completion::Completions;
use crate::mem::AddrError;
use crate::mutate;
use crate::op::Op;
use crate::sync::{AtomicU64, Ordering};
use core::fmt;
use heapless::Vec;

/// Operations that one doorbell posts at most.
pub const BATCH_MAX: usize = 16;

/// An endpoint and the operations on their way to it. A port has one owner at a
/// time.
pub struct Port<'t, E: Endpoint> {
    endpoint: E,
    completions: Completions<'t>,
    gathered: Vec<Op, BATCH_MAX>,
    /// The completions that the last poll took from the device; the array is a
    /// field because it is large.
    taken: [Completion; POLL_MAX],
    /// How many of `taken` have been passed on, and how many there are.
    passed: usize,
    polled: usize,
    in_flight: usize,
    counts: &'t PortCounts,
}

/// Counts of a port, written by its owner and read by any thread.
#[derive(Debug, Default)]
pub struct PortCounts {
    /// Calls of [`Endpoint::post`] that posted something.
    pub doorbells: AtomicU64,
    /// Operations posted.
    pub posted: AtomicU64,
    /// Completions taken, stale ones included.
    pub completed: AtomicU64,
    /// Completions that came late or twice, so that no operation waited for them.
    pub stale: AtomicU64,
}

impl<'t, E: Endpoint> Port<'t, E> {
    /// Makes a port with no operation in flight; it reports ends to
    /// `completions`.
    pub fn new(endpoint: E, completions: Completions<'t>, counts: &'t PortCounts) -> Self {
        Self {
            endpoint,
            completions,
            gathered: Vec::new(),
            taken: [Completion::EMPTY; POLL_MAX],
            passed: 0,
            polled: 0,
            in_flight: 0,
            counts,
        }
    }

    /// Carries the operation out inside the call, if the device can.
    #[inline(always)]
    pub fn try_now(&mut self, op: &Op) -> Option<Result<u64, AddrError>> {
        self.endpoint.try_now(op)
    }

    /// Adds an operation to the batch, and posts the batch when it is full.
    ///
    /// # Errors
    ///
    /// The operation: the batch is full and the device takes nothing.
    #[inline]
    pub fn gather(&mut self, op: Op) -> Result<(), Op> {
        if self.gathered.is_full() {
            self.flush();
        }
        self.gathered.push(op)?;
        if self.gathered.is_full() {
            self.flush();
        }
        Ok(())
    }

    /// Returns whether `gather` would take an operation without posting.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.gathered.is_full()
    }

    /// Posts what has gathered. Returns how many operations the device took.
    pub fn flush(&mut self) -> usize {
        if self.gathered.is_empty() {
            return 0;
        }
        let taken = self.endpoint.post(&self.gathered);
        self.posted(taken);
        taken
    }

    /// Removes the first `taken` operations, which the device took, from the
    /// batch.
    #[inline]
    fn posted(&mut self, taken: usize) {
        if taken > 0 {
            self.in_flight += taken;
            add(&self.counts.doorbells, 1);
            add(&self.counts.posted, taken);
            if taken == self.gathered.len() {
                return self.gathered.clear();
            }
            let left = self.gathered.len() - taken;
            self.gathered.copy_within(taken.., 0);
            self.gathered.truncate(left);
        }
    }

    /// Does [`flush`](Self::flush), and then [`poll`](Self::poll), in one call of
    /// the endpoint. Returns how many operations the device took, and how many
    /// completions there were.
    pub fn turn(&mut self) -> (usize, usize) {
        if self.gathered.is_empty() || self.passed < self.polled {
            return (self.flush(), self.poll());
        }
        let (taken, count) = self.endpoint.turn(&self.gathered, &mut self.taken);
        self.posted(taken);
        (taken, self.took(count))
    }

    /// Takes completions from the device, some at a time, and passes each
    /// to its operation. Callbacks run inside this call; after a callback that
    /// panics, the next poll passes the rest on. Returns how many completions
    /// there were.
    pub fn poll(&mut self) -> usize {
        if self.passed == self.polled {
            let count = self.endpoint.poll(&mut self.taken);
            return self.took(count);
        }
        self.pass_on()
    }

    /// Passes `count` completions on that the device put into `taken`.
    #[inline]
    fn took(&mut self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        add(&self.counts.completed, count);
        (self.passed, self.polled) = (0, count);
        self.pass_on()
    }

    fn pass_on(&mut self) -> usize {
        let count = self.polled - self.passed;
        while self.passed < self.polled {
            let completion = self.taken[self.passed];
            self.passed += 1;
            // Counted first, because a callback may not return. A stale
            // completion ended no operation, so its count is taken back.
            let counted = usize::from(self.in_flight > 0);
            self.in_flight -= counted;
            if !self.completions.complete(completion.tag, completion.result) {
                self.in_flight += mutate!("port_counts_duplicates": counted => 0);
                add(&self.counts.stale, 1);
            }
        }
        count
    }

    /// Returns whether operations wait to be posted.
    #[inline]
    pub fn has_gathered(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Returns whether no operation waits to be posted or to be completed.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.gathered.is_empty() && self.in_flight == 0
    }

    /// Returns whether the next completion will raise the device's event. The
    /// caller must poll once more after this call, before it sleeps.
    pub fn arm(&mut self) -> bool {
        self.gathered.is_empty() && (self.in_flight == 0 || self.endpoint.arm())
    }
}

impl PortCounts {
    /// Makes counts that are all zero.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<E: Endpoint> fmt::Debug for Port<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({} gathered, {} in flight)", self.gathered.len(), self.in_flight)
    }
}

/// Adds to a count. There is one writer, so no locked instruction is needed.
fn add(count: &AtomicU64, by: usize) {
    count.store(count.load(Ordering::Relaxed) + by as u64, Ordering::Relaxed);
}

const POLL_MAX: usize = 16;
