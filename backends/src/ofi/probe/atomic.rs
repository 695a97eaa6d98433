//! Trials of atomics: each is done, and then its word and the returned value are
//! checked.

use super::super::choice::Choice;
use super::super::sys::*;
use super::{Atomic, Function, LIMIT, OfiTestbed, datatype};
use crate::net::TrialResult;
use core::ffi::c_int;

impl OfiTestbed {
    pub(super) fn fetching(
        &mut self,
        choice: &Choice,
        width: usize,
        op: c_int,
        of: Function,
    ) -> TrialResult {
        let datatype = datatype(width);
        if !choice.facts.atomics || !self.a.is_valid(Atomic::Fetch, datatype, op) {
            return TrialResult::Refused(EOPNOTSUPP);
        }
        let (operand, result, remote) = (self.here(0), self.here(64), self.remote(256));
        let (old, with) = (0b1100_0101, 0b1010_0110);
        Self::set_word(operand.at, width, with);
        Self::set_word(self.there.wrapping_add(256), width, old);
        let done = self.run(LIMIT, true, &mut |a, context| {
            // SAFETY: all ends are the testbed's own.
            unsafe { a.fetch((datatype, op), operand, result, remote, context) }
        });
        self.judge(done, |testbed| {
            testbed.settles(256, width, of(old, with)) && Self::read(result.at, width) == old
        })
    }

    pub(super) fn storing(
        &mut self,
        choice: &Choice,
        width: usize,
        op: c_int,
        of: Function,
    ) -> TrialResult {
        let datatype = datatype(width);
        if !choice.facts.atomics || !self.a.is_valid(Atomic::Store, datatype, op) {
            return TrialResult::Refused(EOPNOTSUPP);
        }
        let (operand, remote) = (self.here(0), self.remote(256));
        Self::set_word(operand.at, width, 5);
        Self::set_word(self.there.wrapping_add(256), width, 40);
        let done = self.run(LIMIT, true, &mut |a, context| {
            // SAFETY: both ends are the testbed's own.
            unsafe { a.atomic((datatype, op), operand, remote, context) }
        });
        self.judge(done, |testbed| testbed.settles(256, width, of(40, 5)))
    }

    pub(super) fn compare_swap(&mut self, choice: &Choice, width: usize) -> TrialResult {
        let datatype = datatype(width);
        if !choice.facts.atomics || !self.a.is_valid(Atomic::Compare, datatype, FI_CSWAP) {
            return TrialResult::Refused(EOPNOTSUPP);
        }
        let (operand, compare, result) = (self.here(0), self.here(32), self.here(64));
        let remote = self.remote(256);
        Self::set_word(self.there.wrapping_add(256), width, 40);
        // Once with the value that is there, once with another one.
        for (with, expected, old, then) in [(41, 40, 40, 41), (42, 40, 41, 41)] {
            Self::set_word(operand.at, width, with);
            Self::set_word(compare.at, width, expected);
            let done = self.run(LIMIT, true, &mut |a, context| {
                // SAFETY: all ends are the testbed's own.
                unsafe { a.compare(datatype, operand, compare, result, remote, context) }
            });
            let verdict = self.judge(done, |testbed| {
                testbed.settles(256, width, then) && Self::read(result.at, width) == old
            });
            if verdict != TrialResult::Works {
                return verdict;
            }
        }
        TrialResult::Works
    }
}
