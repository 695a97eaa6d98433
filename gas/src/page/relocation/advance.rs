//! The step that follows the result of an operation.

use super::mover::{MoveStep, Relocation};
use super::outcome::Refusal;
use crate::page::entry::{DirectoryEntry, PageState, epoch_of, is_of};
use crate::page::gate::{Gate, GateState};
use crate::page::layout::PageLayout;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mutate;

impl Relocation {
    pub(super) fn goes_on(&mut self, old: u64) -> MoveStep {
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
                let any = mutate!("page_takeover_believes_list": self.has_taken_over => false);
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

    pub(super) fn fails(&mut self, error: AddrError) -> MoveStep {
        let is_death = matches!(error, AddrError::PeerLost { .. });
        let renews = mutate!("page_takeover_restores_epoch": self.has_taken_over => false);
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
    pub(super) fn first_word(&self) -> u32 {
        let words = self.layout.shape().frames.div_ceil(64);
        let place = self.layout.shape().homes.place(self.page, self.rank);
        (place / 64 % u64::from(words)) as u32
    }

    /// Goes on by the bits of the frames.
    pub(super) fn looks_for_frame(&self, word: u32, bits: u64) -> MoveStep {
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
