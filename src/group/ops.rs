//! Collectives as [values](crate::deferred).

use super::call::GroupCall;
use super::handle::{Group, elements_of};
use super::operation::{Operation, combine};
use crate::comm::OwnedValues;
use crate::deferred::{Begin, Begun, Deferred, Flight, Internal};
use crate::{Error, Plain};
use std::fmt;
use std::task::{Context, Poll};
use tsumugi_core::coll::schedule::{CollPlan, CombineOrder, Elements};
use tsumugi_core::completion::Why;
use tsumugi_runtime::service::collectives::{
    CollBegun, CollCall, CollInFlight, CollOwner, CombineFn,
};

/// The collectives of a group, each as a [value](crate::deferred).
///
/// An operation owns the values that it reads and the memory of its result until it ends,
/// and gives both back: so it allocates nothing. Lists of counts are borrowed, and not read
/// any more once it has begun. An operation that is dropped in flight goes on to its end, because the other
/// members wait for this one.
///
/// A collective has its place in the order of the group's collectives when it begins, not
/// when it is made: all members begin the same collectives in the same order. Several of a
/// group can be in flight at the same time, and end in any order.
#[derive(Clone, Copy)]
pub struct GroupOps<'a> {
    group: &'a Group,
}

/// A collective, with what it owns: [`InPlace`], [`ToOther`] or [`NoValues`].
pub struct OfGroup<'a, K> {
    group: &'a Group,
    call: GroupCall<'a>,
    kind: K,
}

/// The result replaces the values: `Result<B, Error>`.
#[derive(Debug)]
pub struct InPlace<B, O> {
    values: B,
    operation: O,
}

/// The result lies beside the values: `Result<(B, D), Error>`, the values and the result.
#[derive(Debug)]
pub struct ToOther<B, D, O> {
    values: B,
    into: D,
    operation: O,
}

/// There are no values: `Result<(), Error>`.
#[derive(Debug)]
pub struct NoValues;

/// No operation.
#[derive(Debug)]
pub struct MoveOnly;

/// This operation.
#[derive(Debug)]
pub struct CombineBy<O>(O);

/// The operation of a collective on values of `T`, if it has one.
#[doc(hidden)]
pub trait MayCombine<T>: Send + 'static {
    const COMBINES: bool;

    fn commutes(&self) -> bool;
    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder);
}

/// What a collective owns.
#[doc(hidden)]
pub trait OwnedByGroup: CollOwner {
    const COMBINES: bool;

    fn elements(&self) -> Elements;
    /// The number of values of the result.
    fn room(&self) -> usize;
    /// The places of the values and of the result.
    fn places(&mut self) -> (*const u8, *mut u8);
}

/// A collective in flight.
#[doc(hidden)]
#[derive(Debug)]
pub struct GroupFlight<'a, K: CollOwner>(CollInFlight<'a, K>);

impl Group {
    /// The collectives of this group as values, which are waited for, awaited, tried, or
    /// given a function: see [`deferred`](crate::deferred).
    pub fn ops(&self) -> GroupOps<'_> {
        GroupOps { group: self }
    }
}

