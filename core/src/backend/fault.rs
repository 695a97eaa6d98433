//! Fault injection: an endpoint that often does, from a seed, what a device is
//! allowed to do and seldom does in tests.
//!
//! ```text
//!   post ──► refuse some? ──► inner endpoint ──► held ──► poll
//!                │                                ▲ late, shuffled, twice
//!                └─ early: a word's put ──────────┘ before it is carried out
//! ```
//!
//! - **refuse**: fewer operations are taken than there is room for.
//! - **late**: a completion is held back for some polls.
//! - **shuffle**: completions that are due come in any order.
//! - **duplicate**: a completion comes a second time, later. The caller that polls
//!   must recognize it by the generation of its tag.
//! - **early**: the put of a word completes when the device has taken it, before it
//!   is carried out ([`Capabilities::remote_completion`] is then false). The put's
//!   own completion is dropped, even if it is an error.
//!
//! Every operation that was taken still completes: no fault loses an operation.
//!
//! Progress: that of the wrapped endpoint.

use super::{Capabilities, Completion, Domain, Endpoint};
use crate::mem::{Access, Rank, Region, RegionKey, RegisterError};
use crate::op::{Kind, Op};
use crate::random::SplitMix64;
use crate::sync::{AtomicU64, Ordering};
use crate::tag::Tag;
use core::fmt;
use core::ptr::NonNull;
use heapless::Vec;

/// The rate of each fault. Rates are per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The seed from which all faults are drawn.
    pub seed: u64,
    /// Posts that take fewer operations than the caller offered. Must be below 1000,
    /// or no operation is ever taken.
    pub refuse: u16,
    /// Completions that are held back for some polls.
    pub late: u16,
    /// The greatest number of polls for which a completion is held back.
    pub late_polls_max: u32,
    /// Whether completions that are due come in any order.
    pub shuffle: bool,
    /// Completions that come twice.
    pub duplicate: u16,
    /// Puts of words that complete before they are carried out.
    pub early: u16,
}

/// How often a [`Fault`] has injected each fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Posts that took fewer operations than the caller offered.
    pub refused: u64,
    /// Completions that were held back.
    pub late: u64,
    /// Completions that were duplicated.
    pub duplicated: u64,
    /// Puts that completed before they were carried out.
    pub early: u64,
}

/// An endpoint with faults, which can hold up to `HELD` completions back.
pub struct Fault<E, const HELD: usize = 64> {
    inner: E,
    plan: FaultPlan,
    draw: SplitMix64,
    polls: u64,
    held: Vec<LateCompletion, HELD>,
    /// Tags of puts that were completed early: their own completions are dropped.
    reported: Vec<Tag, HELD>,
    faults: Faults,
}

/// A device with endpoints that have faults, each drawn from a seed of its own.
pub struct FaultDomain<D, const HELD: usize = 64> {
    inner: D,
    plan: FaultPlan,
    endpoints: AtomicU64,
}

struct LateCompletion {
    completion: Completion,
    due: u64,
}

impl FaultPlan {
    /// A mix of faults drawn from the seed, without `early`: each seed exaggerates
    /// other faults.
    pub const fn drawn(seed: u64) -> Self {
        let mut draw = SplitMix64::new(seed);
        Self {
            refuse: draw.below(500) as u16,
            late: draw.below(700) as u16,
            late_polls_max: 1 + draw.below(12) as u32,
            shuffle: draw.chance(700),
            duplicate: draw.below(300) as u16,
            early: 0,
            seed: draw.next(),
        }
    }
}

impl<E: Endpoint, const HELD: usize> Fault<E, HELD> {
    const HOLDS_A_PAIR: () = assert!(HELD >= 2, "a completion and its duplicate");

    /// Wraps `inner` with the faults of `plan`.
    pub const fn new(inner: E, plan: FaultPlan) -> Self {
        let () = Self::HOLDS_A_PAIR;
        Self {
            inner,
            plan,
            draw: SplitMix64::new(plan.seed),
            polls: 0,
            held: Vec::new(),
            reported: Vec::new(),
            faults: Faults { refused: 0, late: 0, duplicated: 0, early: 0 },
        }
    }

    /// The faults injected up to now.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Continues with the faults of another plan.
    pub fn replan(&mut self, plan: FaultPlan) {
        (self.plan, self.draw) = (plan, SplitMix64::new(plan.seed));
    }

    /// Whether completions are held back: only polls release them.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The wrapped endpoint.
    pub const fn inner(&mut self) -> &mut E {
        &mut self.inner
    }

