//! The two-level locks of foMPI: a word for the whole window and a word for each
//! target. A claim that finds them taken tries again after a pause.
//!
//! ```text
//!  whole window:  holders of all (32) | holders of something exclusive (32)
//!  each target:   readers (63) | writer (1)
//! ```
//!
//! This design polls remote memory. One thing differs
//! from foMPI: a claim that has found holders of all targets counts itself in again
//! only when a read has shown that they are gone. If dozens of claims counted
//! themselves in and out to find that out, they would keep out claims for all
//! targets.
//!
//! # References
//!
//! R. Gerstenberger, M. Besta and T. Hoefler: Enabling highly-scalable remote
//! memory access programming with MPI-3 one sided. SC 2013.

use super::want::Want;
use crate::lock::step::StepId;
use tsumugi_core::mem::{AddrError, Rank, RemoteAddr, Width};
use tsumugi_core::op::{Kind as OpKind, Op};

/// One claim in this design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lock) struct TwoLevelClaim {
    window: RemoteAddr,
    target: RemoteAddr,
    want: Want,
    /// At the release: another access of this rank still needs the rank's count in
    /// the window's word.
    is_counted: bool,
    at: BackoffStep,
    is_posted: bool,
    step: u32,
    tries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackoffStep {
    Rest,
    CountAll,
    LookAll,
    CountExclusive,
    Uncount,
    LookExclusive,
    Seize,
    Arrive,
    LookReader,
    /// Waits for the pause, and then does this step.
    Pause(BackoffRetry),
    Held,
    Depart,
    Leave,
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackoffRetry {
    LookAll,
    LookExclusive,
    Seize,
    LookReader,
}

/// The window's word: a word of the lock at `home` that the locks of targets do not use.
pub(in crate::lock) const fn window_word(home: RemoteAddr) -> RemoteAddr {
    RemoteAddr { offset: home.offset + 40, ..home }
}

impl TwoLevelClaim {
    pub(in crate::lock) const fn new(window: RemoteAddr, target: RemoteAddr, want: Want) -> Self {
        let at = BackoffStep::Rest;
        Self { window, target, want, is_counted: false, at, is_posted: false, step: 0, tries: 0 }
    }

    /// Begins the claim. `is_counted`: this rank holds another target exclusively.
    pub(in crate::lock) fn begin(&mut self, is_counted: bool) {
        self.at = match self.want {
            Want::All => BackoffStep::CountAll,
            Want::Shared(_) => BackoffStep::Arrive,
            Want::Exclusive(_) if is_counted => BackoffStep::Seize,
            Want::Exclusive(_) => BackoffStep::CountExclusive,
        };
    }

    /// Begins to give back. `is_last`: this rank holds no other target exclusively.
    pub(in crate::lock) fn release(&mut self, is_last: bool) {
        self.is_counted = !is_last;
        self.at = if self.want == Want::All { BackoffStep::Leave } else { BackoffStep::Depart };
    }

    pub(in crate::lock) fn poll_op(&mut self) -> Option<(StepId, Op)> {
        if self.is_posted {
            return None;
        }
        let add = |at, delta: u64| Op::atomic(OpKind::FetchAdd, at, delta);
        let op = match self.at {
            BackoffStep::Rest
            | BackoffStep::Held
            | BackoffStep::Pause(_)
            | BackoffStep::Failed(_) => return None,
            BackoffStep::CountAll => add(self.window, ALL),
            BackoffStep::LookAll | BackoffStep::LookExclusive => {
                Op::get_word(self.window, Width::W8)
            }
            BackoffStep::CountExclusive => add(self.window, 1),
            BackoffStep::Uncount => add(self.window, u64::MAX),
            BackoffStep::Seize => Op::compare_swap(self.target, 0u64, 1),
            BackoffStep::Arrive => add(self.target, 2),
            BackoffStep::LookReader => Op::get_word(self.target, Width::W8),
            BackoffStep::Depart if matches!(self.want, Want::Shared(_)) => {
                add(self.target, 2u64.wrapping_neg())
            }
            BackoffStep::Depart => add(self.target, u64::MAX),
            BackoffStep::Leave if self.want == Want::All => add(self.window, ALL.wrapping_neg()),
            BackoffStep::Leave => add(self.window, u64::MAX),
        };
        self.is_posted = true;
        Some((StepId::from_bits(self.step), op))
    }

    pub(in crate::lock) fn handle_completed(&mut self, id: StepId, result: Result<u64, AddrError>) {
        if !self.is_posted || id.to_bits() != self.step {
            return;
        }
        (self.is_posted, self.step) = (false, self.step.wrapping_add(1));
        let old = match result {
            Ok(old) => old,
            Err(error) => {
                self.at = BackoffStep::Failed(error);
                return;
            }
        };
        self.at = match self.at {
            BackoffStep::CountAll | BackoffStep::LookAll if old % ALL == 0 => BackoffStep::Held,
            BackoffStep::CountAll | BackoffStep::LookAll => self.pause(BackoffRetry::LookAll),
            BackoffStep::CountExclusive if old < ALL => BackoffStep::Seize,
            BackoffStep::CountExclusive => BackoffStep::Uncount,
            BackoffStep::Uncount => self.pause(BackoffRetry::LookExclusive),
            BackoffStep::LookExclusive if old < ALL => BackoffStep::CountExclusive,
            BackoffStep::LookExclusive => self.pause(BackoffRetry::LookExclusive),
            BackoffStep::Seize if old == 0 => BackoffStep::Held,
            BackoffStep::Seize => self.pause(BackoffRetry::Seize),
            BackoffStep::Arrive | BackoffStep::LookReader if old & 1 == 0 => BackoffStep::Held,
            BackoffStep::Arrive | BackoffStep::LookReader => self.pause(BackoffRetry::LookReader),
            BackoffStep::Depart if matches!(self.want, Want::Exclusive(_)) && !self.is_counted => {
                BackoffStep::Leave
            }
            BackoffStep::Depart | BackoffStep::Leave => BackoffStep::Rest,
            at => at,
        };
    }

    pub(in crate::lock) fn under_way(&self) -> Option<StepId> {
        self.is_posted.then_some(StepId::from_bits(self.step))
    }

    /// Handles the death of a rank: what the dead rank held stays taken for ever.
    pub(in crate::lock) fn handle_lost(&mut self, rank: Rank) {
        if let BackoffStep::Pause(_) = self.at {
            self.at = BackoffStep::Failed(AddrError::PeerLost { rank });
        }
    }

    /// The length of the pause that the claim has to make, in nanoseconds.
    pub(in crate::lock) fn pause_ns(&self) -> Option<u64> {
        matches!(self.at, BackoffStep::Pause(_))
            .then(|| FIRST_PAUSE_NS << self.tries.min(DOUBLINGS_MAX))
    }

    pub(in crate::lock) fn handle_pause(&mut self) {
        if let BackoffStep::Pause(next) = self.at {
            self.at = match next {
                BackoffRetry::LookAll => BackoffStep::LookAll,
                BackoffRetry::LookExclusive => BackoffStep::LookExclusive,
                BackoffRetry::Seize => BackoffStep::Seize,
                BackoffRetry::LookReader => BackoffStep::LookReader,
            };
        }
    }

    /// The result, if the claim has ended what it was to do.
    pub(in crate::lock) fn poll_done(&self) -> Option<Result<(), AddrError>> {
        match self.at {
            BackoffStep::Held | BackoffStep::Rest => Some(Ok(())),
            BackoffStep::Failed(error) => Some(Err(error)),
            _ => None,
        }
    }

    fn pause(&mut self, next: BackoffRetry) -> BackoffStep {
        self.tries += 1;
        BackoffStep::Pause(next)
    }
}

const ALL: u64 = 1 << 32;
const FIRST_PAUSE_NS: u64 = 500;
/// Up to some 8 ms: with dozens of other claims, between nodes, an operation takes
/// as long, and claims that try again sooner keep each other counting in and out.
const DOUBLINGS_MAX: u32 = 14;

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;
    use tsumugi_core::mem::RegionKey;

    #[test]
    fn each_pause_doubles_up_to_a_limit() {
        let at = |offset| RemoteAddr { rank: Rank(1), key: RegionKey::new(1, 1), offset };
        let mut claim = TwoLevelClaim::new(at(0), at(8), Want::Shared(Rank(1)));
        claim.begin(false);
        let pauses: Vec<u64> = (0..20)
            .map(|_| {
                let (id, _) = claim.poll_op().expect("the claim reads the word again");
                claim.handle_completed(id, Ok(1));
                let pause = claim.pause_ns().expect("a writer is there");
                claim.handle_pause();
                pause
            })
            .collect();
        assert!(pauses[..14].windows(2).all(|two| two[1] == 2 * two[0]), "{pauses:?}");
        assert!(pauses[14..].iter().all(|one| *one == pauses[13]), "{pauses:?}");
    }

    /// Two of a window's words.
    const WINDOW: RemoteAddr = RemoteAddr { rank: Rank(0), key: RegionKey::new(1, 1), offset: 0 };
    const TARGET: RemoteAddr = RemoteAddr { rank: Rank(1), key: RegionKey::new(1, 1), offset: 8 };

    /// Carries out the next operation, which finds `old`; returns its address, its kind and its
    /// operand.
    fn finds(claim: &mut TwoLevelClaim, old: u64) -> (RemoteAddr, OpKind, u64) {
        let (id, op) = claim.poll_op().expect("the claim has an operation");
        claim.handle_completed(id, Ok(old));
        (op.remote, op.kind, op.operand())
    }

    /// A claim to a target alone waits for a single holder of all targets.
    #[test]
    fn a_writer_waits_for_a_holder_of_all_targets() {
        let mut claim = TwoLevelClaim::new(WINDOW, TARGET, Want::Exclusive(Rank(1)));
        claim.begin(false);
        assert_eq!(finds(&mut claim, ALL), (WINDOW, OpKind::FetchAdd, 1));
        assert_eq!(finds(&mut claim, ALL + 1), (WINDOW, OpKind::FetchAdd, u64::MAX));
        for holders in [ALL, ALL + 3] {
            assert!(claim.pause_ns().is_some());
            claim.handle_pause();
            assert_eq!(finds(&mut claim, holders).1, OpKind::GetWord);
        }
        claim.handle_pause();
        assert_eq!(finds(&mut claim, 0).1, OpKind::GetWord);
        assert_eq!(finds(&mut claim, 0), (WINDOW, OpKind::FetchAdd, 1));
        assert_eq!(finds(&mut claim, 0), (TARGET, OpKind::CompareSwap, 1));
        assert_eq!(claim.poll_done(), Some(Ok(())));
    }

    /// A rank counts itself in the window's word once, for all its targets.
    #[test]
    fn a_second_target_is_not_counted_again() {
        let mut claim = TwoLevelClaim::new(WINDOW, TARGET, Want::Exclusive(Rank(1)));
        claim.begin(true);
        assert_eq!(finds(&mut claim, 0), (TARGET, OpKind::CompareSwap, 1));
        for is_last in [false, true] {
            claim.release(is_last);
            assert_eq!(finds(&mut claim, 1), (TARGET, OpKind::FetchAdd, u64::MAX));
            if is_last {
                assert_eq!(finds(&mut claim, 1), (WINDOW, OpKind::FetchAdd, u64::MAX));
            }
            assert_eq!(claim.poll_done(), Some(Ok(())));
        }
    }

    /// A second end of an operation, or a late one, is ignored.
    #[test]
    fn an_operation_ends_once() {
        let mut claim = TwoLevelClaim::new(WINDOW, TARGET, Want::Shared(Rank(1)));
        claim.begin(false);
        let (first, _) = claim.poll_op().expect("the claim begins");
        claim.handle_completed(first, Ok(0));
        claim.handle_completed(first, Ok(1));
        assert_eq!(claim.poll_done(), Some(Ok(())));
        claim.release(true);
        let (second, _) = claim.poll_op().expect("the claim leaves");
        claim.handle_completed(first, Ok(2));
        assert_eq!(claim.under_way(), Some(second));
        claim.handle_completed(second, Ok(2));
        assert_eq!((claim.under_way(), claim.poll_done()), (None, Some(Ok(()))));
    }
}
