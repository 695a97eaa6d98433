//! The locks of a window: for all targets or for one target, shared or exclusive, by
//! any of three [designs](LockDesign).
//!
//! ```text
//!                lock_all          shared(t)         exclusive(t)
//!  Tree          enter All         read t            enter Exclusive, write t
//!  Global        read L            read L            write L
//!  TwoLevel      count, poll       read t, poll      count, seize t, poll
//! ```
//!
//! With `Tree`, writers of different targets meet at most at their leaf, and so do
//! holders of all targets. `L` is the one lock of `Global`.
//!
//! A rank enters its [`RankMembership`] once, however many targets it holds, because a rank
//! that is inside must not enter again.

use super::claim::{ClaimEnd, ClaimStatus, LockClaim};
use super::kind::LockMode;
use super::member::{GroupMember, MemberPlace};
use super::node::NodeId;
use super::side::GroupSide;
use super::step::StepId;
use super::window_design::{LockDesign, LockPlan, TwoLevelClaim, Want};
use super::window_design::{window_word, would_wait_for_itself};
use core::fmt;
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;

/// The place where all accesses of one rank enter and leave. Two memberships are equal
/// if they will do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RankMembership {
    entry: GroupMember,
    /// Accesses that are inside, or on their way in.
    holds: u32,
    side: GroupSide,
}

/// One access of a rank to a window, from the request to the release. Two accesses
/// are equal if they will do the same; the numbers of their operations do not
/// matter.
#[derive(Clone, Debug)]
pub struct WindowAccess {
    plan: LockPlan,
    want: Want,
    stage: AccessStage,
    claim: LockClaim,
    two_level: TwoLevelClaim,
    /// The number of stages that the access has been through; each operation belongs
    /// to one stage.
    stages: u16,
}

/// What ends the wait of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessWait {
    /// This word of the own memory.
    Word(RemoteAddr, Until),
    /// This number of nanoseconds.
    Pause(u64),
}

/// Why an access cannot begin: the rank would wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessRefused {
    /// The rank is inside on the other side.
    OtherSide {
        /// The side on which the rank is.
        side: GroupSide,
    },
    /// With [`LockDesign::Global`]: the rank holds the one lock, or shares it and wants
    /// it exclusively.
    OneLock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AccessStage {
    Rest,
    Entering,
    Claiming,
    Held,
    Releasing,
    Leaving,
    Failed(AddrError),
}

impl RankMembership {
    /// The membership of `rank`, without accesses.
    pub const fn new(plan: &LockPlan, rank: Rank) -> Self {
        Self { entry: GroupMember::new(plan.tree, rank), holds: 0, side: GroupSide::All }
    }

    /// The number of accesses that are inside, or on their way in.
    pub const fn holds(&self) -> u32 {
        self.holds
    }

    /// Whether the last access is on its way out. No access may begin before it is
    /// out.
    pub fn is_leaving(&self) -> bool {
        self.entry.place() == MemberPlace::Leaving
    }

    /// Handles the death of a rank, like [`WindowAccess::handle_lost`].
    pub fn handle_lost(&mut self, rank: Rank) {
        self.entry.handle_lost(rank);
    }
}

impl WindowAccess {
    /// An access by `plan`.
    pub const fn new(plan: LockPlan) -> Self {
        let (stage, at) = (AccessStage::Rest, plan.lock.home);
        let two_level = TwoLevelClaim::new(at, at, Want::All);
        let claim = LockClaim::new(plan.lock, NodeId::NONE);
        Self { plan, want: Want::All, stage, claim, two_level, stages: 0 }
    }

