//! The group, and collectives in place.

use super::operation::{Operation, combine_of};
use crate::{Error, Plain, Rank, Runtime};
use std::fmt;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{CollPlan, CollTables, CollThresholds, Elements};
use tsumugi_runtime::service::collectives::{Combine, GroupHandle};

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

    /// Waits until every member has called it.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn barrier(&self) -> Result<(), Error> {
        let plan = THRESHOLDS.barrier(self.handle.member(), self.handle.view());
        self.run::<u8>(plan, &self.handle.tables(), &[], None, None)
    }

    /// Brings the values of the member `root` to all members.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, there is no member `root`, or members
    /// have given different lengths.
    pub fn broadcast<T: Plain>(&self, values: &mut [T], root: u32) -> Result<(), Error> {
        let (root, len) = (self.handle.root(root)?, size_of_val(values));
        let plan = THRESHOLDS.broadcast(self.handle.member(), self.handle.view(), root, len);
        self.run(plan, &self.handle.tables(), &[], Some(values), None)
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
        let elements = elements_of(values, &operation);
        let plan = THRESHOLDS.allreduce(self.handle.member(), self.handle.view(), elements);
        let combine = combine_of(operation);
        self.run_in_place(plan, values, Some(&combine))
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
        let (root, elements) = (self.handle.root(root)?, elements_of(values, &operation));
        let plan = THRESHOLDS.reduce(self.handle.member(), self.handle.view(), root, elements);
        let combine = combine_of(operation);
        self.run_in_place(plan, values, Some(&combine))
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
        self.scan_any(values, operation, false)
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
        self.scan_any(values, operation, true)
    }

    fn scan_any<T: Plain>(
        &self,
        values: &mut [T],
        operation: impl Operation<T>,
        exclusive: bool,
    ) -> Result<(), Error> {
        let elements = elements_of(values, &operation);
        let plan = THRESHOLDS.scan(self.handle.member(), elements, exclusive);
        let combine = combine_of(operation);
        self.run_in_place(plan, values, Some(&combine))
    }

    pub(super) fn handle(&self) -> &GroupHandle {
        &self.handle
    }

    /// Runs a plan; `output` is the input, too.
    fn run_in_place<T: Plain>(
        &self,
        plan: CollPlan,
        values: &mut [T],
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        let at = values.as_mut_ptr();
        // SAFETY: the values are borrowed exclusively until the call returns, and the
        // plans of the callers are for values of this length.
        unsafe {
            let (input, output) = (at.cast_const().cast(), at.cast());
            self.handle.run_with_scratch(plan, &self.handle.tables(), input, output, combine)
        }
    }

    /// Runs a plan.
    pub(super) fn run<T: Plain>(
        &self,
        plan: CollPlan,
        tables: &CollTables<'_>,
        input: &[T],
        output: Option<&mut [T]>,
        combine: Combine<'_>,
    ) -> Result<(), Error> {
        let output = output.map_or(std::ptr::null_mut(), |output| output.as_mut_ptr());
        // SAFETY: the slices are borrowed until the call returns, and the plans of the
        // callers are for their lengths.
        unsafe {
            let (input, output) = (input.as_ptr().cast(), output.cast());
            self.handle.run_with_scratch(plan, tables, input, output, combine)
        }
    }
}

/// The elements of a reduction of these values.
pub(super) fn elements_of<T: Plain>(values: &[T], operation: &impl Operation<T>) -> Elements {
    Elements { count: values.len(), bytes: size_of::<T>(), commutes: operation.commutes() }
}

/// # Errors
///
/// [`CollError::WrongLength`], unless an argument has as many elements as it needs.
pub(super) fn check_len(len: usize, needed: usize) -> Result<(), Error> {
    match len == needed {
        true => Ok(()),
        false => Err(Error::Coll(CollError::WrongLength { len, needed })),
    }
}

pub(super) const THRESHOLDS: CollThresholds = CollThresholds::DEFAULT;

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(member {} of {}, {})", self.rank(), self.size(), self.runtime.rank())
    }
}
