//! The locks of a window: for all targets or for one target, shared or exclusive, by
//! any of three designs.
//!
//! ```text
//!                lock_all          shared(t)         exclusive(t)
//!  Global        read L            read L            write L
//!  TwoLevel      count, poll       read t, poll      count, seize t, poll
//!  Tree          enter All         read t            enter Exclusive, write t
//! ```
//!
//! `L` is one lock for the whole window, as in the paper; writers of different
//! targets wait for each other. `TwoLevel` is the design of foMPI. With `Tree`,
//! writers of different targets meet at most at their leaf, and so do holders of all
//! targets.
//!
//! A rank enters its [`Door`] once, however many targets it holds, because a rank
//! that is inside must not enter again.

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

/// The design of a window's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// One lock for the whole window.
    Global,
    /// A word for the window and a word for each target, polled.
    TwoLevel,
    /// A group lock on a tree, and a lock for each target.
    Tree,
}

/// The locks of a window. All ranks have equal values of it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The design of the locks.
    pub design: Design,
    /// The lock of rank 0. Each rank has one at the same place.
    pub lock: Lock,
    /// The group lock.
    pub tree: Tree,
}

/// The targets that an access locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// Every target, together with other accesses that want the same or share a
    /// target.
    All,
    /// This target, together with others.
    Shared(Rank),
    /// This target, alone.
    Exclusive(Rank),
}

/// The place where all accesses of one rank enter and leave. Two doors are equal if
/// they will do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Door {
    entry: Entry,
    /// Accesses that are inside, or on their way in.
    holds: u32,
    side: Side,
}

/// One access of a rank to a window, from the request to the release. Two accesses
/// are equal if they will do the same; the numbers of their operations do not
/// matter.
#[derive(Clone, Debug)]
pub struct Access {
    plan: Plan,
    want: Want,
    stage: Stage,
    claim: Claim,
    backoff: Backoff,
    /// The number of stages that the access has been through; each operation belongs
    /// to one stage.
    stages: u16,
}

/// What ends the wait of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// This word of the own memory.
    Word(RemoteAddr, Until),
    /// This number of nanoseconds.
    Pause(u64),
}

