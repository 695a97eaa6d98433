//! Checks that all ranks give the same argument to a collective constructor.

use crate::{Error, Rank, Runtime};
use tsumugi_core::mem::AddrError;

impl Runtime {
    /// Checks that all ranks give the same length. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::LengthsDiffer`], and those of [`allgather`](Self::allgather).
    pub(crate) fn check_length(&self, own: u64) -> Result<(), Error> {
        match self.differing(own)? {
            Some((rank, other)) => Err(Error::LengthsDiffer { own, rank, other }),
            None => Ok(()),
        }
    }

    /// Checks that all ranks give the same home, and that the job has this rank. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::HomesDiffer`]; [`AddrError::NoSuchRank`], on all ranks; and those of
    /// [`allgather`](Self::allgather).
    pub(crate) fn check_home(&self, own: Rank) -> Result<(), Error> {
        if let Some((rank, other)) = self.differing(u64::from(own.0))? {
            return Err(Error::HomesDiffer { own, rank, other: Rank(other as u32) });
        }
        let size = self.size();
        if own.0 >= size {
            return Err(Error::Addr(AddrError::NoSuchRank { rank: own, size }));
        }
        Ok(())
    }

    /// The first rank that gives another word, and that word.
    fn differing(&self, own: u64) -> Result<Option<(Rank, u64)>, Error> {
        if self.handle().agree(own)?.is_some() {
            return Ok(None);
        }
        Ok(self.ranks().zip(self.allgather(own)?).find(|(_, other)| *other != own))
    }
}
