//! What a window asks for: all targets, or one, shared or exclusively; by any
//! of three designs.
//!
//! ```text
//!                lock_all          shared(t)         exclusive(t)
//!  Global        read L            read L            write L
//!  TwoLevel      count, poll       read t, poll      count, seize t, poll
//!  Tree          enter All         read t            enter Exclusive, write t
//! ```
//!
//! `L` is one lock for the whole window, as the paper has it; writers of
//! different targets wait for each other. `TwoLevel` is foMPI's. With `Tree`
//! they meet at their leaf at most, and holders of all too.
//!
//! A rank goes through its [`Door`] once, however many targets it holds: who
//! is inside must not enter again.

use super::backoff::Backoff;
use super::claim::{Claim, Ended, Mode, Standing, StepId};
use super::entry::{Entry, Place};
use super::node::NodeId;
use super::tree::Tree;
use super::{Lock, Side};
use core::fmt;
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mutant;

/// How a window's locks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// One lock.
    Global,
    /// A word for all and one for each target, polled.
    TwoLevel,
    /// A group lock on a tree, and a lock for each target.
    Tree,
}

/// A window's locks, as everybody sees them.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// By which design.
    pub design: Design,
    /// The lock of rank 0. Each rank has one at the same place.
    pub lock: Lock,
    /// The group lock.
    pub tree: Tree,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// Every target, beside others that want the same or share one.
    All,
    /// This target, beside others.
    Shared(Rank),
    /// This target, alone.
    Exclusive(Rank),
}

/// Where all accesses of one rank enter and leave. Two are equal if they will
/// do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Door {
    entry: Entry,
    /// Accesses that are inside, or on their way.
    holds: u32,
    side: Side,
}

/// One access of a rank to a window, from asking to giving back. Two are equal
/// if they will do the same, however their operations are numbered.
#[derive(Clone, Debug)]
pub struct Access {
    plan: Plan,
    want: Want,
    stage: Stage,
    claim: Claim,
    backoff: Backoff,
    /// Stages that it has been through: an operation is of one.
    stages: u16,
}

/// What an access waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// This word of the own memory.
    Word(RemoteAddr, Until),
    /// So many nanoseconds.
    Pause(u64),
}

/// Why an access cannot begin: its rank would wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The rank is inside on the other side.
    OtherSide {
        /// The side that it is on.
        side: Side,
    },
    /// With [`Design::Global`]: the rank holds the one lock, or shares it and
    /// wants it alone.
    OneLock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Rest,
    Entering,
    Claiming,
    Held,
    Releasing,
    Leaving,
    Failed(AddrError),
}

impl Door {
    /// Nobody of `rank` is inside.
    pub const fn new(plan: &Plan, rank: Rank) -> Self {
        Self { entry: Entry::new(plan.tree, rank), holds: 0, side: Side::All }
    }

    /// Accesses that are inside, or on their way.
    pub const fn holds(&self) -> u32 {
        self.holds
    }

    /// Whether the last access is on its way out: none may begin before it is.
    pub fn is_leaving(&self) -> bool {
        self.entry.place() == Place::Leaving
    }

    /// A rank has died: see [`Access::handle_lost`].
    pub fn handle_lost(&mut self, rank: Rank) {
        self.entry.handle_lost(rank);
    }
}

impl Access {
    /// An access by `plan`.
    pub const fn new(plan: Plan) -> Self {
        let (stage, at) = (Stage::Rest, plan.lock.home);
        let backoff = Backoff::new(at, at, Want::All);
        let claim = Claim::new(plan.lock, NodeId::NONE);
        Self { plan, want: Want::All, stage, claim, backoff, stages: 0 }
    }