impl<'a> GroupOps<'a> {
    /// Waits for all members, as [`Group::barrier`]. The result is `Result<(), Error>`.
    pub fn barrier(self) -> Deferred<OfGroup<'a, NoValues>> {
        self.of(GroupCall::Barrier, NoValues)
    }

    /// Brings the values of the member `root` to all members, as [`Group::broadcast`]. The
    /// result is `Result<B, Error>`.
    pub fn broadcast<B: OwnedValues>(
        self,
        values: B,
        root: u32,
    ) -> Deferred<OfGroup<'a, InPlace<B, MoveOnly>>> {
        self.of(GroupCall::Broadcast { root }, InPlace { values, operation: MoveOnly })
    }

    /// Combines the values of all members, one by one, for all, as [`Group::allreduce`]. The
    /// result is `Result<B, Error>`.
    pub fn allreduce<B: OwnedValues, O: Operation<B::Item> + 'static>(
        self,
        values: B,
        operation: O,
    ) -> Deferred<OfGroup<'a, InPlace<B, CombineBy<O>>>> {
        self.in_place(GroupCall::Allreduce, values, operation)
    }

    /// Combines the values of all members, one by one, as [`Group::reduce`]. The result is
    /// `Result<B, Error>`: the combined values at the root, and the given ones at others.
    pub fn reduce<B: OwnedValues, O: Operation<B::Item> + 'static>(
        self,
        values: B,
        root: u32,
        operation: O,
    ) -> Deferred<OfGroup<'a, InPlace<B, CombineBy<O>>>> {
        self.in_place(GroupCall::Reduce { root }, values, operation)
    }

    /// Combines the values of the lower members and of this one, as [`Group::scan`]. The
    /// result is `Result<B, Error>`.
    pub fn scan<B: OwnedValues, O: Operation<B::Item> + 'static>(
        self,
        values: B,
        operation: O,
    ) -> Deferred<OfGroup<'a, InPlace<B, CombineBy<O>>>> {
        self.in_place(GroupCall::Scan, values, operation)
    }

    /// Combines the values of the lower members, as [`Group::exscan`]. The result is
    /// `Result<B, Error>`.
    pub fn exscan<B: OwnedValues, O: Operation<B::Item> + 'static>(
        self,
        values: B,
        operation: O,
    ) -> Deferred<OfGroup<'a, InPlace<B, CombineBy<O>>>> {
        self.in_place(GroupCall::Exscan, values, operation)
    }

    /// Gathers the values of all members in `into` of the member `root`, as
    /// [`Group::gather_into`]. The result is `Result<(B, D), Error>`: both arguments.
    pub fn gather<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
        root: u32,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::Gather { root }, values, into)
    }

    /// Gathers the values of all members, of any lengths, in `into` of the member `root`, as
    /// [`Group::gather_v`]. The result is `Result<(B, D), Error>`.
    pub fn gather_v<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
        counts: &'a [usize],
        root: u32,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::GatherV { root, counts }, values, into)
    }

    /// Brings a block of the values of the member `root` to `into` of each member, as
    /// [`Group::scatter`]. The result is `Result<(B, D), Error>`.
    pub fn scatter<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
        root: u32,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::Scatter { root }, values, into)
    }

    /// Brings a block of any length of the values of the member `root` to `into` of each
    /// member, as [`Group::scatter_v`]. The result is `Result<(B, D), Error>`.
    pub fn scatter_v<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
        counts: &'a [usize],
        root: u32,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::ScatterV { root, counts }, values, into)
    }

    /// Gathers the values of all members in `into` of each, as [`Group::allgather_into`].
    /// The result is `Result<(B, D), Error>`.
    pub fn allgather<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::Allgather, values, into)
    }

    /// Gathers the values of all members, of any lengths, in `into` of each, as
    /// [`Group::allgather_v`]. The result is `Result<(B, D), Error>`.
    pub fn allgather_v<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
        counts: &'a [usize],
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::AllgatherV { counts }, values, into)
    }

    /// Exchanges a block of each member with each, as [`Group::alltoall_into`]. The result is
    /// `Result<(B, D), Error>`.
    pub fn alltoall<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::Alltoall, values, into)
    }

    /// Exchanges a block of any length of each member with each, as [`Group::alltoall_v`].
    /// The result is `Result<(B, D), Error>`.
    pub fn alltoall_v<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        values: B,
        into: D,
        sent: &'a [usize],
        received: &'a [usize],
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.move_to(GroupCall::AlltoallV { sent, received }, values, into)
    }

    /// Combines the values of all members, one by one, and brings a block of the result to
    /// `into` of each, as [`Group::reduce_scatter`]. The result is `Result<(B, D), Error>`.
    pub fn reduce_scatter<B, D, O>(
        self,
        values: B,
        into: D,
        operation: O,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, CombineBy<O>>>>
    where
        B: OwnedValues,
        D: OwnedValues<Item = B::Item>,
        O: Operation<B::Item> + 'static,
    {
        let operation = CombineBy(operation);
        self.of(GroupCall::ReduceScatter, ToOther { values, into, operation })
    }

    /// Combines the values of all members, one by one, and brings a block of any length of
    /// the result to `into` of each, as [`Group::reduce_scatter_v`]. The result is
    /// `Result<(B, D), Error>`.
    pub fn reduce_scatter_v<B, D, O>(
        self,
        values: B,
        into: D,
        counts: &'a [usize],
        operation: O,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, CombineBy<O>>>>
    where
        B: OwnedValues,
        D: OwnedValues<Item = B::Item>,
        O: Operation<B::Item> + 'static,
    {
        let operation = CombineBy(operation);
        self.of(GroupCall::ReduceScatterV { counts }, ToOther { values, into, operation })
    }

    fn in_place<B: OwnedValues, O: Operation<B::Item> + 'static>(
        self,
        call: GroupCall<'a>,
        values: B,
        operation: O,
    ) -> Deferred<OfGroup<'a, InPlace<B, CombineBy<O>>>> {
        self.of(call, InPlace { values, operation: CombineBy(operation) })
    }

    fn move_to<B: OwnedValues, D: OwnedValues<Item = B::Item>>(
        self,
        call: GroupCall<'a>,
        values: B,
        into: D,
    ) -> Deferred<OfGroup<'a, ToOther<B, D, MoveOnly>>> {
        self.of(call, ToOther { values, into, operation: MoveOnly })
    }

    fn of<K: OwnedByGroup>(self, call: GroupCall<'a>, kind: K) -> Deferred<OfGroup<'a, K>> {
        Deferred::new(OfGroup { group: self.group, call, kind })
    }
}

