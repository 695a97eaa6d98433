//! Blocking collectives: the caller drives its own.

use super::buffers::{CollBuffers, CollScratch, Combine};
use super::exchange::Exchange;
use super::group::GroupHandle;
use super::row_turn::RowTurn;
use crate::error::Error;
use tsumugi_core::coll::schedule::{CollPlan, CollTables, CombineOrder, Elements};

impl GroupHandle {
    /// Takes part in a collective, and waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or a member's call does not fit;
    /// [`Error::Message`]: a message could not be sent.
    ///
    /// # Safety
    ///
    /// The buffers have the bytes that the plan needs, and tables those that it names;
    /// they are not otherwise used until this returns.
    pub unsafe fn run(
        &self,
        plan: &CollPlan,
        tables: &CollTables<'_>,
        buffers: &CollBuffers,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        tsumugi_ult::assert_may_block("collective");
        self.service().check()?;
        if let Some(stages) = plan.as_published() {
            let (turn, tag) = (RowTurn::new(self, plan.row_turns()), self.next());
            let reason = |member| self.reason(plan.name(), tag, member);
            // SAFETY: the caller's promise.
            return unsafe { turn.run(self, stages, tables, buffers, combine, reason) };
        }
        let mut exchange = Exchange::new(plan, self);
        loop {
            // SAFETY: the caller's promise.
            unsafe { exchange.post(self, tables, buffers, combine) };
            if let Some(result) = exchange.poll_done() {
                return result;
            }
            exchange.wait(self);
        }
    }

    /// Takes part in a collective, with the scratch buffer that it needs.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    ///
    /// # Safety
    ///
    /// That of [`run`](Self::run), without the scratch buffer.
    pub unsafe fn run_with_scratch(
        &self,
        plan: &CollPlan,
        tables: &CollTables<'_>,
        input: *const u8,
        output: *mut u8,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        let bytes = plan.scratch_bytes();
        if bytes == 0 {
            let buffers = CollBuffers { input, output, ..CollBuffers::NONE };
            // SAFETY: the caller's promise; the plan needs no scratch buffer.
            return unsafe { self.run(plan, tables, &buffers, combine) };
        }
        let mut scratch = CollScratch::default();
        let buffers = CollBuffers { input, output, scratch: self.fit(&mut scratch, bytes) };
        // SAFETY: the caller's promise; the scratch buffer has so many bytes.
        let result = unsafe { self.run(plan, tables, &buffers, combine) };
        self.keep_scratch(scratch);
        result
    }

    /// Combines one word of each member for all.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn combine_words(
        &self,
        word: u64,
        operation: impl Fn(u64, u64) -> u64 + Send + Sync,
    ) -> Result<u64, Error> {
        let elements = Elements { count: 1, bytes: size_of::<u64>(), commutes: true };
        let mut plan = CollPlan::default();
        self.choice().allreduce(&mut plan, self.member(), self.view(), elements);
        let mut scratch = [0u64; WORD_SCRATCH];
        assert!(plan.scratch_bytes() <= size_of_val(&scratch));
        let mut result = word;
        let at = &raw mut result;
        let buffers = CollBuffers {
            input: at.cast(),
            output: at.cast(),
            scratch: scratch.as_mut_ptr().cast(),
        };
        let combine = |from: *const u8, into: *mut u8, _: usize, _: CombineOrder| {
            let (from, into) = (from.cast::<u64>(), into.cast::<u64>());
            // SAFETY: words of the buffers above.
            unsafe {
                into.write_unaligned(operation(into.read_unaligned(), from.read_unaligned()))
            };
        };
        // SAFETY: local variables, of the sizes of the plan.
        unsafe { self.run(&plan, &self.tables(), &buffers, Some(&combine)) }?;
        Ok(result)
    }
}

/// Words of scratch memory of a collective of one word: at most three parts, each at the
/// beginning of a line.
const WORD_SCRATCH: usize = 32;
