//! How a datatype was made: the call, and its arguments.

use crate::abi::{self, MPI_Datatype};
use crate::call::call;
use crate::fault::{Answer, need};
use crate::job::Job;
use crate::object::datatype::{DatatypeRef, Recipe};
use crate::tables::added;
use std::ffi::c_int;

/// Checks that a datatype was not made with wide counts, which functions without them cannot
/// tell.
fn narrow(recipe: &Recipe) -> Answer {
    need!(
        recipe.counts.is_empty(),
        abi::ERR_TYPE,
        "the datatype was made by a function with large counts, and is read by one"
    );
    Ok(())
}

/// MPI_Type_get_envelope.
///
/// # Safety
///
/// The pointers are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_envelope(
    datatype: MPI_Datatype,
    num_integers: *mut c_int,
    num_addresses: *mut c_int,
    num_datatypes: *mut c_int,
    combiner: *mut c_int,
) -> c_int {
    call("MPI_Type_get_envelope", |job| {
        let of = job.datatype(datatype)?;
        let recipe = &of.recipe;
        narrow(recipe)?;
        // SAFETY: the caller's.
        unsafe {
            num_integers.write(recipe.integers.len() as c_int);
            num_addresses.write(recipe.addresses.len() as c_int);
            num_datatypes.write(recipe.types.len() as c_int);
            combiner.write(recipe.combiner);
        }
        Ok(())
    })
}

/// MPI_Type_get_envelope_c.
///
/// # Safety
///
/// The pointers are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_envelope_c(
    datatype: MPI_Datatype,
    num_integers: *mut i64,
    num_addresses: *mut i64,
    num_large_counts: *mut i64,
    num_datatypes: *mut i64,
    combiner: *mut c_int,
) -> c_int {
    call("MPI_Type_get_envelope_c", |job| {
        let of = job.datatype(datatype)?;
        let recipe = &of.recipe;
        // SAFETY: the caller's.
        unsafe {
            num_integers.write(recipe.integers.len() as i64);
            num_addresses.write(recipe.addresses.len() as i64);
            num_large_counts.write(recipe.counts.len() as i64);
            num_datatypes.write(recipe.types.len() as i64);
            combiner.write(recipe.combiner);
        }
        Ok(())
    })
}

/// Writes how a datatype was made, as far as there is room.
///
/// # Safety
///
/// The lists are valid for a write of as many elements.
unsafe fn contents(
    job: &Job,
    datatype: MPI_Datatype,
    (integers, integers_at): (i64, *mut c_int),
    (addresses, addresses_at): (i64, *mut isize),
    (counts, counts_at): (i64, *mut i64),
    (types, types_at): (i64, *mut MPI_Datatype),
) -> Answer {
    let of = job.datatype(datatype)?;
    let recipe = &of.recipe;
    need!(
        recipe.combiner != abi::COMBINER_NAMED,
        abi::ERR_TYPE,
        "{} is a datatype of the standard, and was not made",
        of.name()
    );
    let has = |room: i64, len: usize| room >= len as i64;
    need!(
        has(integers, recipe.integers.len())
            && has(addresses, recipe.addresses.len())
            && has(counts, recipe.counts.len())
            && has(types, recipe.types.len()),
        abi::ERR_ARG,
        "there is room for {integers} integers, {addresses} addresses, {counts} counts and {types} \
         datatypes"
    );
    // SAFETY: the caller's.
    unsafe {
        for (at, integer) in recipe.integers.iter().enumerate() {
            integers_at.add(at).write(*integer as c_int);
        }
        for (at, address) in recipe.addresses.iter().enumerate() {
            addresses_at.add(at).write(*address as isize);
        }
        for (at, count) in recipe.counts.iter().enumerate() {
            counts_at.add(at).write(*count);
        }
    }
    for (at, datatype) in recipe.types.iter().enumerate() {
        // The program frees what it gets, so a datatype of its own gets a new handle.
        let handle = match datatype {
            DatatypeRef::Given(given) => given.handle(),
            DatatypeRef::Made(made) => {
                MPI_Datatype(added(job.datatypes.add(made.clone()), "datatypes")?)
            }
        };
        // SAFETY: the caller's.
        unsafe { types_at.add(at).write(handle) };
    }
    Ok(())
}

/// MPI_Type_get_contents.
///
/// # Safety
///
/// The lists are valid for a write of as many elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_contents(
    datatype: MPI_Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut isize,
    datatypes: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_get_contents", |job| {
        narrow(&job.datatype(datatype)?.recipe)?;
        // SAFETY: the caller's.
        unsafe {
            contents(
                job,
                datatype,
                (max_integers.into(), integers),
                (max_addresses.into(), addresses),
                (0, std::ptr::null_mut()),
                (max_datatypes.into(), datatypes),
            )
        }
    })
}

/// MPI_Type_get_contents_c.
///
/// # Safety
///
/// The lists are valid for a write of as many elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_contents_c(
    datatype: MPI_Datatype,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut isize,
    large_counts: *mut i64,
    datatypes: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_get_contents_c", |job| {
        // SAFETY: the caller's.
        unsafe {
            contents(
                job,
                datatype,
                (max_integers, integers),
                (max_addresses, addresses),
                (max_large_counts, large_counts),
                (max_datatypes, datatypes),
            )
        }
    })
}
