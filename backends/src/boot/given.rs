//! A bootstrap by an allgather that the embedding program passes, so that ranks can
//! start inside an MPI program or any other that can exchange bytes.

use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;

/// A bootstrap by an allgather of the embedding program.
///
/// The function gets this rank's bytes and room for the bytes of all ranks, in the
/// order of the ranks; every rank of the job calls it with the same number of
/// bytes. It returns whether it worked. The thread that starts the rank calls it,
/// and the same thread calls it at the end.
///
/// An allgather is for all ranks at once, so that a card cannot be requested later:
/// all cards come at start, and each node of a job on several nodes keeps them
/// once, packed.
pub struct Given<F> {
    rank: Rank,
    size: u32,
    allgather: F,
    /// After the barrier: the cards of all ranks, one behind the other.
    cards: Vec<u8>,
    ends: Vec<u32>,
    own: Vec<u8>,
}

impl<F: FnMut(&[u8], &mut [u8]) -> bool> Given<F> {
    /// Makes the bootstrap of rank `rank` of `size`.
    ///
    /// # Errors
    ///
    /// - [`BootError::TooManyRanks`]: `size` is above [`JOB_RANKS_MAX`](tsumugi_core::boot::JOB_RANKS_MAX).
    /// - [`BootError::NoSuchRank`]: `rank` is not below `size`.
    pub fn new(rank: Rank, size: u32, allgather: F) -> Result<Self, BootError> {
        BootError::check_size(size)?;
        BootError::check_rank(rank, size)?;
        let (cards, ends, own) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { rank, size, allgather, cards, ends, own })
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, BootError> {
        let bytes = own.len() * self.size as usize;
        let mut all = Vec::new();
        let what = "memory for the cards of all ranks";
        all.try_reserve_exact(bytes)
            .map_err(|_| BootError::System { what, errno: libc::ENOMEM })?;
        all.resize(bytes, 0);
        match (self.allgather)(own, &mut all) {
            true => Ok(all),
            false => Err(BootError::Disconnected),
        }
    }
}

impl<F: FnMut(&[u8], &mut [u8]) -> bool> Bootstrap for Given<F> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, card: &[u8]) -> Result<(), BootError> {
        BootError::check_card(card)?;
        self.own = card.to_vec();
        Ok(())
    }

    /// Gathers twice: the lengths, then the cards, each with the length of the
    /// longest card.
    fn barrier(&mut self) -> Result<(), BootError> {
        let own = (self.own.len() as u32).to_le_bytes();
        let lengths = self.gather(&own)?;
        let (lengths, _) = lengths.as_chunks();
        let lengths: Vec<usize> =
            lengths.iter().map(|bytes| u32::from_le_bytes(*bytes) as usize).collect();
        if lengths.iter().any(|bytes| *bytes > CARD_BYTES_MAX) {
            return Err(BootError::Garbled { what: "the result of the allgather" });
        }
        let longest = lengths.iter().max().copied().unwrap_or(0);
        let mut own = self.own.clone();
        own.resize(longest, 0);
        self.cards = self.gather(&own)?;
        self.ends.clear();
        let mut end = 0;
        for (rank, bytes) in lengths.into_iter().enumerate() {
            self.cards.copy_within(rank * longest..rank * longest + bytes, end);
            end += bytes;
            self.ends.push(end as u32);
        }
        self.cards.truncate(end);
        self.cards.shrink_to_fit();
        Ok(())
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.size)?;
        let index = rank.0 as usize;
        let end_of = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = if index == 0 { 0 } else { end_of(index - 1) };
        let found = self.cards.get(start..end_of(index)).unwrap_or_default();
        if found.is_empty() {
            return Err(BootError::NoCard { rank });
        }
        card[..found.len()].copy_from_slice(found);
        Ok(found.len())
    }

    fn forget(&mut self) {
        (self.cards, self.ends, self.own) = (Vec::new(), Vec::new(), Vec::new());
    }
}

impl<F> std::fmt::Debug for Given<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Given({} of {})", self.rank, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::boot::JOB_RANKS_MAX;

    #[test]
    fn one_rank_gathers_from_itself() {
        let copy = |own: &[u8], all: &mut [u8]| {
            all.copy_from_slice(own);
            true
        };
        let mut given = Given::new(Rank(0), 1, copy).unwrap();
        let mut card = [0; CARD_BYTES_MAX];
        assert_eq!(given.card(Rank(0), &mut card), Err(BootError::NoCard { rank: Rank(0) }));
        given.publish(b"silk").unwrap();
        given.barrier().unwrap();
        assert_eq!(given.card(Rank(0), &mut card), Ok(4));
        assert_eq!(&card[..4], b"silk");
    }

    #[test]
    fn a_job_that_is_too_large_is_refused_with_the_limit() {
        let given = |size| Given::new(Rank(0), size, |_: &[u8], _: &mut [u8]| true).map(drop);
        assert_eq!(given(JOB_RANKS_MAX), Ok(()));
        for size in [JOB_RANKS_MAX + 1, u32::MAX] {
            assert_eq!(given(size), Err(BootError::TooManyRanks { size }));
        }
        let told = given(u32::MAX).unwrap_err().to_string();
        assert_eq!(told, "a job has at most 16777216 ranks, on all nodes together, not 4294967295");
    }

    #[test]
    fn cards_of_different_lengths_come_whole() {
        // The view of rank 1 of two; its peer's bytes are written by hand.
        let mut round = 0;
        let gather = move |own: &[u8], all: &mut [u8]| {
            round += 1;
            let (peer, mine) = all.split_at_mut(own.len());
            mine.copy_from_slice(own);
            match round {
                1 => peer.copy_from_slice(&6_u32.to_le_bytes()),
                _ => peer.copy_from_slice(b"cotton"),
            }
            true
        };
        let mut given = Given::new(Rank(1), 2, gather).unwrap();
        given.publish(b"silk").unwrap();
        given.barrier().unwrap();
        let mut card = [0; CARD_BYTES_MAX];
        assert_eq!(given.card(Rank(0), &mut card), Ok(6));
        assert_eq!(&card[..6], b"cotton");
        assert_eq!(given.card(Rank(1), &mut card), Ok(4));
        assert_eq!(&card[..4], b"silk");
        let mut heads = Vec::new();
        given.heads(&mut |rank, head| heads.push((rank.0, head[..7].to_vec()))).unwrap();
        assert_eq!(heads, [(0, b"cotton\0".to_vec()), (1, b"silk\0\0\0".to_vec())]);
        given.forget();
        assert_eq!(given.card(Rank(1), &mut card), Err(BootError::NoCard { rank: Rank(1) }));
    }

    #[test]
    fn a_failed_or_garbled_allgather_is_an_error() {
        let mut fails = Given::new(Rank(0), 2, |_: &[u8], _: &mut [u8]| false).unwrap();
        assert_eq!(fails.barrier(), Err(BootError::Disconnected));
        let noise = |_: &[u8], all: &mut [u8]| {
            all.fill(0xff);
            true
        };
        let mut noise = Given::new(Rank(0), 2, noise).unwrap();
        let garbled = BootError::Garbled { what: "the result of the allgather" };
        assert_eq!(noise.barrier(), Err(garbled));
        assert!(Given::new(Rank(2), 2, |_: &[u8], _: &mut [u8]| true).is_err());
    }
}