    /// Moves completions of the wrapped endpoint into `held`, as many as have room
    /// there together with a duplicate of each.
    fn collect(&mut self) {
        let mut taken = [Completion::EMPTY; BATCH];
        let room = ((HELD - self.held.len()) / 2).min(BATCH);
        let count = self.inner.poll(&mut taken[..room]);
        for &completion in &taken[..count] {
            if let Some(at) = self.reported.iter().position(|tag| *tag == completion.tag) {
                self.reported.swap_remove(at);
                continue;
            }
            let mut due = self.polls;
            if self.draw.chance(self.plan.late) {
                self.faults.late += 1;
                due += self.draw.between(1, u64::from(self.plan.late_polls_max).max(1));
            }
            self.hold(completion, due);
            if self.draw.chance(self.plan.duplicate) {
                self.faults.duplicated += 1;
                let later = self.draw.between(1, u64::from(self.plan.late_polls_max) + 4);
                self.hold(completion, due + later);
            }
        }
    }

    fn hold(&mut self, completion: Completion, due: u64) {
        let held = self.held.push(LateCompletion { completion, due });
        assert!(held.is_ok(), "the fault domain holds {HELD} completions already, its limit");
    }

    /// The next completion that is due.
    fn next(&mut self) -> Option<Completion> {
        let count = self.held.len();
        let start = if self.plan.shuffle { self.draw.below(count as u64) as usize } else { 0 };
        let at = (0..count)
            .map(|step| (start + step) % count)
            .find(|&index| self.held[index].due <= self.polls)?;
        Some(self.held.remove(at).completion)
    }
}

impl<E: Endpoint, const HELD: usize> Endpoint for Fault<E, HELD> {
    fn post(&mut self, ops: &[Op]) -> usize {
        let mut offered = ops.len();
        if offered > 0 && self.draw.chance(self.plan.refuse) {
            self.faults.refused += 1;
            offered = self.draw.below(offered as u64) as usize;
        }
        let taken = self.inner.post(&ops[..offered]);
        for op in &ops[..taken] {
            // Two places stay free, so that `collect` can go on.
            let has_room = self.held.len() + 2 < HELD && !self.reported.is_full();
            if op.kind == Kind::PutWord && has_room && self.draw.chance(self.plan.early) {
                self.faults.early += 1;
                self.hold(Completion { tag: op.tag, result: Ok(0) }, self.polls);
                let _ = self.reported.push(op.tag);
            }
        }
        taken
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.polls += 1;
        // Completions that were reported early are delivered before the device is
        // polled.
        let mut delivered = 0;
        for collected in [false, true] {
            if collected {
                self.collect();
            }
            while delivered < completions.len()
                && let Some(completion) = self.next()
            {
                completions[delivered] = completion;
                delivered += 1;
            }
        }
        delivered
    }

    /// False while completions are held back: only polls release them.
    fn arm(&mut self) -> bool {
        self.held.is_empty() && self.inner.arm()
    }
}

impl<D: Domain, const HELD: usize> FaultDomain<D, HELD> {
    /// Wraps `inner`; its endpoints have the faults of `plan`.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(inner: D, plan: FaultPlan) -> Self {
        Self { inner, plan, endpoints: AtomicU64::new(0) }
    }

    /// Wraps `inner`; its endpoints have the faults of `plan`.
    #[cfg(tsumugi_loom)]
    pub fn new(inner: D, plan: FaultPlan) -> Self {
        Self { inner, plan, endpoints: AtomicU64::new(0) }
    }

    /// The wrapped device.
    pub const fn inner(&self) -> &D {
        &self.inner
    }
}

impl<D: Domain, const HELD: usize> Domain for FaultDomain<D, HELD> {
    type Endpoint<'d>
        = Fault<D::Endpoint<'d>, HELD>
    where
        Self: 'd;

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        let FaultPlan { late, shuffle, duplicate, early, .. } = self.plan;
        Capabilities {
            in_order: inner.in_order && !shuffle && late + duplicate + early == 0,
            remote_completion: inner.remote_completion && early == 0,
            ..inner
        }
    }

    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn size(&self) -> u32 {
        self.inner.size()
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        unsafe { self.inner.register(base, bytes, access) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        self.inner.unregister(key)
    }

    fn endpoint(&self) -> Self::Endpoint<'_> {
        // Relaxed: the counter gives each endpoint a number of its own, and orders
        // nothing.
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        let seed = self.plan.seed.wrapping_add(number);
        Fault::new(self.inner.endpoint(), FaultPlan { seed, ..self.plan })
    }
}

impl<E, const HELD: usize> fmt::Debug for Fault<E, HELD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({:?}, {} held, {:?})", self.plan, self.held.len(), self.faults)
    }
}

impl<D, const HELD: usize> fmt::Debug for FaultDomain<D, HELD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultDomain({:?})", self.plan)
    }
}

const BATCH: usize = 16;
