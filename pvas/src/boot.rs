//! Bootstrap within a node, through the partitions: the cards lie in the heads of
//! the partitions, and the barrier uses two words in the first head. Ranks are
//! numbered by their places on the node.

use crate::attach::Member;
use crate::futex::SharedFutex;
use crate::partition::{BOOT_GONE, RankState};
use std::time::Duration;
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::{LocalRank, Rank};
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Futex;

/// The group is the node: its ranks are numbered by their places.
impl Bootstrap for Member {
    fn rank(&self) -> Rank {
        Rank(self.local().0)
    }

    fn size(&self) -> u32 {
        self.space().size()
    }

    fn publish(&mut self, card: &[u8]) -> Result<(), BootError> {
        BootError::check_card(card)?;
        self.control().set_card(card);
        Ok(())
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.space().size())?;
        let found =
            self.space().control(LocalRank(rank.0)).card().ok_or(BootError::NoCard { rank })?;
        card[..found.len()].copy_from_slice(&found);
        Ok(found.len())
    }

    fn barrier(&mut self) -> Result<(), BootError> {
        let (arrived, phase) = self.space().control(LocalRank(0)).boot_words();
        let entered = phase.load(Ordering::Acquire);
        if entered & BOOT_GONE != 0 {
            return Err(self.missing());
        }
        // AcqRel: the last rank that arrives sees what each rank wrote before.
        if arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.space().size() {
            arrived.store(0, Ordering::Relaxed);
            // Release: pairs with the Acquire below, and publishes what all ranks
            // wrote.
            phase.fetch_add(BOOT_STEP, Ordering::AcqRel);
            SharedFutex.wake(phase, u32::MAX);
            return Ok(());
        }
        loop {
            // Acquire: pairs with the Release of the rank that arrived last.
            let now = phase.load(Ordering::Acquire);
            if now / BOOT_STEP != entered / BOOT_STEP {
                return Ok(());
            }
            if now & BOOT_GONE != 0 {
                return Err(self.missing());
            }
            SharedFutex.wait(phase, now, Some(LOOK_AGAIN));
        }
    }
}

impl Member {
    /// The error of a barrier from which a rank is gone; it names that rank if one
    /// is found.
    #[cold]
    fn missing(&self) -> BootError {
        let ended = |state| matches!(state, RankState::Finished | RankState::Failed);
        self.neighbours()
            .find(|rank| ended(self.control_of(*rank).state()))
            .map_or(BootError::Disconnected, |rank| BootError::PeerLost { rank })
    }
}

/// One phase of the barrier; the bit below says that a rank is gone.
const BOOT_STEP: u32 = 2 * BOOT_GONE;
/// A waiter looks again after this time, because a rank that died cannot send its
/// wake-up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SpaceConfig;
    use crate::partition::declare_lost;

    fn members(size: u32) -> Vec<Member> {
        Member::threads(size, &SpaceConfig::small()).unwrap()
    }

    #[test]
    fn every_rank_reads_every_card_after_the_barrier() {
        std::thread::scope(|scope| {
            for mut member in members(4) {
                scope.spawn(move || {
                    let mut card = [0; CARD_BYTES_MAX];
                    for round in 0..20u32 {
                        let text = format!("{} in round {round}", Member::rank(&member));
                        member.publish(text.as_bytes()).unwrap();
                        member.barrier().unwrap();
                        for rank in (0..4).map(Rank) {
                            let len = member.card(rank, &mut card).unwrap();
                            let wanted = format!("{rank} in round {round}");
                            assert_eq!(std::str::from_utf8(&card[..len]), Ok(&*wanted));
                        }
                        member.barrier().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn bad_cards_and_ranks_are_refused() {
        let mut member = members(1).remove(0);
        let long = [0; CARD_BYTES_MAX + 1];
        assert_eq!(member.publish(&long), Err(BootError::CardTooLong { bytes: 1025 }));
        let mut card = [0; CARD_BYTES_MAX];
        assert_eq!(member.card(Rank(0), &mut card), Err(BootError::NoCard { rank: Rank(0) }));
        let missing = BootError::NoSuchRank { rank: Rank(1), size: 1 };
        assert_eq!(member.card(Rank(1), &mut card), Err(missing));
    }

    #[test]
    fn a_death_ends_the_wait() {
        let mut members = members(3);
        let observer = members[1].clone();
        let mut waiting = members.remove(0);
        let waiter = std::thread::spawn(move || waiting.barrier());
        declare_lost(Rank(2), observer.space().controls());
        assert_eq!(waiter.join().unwrap(), Err(BootError::PeerLost { rank: Rank(2) }));
        assert_eq!(members[0].barrier(), Err(BootError::PeerLost { rank: Rank(2) }));
    }
}
