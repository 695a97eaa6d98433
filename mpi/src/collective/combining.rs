//! Collectives that combine values.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request};
use crate::arguments::count;
use crate::arguments::is_in_place;
use crate::call::call;
use crate::collective::between::{self, Reduced};
use crate::collective::prepared::{Prepared, begin, collectives, run};
use crate::fault::{Answer, need};
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::check_memory;
use crate::object::datatype::DatatypeRef;
use crate::object::operation::{CombineBytes, combine};
use crate::object::shape::numbers;
use crate::sized::sized;
use std::ffi::{c_int, c_void};
use tsumugi_core::coll::schedule::{CombineOrder, Elements};

/// Values of a member that are combined, each with the extent of its datatype.
struct Values {
    of: DatatypeRef,
    elements: Elements,
    /// How many of the results come to this member.
    results: usize,
    input: *const u8,
    output: *mut u8,
    /// Copies of the input and of the output, if elements have holes that must stay.
    copies: [Vec<u8>; 2],
    into: *mut u8,
    combine: CombineBytes,
}

// SAFETY: the program leaves the memory alone until the collective has ended.
unsafe impl Send for Values {}

impl Values {
    /// The values at `from`, or at `into` if they lie there; `number` of them. Of the results,
    /// those that `results` makes of their number come to `into`.
    fn of(
        job: &Job,
        (from, into): (*const c_void, *mut c_void),
        number: i64,
        results: impl FnOnce(usize) -> usize,
        (datatype, op): (MPI_Datatype, MPI_Op),
    ) -> Answer<Self> {
        let of = job.datatype(datatype)?;
        of.committed()?;
        let op = job.operation(op)?;
        let (count, commutes) = (count(number, "elements")?, op.commutes());
        let results = results(count);
        let combine = combine(op, &of)?;
        let extent = of.bounds.extent().cast_unsigned();
        let bytes = extent.checked_mul(count);
        need!(bytes.is_some(), abi::ERR_COUNT, "{count} elements of {extent} bytes");
        let elements = Elements { count, bytes: extent, commutes };
        let from = if is_in_place(from) { into.cast_const() } else { from };
        let (mut input, mut output) = (from.cast::<u8>(), into.cast::<u8>());
        let into = output;
        check_memory(input, count, &of)?;
        check_memory(output, results, &of)?;
        let mut copies = [Vec::new(), Vec::new()];
        // The elements of the standard's own datatypes have no holes that a program uses.
        if !of.is_dense && of.basic.is_none() {
            copies[0] = vec![0; bytes.unwrap_or(0)];
            copies[1] = vec![0; extent * count];
            // SAFETY: the contract of the call; both have the extents of all elements.
            unsafe { copy(&of, count, input, shifted(&of, copies[0].as_mut_ptr())) };
            input = copies[0].as_ptr();
            output = copies[1].as_mut_ptr();
        }
        Ok(Self { of, elements, results, input, output, copies, into, combine })
    }

    /// The call of a plan.
    fn prepared<'a>(self, plan: tsumugi::group::RawCollective<'a>) -> Prepared<'a> {
        let Self { of, results, input, output, copies, into, combine, .. } = self;
        if copies.iter().all(Vec::is_empty) {
            return Prepared { input, output, combine: Some(combine), ..Prepared::of(plan) };
        }
        let (into, is_copied) = (crate::collective::prepared::Kept(into), !copies[1].is_empty());
        let end = Box::new(move || {
            let [from, result_copy] = copies;
            if is_copied {
                let at = shifted(&of, result_copy.as_ptr().cast_mut());
                // SAFETY: the contract of the call; the copy has so many elements.
                unsafe { copy(&of, results, at, into.get()) };
            }
            drop((from, result_copy));
        });
        Prepared { input, output, combine: Some(combine), end, ..Prepared::of(plan) }
    }
}

/// Where the element lies whose bytes begin at `at`.
fn shifted(of: &DatatypeRef, at: *mut u8) -> *mut u8 {
    at.wrapping_offset(-of.bounds.lb)
}

/// Copies the data of elements to others of the same datatype.
///
/// # Safety
///
/// Both have `count` elements, valid for reads and for writes.
unsafe fn copy(of: &DatatypeRef, count: usize, from: *const u8, into: *mut u8) {
    let mut packed = vec![0; of.size * count];
    // SAFETY: the caller's.
    unsafe {
        of.pack(from, count, packed.as_mut_ptr());
        of.unpack(packed.as_ptr(), packed.len(), into);
    }
}

