//! One collective under way: carries out its steps, with messages.

use super::buffers::{CollBuffers, Combine};
use super::group::GroupHandle;
use super::service::lost_error;
use crate::error::{Error, MessageError};
use crate::service::messages::{Source, Tags, Under, pattern};
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{BufferSpan, CollPlan, CollStep, CollTables, Collective};
use tsumugi_core::msg::Label;
use tsumugi_core::wait::Reason;

/// A collective of one rank, with its messages under way.
pub(super) struct Exchange {
    machine: Collective,
    tag: u32,
    under: heapless::Vec<Transfer, TRANSFERS_MAX>,
    error: Option<Error>,
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
    pub(super) const fn new(plan: CollPlan, tag: u32) -> Self {
        let machine = Collective::new(plan);
        Self { machine, tag, under: heapless::Vec::new(), error: None }
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
        while let Some(step) = self.machine.poll_step(tables) {
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

    /// For what a caller waits, in a report: the collective, and the rank of the message.
    fn reason(&self, group: &GroupHandle, member: u32) -> Reason {
        let group_number = group.report_number().map_or(0, |number| u64::from(number) << 32);
        let wanted = u64::from(group.rank_of(member).0) + 1;
        Reason { what: self.machine.name(), at: group_number | u64::from(self.tag), wanted }
    }

    /// For what the collective waits, in a report, if it waits for a message.
    pub(super) fn waits_for(&self, group: &GroupHandle) -> Option<Reason> {
        // A receive, if there is one: a send ends when the other rank has arrived, too.
        let receive = self.under.iter().find(|transfer| transfer.expected.is_some());
        let first = receive.or(self.under.first())?;
        Some(self.reason(group, first.member))
    }

    /// Waits for the first message under way.
    pub(super) fn wait(&mut self, group: &GroupHandle) {
        if !self.under.is_empty() {
            let first = self.under.remove(0);
            self.end(group, first);
        }
    }

    /// Takes the results of the messages that have ended; returns whether there was one.
    pub(super) fn look(&mut self, group: &GroupHandle) -> bool {
        let mut any = false;
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

/// Messages of a round: children of a binomial tree, of which one at the root may be in
/// two parts.
const TRANSFERS_MAX: usize = 40;