    /// Asks for something, and waits for it, where it has to, in `node`: a new
    /// life of it each time.
    ///
    /// # Errors
    ///
    /// [`Refused`].
    ///
    /// # Panics
    ///
    /// If the access does not rest.
    pub fn begin(&mut self, door: &mut Door, want: Want, node: NodeId) -> Result<(), Refused> {
        assert!(self.stage == Stage::Rest, "{self:?} is under way");
        let side = self.side_of(want);
        if self.plan.design == Design::Global
            && door.holds > 0
            && (side, door.side) != (Some(Side::All), Side::All)
        {
            return Err(Refused::OneLock);
        }
        if let Some(side) = side
            && door.holds > 0
            && door.side != side
        {
            return Err(Refused::OtherSide { side: door.side });
        }
        self.want = want;
        let is_counted = door.holds > 0;
        if let Some(side) = side {
            door.side = side;
            door.holds += 1;
        }
        let lock = self.lock();
        match self.plan.design {
            Design::Tree if side.is_some() => {
                self.claim = Claim::new(lock, node);
                self.goes_to(Stage::Entering);
                self.go_on(door);
            }
            Design::Tree | Design::Global => {
                self.claim = Claim::new(lock, node);
                self.claims();
            }
            Design::TwoLevel => {
                // The window's word is one that locks of targets do not use.
                let window = self.plan.lock.home;
                let window = RemoteAddr { offset: window.offset + 40, ..window };
                self.backoff = Backoff::new(window, lock.home, want);
                self.backoff.begin(is_counted);
                self.goes_to(Stage::Claiming);
            }
        }
        Ok(())
    }

    /// Gives it back. What was done under it must have completed, at the
    /// remote ends.
    ///
    /// # Panics
    ///
    /// If nothing is held.
    pub fn release(&mut self, door: &mut Door) {
        assert!(self.stage == Stage::Held, "{self:?} holds nothing");
        self.goes_to(Stage::Releasing);
        if self.plan.design == Design::TwoLevel {
            let held = u32::from(self.side_of(self.want).is_some());
            door.holds -= held;
            return self.backoff.release(door.holds == 0);
        }
        if self.plan.design == Design::Tree && self.want == Want::All {
            return self.leaves(door);
        }
        if self.plan.design == Design::Global {
            door.holds -= 1;
        }
        self.claim.release();
    }

    /// The next operation to post, whose completion must be remote. Whoever
    /// cannot post it keeps it.
    pub fn poll_op(&mut self, door: &mut Door) -> Option<(StepId, Op)> {
        self.go_on(door);
        let (id, op) = match self.stage {
            Stage::Entering | Stage::Leaving => door.entry.poll_op(),
            Stage::Claiming | Stage::Releasing if self.plan.design == Design::TwoLevel => {
                self.backoff.poll_op()
            }
            Stage::Claiming | Stage::Releasing => self.claim.poll_op(),
            _ => None,
        }?;
        Some((self.number(id), op))
    }

    /// An operation has ended, which came from this access. One that ends a
    /// second time is ignored.
    pub fn handle_completed(
        &mut self,
        door: &mut Door,
        id: StepId,
        result: Result<u64, AddrError>,
    ) {
        let Some(step) = self.step(door).filter(|&step| self.number(step) == id) else { return };
        match self.stage {
            Stage::Entering | Stage::Leaving => door.entry.handle_completed(step, result),
            _ if self.plan.design == Design::TwoLevel => {
                self.backoff.handle_completed(step, result)
            }
            _ => self.claim.handle_completed(step, result),
        }
        self.go_on(door);
    }

    /// The operation that is posted and has not ended.
    pub fn under_way(&self, door: &Door) -> Option<StepId> {
        self.step(door).map(|step| self.number(step))
    }

    /// The same, as the part that is at it numbers it.
    fn step(&self, door: &Door) -> Option<StepId> {
        match self.stage {
            Stage::Entering | Stage::Leaving => door.entry.under_way(),
            _ if self.plan.design == Design::TwoLevel => self.backoff.under_way(),
            _ => self.claim.under_way(),
        }
    }

    /// What ends the wait, if it waits.
    pub fn waits_for(&self, door: &Door) -> Option<Waiting> {
        let word = match self.stage {
            Stage::Entering => door.entry.waits_for(),
            _ if self.plan.design == Design::TwoLevel => {
                return self.backoff.pause_ns().map(Waiting::Pause);
            }
            _ => self.claim.waits_for(),
        };
        word.map(|(word, until)| Waiting::Word(word, until))
    }

    /// That word is now `value`, or that time is over.
    pub fn handle_wake(&mut self, door: &mut Door, value: u64) {
        match self.stage {
            Stage::Entering => door.entry.handle_word(value),
            _ if self.plan.design == Design::TwoLevel => self.backoff.handle_pause(),
            _ => self.claim.handle_word(value),
        }
        self.go_on(door);
    }

    /// A rank has died: a wait may never end, and ends with an error that
    /// names it.
    pub fn handle_lost(&mut self, door: &mut Door, rank: Rank) {
        self.claim.handle_lost(rank);
        self.backoff.handle_lost(rank);
        door.handle_lost(rank);
        self.go_on(door);
    }

