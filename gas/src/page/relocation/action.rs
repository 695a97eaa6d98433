//! The operation of each step.

use super::mover::{MoveStep, Relocation};
use super::outcome::{MoveOutcome, PageCopy, Refusal};
use crate::page::entry::{PageState, gone};
use crate::page::gate::Gate;
use crate::page::protocol::{PageAction, PageProtocol};
use crate::page::word::WordOp;
use tsumugi_core::mem::{AddrError, Rank};

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