/// Why an access cannot begin: the rank would wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The rank is inside on the other side.
    OtherSide {
        /// The side on which the rank is.
        side: Side,
    },
    /// With [`Design::Global`]: the rank holds the one lock, or shares it and wants
    /// it exclusively.
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
    /// The door of `rank`, without accesses.
    pub const fn new(plan: &Plan, rank: Rank) -> Self {
        Self { entry: Entry::new(plan.tree, rank), holds: 0, side: Side::All }
    }

    /// The number of accesses that are inside, or on their way in.
    pub const fn holds(&self) -> u32 {
        self.holds
    }

    /// Whether the last access is on its way out. No access may begin before it is
    /// out.
    pub fn is_leaving(&self) -> bool {
        self.entry.place() == Place::Leaving
    }

    /// Handles the death of a rank, like [`Access::handle_lost`].
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

    /// Begins to lock `want`, and waits in `node`, where it has to. The caller must
    /// give a new life of a node each time.
    ///
    /// # Errors
    ///
    /// A [`Refused`] if the rank would wait for itself:
    ///
    /// - [`Refused::OtherSide`]: the rank is inside on the other side: it holds all
    ///   targets and wants one exclusively, or the other way round.
    /// - [`Refused::OneLock`], with [`Design::Global`]: the rank holds the window's one
    ///   lock, and not both locks are for all targets.
    ///
    /// # Panics
    ///
    /// If the access does not rest.
    pub fn begin(&mut self, door: &mut Door, want: Want, node: NodeId) -> Result<(), Refused> {
        assert!(self.stage == Stage::Rest, "begin of an access that does not rest: {self:?}");
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
                // The window's word is a word that the locks of targets do not use.
                let window = self.plan.lock.home;
                let window = RemoteAddr { offset: window.offset + 40, ..window };
                self.backoff = Backoff::new(window, lock.home, want);
                self.backoff.begin(is_counted);
                self.goes_to(Stage::Claiming);
            }
        }
        Ok(())
    }

    /// Gives the lock back. Operations under it must have completed, at the remote
    /// ends.
    ///
    /// # Panics
    ///
    /// If nothing is held.
    pub fn release(&mut self, door: &mut Door) {
        assert!(self.stage == Stage::Held, "release of an access that holds nothing: {self:?}");
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

    /// The next operation to post, with remote completion. A caller that cannot post
    /// it at once must keep it.
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

    /// Handles the end of an operation of this access. A second end of the same
    /// operation is ignored.
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

    /// The same operation, by the number of the part that posted it.
    fn step(&self, door: &Door) -> Option<StepId> {
        match self.stage {
            Stage::Entering | Stage::Leaving => door.entry.under_way(),
            _ if self.plan.design == Design::TwoLevel => self.backoff.under_way(),
            _ => self.claim.under_way(),
        }
    }

    /// What ends the wait, if the access waits.
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

    /// Handles that the word has the value `value`, or that the pause is over.
    pub fn handle_wake(&mut self, door: &mut Door, value: u64) {
        match self.stage {
            Stage::Entering => door.entry.handle_word(value),
            _ if self.plan.design == Design::TwoLevel => self.backoff.handle_pause(),
            _ => self.claim.handle_word(value),
        }
        self.go_on(door);
    }

    /// Handles the death of a rank: a wait may never end, so it ends with an error
    /// that names the rank.
    pub fn handle_lost(&mut self, door: &mut Door, rank: Rank) {
        self.claim.handle_lost(rank);
        self.backoff.handle_lost(rank);
        door.handle_lost(rank);
        self.go_on(door);
    }

    /// The result, when the lock is held or given back; `None` on the way there.
    pub fn poll_done(&self) -> Option<Result<(), AddrError>> {
        match self.stage {
            Stage::Held | Stage::Rest => Some(Ok(())),
            Stage::Failed(error) => Some(Err(error)),
            _ => None,
        }
    }

    /// Whether the lock is held.
    pub fn is_held(&self) -> bool {
        self.stage == Stage::Held
    }

    const fn number(&self, step: StepId) -> StepId {
        StepId::from_bits((self.stages as u32) << 16 | step.to_bits() & 0xffff)
    }

    /// The side of the group lock that an access is on.
    const fn side_of(&self, want: Want) -> Option<Side> {
        match (want, self.plan.design) {
            (Want::All, _) | (Want::Shared(_), Design::Global) => Some(Side::All),
            (Want::Exclusive(_), _) => Some(Side::Exclusive),
            (Want::Shared(_), _) => None,
        }
    }

    /// The lock of the target that is wanted.
    fn lock(&self) -> Lock {
        let lock = self.plan.lock;
        match (self.plan.design, self.want) {
            // Holders of all targets are readers of the one lock.
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

    /// Goes to the next stage, if a stage has ended.
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
        let held = match self {
            Self::OtherSide { side: Side::All } => "all targets, shared",
            Self::OtherSide { side: Side::Exclusive } => "a target exclusively",
            Self::OneLock => "the window's one lock",
        };
        write!(f, "this rank holds {held}, and would wait for itself: release that lock first")
    }
}

impl core::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::super::{Kind, NodeTable};
    use super::*;
    use tsumugi_core::mem::RegionKey;

    fn plan() -> Plan {
        let key = RegionKey::new(0, 1);
        let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
        let lock = Lock { home, nodes: NodeTable { key, offset: 64 }, kind: Kind::Readers };
        let tree = Tree::new(2, 2, 2, key, 128).unwrap();
        Plan { design: Design::Tree, lock, tree }
    }

    /// A rank begins to leave with the end of its last access.
    #[test]
    fn a_door_is_left_by_the_last_access() {
        let plan = plan();
        let mut door = Door::new(&plan, Rank(1));
        let mut accesses = [Access::new(plan), Access::new(plan)];
        let finds = |access: &mut Access, door: &mut Door, old| {
            let (id, _) = access.poll_op(door).expect("the access has an operation");
            access.handle_completed(door, id, Ok(old));
        };
        for access in &mut accesses {
            access.begin(&mut door, Want::All, NodeId::NONE).unwrap();
        }
        // The side is open.
        finds(&mut accesses[0], &mut door, 1);
        accesses[1].poll_op(&mut door);
        assert!(accesses.iter().all(Access::is_held));
        for (index, holds) in [(1, 1), (0, 0)] {
            assert!(!door.is_leaving());
            accesses[index].release(&mut door);
            assert_eq!(door.holds(), holds);
        }
        assert!(door.is_leaving());
        finds(&mut accesses[0], &mut door, 0);
        assert!(!door.is_leaving() && accesses.iter().all(|one| one.poll_done().is_some()));
    }

    /// The caller need not ask for an operation to learn that it waits no more.
    #[test]
    fn an_access_that_is_let_in_is_held_at_once() {
        let plan = plan();
        let mut door = Door::new(&plan, Rank(1));
        let [mut first, mut second] = [Access::new(plan), Access::new(plan)];
        first.begin(&mut door, Want::All, NodeId::NONE).unwrap();
        // The side is shut: the access asks, and waits.
        while let Some((id, _)) = first.poll_op(&mut door) {
            first.handle_completed(&mut door, id, Ok(0));
        }
        let Some(Waiting::Word(_, Until::Equal(granted))) = first.waits_for(&door) else {
            panic!("{first:?} does not wait");
        };
        first.handle_wake(&mut door, granted + 1);
        assert!(!first.is_held(), "the word has another value");
        first.handle_wake(&mut door, granted);
        assert!(first.is_held());
        second.begin(&mut door, Want::All, NodeId::NONE).unwrap();
        assert!(second.is_held(), "the rank is inside");
    }
}