    /// Held, or given back: `None` on the way there.
    pub fn poll_done(&self) -> Option<Result<(), AddrError>> {
        match self.stage {
            Stage::Held | Stage::Rest => Some(Ok(())),
            Stage::Failed(error) => Some(Err(error)),
            _ => None,
        }
    }

    /// Whether it is held.
    pub fn is_held(&self) -> bool {
        self.stage == Stage::Held
    }

    const fn number(&self, step: StepId) -> StepId {
        StepId::from_bits((self.stages as u32) << 16 | step.to_bits() & 0xffff)
    }

    /// Which side of the group an access is on.
    const fn side_of(&self, want: Want) -> Option<Side> {
        match (want, self.plan.design) {
            (Want::All, _) | (Want::Shared(_), Design::Global) => Some(Side::All),
            (Want::Exclusive(_), _) => Some(Side::Exclusive),
            (Want::Shared(_), _) => None,
        }
    }

    /// The lock of what is wanted.
    fn lock(&self) -> Lock {
        let lock = self.plan.lock;
        match (self.plan.design, self.want) {
            // Holders of all are readers of the one lock.
            (Design::Global, _) | (_, Want::All) => lock,
            (_, Want::Shared(rank) | Want::Exclusive(rank)) => {
                Lock { home: RemoteAddr { rank, ..lock.home }, ..lock }
            }
        }
    }

    fn goes_to(&mut self, stage: Stage) {
        self.stage = stage;
        self.stages = self.stages.wrapping_add(1);
    }

    fn claims(&mut self) {
        let mode = match self.want {
            Want::Exclusive(_) => Mode::Exclusive,
            _ => Mode::Shared,
        };
        self.goes_to(Stage::Claiming);
        self.claim.begin(mode);
    }

    fn leaves(&mut self, door: &mut Door) {
        door.holds -= 1;
        if door.holds > 0 && !mutant("group_left_while_held") {
            self.goes_to(Stage::Rest);
        } else {
            self.goes_to(Stage::Leaving);
            door.entry.leave();
        }
    }

    /// From stage to stage, where one is at its end.
    fn go_on(&mut self, door: &mut Door) {
        match (self.stage, door.entry.place()) {
            (Stage::Entering, Place::Out) => door.entry.enter(door.side),
            (Stage::Entering, Place::In) if self.want == Want::All => self.goes_to(Stage::Held),
            (Stage::Entering, Place::In) => self.claims(),
            (Stage::Leaving, Place::Out) => self.goes_to(Stage::Rest),
            (Stage::Entering | Stage::Leaving, Place::Failed(error)) => {
                self.goes_to(Stage::Failed(error));
            }
            (Stage::Claiming | Stage::Releasing, _) => self.settle(door),
            _ => {}
        }
    }

    fn settle(&mut self, door: &mut Door) {
        let is_asking = self.stage == Stage::Claiming;
        if self.plan.design == Design::TwoLevel {
            match self.backoff.poll_done() {
                Some(Ok(())) if is_asking => self.goes_to(Stage::Held),
                Some(Ok(())) => self.goes_to(Stage::Rest),
                Some(Err(error)) => self.goes_to(Stage::Failed(error)),
                None => {}
            }
            return;
        }
        match self.claim.standing() {
            Standing::Held if is_asking => self.goes_to(Stage::Held),
            Standing::Resting(Ended::Released) if !is_asking => {
                if self.plan.design == Design::Tree && self.side_of(self.want).is_some() {
                    self.leaves(door);
                } else {
                    self.goes_to(Stage::Rest);
                }
            }
            Standing::Failed(error) => self.goes_to(Stage::Failed(error)),
            _ => {}
        }
    }
}

impl PartialEq for Access {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Self| (one.want, one.stage, one.backoff);
        same(self) == same(other) && self.claim == other.claim
    }
}

impl Eq for Access {}

impl Hash for Access {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.want, self.stage).hash(state);
        self.claim.hash(state);
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherSide { side: Side::All } => "this rank holds all targets, shared",
            Self::OtherSide { side: Side::Exclusive } => "this rank holds a target exclusively",
            Self::OneLock => "this rank holds the window's one lock",
        })
    }
}

impl core::error::Error for Refused {}
