//! One collective under way: carries out its steps, with messages.

use super::buffers::{CollBuffers, Combine};
use super::group::GroupHandle;
use super::row_turn::RowTurn;
use super::service::lost_error;
use crate::error::{Error, MessageError};
use crate::service::messages::{Source, Tags, Under, pattern};
use std::borrow::Borrow;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::row::RowWait;
use tsumugi_core::coll::schedule::{BufferSpan, CollPlan, CollStep, CollTables, Collective};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::msg::Label;
use tsumugi_core::wait::Reason;

/// A collective of one rank, with its messages under way.
pub(super) struct Exchange<P = CollPlan> {
    machine: Collective<P>,
    tag: u32,
    under: heapless::Vec<Transfer, TRANSFERS_MAX>,
    error: Option<Error>,
    turn: RowTurn,
    /// A step that waits for another member, and for which of its counts.
    held: Option<(CollStep, RowWait)>,
    /// A wait for which this rank asks to be woken.
    watched: Option<RowWait>,
}

#[derive(Clone, Copy)]
struct Transfer {
    under: Under,
    /// The other member.
    member: u32,
    /// Bytes that a receive expects; `None`: a send.
    expected: Option<usize>,
}

impl<P: Borrow<CollPlan>> Exchange<P> {
    /// A collective of the group, which begins after all that began before.
    #[inline]
    pub(super) fn new(plan: P, group: &GroupHandle) -> Self {
        let turn = RowTurn::new(group, plan.borrow().row_turns());
        let (machine, tag, under) = (Collective::new(plan), group.next(), heapless::Vec::new());
        Self { machine, tag, under, error: None, turn, held: None, watched: None }
    }

    /// Carries out all steps that there are.
    ///
    /// # Safety
    ///
    /// The buffers and tables are those of the plan, and are not otherwise used until
    /// the collective has ended.
    pub(super) unsafe fn post(
        &mut self,
        group: &GroupHandle,
        tables: &CollTables<'_>,
        buffers: &CollBuffers,
        combine: Combine<'_>,
    ) {
        loop {
            let held = self.held.take().map(|(step, _)| step);
            let Some(step) = held.or_else(|| self.machine.poll_step(tables)) else { break };
            match step {
                CollStep::Copy { from, to } => {
                    let (source, target) = (buffers.source(from), buffers.target(to));
                    // A program may give one buffer as input and output: then nothing moves.
                    if source != target.cast_const() {
                        // SAFETY: the caller's promise; the bytes may overlap.
                        unsafe { target.copy_from(source, from.len) };
                    }
                }
                // A barrier reduces no bytes.
                CollStep::Combine { from, .. } if from.len == 0 => {}
                CollStep::Combine { from, into, order } => {
                    let combine = combine.expect("a reduction has an operation");
                    combine(buffers.source(from), buffers.target(into), from.len, order);
                }
                // SAFETY: the caller's promise.
                CollStep::Send { to, from } => unsafe { self.send(group, to, from, buffers) },
                CollStep::Receive { from, into } => {
                    // SAFETY: the caller's promise.
                    unsafe { self.receive(group, from, into, buffers) };
                }
                CollStep::Enter { .. } | CollStep::Take { .. } | CollStep::Leave { .. } => {
                    // SAFETY: the caller's promise.
                    if let Err(wait) = unsafe { self.turn.step(group, step, buffers, combine) } {
                        self.held = Some((step, wait));
                        break;
                    }
                    self.unwatch(group);
                }
            }
        }
    }

    /// # Safety
    ///
    /// That of [`post`](Self::post).
    unsafe fn send(
        &mut self,
        group: &GroupHandle,
        to: u32,
        span: BufferSpan,
        buffers: &CollBuffers,
    ) {
        let label = Label { context: group.context(), tag: self.tag };
        let (rank, at) = (group.rank_of(to), buffers.source(span));
        let messages = group.service().messages();
        // SAFETY: the caller's promise.
        let under = unsafe { messages.begin_send(rank, label, at, span.len) };
        match under {
            Ok(under) => self.begun(group, Transfer { under, member: to, expected: None }),
            Err(error) => self.failed(group, error),
        }
    }

    /// # Safety
    ///
    /// That of [`post`](Self::post).
    unsafe fn receive(
        &mut self,
        group: &GroupHandle,
        from: u32,
        span: BufferSpan,
        buffers: &CollBuffers,
    ) {
        let source = Source::Is(group.rank_of(from));
        let pattern = pattern(group.context(), source, Tags::Is(self.tag));
        let messages = group.service().messages();
        // SAFETY: the caller's promise.
        let under = unsafe { messages.begin_receive(pattern, buffers.target(span), span.len) };
        match under {
            Ok(under) => {
                if !under.has_ended_at_once() {
                    group.service().watch(under);
                }
                self.begun(group, Transfer { under, member: from, expected: Some(span.len) });
            }
            Err(error) => self.failed(group, error),
        }
    }

    fn begun(&mut self, group: &GroupHandle, transfer: Transfer) {
        if transfer.under.has_ended_at_once() {
            self.end(group, transfer);
        } else {
            let pushed = self.under.push(transfer);
            assert!(pushed.is_ok(), "a round has at most {TRANSFERS_MAX} messages");
        }
    }

