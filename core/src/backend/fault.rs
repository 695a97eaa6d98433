//! An endpoint with faults: what a device may do, and seldom does while
//! somebody looks, done often and from a seed.
//!
//! ```text
//!   post ──► refuse some? ──► inner endpoint ──► held ──► poll
//!                │                                ▲ late, shuffled, twice
//!                └─ early: a word's put ──────────┘ before it is carried out
//! ```
//!
//! - **refuse**: takes fewer posts than there is room for.
//! - **late**: a completion sits through some polls.
//! - **shuffle**: completions that are due come in any order.
//! - **duplicate**: a completion comes a second time, later. Whoever polls
//!   must know it for what it is, by the generation of its tag.
//! - **early**: the put of a word completes when the device has taken it,
//!   before it was carried out ([`Capabilities::remote_completion`] is false
//!   then). Its own completion is swallowed, an error with it.
//!
//! Every operation that was taken still completes: no fault loses one.
//!
//! Progress: that of the wrapped endpoint.

use super::{Capabilities, Completion, Domain, Endpoint, draw::Draw};
use crate::mem::{Access, Rank, Region, RegionKey, RegisterError};
use crate::op::{Kind, Op};
use crate::sync::{AtomicU64, Ordering};
use crate::tag::Tag;
use core::fmt;
use core::ptr::NonNull;
use heapless::Vec;

/// How often what goes wrong. Rates are per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Draws everything below.
    pub seed: u64,
    /// Posts that take fewer operations than were offered. Below 1000, or
    /// nothing is ever taken.
    pub refuse: u16,
    /// Completions that sit through polls.
    pub late: u16,
    /// How many polls at most.
    pub late_polls_max: u32,
    /// Whether completions that are due come in any order.
    pub shuffle: bool,
    /// Completions that come twice.
    pub duplicate: u16,
    /// Puts of words that complete before they are carried out.
    pub early: u16,
}

/// How often a [`Fault`] has done what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Posts cut short.
    pub refused: u64,
    /// Completions held back.
    pub late: u64,
    /// Completions that come twice.
    pub duplicated: u64,
    /// Puts that completed before they were carried out.
    pub early: u64,
}

/// An endpoint with faults, which holds up to `HELD` completions back.
pub struct Fault<E, const HELD: usize = 64> {
    inner: E,
    plan: Plan,
    draw: Draw,
    polls: u64,
    held: Vec<Held, HELD>,
    /// Reported before their time: their own completions are swallowed.
    reported: Vec<Tag, HELD>,
    faults: Faults,
}

/// A device whose endpoints have faults, each from a seed of its own.
pub struct FaultDomain<D, const HELD: usize = 64> {
    inner: D,
    plan: Plan,
    endpoints: AtomicU64,
}

struct Held {
    completion: Completion,
    due: u64,
}

impl Plan {
    /// A mix of faults drawn from the seed, `early` not among them: each seed
    /// exaggerates something else.
    pub const fn drawn(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
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

    /// `inner`, with the faults of `plan`.
    pub const fn new(inner: E, plan: Plan) -> Self {
        let () = Self::HOLDS_A_PAIR;
        Self {
            inner,
            plan,
            draw: Draw::new(plan.seed),
            polls: 0,
            held: Vec::new(),
            reported: Vec::new(),
            faults: Faults { refused: 0, late: 0, duplicated: 0, early: 0 },
        }
    }

    /// What went wrong so far.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Goes on with the faults of another plan.
    pub fn replan(&mut self, plan: Plan) {
        (self.plan, self.draw) = (plan, Draw::new(plan.seed));
    }

    /// Whether completions are held back: only polls bring them out.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The wrapped endpoint.
    pub const fn inner(&mut self) -> &mut E {
        &mut self.inner
    }

    /// Moves completions of the wrapped endpoint to where they are held, as
    /// far as each and its duplicate have room.
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
        let held = self.held.push(Held { completion, due });
        assert!(held.is_ok(), "{HELD} completions are held already");
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
            // A pair of places stays free, so that `collect` goes on.
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
        // What was reported early is delivered before the device is asked.
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

    /// False while completions are held: only polls bring them out.
    fn arm(&mut self) -> bool {
        self.held.is_empty() && self.inner.arm()
    }
}

impl<D: Domain, const HELD: usize> FaultDomain<D, HELD> {
    /// `inner`, whose endpoints have the faults of `plan`.
    #[cfg(not(tsumugi_loom))]
    pub const fn new(inner: D, plan: Plan) -> Self {
        Self { inner, plan, endpoints: AtomicU64::new(0) }
    }

    /// `inner`, whose endpoints have the faults of `plan`.
    #[cfg(tsumugi_loom)]
    pub fn new(inner: D, plan: Plan) -> Self {
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
        let Plan { late, shuffle, duplicate, early, .. } = self.plan;
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
        // Relaxed: a number that nobody else has.
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        let seed = self.plan.seed.wrapping_add(number);
        Fault::new(self.inner.endpoint(), Plan { seed, ..self.plan })
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