impl<'a, K: OwnedByGroup> OfGroup<'a, K> {
    /// The call with its plan.
    fn planned(&mut self) -> Result<CollCall, Error> {
        let mut plan = CollPlan::default();
        let (elements, room) = (self.kind.elements(), self.kind.room());
        let scratch = self.call.plan(&mut plan, self.group.handle(), elements, room)?;
        let (input, output) = self.kind.places();
        Ok(CollCall { plan, scratch, input, output, combines: K::COMBINES })
    }
}

/// What a blocking collective owns, for its operation.
struct ByCaller<'k, K>(&'k K);

// SAFETY: only the thread of the blocking call uses it.
unsafe impl<K> Send for ByCaller<'_, K> {}
// SAFETY: the same.
unsafe impl<K> Sync for ByCaller<'_, K> {}

impl<K: CollOwner> ByCaller<'_, K> {
    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder) {
        self.0.combine(from, into, bytes, order);
    }
}

impl<K> Internal for OfGroup<'_, K> {}

impl<'a, K: OwnedByGroup> Begin for OfGroup<'a, K> {
    type Output = Result<K::Output, Error>;
    type Flight = GroupFlight<'a, K>;

    fn wait(mut self) -> Self::Output {
        let lengths = (self.kind.elements(), self.kind.room());
        let (input, output) = self.kind.places();
        let by = ByCaller(&self.kind);
        let combine = |from, into, bytes, order| by.combine(from, into, bytes, order);
        // SAFETY: the values are owned here until the call returns, and have the lengths of
        // the plan; if the ULT is cut off in the call, its frame stays.
        unsafe {
            let combine = K::COMBINES.then_some(&combine as &CombineFn<'_>);
            self.group.run_call(self.call, lengths, input, output, combine)
        }?;
        Ok(self.kind.output())
    }

    fn try_begin(mut self) -> Result<Begun<Self>, (Self, Why)> {
        let call = match self.planned() {
            Ok(call) => call,
            Err(error) => return Ok(Begun::Done(Err(error))),
        };
        let Self { group, call: arguments, kind } = self;
        // SAFETY: the bytes of owned values stay where they are when the values are moved;
        // only the collective uses them until they are given back or dropped. They have the
        // lengths of the plan.
        match unsafe { group.handle().begin_owned(call, kind) } {
            Ok(CollBegun::Ended(result)) => Ok(Begun::Done(result)),
            Ok(CollBegun::InFlight(in_flight)) => Ok(Begun::Pending(GroupFlight(in_flight))),
            Err((kind, why)) => Err((Self { group, call: arguments, kind }, why)),
        }
    }

    fn then<F>(mut self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(Self::Output) + Send + 'static,
    {
        let call = match self.planned() {
            Ok(call) => call,
            Err(error) => {
                tsumugi_runtime::panic::call_back(|| then(Err(error)));
                return Ok(());
            }
        };
        let Self { group, call: arguments, kind } = self;
        // SAFETY: as in `try_begin`.
        let begun = unsafe { group.handle().begin_owned_then(call, kind, then) };
        begun.map_err(|(kind, then, why)| (Self { group, call: arguments, kind }, then, why))
    }

    fn make_room(&self) {
        self.group.handle().make_progress();
    }
}

impl<K: CollOwner> Flight for GroupFlight<'_, K> {
    type Output = Result<K::Output, Error>;

    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    fn wait(self) -> Self::Output {
        self.0.wait()
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_end(context)
    }
}

impl<T> MayCombine<T> for MoveOnly {
    const COMBINES: bool = false;

