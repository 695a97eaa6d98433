//! The group, and collectives in place.

use super::call::{GroupCall, tables_of};
use super::operation::{Operation, combine_of};
use crate::{Error, Plain, Rank, Runtime};
use std::fmt;
use tsumugi_core::coll::schedule::{CollForced, CollPlan, Elements};
use tsumugi_runtime::service::collectives::{Combine, CombineFn, GroupHandle};

/// Some ranks of a job, in an order. A handle: cheap to clone and to send to other
/// threads of the rank.
///
/// Members are named by their place in the group, from 0 on.
#[derive(Clone)]
pub struct Group {
    runtime: Runtime,
    handle: GroupHandle,
}

impl Runtime {
    /// The group of all ranks, in their order.
    pub fn world(&self) -> Group {
        Group { runtime: self.clone(), handle: self.handle().world().clone() }
    }
}

impl Group {
    /// The place of this rank.
    pub fn rank(&self) -> u32 {
        self.handle.me()
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.handle.size()
    }

    /// The rank of a member in the job; `None`: there is no such member.
    pub fn translate(&self, member: u32) -> Option<Rank> {
        (member < self.size()).then(|| self.handle.rank_of(member))
    }

    /// The place of a rank of the job in this group, if it is a member.
    pub fn place_of(&self, rank: Rank) -> Option<u32> {
        self.handle.place_of(rank)
    }

