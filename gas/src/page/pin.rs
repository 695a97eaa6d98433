//! A pin of a page: the page stays in its place during a write. A pin is one stay in the rank's gate of the page, from entering to leaving.
//!
//! ```text
//!  known     gate: compare-swap  ───────────────────► in ─► the access ─► gate: -1
//!  not known gate: Pending ─► holders: or own bit ─► entry: read ─► kept: write
//!                                                      └─► gate: Pending → Valid, in
//! ```
//!
//! The rank's bit in the list of holders is set before the entry is read (hazard
//! O3). If a mover has locked the entry by then, the pin is repeated; a mover that
//! locks the entry later finds the bit. The gate is `Pending` before the bit is set,
//! and the place is installed by a compare-and-swap from exactly that state: a mover
//! that came in between has made the gate `Revoked` (O2).

use super::gate::{Gate, GateState};
use super::protocol::{PageAction, PageProtocol};
use super::{DirectoryEntry, PageId, PageLayout, PageState, WordOp};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mutate;

/// One stay in a gate. Its [access](PageAction::Access) is the caller's: the page stays
/// there until the answer, which is due when the access has completed at the remote end
/// or has failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PagePin {
    layout: PageLayout,
    rank: Rank,
    page: PageId,
    at: PinStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PinStep {
    Look,
    Enter(u64),
    ReadKept,
    Seize(u64),
    /// The list of holders is expected to have this value.
    Enlist(Option<DirectoryEntry>, u64),
    Ask,
    Keep(DirectoryEntry),
    Install(DirectoryEntry),
    /// Frees the slot, and goes on with this step.
    Withdraw(PinExit),
    Pause(Option<Rank>),
    Held(DirectoryEntry),
    Leave,
    Over,
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PinExit {
    Again(Option<Rank>),
    Fail(AddrError),
}

impl PagePin {
    /// A stay of `rank` that is to begin.
    pub const fn new(layout: PageLayout, rank: Rank, page: PageId) -> Self {
        Self { layout, rank, page, at: PinStep::Look }
    }

    #[inline]
    fn goes_on(&self, old: u64) -> PinStep {
        match self.at {
            PinStep::Look => self.finds(old),
            PinStep::Enter(seen) if old == seen => PinStep::ReadKept,
            PinStep::Enter(_) => mutate!("page_count_apart":
                self.finds(old) => PinStep::ReadKept),
            PinStep::ReadKept => match PageState::from_bits(old) {
                PageState::At(entry) => PinStep::Held(entry),
                PageState::Moving { .. } => unreachable!("the kept entry {old:#x} moves: {self:?}"),
            },
            PinStep::Seize(seen) if old == seen => mutate!("page_listed_late":
                PinStep::Enlist(None, 0) => PinStep::Ask),
            PinStep::Seize(_) => self.finds(old),
            PinStep::Enlist(entry, seen) if !self.layout.is_enlisted(self.rank, seen, old) => {
                PinStep::Enlist(entry, old)
            }
            PinStep::Enlist(Some(entry), _) => PinStep::Keep(entry),
            PinStep::Enlist(None, _) => PinStep::Ask,
            PinStep::Ask => match PageState::from_bits(old) {
                PageState::At(entry) => mutate!("page_listed_late":
                    PinStep::Keep(entry) => PinStep::Enlist(Some(entry), 0)),
                PageState::Moving { by, .. } => PinStep::Withdraw(PinExit::Again(Some(by))),
            },
            PinStep::Keep(entry) => PinStep::Install(entry),
            PinStep::Install(entry) => match Gate::from_bits(old).state {
                GateState::Pending => PinStep::Held(entry),
                _ => mutate!("page_install_blind":
                    PinStep::Withdraw(PinExit::Again(None)) => PinStep::Held(entry)),
            },
            PinStep::Withdraw(PinExit::Again(by)) => PinStep::Pause(by),
            PinStep::Withdraw(PinExit::Fail(error)) => PinStep::Failed(error),
            PinStep::Pause(_) => PinStep::Look,
            PinStep::Leave => PinStep::Over,
            PinStep::Held(_) | PinStep::Over | PinStep::Failed(_) => {
                unreachable!("no answer is due: {self:?}")
            }
        }
    }

    #[inline]
    fn finds(&self, bits: u64) -> PinStep {
        let gate = Gate::from_bits(bits);
        match gate.state {
            GateState::Valid if gate.page == self.page => PinStep::Enter(bits),
            _ if gate.is_free() => PinStep::Seize(bits),
            // The slot is in use for another page. Or it is of this page, and
            // another pin of this rank reads the entry, or a mover waits for the
            // last pin to leave.
            _ => PinStep::Pause(None),
        }
    }
}

impl PageProtocol for PagePin {
    type Access = DirectoryEntry;
    type Outcome = ();

    #[inline]
    fn act(&self) -> PageAction<Self::Access, Self::Outcome> {
        let Self { layout, rank, page, .. } = self;
        let gate = layout.gate(*rank, *page);
        let own = |state, count| Gate::new(*page, state, count).to_bits();
        match self.at {
            PinStep::Look => PageAction::Do(WordOp::load(gate)),
            PinStep::Enter(seen) => PageAction::Do(mutate!("page_count_apart":
                WordOp::exchange(gate, seen, seen + 1) => WordOp::add(gate, 1))),
            PinStep::ReadKept => PageAction::Do(WordOp::load(layout.kept(*rank, *page))),
            PinStep::Seize(seen) => {
                PageAction::Do(WordOp::exchange(gate, seen, own(GateState::Pending, 0)))
            }
            PinStep::Enlist(_, seen) => PageAction::Do(layout.enlist(*page, *rank, seen)),
            PinStep::Ask => PageAction::Do(layout.look(*page)),
            PinStep::Keep(entry) => {
                PageAction::Do(WordOp::store(layout.kept(*rank, *page), entry.to_bits()))
            }
            PinStep::Install(_) => {
                let (pending, valid) = (own(GateState::Pending, 0), own(GateState::Valid, 1));
                PageAction::Do(mutate!("page_install_blind":
                    WordOp::exchange(gate, pending, valid) => WordOp::store(gate, valid)))
            }
            PinStep::Withdraw(_) => PageAction::Do(WordOp::store(gate, 0)),
            PinStep::Pause(by) => PageAction::Pause(by),
            PinStep::Held(entry) => PageAction::Access(entry),
            PinStep::Leave => PageAction::Do(WordOp::add(gate, u64::MAX)),
            PinStep::Over => PageAction::Over(()),
            PinStep::Failed(error) => PageAction::Failed(error),
        }
    }

    #[inline]
    fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match result {
            // The access has completed at the remote end, or has failed.
            _ if matches!(self.at, PinStep::Held(_)) => PinStep::Leave,
            Ok(old) => self.goes_on(old),
            Err(error) => match self.at {
                PinStep::Enlist(..) | PinStep::Ask | PinStep::Keep(_) => {
                    PinStep::Withdraw(PinExit::Fail(error))
                }
                _ => PinStep::Failed(error),
            },
        };
    }
}