    fn commutes(&self) -> bool {
        true
    }

    fn combine(&self, _: *const u8, _: *mut u8, _: usize, _: CombineOrder) {}
}

impl<T: Plain, O: Operation<T> + 'static> MayCombine<T> for CombineBy<O> {
    const COMBINES: bool = true;

    fn commutes(&self) -> bool {
        self.0.commutes()
    }

    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder) {
        combine(&self.0, from, into, bytes, order);
    }
}

impl<B: OwnedValues, O: MayCombine<B::Item>> CollOwner for InPlace<B, O> {
    type Output = B;

    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder) {
        self.operation.combine(from, into, bytes, order);
    }

    fn output(self) -> B {
        self.values
    }
}

impl<B: OwnedValues, O: MayCombine<B::Item>> OwnedByGroup for InPlace<B, O> {
    const COMBINES: bool = O::COMBINES;

    fn elements(&self) -> Elements {
        elements_of(self.values.values(), self.operation.commutes())
    }

    fn room(&self) -> usize {
        self.values.values().len()
    }

    fn places(&mut self) -> (*const u8, *mut u8) {
        let (at, _) = self.values.bytes_mut();
        (at.cast_const(), at)
    }
}

impl<B, D, O> CollOwner for ToOther<B, D, O>
where
    B: OwnedValues,
    D: OwnedValues<Item = B::Item>,
    O: MayCombine<B::Item>,
{
    type Output = (B, D);

    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder) {
        self.operation.combine(from, into, bytes, order);
    }

    fn output(self) -> (B, D) {
        (self.values, self.into)
    }
}

impl<B, D, O> OwnedByGroup for ToOther<B, D, O>
where
    B: OwnedValues,
    D: OwnedValues<Item = B::Item>,
    O: MayCombine<B::Item>,
{
    const COMBINES: bool = O::COMBINES;

    fn elements(&self) -> Elements {
        elements_of(self.values.values(), self.operation.commutes())
    }

    fn room(&self) -> usize {
        self.into.values().len()
    }

    fn places(&mut self) -> (*const u8, *mut u8) {
        (self.values.bytes().0, self.into.bytes_mut().0)
    }
}

impl CollOwner for NoValues {
    type Output = ();

    fn combine(&self, _: *const u8, _: *mut u8, _: usize, _: CombineOrder) {}

    fn output(self) {}
}

impl OwnedByGroup for NoValues {
    const COMBINES: bool = false;

    fn elements(&self) -> Elements {
        elements_of::<u8>(&[], true)
    }

    fn room(&self) -> usize {
        0
    }

    fn places(&mut self) -> (*const u8, *mut u8) {
        (std::ptr::null(), std::ptr::null_mut())
    }
}

impl fmt::Debug for GroupOps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupOps({:?})", self.group)
    }
}

impl<K> fmt::Debug for OfGroup<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OfGroup({:?})", self.call)
    }
}