    /// The rank that this group's handle belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Makes groups of the members that bring the same color, in the order of their
    /// keys, and of their places here for equal keys. `None` for a member that brings
    /// no color. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or the job has 65,534 groups and
    /// communicators. The number of a group that all members have dropped is used again.
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        let part = self.handle.split(color, key)?;
        Ok(part.map(|handle| Self { runtime: self.runtime.clone(), handle }))
    }

    /// Makes a group of the same members; its collectives do not mix with those of this
    /// one. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`split`](Self::split).
    pub fn duplicate(&self) -> Result<Self, Error> {
        let handle = self.handle.split(Some(0), self.rank().into())?;
        let handle = handle.expect("each member brings a color");
        Ok(Self { runtime: self.runtime.clone(), handle })
    }

    /// Makes a group of the same members, which takes the algorithms that `forced` says: the
    /// same at all members. An algorithm that cannot serve a call, such as rows for a long
    /// value, is replaced by the one that the lengths choose. For measurements;
    /// `TSUMUGI_COLLECTIVES` forces those of the groups of a job. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`split`](Self::split).
    pub fn duplicate_forcing(&self, forced: CollForced) -> Result<Self, Error> {
        let mut group = self.duplicate()?;
        assert!(group.handle.force(forced), "a new group has one handle");
        Ok(group)
    }

    /// Waits until every member has called it.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn barrier(&self) -> Result<(), Error> {
        self.run::<u8>(GroupCall::Barrier, &[], &mut [])
    }

    /// Brings the values of the member `root` to all members.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, there is no member `root`, or members
    /// have given different lengths.
    pub fn broadcast<T: Plain>(&self, values: &mut [T], root: u32) -> Result<(), Error> {
        self.run_in_place(GroupCall::Broadcast { root }, values, None)
    }

    /// Combines the values of all members, one by one; all get the result.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or members have given different
    /// lengths.
    pub fn allreduce<T: Plain>(
        &self,
        values: &mut [T],
        operation: impl Operation<T>,
    ) -> Result<(), Error> {
        self.run_combining(GroupCall::Allreduce, values, operation)
    }

    /// Combines the values of all members, one by one; the member `root` gets the result
    /// in `values`, and those of other members stay as they are.
    ///
    /// # Errors
    ///
    /// Those of [`broadcast`](Self::broadcast).
    pub fn reduce<T: Plain>(
        &self,
        values: &mut [T],
        root: u32,
        operation: impl Operation<T>,
    ) -> Result<(), Error> {
        self.run_combining(GroupCall::Reduce { root }, values, operation)
    }

    /// Combines the values of the lower members and of this one, one by one, in the
    /// order of the members.
    ///
    /// # Errors
    ///
    /// Those of [`allreduce`](Self::allreduce).
    pub fn scan<T: Plain>(
        &self,
        values: &mut [T],
        operation: impl Operation<T>,
    ) -> Result<(), Error> {
        self.run_combining(GroupCall::Scan, values, operation)
    }

    /// Combines the values of the lower members, one by one, in the order of the members.
    /// Those of the first member stay as they are.
    ///
    /// # Errors
    ///
    /// Those of [`allreduce`](Self::allreduce).
    pub fn exscan<T: Plain>(
        &self,
        values: &mut [T],
        operation: impl Operation<T>,
    ) -> Result<(), Error> {
        self.run_combining(GroupCall::Exscan, values, operation)
    }

    /// The group of a handle of this rank, for libraries of other interfaces.
    #[doc(hidden)]
    pub fn of_handle(runtime: &Runtime, handle: GroupHandle) -> Self {
        Self { runtime: runtime.clone(), handle }
    }

    /// The handle.
    #[doc(hidden)]
    pub fn handle(&self) -> &GroupHandle {
        &self.handle
    }

    /// Runs a call without an operation.
    pub(super) fn run<T: Plain>(
        &self,
        call: GroupCall<'_>,
        values: &[T],
        into: &mut [T],
    ) -> Result<(), Error> {
        let (elements, room) = (elements_of(values, true), into.len());
        let (input, output) = (values.as_ptr().cast(), into.as_mut_ptr().cast());
        // SAFETY: the slices are borrowed until the call returns, and have these lengths.
        unsafe { self.run_call(call, (elements, room), input, output, None) }
    }

    /// Runs a call with an operation, of which the result lies elsewhere.
    pub(super) fn run_into<T: Plain>(
        &self,
        call: GroupCall<'_>,
        values: &[T],
        into: &mut [T],
        operation: impl Operation<T>,
    ) -> Result<(), Error> {
        let (elements, room) = (elements_of(values, operation.commutes()), into.len());
        let combine = combine_of(operation);
        let (input, output) = (values.as_ptr().cast(), into.as_mut_ptr().cast());
        // SAFETY: as in `run`.
        unsafe { self.run_call(call, (elements, room), input, output, Some(&combine)) }
    }

    /// Runs a call with an operation, of which the result replaces the values.
    fn run_combining<T: Plain>(
        &self,
        call: GroupCall<'_>,
        values: &mut [T],
        operation: impl Operation<T>,
    ) -> Result<(), Error> {
        let commutes = operation.commutes();
        self.run_in_place(call, values, Some((&combine_of(operation), commutes)))
    }

    /// Runs a call of which the result replaces the values; with an operation, if there is
    /// one, and whether that commutes.
    fn run_in_place<T: Plain>(
        &self,
        call: GroupCall<'_>,
        values: &mut [T],
        operation: Option<(&CombineFn<'_>, bool)>,
    ) -> Result<(), Error> {
        let commutes = operation.is_none_or(|(_, commutes)| commutes);
        let (elements, room) = (elements_of(values, commutes), values.len());
        let at = values.as_mut_ptr();
        let (input, output) = (at.cast_const().cast(), at.cast());
        let combine = operation.map(|(combine, _)| combine);
        // SAFETY: the values are borrowed exclusively until the call returns, and have this
        // length.
        unsafe { self.run_call(call, (elements, room), input, output, combine) }
    }

    /// Runs a call of a member with these values, and with room for so many of the result.
    ///
    /// # Safety
    ///
    /// The buffers have these lengths, and are not otherwise used until this returns.
    pub(super) unsafe fn run_call(
        &self,
        call: GroupCall<'_>,
        (elements, room): (Elements, usize),
        input: *const u8,
        output: *mut u8,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        let mut plan = CollPlan::default();
        let scratch = call.plan(&mut plan, &self.handle, elements, room)?;
        // SAFETY: the caller's promise.
        let result = unsafe {
            let tables = tables_of(&self.handle, &scratch);
            self.handle.run_with_scratch(&plan, &tables, input, output, combine)
        };
        // Only calls with blocks of different lengths have tables.
        if !scratch.blocks.iter().all(Vec::is_empty) {
            self.handle.keep_scratch(scratch);
        }
        result
    }
}

/// The elements of a collective of these values.
pub(super) const fn elements_of<T: Plain>(values: &[T], commutes: bool) -> Elements {
    Elements { count: values.len(), bytes: size_of::<T>(), commutes }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(member {} of {}, {})", self.rank(), self.size(), self.runtime.rank())
    }
}
