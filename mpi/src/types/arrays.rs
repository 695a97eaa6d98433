//! Datatypes of parts of arrays: subarrays, and the parts of processes.

use crate::abi::{self, MPI_Datatype};
use crate::arguments::count;
use crate::arguments::list;
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::object::datatype::{Datatype, Recipe};
use crate::object::type_map::TypeMap;
use crate::sized::sized;
use crate::types::recipe::{distance, make, recipe, wide};
use std::ffi::c_int;

/// A datatype whose data is a part of an array: the elements at these places of each
/// dimension, in the order of C.
fn part_of_array(of: &Datatype, sizes: &[usize], places: &[Vec<usize>]) -> Answer<TypeMap> {
    let mut map = TypeMap::default();
    let mut at = vec![0; sizes.len()];
    if places.iter().any(Vec::is_empty) {
        return Ok(map);
    }
    loop {
        let index = |at: &[usize]| {
            at.iter()
                .zip(places)
                .zip(sizes)
                .fold(0, |index, ((at, places), size)| index * size + places[*at])
        };
        // Elements of the last dimension that follow each other are one block.
        let last = places.last().map_or(0, Vec::len);
        let here = *at.last().unwrap_or(&0);
        let places_of_last = places.last().map_or(&[][..], |places| &places[..]);
        let len = (here + 1..last)
            .take_while(|next| places_of_last[*next] == places_of_last[next - 1] + 1)
            .count()
            + 1;
        map.lay(of, len, distance(index(&at) as i64, of.bounds.extent())?)?;
        let mut dimension = at.len();
        let mut step = len;
        loop {
            let Some(lower) = dimension.checked_sub(1) else { return Ok(map) };
            dimension = lower;
            at[dimension] += step;
            if at[dimension] < places[dimension].len() {
                break;
            }
            at[dimension] = 0;
            step = 1;
        }
    }
}

/// The datatype of a part of an array, with the extent of all of it.
fn of_array(
    of: &Datatype,
    sizes: &[usize],
    mut map_of: Vec<Vec<usize>>,
    is_c: bool,
    recipe: Recipe,
) -> Answer<Datatype> {
    let mut sizes = sizes.to_vec();
    if !is_c {
        sizes.reverse();
        map_of.reverse();
    }
    let all = sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let Some(all) = all else { fail!(abi::ERR_ARG, "an array of {sizes:?} elements") };
    let map = part_of_array(of, &sizes, &map_of)?;
    Ok(map.finish_with(0, distance(all as i64, of.bounds.extent())?, true, recipe))
}

fn order_of(order: c_int) -> Answer<bool> {
    match order {
        abi::ORDER_C => Ok(true),
        abi::ORDER_FORTRAN => Ok(false),
        _ => fail!(abi::ERR_ARG, "{order} is no order of an array"),
    }
}

/// The elements of a dimension of `size` that the process `at` of `processes` has.
fn dealt(
    kind: c_int,
    argument: i64,
    size: usize,
    processes: usize,
    at: usize,
) -> Answer<Vec<usize>> {
    let block = match (kind, argument) {
        (abi::DISTRIBUTE_NONE, _) => return Ok((0..size).collect()),
        (abi::DISTRIBUTE_BLOCK, arg) if arg == i64::from(abi::DISTRIBUTE_DFLT_DARG) => {
            size.div_ceil(processes)
        }
        (abi::DISTRIBUTE_CYCLIC, arg) if arg == i64::from(abi::DISTRIBUTE_DFLT_DARG) => 1,
        (abi::DISTRIBUTE_BLOCK | abi::DISTRIBUTE_CYCLIC, arg) if arg > 0 => arg as usize,
        _ => fail!(abi::ERR_ARG, "the distribution {kind} with the argument {argument}"),
    };
    need!(
        kind != abi::DISTRIBUTE_BLOCK || block.saturating_mul(processes) >= size,
        abi::ERR_ARG,
        "blocks of {block} for {processes} processes do not cover {size} elements"
    );
    let of_process = |element: &usize| element / block.max(1) % processes == at;
    Ok((0..size).filter(of_process).collect())
}

sized! {
    /// MPI_Type_create_subarray.
    PMPI_Type_create_subarray, PMPI_Type_create_subarray_c, (
        ndims: c_int, sizes: *const N, subsizes: *const N, starts: *const N, order: c_int,
        oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            need!(ndims > 0, abi::ERR_ARG, "an array of {ndims} dimensions");
            // SAFETY: the caller's.
            let [sizes, subsizes, starts] = [sizes, subsizes, starts]
                .map(|at| unsafe { list(at, ndims, "dimensions") }.map(wide));
            let (sizes, subsizes, starts) = (sizes?, subsizes?, starts?);
            let mut places = Vec::new();
            for ((&size, &part), &start) in sizes.iter().zip(&subsizes).zip(&starts) {
                let fits = part >= 0 && start >= 0 && part <= size && start <= size - part;
                need!(fits, abi::ERR_ARG, "{part} elements from {start} on, of {size}");
                places.push((start as usize..(start + part) as usize).collect());
            }
            let whole: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
            let dimensions = vec![i64::from(ndims)];
            let integers = [dimensions, sizes, subsizes, starts, vec![order.into()]].concat();
            let recipe = recipe::<N>(abi::COMBINER_SUBARRAY, integers, vec![], vec![of.clone()]);
            of_array(&of, &whole, places, order_of(order)?, recipe)
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_create_darray.
    PMPI_Type_create_darray, PMPI_Type_create_darray_c, (
        size: c_int, rank: c_int, ndims: c_int, gsizes: *const N, distribs: *const c_int,
        dargs: *const c_int, psizes: *const c_int, order: c_int, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            need!(ndims > 0, abi::ERR_ARG, "an array of {ndims} dimensions");
            need!((0..size).contains(&rank), abi::ERR_RANK, "rank {rank} of {size}");
            // SAFETY: the caller's.
            let [kinds, arguments, processes] = [distribs, dargs, psizes]
                .map(|at| unsafe { list(at, ndims, "dimensions") }.map(wide));
            // SAFETY: the caller's.
            let sizes = wide(unsafe { list(gsizes, ndims, "dimensions") }?);
            let (kinds, arguments, processes) = (kinds?, arguments?, processes?);
            let all: i64 = processes.iter().product();
            need!(all == size.into(), abi::ERR_ARG, "a grid of {all} processes, of {size}");
            // The grid of processes is in the order of C, whatever that of the array is.
            let (mut places, mut left) = (Vec::new(), rank as usize);
            for at in (0..ndims as usize).rev() {
                let count = processes[at] as usize;
                let size = super::count(sizes[at], "elements")?;
                let mine = dealt(kinds[at] as c_int, arguments[at], size, count, left % count)?;
                places.push(mine);
                left /= count;
            }
            places.reverse();
            let whole: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
            let integers = [vec![size.into(), rank.into(), ndims.into()], sizes, kinds, arguments,
                processes, vec![order.into()]].concat();
            let recipe = recipe::<N>(abi::COMBINER_DARRAY, integers, vec![], vec![of.clone()]);
            of_array(&of, &whole, places, order_of(order)?, recipe)
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }
}
