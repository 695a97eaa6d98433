//! The move of a page to the rank that requests it, or to another rank that takes no
//! part, by remote atomics alone.
//!
//! ```text
//!  the paper's step                   here
//!   1  request                        entry: read; own frame: take
//!   2  lock, invalidate               entry: At → Moving, by us
//!   3  stop, to all that may write    holders: emptied; of each: its gate,
//!   4  invalidate, wait for writes      Pending → Revoked, Valid → Stopped
//!   5  stopped                        ... and wait until the count is 0
//!   6  permission                     (not needed)
//!   7  copy                           bytes: get; header there: gone
//!   8  done    9  new metadata        entry: Moving → At us
//!  10  cached                         (by the next pin or optimistic read)
//! ```
//!
//! Ranks that only read are neither asked nor waited for, however many they are; the
//! frame that the page has left is free after a [`GracePeriod`](super::GracePeriod).
//!
//! The order of the stores is: the bytes, the new header, the mark of the old
//! header, the entry. So of all headers that a reader can come to, at most one is
//! live with the epoch of the entry that the reader has, and while it is live, its
//! bytes are the page's.
//!
//! A mover may die. The next rank that requests the page then takes over (the recovering mover).
//! Any rank may have been left with a valid gate, so the recovering mover stops all ranks; each
//! later mover does so, too, because the operation by which the dead mover empties
//! the list may land at any time, and remove a rank that was entered since. If the
//! recovering mover fails, the page stays where it is, but with the epoch of a move: the dead
//! mover may have marked the page's header, or may do so later.

use super::entry::{epoch_of, gone, is_of};
use super::gate::{Gate, GateState};
use super::protocol::{PageAction, PageProtocol};
use super::{DirectoryEntry, PageId, PageLayout, PageState, WordOp};
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};
use tsumugi_core::mutate;

/// One page on its way. Its [access](PageAction::Access) copies the page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relocation {
    layout: PageLayout,
    /// The rank that is to own the page, and the rank that carries out the move.
    rank: Rank,
    by: Rank,
    page: PageId,
    at: MoveStep,
    /// The place of the page before the move. The epoch may be wrong after a
    /// take-over, until the header was read.
    from: DirectoryEntry,
    /// The frame that was taken for the page at its new owner.
    frame: Option<u32>,
    /// Bits of the ranks that may hold the page, and the rank that is being stopped.
    holders: u64,
    holder: u32,
    /// A mover that has died.
    dead: Option<Rank>,
    has_taken_over: bool,
    /// A rank has died that may still write to the old frame.
    is_tainted: bool,
}

/// A frame that a page has left, and to which no entry leads any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetiredFrame {
    /// The rank of the frame.
    pub owner: Rank,
    /// The index of the frame at that rank.
    pub frame: u32,
}

/// The access of a relocation: copy all bytes of the page to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCopy {
    /// Address of the page's bytes.
    pub from: RemoteAddr,
    /// Address of the frame's bytes.
    pub to: RemoteAddr,
}

/// The end of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The page is at its new owner, or was there at some time since the begin.
    Done {
        /// The page is in another frame than before.
        has_moved: bool,
        /// The frame that the page has left, if that frame may be freed.
        retired: Option<RetiredFrame>,
    },
    /// No frame is left at the new owner.
    NoFrame,
}

