//! The turns of one collective in the rows of its group: carries out the steps there.

use super::buffers::{CollBuffers, Combine};
use super::group::GroupHandle;
use super::service::lost_error;
use crate::error::Error;
use std::slice;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::row::{CellRow, RowMemory, RowSeat, RowWait};
use tsumugi_core::coll::schedule::{CollStep, CollTables, Published};
use tsumugi_core::mem::AddrError;
use tsumugi_core::wait::Reason;

/// The turns of one collective, one for each stage that goes through rows.
pub(super) struct RowTurn {
    /// The number, in the group's rows, of the turn that is next or under way.
    number: u64,
    /// The number of the last turn.
    last: u64,
    /// A member's value has another length than this rank expects.
    error: Option<CollError>,
}

impl RowTurn {
    /// Takes the numbers of the next `turns` turns.
    #[inline]
    pub(super) fn new(group: &GroupHandle, turns: u64) -> Self {
        let number = group.rows().map_or(0, |rows| rows.seat().take_numbers(turns));
        Self { number, last: (number + turns).saturating_sub(1), error: None }
    }

    /// The first error, once.
    pub(super) fn take_error(&mut self) -> Option<CollError> {
        self.error.take()
    }

    /// Runs a collective that has no other stages, and waits for its end. `reason` makes the
    /// reason of a wait for a member, for reports.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or a member's call does not fit.
    ///
    /// # Safety
    ///
    /// The buffers and tables are those of the stages, and are not otherwise used until this
    /// returns.
    pub(super) unsafe fn run<'p>(
        mut self,
        group: &GroupHandle,
        stages: impl Iterator<Item = &'p Published>,
        tables: &CollTables<'_>,
        buffers: &CollBuffers,
        combine: Combine<'_>,
        reason: impl Fn(u32) -> Reason,
    ) -> Result<(), Error> {
        let rows = group.rows().expect("a plan with rows is for a group that has them");
        let steps = |stage: &'p Published| (0..).map_while(|index| stage.step(tables, index));
        for step in stages.flat_map(steps) {
            // SAFETY: the caller's promise.
            while let Err(wait) = unsafe { self.step(group, step, buffers, combine) } {
                let waited = rows.wait(wait, reason(wait.member()));
                if let Err(AddrError::PeerLost { rank }) = waited {
                    let lost = lost_error(group.service().lost().unwrap_or(rank));
                    return Err(self.error.map_or(lost, Error::Coll));
                }
            }
        }
        self.error.map_or(Ok(()), |error| Err(Error::Coll(error)))
    }

    /// Carries out a step.
    ///
    /// # Errors
    ///
    /// Another member has to do something first: the step is tried again.
    ///
    /// # Safety
    ///
    /// The buffers are those of the plan, and are not otherwise used until the collective
    /// has ended.
    #[inline]
    pub(super) unsafe fn step(
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
                    // A result without some member's value: no other member takes it for one.
                    _ if self.error.is_some() => &[][..],
                    // SAFETY: the caller's promise.
                    len => unsafe { slice::from_raw_parts(buffers.source(from), len) },
                });
                seat.try_enter(&memory, number, value)?;
            }
            CollStep::Take { member, at, value_bytes, into, combined } => {
                let len = match (combined, into.len) {
                    (_, 0) => seat.try_take(&memory, number, member, at, &mut [])?,
                    (None, len) => {
                        let to = buffers.target(into);
                        // SAFETY: the caller's promise.
                        let to = unsafe { slice::from_raw_parts_mut(to, len) };
                        seat.try_take(&memory, number, member, at, to)?
                    }
                    (Some(order), len) => {
                        let mut value = Value([0; CellRow::VALUE_BYTES]);
                        let value = &mut value.0[..len];
                        let sent = seat.try_take(&memory, number, member, at, value)?;
                        if value_bytes.is_none_or(|expected| expected == sent) {
                            let combine = combine.expect("a reduction has an operation");
                            let leaves = LeaveOnPanic { seat, memory: &memory, last: self.last };
                            combine(value.as_ptr(), buffers.target(into), len, order);
                            std::mem::forget(leaves);
                        }
                        sent
                    }
                };
                if let Some(expected) = value_bytes.filter(|expected| *expected != len) {
                    let rank = group.rank_of(member);
                    let error = CollError::LengthsDiffer { rank, bytes: len, expected };
                    self.error.get_or_insert(error);
                }
            }
            CollStep::Leave { all_left } => {
                seat.leave(&memory, number, all_left);
                self.number += 1;
            }
            CollStep::Copy { .. }
            | CollStep::Combine { .. }
            | CollStep::Send { .. }
            | CollStep::Receive { .. } => unreachable!("{step:?} is not a step in a row"),
        }
        Ok(())
    }
}

/// Ends the turns of a collective whose operation panics: the other members have this rank's
/// value, and wait for ever if they need its result.
struct LeaveOnPanic<'g, M: RowMemory> {
    seat: &'g RowSeat,
    memory: &'g M,
    last: u64,
}

impl<M: RowMemory> Drop for LeaveOnPanic<'_, M> {
    fn drop(&mut self) {
        self.seat.leave(self.memory, self.last, None);
    }
}

/// A value that is combined, at an address for elements of any type.
#[repr(align(64))]
struct Value([u8; CellRow::VALUE_BYTES]);
