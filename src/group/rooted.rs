//! Gather and scatter: blocks of all members at one of them.

use super::handle::{Group, THRESHOLDS, check_len};
use crate::{Error, Plain};
use tsumugi_core::coll::schedule::{Block, Blocks, CollPlan, CollTables};

impl Group {
    /// The values of all members, in the order of the members, at the member `root`;
    /// nothing at others. All members give as many values.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, there is no member `root`, or members
    /// have given different lengths.
    pub fn gather<T: Plain>(&self, values: &[T], root: u32) -> Result<Vec<T>, Error> {
        let len = if self.rank() == root { values.len() * self.size() as usize } else { 0 };
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
        let root = self.handle().root(root)?.root;
        if self.rank() == root {
            check_len(into.len(), values.len() * self.size() as usize)?;
        }
        let (member, bytes) = (self.handle().member(), size_of_val(values));
        let plan = THRESHOLDS.rooted(member, root, bytes, false, false);
        self.run(plan, &self.handle().tables(), values, Some(into), None)
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
        let root = self.handle().root(root)?.root;
        let is_root = self.rank() == root;
        let blocks = if is_root { self.blocks::<T>(counts)? } else { Vec::new() };
        if is_root {
            check_len(values.len(), counts[root as usize])?;
        }
        let len = if is_root { counts.iter().sum() } else { 0 };
        let tables = CollTables { received: &blocks, ..self.handle().tables() };
        let (member, bytes) = (self.handle().member(), size_of_val(values));
        let mut plan = CollPlan::default();
        plan.rooted_flat(member, root, Blocks::Received, bytes, false, false);
        collected(len, |all| self.run(plan, &tables, values, Some(all), None))
    }

    /// The block of this member of the values of the member `root`, which has as many
    /// blocks as members; `values` is not used at others.
    ///
    /// # Errors
    ///
    /// Those of [`gather`](Self::gather); [`CollError::WrongLength`](crate::CollError):
    /// the values of the root do not have a block of the length of `into` for each member.
    pub fn scatter<T: Plain>(&self, values: &[T], into: &mut [T], root: u32) -> Result<(), Error> {
        let root = self.handle().root(root)?.root;
        if self.rank() == root {
            check_len(values.len(), into.len() * self.size() as usize)?;
        }
        let (member, bytes) = (self.handle().member(), size_of_val(into));
        let plan = THRESHOLDS.rooted(member, root, bytes, true, false);
        self.run(plan, &self.handle().tables(), values, Some(into), None)
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
        let root = self.handle().root(root)?.root;
        let is_root = self.rank() == root;
        let blocks = if is_root { self.blocks::<T>(counts)? } else { Vec::new() };
        if is_root {
            check_len(into.len(), counts[root as usize])?;
            check_len(values.len(), counts.iter().sum())?;
        }
        let tables = CollTables { sent: &blocks, ..self.handle().tables() };
        let (member, bytes) = (self.handle().member(), size_of_val(into));
        let mut plan = CollPlan::default();
        plan.rooted_flat(member, root, Blocks::Sent, bytes, true, false);
        self.run(plan, &tables, values, Some(into), None)
    }

    /// The blocks of values of `T` that follow each other.
    ///
    /// # Errors
    ///
    /// `counts` is not as long as the group.
    pub(super) fn blocks<T>(&self, counts: &[usize]) -> Result<Vec<Block>, Error> {
        check_len(counts.len(), self.size() as usize)?;
        let mut blocks = vec![Block::default(); counts.len()];
        Block::fill(&mut blocks, counts.iter().map(|count| count * size_of::<T>()), None);
        Ok(blocks)
    }
}

/// A vector that `fill` fills.
pub(super) fn collected<T: Plain>(
    len: usize,
    fill: impl FnOnce(&mut [T]) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    // SAFETY: all bits are values of a `Plain` type.
    let mut values = vec![unsafe { std::mem::zeroed() }; len];
    fill(&mut values)?;
    Ok(values)
}