/// Why a page was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// All frames of the new owner are taken.
    NoFrame,
    /// A rank has died that is needed for the move.
    Addr(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MoveStep {
    Ask,
    /// Waits for another mover of the page, which is this rank.
    Wait(Rank),
    FindFrame(u32),
    TakeFrame(u32, u64, u32),
    Lock,
    TakeOver(Rank),
    /// Empties or marks the list of holders, which is expected to have this value.
    Disown(u64),
    /// Changes the gate of a holder, which is expected to have this value, to this
    /// state.
    Stop(u64, GateState),
    /// Reads the gate of the holder again.
    Probe,
    /// Waits because pins are in the gate.
    Drain,
    ReadHeader,
    Copy,
    Mark,
    MarkOld,
    Commit,
    /// Writes a header with a new epoch at the old place, where the page stays, and
    /// then fails.
    Renew(AddrError),
    /// Writes the old entry back, and then fails.
    Restore(AddrError),
    /// Marks the header of the new frame, because the next rank that takes the frame
    /// must not find it live.
    Unmark(Refusal),
    /// Frees the new frame, and then ends with this result.
    GiveBack(Option<Refusal>),
    Over,
    Refused(Refusal),
}

impl Relocation {
    /// The move of a page to `rank`, which carries it out.
    pub const fn new(layout: PageLayout, rank: Rank, page: PageId) -> Self {
        Self::to(layout, rank, rank, page)
    }

    /// The move of a page to `rank`, carried out by `by`; `rank` takes no part.
    pub const fn to(layout: PageLayout, rank: Rank, by: Rank, page: PageId) -> Self {
        let from = DirectoryEntry { owner: rank, frame: 0, epoch: 0 };
        Self {
            layout,
            rank,
            by,
            page,
            at: MoveStep::Ask,
            from,
            frame: None,
            holders: 0,
            holder: 0,
            dead: None,
            has_taken_over: false,
            is_tainted: false,
        }
    }

    /// Whether the move is over and the page is in another frame than before.
    pub fn has_moved(&self) -> bool {
        self.at == MoveStep::Over && self.frame.is_some()
    }

    /// The frame that the page has left, if the move is over and that frame may be
    /// freed: a frame that a dead mover may still write to is never freed.
    pub fn retired(&self) -> Option<RetiredFrame> {
        let is_free = self.has_moved() && !self.is_tainted;
        is_free.then_some(RetiredFrame { owner: self.from.owner, frame: self.from.frame })
    }

    fn moving(&self) -> PageState {
        PageState::Moving { owner: self.from.owner, frame: self.from.frame, by: self.by }
    }

    fn goes_on(&mut self, old: u64) -> MoveStep {
        match self.at {
            MoveStep::Ask => self.finds(old),
            MoveStep::Wait(_) => MoveStep::Ask,
            MoveStep::FindFrame(word) => self.looks_for_frame(word, old),
            MoveStep::TakeFrame(word, seen, bit) if old == seen => {
                self.frame = Some(word * 64 + bit);
                if self.dead.is_some() { MoveStep::Ask } else { MoveStep::Lock }
            }
            MoveStep::TakeFrame(word, ..) => self.looks_for_frame(word, old),
            MoveStep::Lock if old == self.from.to_bits() => MoveStep::Disown(0),
            MoveStep::Lock => self.finds(old),
            MoveStep::TakeOver(by) => {
                let (owner, frame) = (self.from.owner, self.from.frame);
                if old != (PageState::Moving { owner, frame, by }).to_bits() {
                    return self.finds(old);
                }
                self.has_taken_over = true;
                MoveStep::Disown(0)
            }
            MoveStep::Disown(seen) if !self.layout.is_disowned(seen, old) => MoveStep::Disown(old),
            MoveStep::Disown(_) => {
                let any = mutate!("page_heir_believes_list": self.has_taken_over => false);
                self.holders = if any { u64::MAX } else { old };
                self.holder = 0;
                self.seeks_holder()
            }
            MoveStep::Probe => self.meets(old),
            MoveStep::Stop(seen, state) if old == seen => {
                let is_in = state == GateState::Stopped && Gate::from_bits(seen).count > 0;
                if mutate!("page_drain_skipped": is_in => false) {
                    MoveStep::Drain
                } else {
                    self.leaves_holder()
                }
            }
            MoveStep::Stop(..) => self.meets(old),
            MoveStep::Drain => MoveStep::Probe,
            MoveStep::ReadHeader => {
                if is_of(old, self.page) {
                    self.from.epoch = epoch_of(old);
                }
                MoveStep::Copy
            }
            MoveStep::Copy => MoveStep::Mark,
            MoveStep::Mark => {
                let next = mutate!("page_marked_late": MoveStep::MarkOld => MoveStep::Commit);
                mutate!("page_left_unmarked": next => MoveStep::Commit)
            }
            MoveStep::MarkOld => mutate!("page_marked_late": MoveStep::Commit => MoveStep::Over),
            MoveStep::Commit if old == self.moving().to_bits() => {
                mutate!("page_marked_late": MoveStep::Over => MoveStep::MarkOld)
            }
            // Another rank has taken over, because it took this rank for dead.
            MoveStep::Commit => {
                let own = AddrError::PeerLost { rank: self.by };
                MoveStep::Unmark(Refusal::Addr(own))
            }
            MoveStep::Renew(error) => MoveStep::Restore(error),
            MoveStep::Restore(error) => MoveStep::Unmark(Refusal::Addr(error)),
            MoveStep::Unmark(refusal) => MoveStep::GiveBack(Some(refusal)),
            MoveStep::GiveBack(None) => {
                self.frame = None;
                MoveStep::Over
            }
            MoveStep::GiveBack(Some(refusal)) => MoveStep::Refused(refusal),
            MoveStep::Over | MoveStep::Refused(_) => unreachable!("no answer is due: {self:?}"),
        }
    }

    fn fails(&mut self, error: AddrError) -> MoveStep {
        let is_death = matches!(error, AddrError::PeerLost { .. });
        let renews = mutate!("page_heir_restores_epoch": self.has_taken_over => false);
        match self.at {
            MoveStep::Wait(by) if error == (AddrError::PeerLost { rank: by }) => {
                self.dead = Some(by);
                MoveStep::Ask
            }
            // An operation that the dead rank had begun may land after the copy.
            MoveStep::Probe | MoveStep::Stop(..) if is_death => {
                self.is_tainted = true;
                self.leaves_holder()
            }
            MoveStep::MarkOld if is_death => {
                self.is_tainted = true;
                MoveStep::Commit
            }
            MoveStep::Copy | MoveStep::Mark | MoveStep::MarkOld if renews => {
                self.from = self.from.moved(self.from.owner, self.from.frame);
                MoveStep::Renew(error)
            }
            MoveStep::Probe
            | MoveStep::Stop(..)
            | MoveStep::ReadHeader
            | MoveStep::Copy
            | MoveStep::Mark
            | MoveStep::MarkOld => MoveStep::Restore(error),
            // The owner has died, and the page is lost with it.
            MoveStep::Renew(_) => MoveStep::Restore(error),
            MoveStep::Restore(_) => MoveStep::Unmark(Refusal::Addr(error)),
            MoveStep::Ask
            | MoveStep::Wait(_)
            | MoveStep::Lock
            | MoveStep::TakeOver(_)
            | MoveStep::Disown(_)
                if self.frame.is_some() =>
            {
                MoveStep::GiveBack(Some(Refusal::Addr(error)))
            }
            _ => MoveStep::Refused(Refusal::Addr(error)),
        }
    }

    /// Goes on by the value of the entry.
    fn finds(&mut self, bits: u64) -> MoveStep {
        let next = match PageState::from_bits(bits) {
            PageState::At(entry) if entry.owner == self.rank => {
                return if self.frame.is_some() {
                    MoveStep::GiveBack(None)
                } else {
                    MoveStep::Over
                };
            }
            PageState::At(entry) => {
                (self.from, self.dead) = (entry, None);
                MoveStep::Lock
            }
            PageState::Moving { owner, frame, by } if self.dead == Some(by) => {
                self.from = DirectoryEntry { owner, frame, epoch: 0 };
                MoveStep::TakeOver(by)
            }
            PageState::Moving { by, .. } => return MoveStep::Wait(by),
        };
        if self.frame.is_some() { next } else { MoveStep::FindFrame(self.first_word()) }
    }

    /// The word of bits with which the search for a frame begins. Each page has a
    /// place of its own there, if there are frames for all pages; the pages that the
    /// rank owned at first lie at their own places.
    fn first_word(&self) -> u32 {
        let words = self.layout.shape().frames.div_ceil(64);
        let place = self.layout.shape().homes.place(self.page, self.rank);
        (place / 64 % u64::from(words)) as u32
    }

    /// Goes on by the bits of the frames.
    fn looks_for_frame(&self, word: u32, bits: u64) -> MoveStep {
        let frames = self.layout.shape().frames;
        let bit = bits.trailing_ones();
        match word * 64 + bit {
            frame if bit < 64 && frame < frames => MoveStep::TakeFrame(word, bits, bit),
            _ => match (word + 1) % frames.div_ceil(64) {
                next if next == self.first_word() => MoveStep::Refused(Refusal::NoFrame),
                next => MoveStep::FindFrame(next),
            },
        }
    }

    /// Goes on by the gate of the holder.
    fn meets(&mut self, bits: u64) -> MoveStep {
        let gate = Gate::from_bits(bits);
        match gate.state {
            _ if gate.page != self.page => self.leaves_holder(),
            GateState::Pending => MoveStep::Stop(bits, GateState::Revoked),
            GateState::Valid => MoveStep::Stop(bits, GateState::Stopped),
            GateState::Stopped if gate.count > 0 => MoveStep::Drain,
            GateState::Stopped | GateState::Revoked | GateState::Empty => self.leaves_holder(),
        }
    }

    fn leaves_holder(&mut self) -> MoveStep {
        self.holder += 1;
        self.seeks_holder()
    }

    fn seeks_holder(&mut self) -> MoveStep {
        let ranks = self.layout.shape().homes.ranks();
        while self.holder < ranks && !PageLayout::may_hold(self.holders, Rank(self.holder)) {
            self.holder += 1;
        }
        match () {
            // Most listed ranks have a valid gate with count 0: one operation for
            // each of them is enough then.
            () if self.holder < ranks => {
                let known = Gate::new(self.page, GateState::Valid, 0);
                MoveStep::Stop(known.to_bits(), GateState::Stopped)
            }
            () if self.has_taken_over => MoveStep::ReadHeader,
            () => MoveStep::Copy,
        }
    }
}

impl PageProtocol for Relocation {
    type Access = PageCopy;
    type Outcome = MoveOutcome;

    fn act(&self) -> PageAction<Self::Access, Self::Outcome> {
        let Self { layout, rank, page, from, .. } = self;
        let moving = self.moving().to_bits();
        let here = self.frame.map(|frame| from.moved(*rank, frame));
        let new = || here.expect("the frame is taken before the entry is locked");
        match self.at {
            MoveStep::Ask => PageAction::Do(layout.look(*page)),
            MoveStep::Wait(by) => PageAction::Pause(Some(by)),
            MoveStep::Drain => PageAction::Pause(None),
            MoveStep::FindFrame(word) => PageAction::Do(WordOp::load(layout.bits(*rank, word))),
            MoveStep::TakeFrame(word, seen, bit) => {
                PageAction::Do(WordOp::exchange(layout.bits(*rank, word), seen, seen | 1 << bit))
            }
            MoveStep::Lock => {
                PageAction::Do(WordOp::exchange(layout.entry(*page), from.to_bits(), moving))
            }
            MoveStep::TakeOver(by) => {
                let dead = PageState::Moving { owner: from.owner, frame: from.frame, by };
                PageAction::Do(WordOp::exchange(layout.entry(*page), dead.to_bits(), moving))
            }
            MoveStep::Disown(seen) if self.has_taken_over => {
                PageAction::Do(layout.distrust(*page, seen))
            }
            MoveStep::Disown(seen) => PageAction::Do(layout.disown(*page, seen)),
            MoveStep::Probe => PageAction::Do(WordOp::load(layout.gate(Rank(self.holder), *page))),
            MoveStep::Stop(seen, state) => {
                let gate = Gate { state, ..Gate::from_bits(seen) };
                let at = layout.gate(Rank(self.holder), *page);
                PageAction::Do(WordOp::exchange(at, seen, gate.to_bits()))
            }
            MoveStep::ReadHeader => {
                PageAction::Do(WordOp::load(layout.header(from.owner, from.frame)))
            }
            MoveStep::Copy => {
                PageAction::Access(PageCopy { from: layout.bytes(*from), to: layout.bytes(new()) })
            }
            MoveStep::Mark => {
                let at = layout.header(*rank, new().frame);
                PageAction::Do(WordOp::store(at, new().header(*page)))
            }
            MoveStep::MarkOld => {
                let (at, header) = (layout.header(from.owner, from.frame), from.header(*page));
                // An operation of this kind that lands late does no harm: no other
                // header has the same value.
                PageAction::Do(WordOp::exchange(at, header, gone(header)))
            }
            MoveStep::Commit => {
                PageAction::Do(WordOp::exchange(layout.entry(*page), moving, new().to_bits()))
            }
            MoveStep::Renew(_) => {
                let at = layout.header(from.owner, from.frame);
                PageAction::Do(WordOp::store(at, from.header(*page)))
            }
            MoveStep::Restore(_) => {
                PageAction::Do(WordOp::exchange(layout.entry(*page), moving, from.to_bits()))
            }
            MoveStep::Unmark(_) => {
                let at = layout.header(*rank, new().frame);
                PageAction::Do(WordOp::store(at, gone(new().header(*page))))
            }
            MoveStep::GiveBack(_) => {
                let (at, bit) = layout.bit(*rank, new().frame);
                PageAction::Do(WordOp::and(at, !bit))
            }
            MoveStep::Over => PageAction::Over(MoveOutcome::Done {
                has_moved: self.has_moved(),
                retired: self.retired(),
            }),
            MoveStep::Refused(Refusal::Addr(error)) => PageAction::Failed(error),
            MoveStep::Refused(Refusal::NoFrame) => PageAction::Over(MoveOutcome::NoFrame),
        }
    }

    fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match result {
            Ok(old) => self.goes_on(old),
            Err(error) => self.fails(error),
        };
    }
}

#[cfg(test)]
mod tests;