collectives! {
    "MPI_Reduce" [PMPI_Reduce PMPI_Reduce_c] [PMPI_Ireduce PMPI_Ireduce_c]
        [PMPI_Reduce_init PMPI_Reduce_init_c]
    (from: *const c_void, into: *mut c_void, number: N, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            let part = (0, super::count(i64::from(number), "elements")?);
            let values = Reduced { from, into, count: number.into(), datatype, op, part };
            return between::reduce(job, comm, remote, Some(root), values);
        }
        let root = comm.root(root)?;
        let is_root = root == comm.rank();
        need!(is_root || !is_in_place(from), abi::ERR_BUFFER,
            "MPI_IN_PLACE is for the root alone");
        let results = |count| if is_root { count } else { 0 };
        if is_root {
            job.check_values_apart(from, into, (number.into(), number.into()), datatype)?;
        }
        let values = Values::of(job, (from, into), number.into(), results, (datatype, op))?;
        let plan = comm.group.raw_reduce(values.elements, root)?;
        let bytes = values.elements.total();
        let prepared = values.prepared(plan);
        Ok(prepared.called(job, Some(root), Some(datatype), Some(bytes), Some(op)))
    }

    "MPI_Allreduce" [PMPI_Allreduce PMPI_Allreduce_c] [PMPI_Iallreduce PMPI_Iallreduce_c]
        [PMPI_Allreduce_init PMPI_Allreduce_init_c]
    (from: *const c_void, into: *mut c_void, number: N, datatype: MPI_Datatype, op: MPI_Op)
        |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            let part = (0, super::count(i64::from(number), "elements")?);
            let values = Reduced { from, into, count: number.into(), datatype, op, part };
            return between::reduce(job, comm, remote, None, values);
        }
        job.check_values_apart(from, into, (number.into(), number.into()), datatype)?;
        let values = Values::of(job, (from, into), number.into(), |count| count, (datatype, op))?;
        let plan = comm.group.raw_allreduce(values.elements)?;
        let bytes = values.elements.total();
        let prepared = values.prepared(plan);
        Ok(prepared.called(job, None, Some(datatype), Some(bytes), Some(op)))
    }

    "MPI_Scan" [PMPI_Scan PMPI_Scan_c] [PMPI_Iscan PMPI_Iscan_c]
        [PMPI_Scan_init PMPI_Scan_init_c]
    (from: *const c_void, into: *mut c_void, number: N, datatype: MPI_Datatype, op: MPI_Op)
        |job, comm, lists| {
        need!(comm.remote.is_none(), abi::ERR_COMM, "{} is an intercommunicator", &**comm);
        job.check_values_apart(from, into, (number.into(), number.into()), datatype)?;
        let values = Values::of(job, (from, into), number.into(), |count| count, (datatype, op))?;
        let plan = comm.group.raw_scan(values.elements, false)?;
        let bytes = values.elements.total();
        let prepared = values.prepared(plan);
        Ok(prepared.called(job, None, Some(datatype), Some(bytes), Some(op)))
    }

    "MPI_Exscan" [PMPI_Exscan PMPI_Exscan_c] [PMPI_Iexscan PMPI_Iexscan_c]
        [PMPI_Exscan_init PMPI_Exscan_init_c]
    (from: *const c_void, into: *mut c_void, number: N, datatype: MPI_Datatype, op: MPI_Op)
        |job, comm, lists| {
        need!(comm.remote.is_none(), abi::ERR_COMM, "{} is an intercommunicator", &**comm);
        // The first member gets nothing.
        let is_first = comm.rank() == 0;
        let results = |count| if is_first { 0 } else { count };
        if !is_first {
            job.check_values_apart(from, into, (number.into(), number.into()), datatype)?;
        }
        let values = Values::of(job, (from, into), number.into(), results, (datatype, op))?;
        let plan = comm.group.raw_scan(values.elements, true)?;
        let bytes = values.elements.total();
        let prepared = values.prepared(plan);
        Ok(prepared.called(job, None, Some(datatype), Some(bytes), Some(op)))
    }

    "MPI_Reduce_scatter_block" [PMPI_Reduce_scatter_block PMPI_Reduce_scatter_block_c]
        [PMPI_Ireduce_scatter_block PMPI_Ireduce_scatter_block_c]
        [PMPI_Reduce_scatter_block_init PMPI_Reduce_scatter_block_init_c]
    (from: *const c_void, into: *mut c_void, number: N, datatype: MPI_Datatype, op: MPI_Op)
        |job, comm, lists| {
        let each = super::count(i64::from(number), "elements of each member")?;
        let all = vec![each; comm.size() as usize];
        dealt(job, comm, (from, into), &all, (datatype, op))
    }

    "MPI_Reduce_scatter" [PMPI_Reduce_scatter PMPI_Reduce_scatter_c]
        [PMPI_Ireduce_scatter PMPI_Ireduce_scatter_c]
        [PMPI_Reduce_scatter_init PMPI_Reduce_scatter_init_c]
    (from: *const c_void, into: *mut c_void, counts: *const N, datatype: MPI_Datatype, op: MPI_Op)
        |job, comm, lists| {
        let counts = lists.numbers(counts, comm.size(), "counts")?;
        let counts: Answer<Vec<usize>> = counts
            .iter()
            .map(|number| super::count(*number, "elements of a block"))
            .collect();
        dealt(job, comm, (from, into), &counts?, (datatype, op))
    }
}

