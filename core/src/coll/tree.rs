//! One collective of one rank, as a state machine without IO: words and
//! completions in, operations out. The blocking driver, a device and the
//! simulator all use it.
//!
//! ```text
//!   Gathering ── all children arrived ──► Waiting ── released ──► Releasing
//!                    │ store the value,      ▲ the parent's          │ to each child
//!                    └ raise its arrivals    │ result                ▼
//!                                                                   Done
//!   to a neighbour:   Store ──► Raise ──► Rest
//! ```
//!
//! A count is raised when the store of the value has completed. So the value
//! arrives before the count if completions are remote, or if the device keeps the
//! order within one queue to one rank and all operations are posted to that
//! queue.

use crate::mem::{AddrError, Rank, RegionKey, RemoteAddr, Width};
use crate::mutate;
use crate::op::{Kind, Op};
use core::ops::Range;

/// The tree over all ranks, as seen by one of them.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    /// This rank.
    pub rank: Rank,
    /// Ranks of the job.
    pub size: u32,
    /// Every rank's words are registered under this key.
    pub key: RegionKey,
}

/// One collective, as one rank takes part in it.
#[derive(Clone, Debug)]
pub struct TreeCollective {
    tree: Tree,
    epoch: u64,
    value: u64,
    phase: Phase,
    /// Steps to the children, then the step to the parent.
    steps: [TreeStep; NEIGHBOURS],
    failed: Option<AddrError>,
}

/// The name of an operation of a [`TreeCollective`], until the operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepId(u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Waiting,
    Releasing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeStep {
    what: What,
    is_posted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum What {
    Rest,
    Store,
    Raise,
}

impl Tree {
    /// Returns the address of a word in a rank's part of the tree.
    pub const fn word_of(&self, rank: Rank, word: usize) -> RemoteAddr {
        RemoteAddr { rank, key: self.key, offset: word as u64 * 8 }
    }

    fn children(&self) -> Range<u32> {
        let first = u64::from(self.rank.0) * u64::from(ARITY) + 1;
        let last = (first + u64::from(ARITY)).min(u64::from(self.size));
        first.min(last) as u32..last as u32
    }
}

impl TreeCollective {
    /// Begins the collective with the number `epoch`, from 1 on, to which this
    /// rank contributes `value`.
    pub const fn new(tree: Tree, epoch: u64, value: u64) -> Self {
        Self {
            tree,
            epoch,
            value,
            phase: Phase::Gathering,
            steps: [TreeStep::REST; NEIGHBOURS],
            failed: None,
        }
    }

    /// Reads the rank's own words, through `load`: to be called at the start and
    /// whenever one of them may have changed. Children are combined in their
    /// order.
    ///
    /// # Errors
    ///
    /// The errors of `load`.
    pub fn handle_words(
        &mut self,
        load: impl Fn(usize) -> Result<u64, AddrError>,
        combine: impl Fn(u64, u64) -> u64,
    ) -> Result<(), AddrError> {
        let Some((word, count)) = self.waits_for() else { return Ok(()) };
        if (load(word)?.wrapping_sub(count) as i64) < 0 {
            return Ok(());
        }
        let children = self.tree.children().len();
        if self.phase == Phase::Gathering {
            for child in 0..children {
                self.value = combine(self.value, load(VALUES + child)?);
            }
            if self.tree.rank.0 > 0 {
                self.phase = Phase::Waiting;
                self.steps[PARENT] = TreeStep::of(What::Store);
                return Ok(());
            }
        } else {
            self.value = load(RESULT)?;
        }
        self.phase = Phase::Releasing;
        self.steps[..children].fill(TreeStep::of(What::Store));
        Ok(())
    }

    /// Returns the next operation to post. A caller that cannot post it must keep
    /// it.
    pub fn poll_op(&mut self) -> Option<(StepId, Op)> {
        let ready = |step: &TreeStep| step.what != What::Rest && !step.is_posted;
        let index = self.steps.iter().position(ready)?;
        self.steps[index].is_posted = true;
        let what = self.steps[index].what;
        mutate!("coll_raise_at_once": {} => if what == What::Store {
            self.steps[index] = TreeStep::of(What::Raise);
        });
        Some((StepId::new(index, what), self.op(index, what)))
    }

    /// Takes the end of an operation. A second end of the same operation is
    /// ignored.
    pub fn handle_completed(&mut self, id: StepId, result: Result<u64, AddrError>) {
        let Some(step) = self.steps.get_mut(id.index()) else { return };
        if !step.is_posted || StepId::new(id.index(), step.what) != id {
            return;
        }
        if let Err(error) = result {
            self.failed = Some(error);
        }
        *step = TreeStep::of(if step.what == What::Store { What::Raise } else { What::Rest });
    }

    /// Takes the death of a rank: the collective fails, because it will not end
    /// by itself.
    pub const fn handle_lost(&mut self, rank: Rank) {
        self.failed = Some(AddrError::PeerLost { rank });
    }

    /// Returns the result, once there is nothing left to do.
    pub fn poll_done(&self) -> Option<Result<u64, AddrError>> {
        if let Some(error) = self.failed {
            return Some(Err(error));
        }
        let is_done =
            self.phase == Phase::Releasing && self.steps.iter().all(|step| *step == TreeStep::REST);
        is_done.then_some(Ok(self.value))
    }

    /// Returns the own word that must reach a count, and the count, before the
    /// climb goes on.
    pub fn waits_for(&self) -> Option<(usize, u64)> {
        match self.phase {
            Phase::Gathering => {
                Some((ARRIVALS, self.epoch.wrapping_mul(self.tree.children().len() as u64)))
            }
            Phase::Waiting => Some((RELEASES, self.epoch)),
            Phase::Releasing => None,
        }
    }

    fn op(&self, index: usize, what: What) -> Op {
        let own = self.tree.rank.0;
        let (rank, value, counter) = if index == PARENT {
            let slot = VALUES + ((own - 1) % ARITY) as usize;
            (Rank((own - 1) / ARITY), slot, ARRIVALS)
        } else {
            (Rank(own * ARITY + 1 + index as u32), RESULT, RELEASES)
        };
        match what {
            What::Store => Op::put_word(self.tree.word_of(rank, value), Width::W8, self.value),
            _ => Op::atomic(Kind::FetchAdd, self.tree.word_of(rank, counter), 1u64).notifying(),
        }
    }
}

impl StepId {
    /// Encodes the name as a number below 64 that a tag may carry.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Decodes such a number.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    const fn new(index: usize, what: What) -> Self {
        Self((index as u8) << 2 | what as u8)
    }

    const fn index(self) -> usize {
        (self.0 >> 2) as usize
    }
}

impl TreeStep {
    const REST: Self = Self::of(What::Rest);

    const fn of(what: What) -> Self {
        Self { what, is_posted: false }
    }
}

/// Words of registered memory, 8 bytes each, that every rank provides for its
/// part of the tree; zero at first.
pub const WORDS: usize = 16;

const ARITY: u32 = 8;
const PARENT: usize = ARITY as usize;
const NEIGHBOURS: usize = PARENT + 1;
const ARRIVALS: usize = 0;
const RELEASES: usize = 1;
const RESULT: usize = 2;
const VALUES: usize = 8;

const _: () = assert!(VALUES + ARITY as usize <= WORDS);
