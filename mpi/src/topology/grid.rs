//! The ranks of a communicator as a grid.

use crate::abi::{self, MPI_Comm};
use crate::agreement::give;
use crate::arguments::list;
use crate::call::call_on;
use crate::comm::split;
use crate::fault::{Answer, fail, need};
use crate::object::communicator::CommRef;
use crate::object::shape::{Shape, numbers};
use crate::object::topology::{Grid, Topology};
use crate::topology::arrange::{arrange, checked, write};
use std::ffi::c_int;

fn grid(comm: &CommRef) -> Answer<&Grid> {
    match &comm.topology {
        Some(Topology::Cart(grid)) => Ok(grid),
        _ => fail!(abi::ERR_TOPOLOGY, "{} has no cartesian topology", &**comm),
    }
}

/// MPI_Cart_create.
///
/// # Safety
///
/// `dims` and `periods` have `ndims` numbers, `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_create(
    comm: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Cart_create", comm, |job, comm| {
        // SAFETY: the caller's.
        unsafe {
            let (dims, periods) =
                (list(dims, ndims, "dimensions")?, list(periods, ndims, "periods")?);
            let grid = Grid::new(dims, periods)?;
            let details = || format!("dims {}, periods {}", numbers(dims), numbers(periods));
            checked("MPI_Cart_create", job, comm, || Shape::detailed(details()))?;
            arrange(job, comm, grid.size(), Topology::Cart(grid), newcomm)
        }
    })
}

/// MPI_Cart_sub.
///
/// # Safety
///
/// `remain` has a number for each dimension, `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_sub(
    comm: MPI_Comm,
    remain: *const c_int,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Cart_sub", comm, |job, comm| {
        let grid = grid(comm)?;
        // SAFETY: the caller's.
        let remain = unsafe { list(remain, grid.dims.len() as i64, "dimensions") }?;
        let shape = || Shape::detailed(format!("dimensions {}", numbers(remain)));
        checked("MPI_Cart_sub", job, comm, shape)?;
        let coords = grid.coords(comm.rank());
        let of = |is_kept: bool| -> Vec<usize> {
            (0..grid.dims.len()).filter(|at| (remain[*at] != 0) == is_kept).collect()
        };
        let place =
            |dims: &[usize]| dims.iter().fold(0, |place, at| place * grid.dims[*at] + coords[*at]);
        let (kept, left) = (of(true), of(false));
        let made = split(comm, Some(place(&left) as u32), place(&kept).into())?;
        let part = Grid {
            dims: kept.iter().map(|at| grid.dims[*at]).collect(),
            periods: kept.iter().map(|at| grid.periods[*at]).collect(),
        };
        let made = made.map(|made| made.arranged(Some(Topology::Cart(part))));
        // SAFETY: the caller's.
        unsafe { give(job, comm, made, newcomm) }
    })
}

/// MPI_Cartdim_get.
///
/// # Safety
///
/// `ndims` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> c_int {
    call_on("MPI_Cartdim_get", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { ndims.write(grid(comm)?.dims.len() as c_int) };
        Ok(())
    })
}

/// MPI_Cart_get.
///
/// # Safety
///
/// The lists are valid for a write of `maxdims` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_get(
    comm: MPI_Comm,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> c_int {
    call_on("MPI_Cart_get", comm, |_, comm| {
        let grid = grid(comm)?;
        let all: Vec<c_int> = grid.periods.iter().map(|period| c_int::from(*period)).collect();
        // SAFETY: the caller's.
        unsafe {
            write(&grid.dims, dims, maxdims)?;
            write(&all, periods, maxdims)?;
            write(&grid.coords(comm.rank()), coords, maxdims)
        }
    })
}

/// MPI_Cart_rank.
///
/// # Safety
///
/// `coords` has a number for each dimension, `rank` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_rank(
    comm: MPI_Comm,
    coords: *const c_int,
    rank: *mut c_int,
) -> c_int {
    call_on("MPI_Cart_rank", comm, |_, comm| {
        let grid = grid(comm)?;
        // SAFETY: the caller's.
        let coords = unsafe { list(coords, grid.dims.len() as i64, "coordinates") }?;
        let Some(found) = grid.rank(coords) else {
            fail!(abi::ERR_ARG, "the place {coords:?} is outside of the grid {:?}", grid.dims)
        };
        // SAFETY: the caller's.
        unsafe { rank.write(found) };
        Ok(())
    })
}

/// MPI_Cart_coords.
///
/// # Safety
///
/// `coords` is valid for a write of `maxdims` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_coords(
    comm: MPI_Comm,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> c_int {
    call_on("MPI_Cart_coords", comm, |_, comm| {
        let grid = grid(comm)?;
        comm.rank_of(rank)?;
        // SAFETY: the caller's.
        unsafe { write(&grid.coords(rank as u32), coords, maxdims) }
    })
}

/// MPI_Cart_shift.
///
/// # Safety
///
/// `source` and `dest` are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_shift(
    comm: MPI_Comm,
    direction: c_int,
    disp: c_int,
    source: *mut c_int,
    dest: *mut c_int,
) -> c_int {
    call_on("MPI_Cart_shift", comm, |_, comm| {
        let grid = grid(comm)?;
        let dims = grid.dims.len();
        let Some(at) = usize::try_from(direction).ok().filter(|at| *at < dims) else {
            fail!(abi::ERR_ARG, "dimension {direction} of {dims}")
        };
        let moved = |by: i64| {
            let mut coords = grid.coords(comm.rank());
            let moved = i64::from(coords[at]) + by;
            let dim = i64::from(grid.dims[at]);
            coords[at] = if grid.periods[at] {
                moved.rem_euclid(dim) as c_int
            } else {
                moved.clamp(-1, dim) as c_int
            };
            grid.rank(&coords).unwrap_or(abi::PROC_NULL)
        };
        // SAFETY: the caller's.
        unsafe {
            source.write(moved(-i64::from(disp)));
            dest.write(moved(disp.into()));
        }
        Ok(())
    })
}

/// MPI_Cart_map.
///
/// # Safety
///
/// `dims` and `periods` have `ndims` numbers, `newrank` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Cart_map(
    comm: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> c_int {
    call_on("MPI_Cart_map", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe {
            let (dims, periods) =
                (list(dims, ndims, "dimensions")?, list(periods, ndims, "periods")?);
            let size = Grid::new(dims, periods)?.size();
            need!(
                size <= comm.size().into(),
                abi::ERR_DIMS,
                "{size} places for {} ranks",
                comm.size()
            );
            let is_in = i64::from(comm.rank()) < size;
            newrank.write(if is_in { comm.rank() as c_int } else { abi::UNDEFINED });
        }
        Ok(())
    })
}
