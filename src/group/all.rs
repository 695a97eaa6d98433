//! Blocks of all members for all members.

use super::handle::{Group, THRESHOLDS, check_len, elements_of};
use super::operation::{Operation, combine_of};
use super::rooted::collected;
use crate::{Error, Plain};
use tsumugi_core::coll::schedule::{Blocks, BufferSpan, CollBuffer, CollPlan, CollTables};

impl Group {
    /// The values of all members, in the order of the members. All give as many.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or members have given different
    /// lengths.
    pub fn allgather<T: Plain>(&self, values: &[T]) -> Result<Vec<T>, Error> {
        let len = values.len() * self.size() as usize;
        collected(len, |all| self.allgather_into(values, all))
    }

    /// [`allgather`](Self::allgather) into memory of the caller.
    ///
    /// # Errors
    ///
    /// Those of [`allgather`](Self::allgather);
    /// [`CollError::WrongLength`](crate::CollError): `into` has not as many values as the
    /// members give.
    pub fn allgather_into<T: Plain>(&self, values: &[T], into: &mut [T]) -> Result<(), Error> {
        check_len(into.len(), values.len() * self.size() as usize)?;
        let bytes = size_of_val(values);
        let own = BufferSpan::first(CollBuffer::Input, bytes);
        let (at, total) = (self.rank() as usize * bytes, size_of_val(into));
        let member = self.handle().member();
        let plan = THRESHOLDS.allgather(member, own, at, total, Blocks::Even { bytes });
        self.run(plan, &self.handle().tables(), values, Some(into), None)
    }

    /// The values of all members, in the order of the members; `counts` has the number
    /// of each member's values, the same at all.
    ///
    /// # Errors
    ///
    /// Those of [`allgather`](Self::allgather);
    /// [`CollError::WrongLength`](crate::CollError): `counts` is not as long as the group,
    /// or this member's count is wrong.
    pub fn allgather_v<T: Plain>(&self, values: &[T], counts: &[usize]) -> Result<Vec<T>, Error> {
        let blocks = self.blocks::<T>(counts)?;
        check_len(values.len(), counts[self.rank() as usize])?;
        let tables = CollTables { received: &blocks, ..self.handle().tables() };
        let own = BufferSpan::first(CollBuffer::Input, size_of_val(values));
        let (at, len) = (blocks[self.rank() as usize].at, counts.iter().sum::<usize>());
        let (member, total) = (self.handle().member(), len * size_of::<T>());
        let plan = THRESHOLDS.allgather(member, own, at, total, Blocks::Received);
        collected(len, |all| self.run(plan, &tables, values, Some(all), None))
    }

    /// The block of each member for this one: block `i` of `values` goes to the member
    /// `i`. All blocks of all members have one length.
    ///
    /// # Errors
    ///
    /// Those of [`allgather`](Self::allgather);
    /// [`CollError::WrongLength`](crate::CollError): the values do not divide into a block
    /// for each member.
    pub fn alltoall<T: Plain>(&self, values: &[T]) -> Result<Vec<T>, Error> {
        collected(values.len(), |all| self.alltoall_into(values, all))
    }

    /// [`alltoall`](Self::alltoall) into memory of the caller.
    ///
    /// # Errors
    ///
    /// Those of [`alltoall`](Self::alltoall), also if `into` is not as long as `values`.
    pub fn alltoall_into<T: Plain>(&self, values: &[T], into: &mut [T]) -> Result<(), Error> {
        let size = self.size() as usize;
        check_len(values.len(), values.len() / size * size)?;
        check_len(into.len(), values.len())?;
        let plan = THRESHOLDS.alltoall(self.handle().member(), size_of_val(values) / size);
        self.run(plan, &self.handle().tables(), values, Some(into), None)
    }

    /// The block of each member for this one; `sent` has the lengths of the blocks in
    /// `values`, and `received` those of the blocks that come.
    ///
    /// # Errors
    ///
    /// Those of [`allgather_v`](Self::allgather_v).
    pub fn alltoall_v<T: Plain>(
        &self,
        values: &[T],
        sent: &[usize],
        received: &[usize],
    ) -> Result<Vec<T>, Error> {
        let (from, to) = (self.blocks::<T>(sent)?, self.blocks::<T>(received)?);
        check_len(values.len(), sent.iter().sum())?;
        let me = self.rank() as usize;
        check_len(received[me], sent[me])?;
        let tables = CollTables { sent: &from, received: &to, ..self.handle().tables() };
        let mut plan = CollPlan::default();
        plan.alltoall(self.handle().member(), Blocks::Sent, Blocks::Received);
        let len = received.iter().sum();
        collected(len, |all| self.run(plan, &tables, values, Some(all), None))
    }

    /// Combines the values of all members, one by one, and returns this member's block
    /// of the result. All blocks have one length.
    ///
    /// # Errors
    ///
    /// Those of [`alltoall`](Self::alltoall).
    pub fn reduce_scatter<T: Plain>(
        &self,
        values: &[T],
        operation: impl Operation<T>,
    ) -> Result<Vec<T>, Error> {
        let size = self.size() as usize;
        let len = values.len() / size;
        check_len(values.len(), len * size)?;
        let bytes = len * size_of::<T>();
        let own = self.rank() as usize * bytes;
        let (member, elements) = (self.handle().member(), elements_of(values, &operation));
        let blocks = Blocks::Even { bytes };
        let plan = THRESHOLDS.reduce_scatter(member, elements, blocks, own..own + bytes);
        let (combine, tables) = (combine_of(operation), self.handle().tables());
        collected(len, |all| self.run(plan, &tables, values, Some(all), Some(&combine)))
    }

    /// Combines the values of all members, one by one, and returns this member's block
    /// of the result; `counts` has the lengths of the blocks, the same at all.
    ///
    /// # Errors
    ///
    /// Those of [`allgather_v`](Self::allgather_v).
    pub fn reduce_scatter_v<T: Plain>(
        &self,
        values: &[T],
        counts: &[usize],
        operation: impl Operation<T>,
    ) -> Result<Vec<T>, Error> {
        let blocks = self.blocks::<T>(counts)?;
        check_len(values.len(), counts.iter().sum())?;
        let own = blocks[self.rank() as usize];
        let tables = CollTables { sent: &blocks, ..self.handle().tables() };
        let (member, elements) = (self.handle().member(), elements_of(values, &operation));
        let range = own.at..own.at + own.len;
        let plan = THRESHOLDS.reduce_scatter(member, elements, Blocks::Sent, range);
        let combine = combine_of(operation);
        let len = counts[self.rank() as usize];
        collected(len, |all| self.run(plan, &tables, values, Some(all), Some(&combine)))
    }
}