    /// Begins to lock `want`, and waits in `node`, where it has to. The caller must
    /// give a new life of a node each time.
    ///
    /// # Errors
    ///
    /// An [`AccessRefused`] if the rank would wait for itself:
    ///
    /// - [`AccessRefused::OtherSide`]: the rank is inside on the other side: it holds all
    ///   targets and wants one exclusively, or the other way round.
    /// - [`AccessRefused::OneLock`], with [`LockDesign::Global`]: the rank holds the window's one
    ///   lock, and not both locks are for all targets.
    ///
    /// # Panics
    ///
    /// If the access does not rest.
    pub fn begin(
        &mut self,
        membership: &mut RankMembership,
        want: Want,
        node: NodeId,
    ) -> Result<(), AccessRefused> {
        assert!(self.stage == AccessStage::Rest, "begin of an access that does not rest: {self:?}");
        let side = self.plan.design.side_of(want);
        if self.plan.design == LockDesign::Global
            && membership.holds > 0
            && would_wait_for_itself(membership.side, side)
        {
            return Err(AccessRefused::OneLock);
        }
        if let Some(side) = side
            && membership.holds > 0
            && membership.side != side
        {
            return Err(AccessRefused::OtherSide { side: membership.side });
        }
        self.want = want;
        let is_counted = membership.holds > 0;
        if let Some(side) = side {
            membership.side = side;
            membership.holds += 1;
        }
        let lock = self.plan.lock_of(want);
        match self.plan.design {
            LockDesign::Tree if side.is_some() => {
                self.claim = LockClaim::new(lock, node);
                self.goes_to(AccessStage::Entering);
                self.go_on(membership);
            }
            LockDesign::Tree | LockDesign::Global => {
                self.claim = LockClaim::new(lock, node);
                self.claims();
            }
            LockDesign::TwoLevel => {
                let window = window_word(self.plan.lock.home);
                self.two_level = TwoLevelClaim::new(window, lock.home, want);
                self.two_level.begin(is_counted);
                self.goes_to(AccessStage::Claiming);
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
    pub fn release(&mut self, membership: &mut RankMembership) {
        assert!(
            self.stage == AccessStage::Held,
            "release of an access that holds nothing: {self:?}"
        );
        self.goes_to(AccessStage::Releasing);
        if self.plan.design == LockDesign::TwoLevel {
            let held = u32::from(self.side().is_some());
            membership.holds -= held;
            return self.two_level.release(membership.holds == 0);
        }
        if self.plan.design == LockDesign::Tree && self.want == Want::All {
            return self.leaves(membership);
        }
        if self.plan.design == LockDesign::Global {
            membership.holds -= 1;
        }
        self.claim.release();
    }

    /// The next operation to post, with remote completion. A caller that cannot post
    /// it at once must keep it.
    pub fn poll_op(&mut self, membership: &mut RankMembership) -> Option<(StepId, Op)> {
        self.go_on(membership);
        let (id, op) = match self.stage {
            AccessStage::Entering | AccessStage::Leaving => membership.entry.poll_op(),
            AccessStage::Claiming | AccessStage::Releasing
                if self.plan.design == LockDesign::TwoLevel =>
            {
                self.two_level.poll_op()
            }
            AccessStage::Claiming | AccessStage::Releasing => self.claim.poll_op(),
            _ => None,
        }?;
        Some((self.number(id), op))
    }

    /// Handles the end of an operation of this access. A second end of the same
    /// operation is ignored.
    pub fn handle_completed(
        &mut self,
        membership: &mut RankMembership,
        id: StepId,
        result: Result<u64, AddrError>,
    ) {
        let Some(step) = self.step(membership).filter(|&step| self.number(step) == id) else {
            return;
        };
        match self.stage {
            AccessStage::Entering | AccessStage::Leaving => {
                membership.entry.handle_completed(step, result)
            }
            _ if self.plan.design == LockDesign::TwoLevel => {
                self.two_level.handle_completed(step, result)
            }
            _ => self.claim.handle_completed(step, result),
        }
        self.go_on(membership);
    }

    /// The operation that is posted and has not ended.
    pub fn under_way(&self, membership: &RankMembership) -> Option<StepId> {
        self.step(membership).map(|step| self.number(step))
    }

    /// The same operation, by the number of the part that posted it.
    fn step(&self, membership: &RankMembership) -> Option<StepId> {
        match self.stage {
            AccessStage::Entering | AccessStage::Leaving => membership.entry.under_way(),
            _ if self.plan.design == LockDesign::TwoLevel => self.two_level.under_way(),
            _ => self.claim.under_way(),
        }
    }

    /// What ends the wait, if the access waits.
    pub fn waits_for(&self, membership: &RankMembership) -> Option<AccessWait> {
        let word = match self.stage {
            AccessStage::Entering => membership.entry.waits_for(),
            _ if self.plan.design == LockDesign::TwoLevel => {
                return self.two_level.pause_ns().map(AccessWait::Pause);
            }
            _ => self.claim.waits_for(),
        };
        word.map(|(word, until)| AccessWait::Word(word, until))
    }

    /// Handles that the word has the value `value`, or that the pause is over.
    pub fn handle_wake(&mut self, membership: &mut RankMembership, value: u64) {
        match self.stage {
            AccessStage::Entering => membership.entry.handle_word(value),
            _ if self.plan.design == LockDesign::TwoLevel => self.two_level.handle_pause(),
            _ => self.claim.handle_word(value),
        }
        self.go_on(membership);
    }

    /// Handles the death of a rank: a wait may never end, so it ends with an error
    /// that names the rank.
    pub fn handle_lost(&mut self, membership: &mut RankMembership, rank: Rank) {
        self.claim.handle_lost(rank);
        self.two_level.handle_lost(rank);
        membership.handle_lost(rank);
        self.go_on(membership);
    }

    /// The result, when the lock is held or given back; `None` on the way there.
    pub fn poll_done(&self) -> Option<Result<(), AddrError>> {
        match self.stage {
            AccessStage::Held | AccessStage::Rest => Some(Ok(())),
            AccessStage::Failed(error) => Some(Err(error)),
            _ => None,
        }
    }

    /// Whether the lock is held.
    pub fn is_held(&self) -> bool {
        self.stage == AccessStage::Held
    }

    const fn number(&self, step: StepId) -> StepId {
        StepId::from_bits((self.stages as u32) << 16 | step.to_bits() & 0xffff)
    }

    /// The side of the group lock on which the access is.
    const fn side(&self) -> Option<GroupSide> {
        self.plan.design.side_of(self.want)
    }

    fn goes_to(&mut self, stage: AccessStage) {
        self.stage = stage;
        self.stages = self.stages.wrapping_add(1);
    }

    fn claims(&mut self) {
        let mode = match self.want {
            Want::Exclusive(_) => LockMode::Exclusive,
            _ => LockMode::Shared,
        };
        self.goes_to(AccessStage::Claiming);
        self.claim.begin(mode);
    }

    fn leaves(&mut self, membership: &mut RankMembership) {
        membership.holds -= 1;
        if mutate!("group_left_while_held": membership.holds > 0 => false) {
            self.goes_to(AccessStage::Rest);
        } else {
            self.goes_to(AccessStage::Leaving);
            membership.entry.leave();
        }
    }

    /// Goes to the next stage, if a stage has ended.
    fn go_on(&mut self, membership: &mut RankMembership) {
        match (self.stage, membership.entry.place()) {
            (AccessStage::Entering, MemberPlace::Out) => membership.entry.enter(membership.side),
            (AccessStage::Entering, MemberPlace::In) if self.want == Want::All => {
                self.goes_to(AccessStage::Held)
            }
            (AccessStage::Entering, MemberPlace::In) => self.claims(),
            (AccessStage::Leaving, MemberPlace::Out) => self.goes_to(AccessStage::Rest),
            (AccessStage::Entering | AccessStage::Leaving, MemberPlace::Failed(error)) => {
                self.goes_to(AccessStage::Failed(error));
            }
            (AccessStage::Claiming | AccessStage::Releasing, _) => self.settle(membership),
            _ => {}
        }
    }

    fn settle(&mut self, membership: &mut RankMembership) {
        let is_asking = self.stage == AccessStage::Claiming;
        if self.plan.design == LockDesign::TwoLevel {
            match self.two_level.poll_done() {
                Some(Ok(())) if is_asking => self.goes_to(AccessStage::Held),
                Some(Ok(())) => self.goes_to(AccessStage::Rest),
                Some(Err(error)) => self.goes_to(AccessStage::Failed(error)),
                None => {}
            }
            return;
        }
        match self.claim.standing() {
            ClaimStatus::Held if is_asking => self.goes_to(AccessStage::Held),
            ClaimStatus::Resting(ClaimEnd::Released) if !is_asking => {
                if self.plan.design == LockDesign::Tree && self.side().is_some() {
                    self.leaves(membership);
                } else {
                    self.goes_to(AccessStage::Rest);
                }
            }
            ClaimStatus::Failed(error) => self.goes_to(AccessStage::Failed(error)),
            _ => {}
        }
    }
}

impl PartialEq for WindowAccess {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Self| (one.want, one.stage, one.two_level);
        same(self) == same(other) && self.claim == other.claim
    }
}

impl Eq for WindowAccess {}

impl Hash for WindowAccess {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.want, self.stage).hash(state);
        self.claim.hash(state);
    }
}

impl fmt::Display for AccessRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match self {
            Self::OtherSide { side: GroupSide::All } => "all targets, shared",
            Self::OtherSide { side: GroupSide::Exclusive } => "a target exclusively",
            Self::OneLock => "the window's one lock",
        };
        write!(f, "this rank holds {held}, and would wait for itself: release that lock first")
    }
}

impl core::error::Error for AccessRefused {}

#[cfg(test)]
mod tests;