/// Values of which each member gets the result of a block.
fn dealt<'a>(
    job: &Job,
    comm: &'a CommRef,
    (from, into): (*const c_void, *mut c_void),
    counts: &[usize],
    how: (MPI_Datatype, MPI_Op),
) -> Answer<Prepared<'a>> {
    let own = counts[comm.rank() as usize];
    let all: usize = counts.iter().sum();
    if let Some(remote) = &comm.remote {
        let (part, (datatype, op)) = ((counts[..comm.rank() as usize].iter().sum(), own), how);
        let values = Reduced { from, into, count: all as i64, datatype, op, part };
        return between::reduce(job, comm, remote, None, values);
    }
    job.check_values_apart(from, into, (all as i64, own as i64), how.0)?;
    let mut values = Values::of(job, (from, into), all as i64, |_| own, how)?;
    if is_in_place(from) && values.copies[0].is_empty() {
        // A block does not go to where the values lie.
        let bytes = values.elements.total();
        values.copies[0] = vec![0; bytes];
        // SAFETY: the contract of the call: so many bytes are there.
        unsafe { values.copies[0].as_mut_ptr().copy_from_nonoverlapping(values.input, bytes) };
        values.input = values.copies[0].as_ptr();
    }
    let plan = comm.group.raw_reduce_scatter_v(values.elements, counts)?;
    let bytes = values.elements.total();
    let prepared = values.prepared(plan);
    Ok(prepared
        .called(job, None, Some(how.0), Some(bytes), Some(how.1))
        .detailed(job, || format!("counts {}", numbers(counts))))
}

/// MPI_Reduce_local.
///
/// # Safety
///
/// Both buffers have so many elements.
unsafe fn reduce_local(
    job: &Job,
    (from, into): (*const c_void, *mut c_void),
    number: i64,
    how: (MPI_Datatype, MPI_Op),
) -> Answer {
    need!(!is_in_place(from), abi::ERR_BUFFER, "the input is MPI_IN_PLACE");
    let of = job.datatype(how.0)?;
    let count = count(number, "elements")?;
    let combine = combine(job.operation(how.1)?, &of)?;
    check_memory(from.cast(), count, &of)?;
    check_memory(into.cast_const().cast(), count, &of)?;
    job.check_values_apart(from, into, (number, number), how.0)?;
    let bytes = of.bounds.extent().cast_unsigned() * count;
    let at = |place: *mut u8| place.wrapping_offset(of.bounds.lb);
    combine(at(from.cast_mut().cast()), at(into.cast()), bytes, CombineOrder::FromFirst);
    Ok(())
}

sized! {
    /// MPI_Reduce_local.
    PMPI_Reduce_local, PMPI_Reduce_local_c, (
        from: *const c_void, into: *mut c_void, number: N, datatype: MPI_Datatype, op: MPI_Op,
    ) {
        call(NAME, |job| {
            // SAFETY: the caller's.
            unsafe { reduce_local(job, (from, into), number.into(), (datatype, op)) }
        })
    }
}
