//! What all calls that make datatypes do: they add one to the job, and keep how it was made.

use crate::abi::{self, MPI_Datatype};
use crate::call::call;
use crate::fault::{Answer, fail};
use crate::job::Job;
use crate::object::datatype::{Datatype, DatatypeRef, Recipe};
use std::ffi::c_int;

/// A distance of so many extents.
pub(super) fn distance(steps: i64, extent: isize) -> Answer<isize> {
    match (steps as isize).checked_mul(extent) {
        Some(distance) => Ok(distance),
        None => fail!(abi::ERR_ARG, "a displacement of {steps} times {extent} bytes"),
    }
}

/// Makes a datatype, and writes its handle.
///
/// # Safety
///
/// `out` is valid for a write.
pub(super) unsafe fn make(
    name: &str,
    out: *mut MPI_Datatype,
    body: impl FnOnce(&'static Job) -> Answer<Datatype>,
) -> c_int {
    call(name, |job| {
        let made = job.add_datatype(body(job)?)?;
        // SAFETY: the caller's.
        unsafe { out.write(made) };
        Ok(())
    })
}

/// How a datatype was made, by a function with counts of the type `N`. The wide ones have
/// counts where the others have integers and addresses.
pub(super) fn recipe<N>(
    combiner: c_int,
    integers: Vec<i64>,
    addresses: Vec<i64>,
    types: Vec<DatatypeRef>,
) -> Recipe {
    if size_of::<N>() == size_of::<c_int>() {
        return Recipe { combiner, integers, addresses, counts: Vec::new(), types };
    }
    let dimensions = |at: usize| integers.get(at).map_or(0, |ndims| *ndims as usize);
    // Of an array, dimensions, distribution and order stay integers.
    let counts = match combiner {
        abi::COMBINER_SUBARRAY => 1..1 + 3 * dimensions(0),
        abi::COMBINER_DARRAY => 3..3 + dimensions(2),
        _ => 0..integers.len(),
    };
    let mut integers = integers;
    let counts = integers.drain(counts).chain(addresses).collect();
    Recipe { combiner, integers, addresses: Vec::new(), counts, types }
}

/// Widens the numbers of a list.
pub(crate) fn wide<N: Copy + Into<i64>>(list: &[N]) -> Vec<i64> {
    list.iter().map(|&number| number.into()).collect()
}
