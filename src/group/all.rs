//! Blocks of all members for all members.

use super::call::{GroupCall, total_of};
use super::handle::Group;
use super::operation::Operation;
use super::rooted::collected;
use crate::{Error, Plain};

impl Group {
    /// The values of all members, in the order of the members. All give as many.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or members have given different
    /// lengths.
    pub fn allgather<T: Plain>(&self, values: &[T]) -> Result<Vec<T>, Error> {
        let len = values.len().saturating_mul(self.size() as usize);
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
        self.run(GroupCall::Allgather, values, into)
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
        let len = total_of(counts);
        collected(len, |all| self.run(GroupCall::AllgatherV { counts }, values, all))
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
        self.run(GroupCall::Alltoall, values, into)
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
        let call = GroupCall::AlltoallV { sent, received };
        collected(total_of(received), |all| self.run(call, values, all))
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
        let (len, call) = (values.len() / self.size() as usize, GroupCall::ReduceScatter);
        collected(len, |all| self.run_into(call, values, all, operation))
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
        let call = GroupCall::ReduceScatterV { counts };
        let len = counts.get(self.rank() as usize).copied().unwrap_or_default();
        collected(len, |all| self.run_into(call, values, all, operation))
    }
}