    /// Takes the result of a message; waits for it if it has not ended.
    fn end(&mut self, group: &GroupHandle, transfer: Transfer) {
        let service = group.service();
        let reason = || self.reason(group, transfer.member);
        let result = service.messages().finish_because(transfer.under, reason);
        if transfer.expected.is_some() && !transfer.under.has_ended_at_once() {
            service.unwatch(transfer.under);
        }
        let differ = |source, bytes, expected| {
            Error::Coll(CollError::LengthsDiffer { rank: source, bytes, expected })
        };
        match (result, transfer.expected) {
            (Ok(received), Some(expected)) if received.bytes != expected => {
                let error = differ(received.source, received.bytes, expected);
                self.error.get_or_insert(error);
            }
            (Ok(_), _) => {}
            (Err(MessageError::Truncated { source, bytes, room, .. }), _) => {
                self.error.get_or_insert(differ(source, bytes, room));
            }
            (Err(error), _) => return self.failed(group, error),
        }
        self.machine.handle_ended();
    }

    /// Ends the collective after a message that failed.
    fn failed(&mut self, group: &GroupHandle, error: MessageError) {
        self.machine.handle_ended();
        // The first rank that has died: others may have ended because of that.
        let lost = group.service().lost().or(match error {
            MessageError::PeerLost { rank } => Some(rank),
            _ => None,
        });
        self.machine.handle_lost(lost.unwrap_or(group.service().member().rank()));
        if lost.is_none() {
            self.error = Some(Error::Message(error));
        }
        for transfer in &self.under {
            if transfer.expected.is_some() {
                group.service().messages().cancel(transfer.under);
            }
        }
    }

    /// Gives up a step that is held, because a rank has died.
    #[cold]
    fn lose(&mut self, group: &GroupHandle, rank: Rank) {
        self.held = None;
        self.machine.handle_lost(group.service().lost().unwrap_or(rank));
    }

    /// No longer asks to be woken. A bit that stays is one of a member that the next group
    /// in the row may not have.
    pub(super) fn unwatch(&mut self, group: &GroupHandle) {
        if let Some((wait, rows)) = self.watched.take().zip(group.rows()) {
            rows.seat().unwatch(&rows.memory(), wait);
        }
    }

    fn reason(&self, group: &GroupHandle, member: u32) -> Reason {
        group.reason(self.machine.name(), self.tag, member)
    }

    /// Which collective of its group it is.
    pub(super) const fn number(&self) -> u32 {
        self.tag
    }

    /// For what the collective waits, in a report, if it waits for another member.
    pub(super) fn waits_for(&self, group: &GroupHandle) -> Option<Reason> {
        if let Some((_, wait)) = self.held {
            return Some(self.reason(group, wait.member()));
        }
        // A receive, if there is one: a send ends when the other rank has arrived, too.
        let receive = self.under.iter().find(|transfer| transfer.expected.is_some());
        let first = receive.or(self.under.first())?;
        Some(self.reason(group, first.member))
    }

    /// Waits for another member, or for the first message under way.
    pub(super) fn wait(&mut self, group: &GroupHandle) {
        if let Some((_, wait)) = self.held {
            let rows = group.rows().expect("a step in a row is held");
            if let Err(AddrError::PeerLost { rank }) =
                rows.wait(wait, self.reason(group, wait.member()))
            {
                self.lose(group, rank);
            }
            return;
        }
        if !self.under.is_empty() {
            let first = self.under.remove(0);
            self.end(group, first);
        }
    }

    /// Takes the results of the messages that have ended; returns whether there was one.
    pub(super) fn look(&mut self, group: &GroupHandle) -> bool {
        let mut any = false;
        if let Some((_, wait)) = self.held {
            if let Some(rank) = group.service().lost() {
                self.lose(group, rank);
                return true;
            }
            let rows = group.rows().expect("a step in a row is held");
            // Its turn comes when this rank has moved on another one: then it looks at all.
            if self.watched == Some(wait) || rows.seat().is_turn(wait) {
                return false;
            }
            // The member for which a step waits may be another one at each try.
            self.unwatch(group);
            rows.seat().watch(&rows.memory(), wait);
            self.watched = Some(wait);
            // The step is tried once more.
            return true;
        }
        while let Some(index) = self
            .under
            .iter()
            .position(|transfer| group.service().messages().has_ended(transfer.under))
        {
            let ended = self.under.swap_remove(index);
            self.end(group, ended);
            any = true;
        }
        any
    }

    /// The result, once it is there.
    pub(super) fn poll_done(&mut self) -> Option<Result<(), Error>> {
        let done = self.machine.poll_done()?;
        Some(match (done, self.error.take().or(self.turn.take_error().map(Error::Coll))) {
            (Err(rank), None) => Err(lost_error(rank)),
            (_, Some(error)) => Err(error),
            (Ok(()), None) => Ok(()),
        })
    }
}

/// Messages of a round: children of a binomial tree, of which one at the root may be in
/// two parts.
const TRANSFERS_MAX: usize = 40;
