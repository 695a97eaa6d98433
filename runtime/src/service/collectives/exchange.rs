//! One collective under way: carries out its steps, with messages.

use super::buffers::{CollBuffers, Combine};
use super::group::GroupHandle;
use super::service::lost_error;
use crate::error::{Error, MessageError};
use crate::service::messages::{Source, Tags, Under, pattern};
use std::slice;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::row::{CellRow, RowMemory, RowSeat, RowWait};
use tsumugi_core::coll::schedule::{BufferSpan, CollPlan, CollStep, CollTables, Collective};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::msg::Label;
use tsumugi_core::wait::Reason;

/// A collective of one rank, with its messages under way.
pub(super) struct Exchange {
    machine: Collective,
    tag: u32,
    under: heapless::Vec<Transfer, TRANSFERS_MAX>,
    error: Option<Error>,
    /// The number of the collective in the group's rows that is next or under way.
    number: u64,
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

impl Exchange {
    /// A collective of the group, which begins after all that began before.
    #[inline]
    pub(super) fn new(plan: CollPlan, group: &GroupHandle) -> Self {
        let turns = plan.row_turns();
        let number = group.rows().map_or(0, |rows| rows.seat().take_numbers(turns));
        let (machine, tag, under) = (Collective::new(plan), group.next(), heapless::Vec::new());
        Self { machine, tag, under, error: None, number, held: None, watched: None }
    }

    /// No collective.
    pub(super) fn idle() -> Self {
        let (machine, under) = (Collective::new(CollPlan::default()), heapless::Vec::new());
        Self { machine, tag: 0, under, error: None, number: 0, held: None, watched: None }
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
                    // SAFETY: the caller's promise; a program may give one buffer as
                    // input and output.
                    unsafe { buffers.target(to).copy_from(buffers.source(from), from.len) };
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
                    if let Err(wait) = unsafe { self.in_row(group, step, buffers, combine) } {
                        self.held = Some((step, wait));
                        break;
                    }
                    self.unwatch(group);
                }
            }
        }
    }

    /// Carries out a step in the rows of the group.
    ///
    /// # Errors
    ///
    /// Another member has to do something first.
    ///
    /// # Safety
    ///
    /// That of [`post`](Self::post).
    unsafe fn in_row(
        &mut self,
        group: &GroupHandle,
        step: CollStep,
        buffers: &CollBuffers,
        combine: Combine<'_>,
    ) -> Result<(), RowWait> {
        let rows = group.rows().expect("a plan with rows is for a group that has them");
        let (seat, memory, number) = (rows.seat(), rows.memory(), self.number);
        match step {
            CollStep::Enter { from } => {
                let value = from.map(|from| match from.len {
                    0 => &[][..],
                    // SAFETY: the caller's promise.
                    len => unsafe { slice::from_raw_parts(buffers.source(from), len) },
                });
                seat.try_enter(&memory, number, value)?;
            }
            CollStep::Take { member, at, value_bytes, into, combined } => {
                let mut value = Value([0; CellRow::VALUE_BYTES]);
                let len = match (combined, into.len) {
                    (_, 0) => seat.try_take(&memory, number, member, at, &mut [])?,
                    (None, len) => {
                        let to = buffers.target(into);
                        // SAFETY: the caller's promise.
                        let to = unsafe { slice::from_raw_parts_mut(to, len) };
                        seat.try_take(&memory, number, member, at, to)?
                    }
                    (Some(order), len) => {
                        let value = &mut value.0[..len];
                        let sent = seat.try_take(&memory, number, member, at, value)?;
                        if value_bytes.is_none_or(|expected| expected == sent) {
                            let combine = combine.expect("a reduction has an operation");
                            let leaves = LeaveOnPanic { seat, memory: &memory, number };
                            combine(value.as_ptr(), buffers.target(into), len, order);
                            std::mem::forget(leaves);
                        }
                        sent
                    }
                };
                if let Some(expected) = value_bytes.filter(|expected| *expected != len) {
                    let rank = group.rank_of(member);
                    let error = CollError::LengthsDiffer { rank, bytes: len, expected };
                    self.error.get_or_insert(Error::Coll(error));
                }
            }
            CollStep::Leave { has_read_all } => {
                seat.leave(&memory, number, has_read_all);
                self.number += 1;
            }
            CollStep::Copy { .. }
            | CollStep::Combine { .. }
            | CollStep::Send { .. }
            | CollStep::Receive { .. } => unreachable!("{step:?} is not a step in a row"),
        }
        Ok(())
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

    /// For what a caller waits, in a report: the collective, and the rank of the message.
    fn reason(&self, group: &GroupHandle, member: u32) -> Reason {
        let group_number = group.report_number().map_or(0, |number| u64::from(number) << 32);
        let wanted = u64::from(group.rank_of(member).0) + 1;
        Reason { what: self.machine.name(), at: group_number | u64::from(self.tag), wanted }
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
        Some(match (self.machine.poll_done()?, self.error.take()) {
            (Err(rank), None) => Err(lost_error(rank)),
            (_, Some(error)) => Err(error),
            (Ok(()), None) => Ok(()),
        })
    }
}

/// Ends a collective whose operation panics: the other members have this rank's value.
struct LeaveOnPanic<'g, M: RowMemory> {
    seat: &'g RowSeat,
    memory: &'g M,
    number: u64,
}

impl<M: RowMemory> Drop for LeaveOnPanic<'_, M> {
    fn drop(&mut self) {
        self.seat.leave(self.memory, self.number, false);
    }
}

/// A value that is combined, at an address for elements of any type.
#[repr(align(64))]
struct Value([u8; CellRow::VALUE_BYTES]);

/// Messages of a round: children of a binomial tree, of which one at the root may be in
/// two parts.
const TRANSFERS_MAX: usize = 40;
