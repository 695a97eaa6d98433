//! Gather and scatter: blocks of all members at one of them.

use super::call::{GroupCall, total_of};
use super::handle::Group;
use crate::{CollError, Error, Plain};

impl Group {
    /// The values of all members, in the order of the members, at the member `root`;
    /// nothing at others. All members give as many values.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, there is no member `root`, or members
    /// have given different lengths.
    pub fn gather<T: Plain>(&self, values: &[T], root: u32) -> Result<Vec<T>, Error> {
        let all = values.len().saturating_mul(self.size() as usize);
        let len = if self.rank() == root { all } else { 0 };
        collected(len, |all| self.gather_into(values, all, root))
    }

    /// [`gather`](Self::gather) into memory of the caller, at the member `root`; `into` is
    /// not used at others.
    ///
    /// # Errors
    ///
    /// Those of [`gather`](Self::gather); [`CollError::WrongLength`](crate::CollError):
    /// `into` has not as many values as the members give.
    pub fn gather_into<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        self.run(GroupCall::Gather { root }, values, into)
    }

    /// The values of all members, in the order of the members, at the member `root`;
    /// nothing at others. `counts` has the number of each member's values at the root, and
    /// is not used at others.
    ///
    /// # Errors
    ///
    /// Those of [`gather`](Self::gather); [`CollError::WrongLength`](crate::CollError):
    /// `counts` is not as long as the group, or this member's count is wrong.
    pub fn gather_v<T: Plain>(
        &self,
        values: &[T],
        counts: &[usize],
        root: u32,
    ) -> Result<Vec<T>, Error> {
        let len = if self.rank() == root { total_of(counts) } else { 0 };
        collected(len, |all| self.run(GroupCall::GatherV { root, counts }, values, all))
    }

    /// The block of this member of the values of the member `root`, which has as many
    /// blocks as members; `values` is not used at others.
    ///
    /// # Errors
    ///
    /// Those of [`gather`](Self::gather); [`CollError::WrongLength`](crate::CollError):
    /// the values of the root do not have a block of the length of `into` for each member.
    pub fn scatter<T: Plain>(&self, values: &[T], into: &mut [T], root: u32) -> Result<(), Error> {
        self.run(GroupCall::Scatter { root }, values, into)
    }

    /// The block of this member of the values of the member `root`, of the length of
    /// `into`. `counts` has the length of each member's block at the root; `values` and
    /// `counts` are not used at others.
    ///
    /// # Errors
    ///
    /// Those of [`gather_v`](Self::gather_v).
    pub fn scatter_v<T: Plain>(
        &self,
        values: &[T],
        counts: &[usize],
        into: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        self.run(GroupCall::ScatterV { root, counts }, values, into)
    }
}

/// A vector that `fill` fills.
///
/// # Errors
///
/// [`CollError::WrongLength`] for more values than memory can have, and
/// those of `fill`.
pub(super) fn collected<T: Plain>(
    len: usize,
    fill: impl FnOnce(&mut [T]) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    let most = isize::MAX as usize / size_of::<T>().max(1);
    if len > most {
        return Err(Error::Coll(CollError::WrongLength { len: most, needed: len }));
    }
    // SAFETY: all bits are values of a `Plain` type.
    let mut values = vec![unsafe { std::mem::zeroed() }; len];
    fill(&mut values)?;
    Ok(values)
}
