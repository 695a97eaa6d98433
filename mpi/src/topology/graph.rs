//! The ranks of a communicator as a graph that all of them know.

use crate::abi::{self, MPI_Comm};
use crate::arguments::list;
use crate::call::call_on;
use crate::fault::{Answer, fail, need};
use crate::object::communicator::CommRef;
use crate::object::shape::{Shape, numbers};
use crate::object::topology::Topology;
use crate::topology::arrange::{arrange, checked, write};
use std::ffi::c_int;

fn graph(comm: &CommRef) -> Answer<(&[c_int], &[c_int])> {
    match &comm.topology {
        Some(Topology::Graph { ends, neighbours }) => Ok((ends, neighbours)),
        _ => fail!(abi::ERR_TOPOLOGY, "{} has no graph topology", &**comm),
    }
}

/// MPI_Graph_create.
///
/// # Safety
///
/// `index` has `nnodes` numbers, `edges` as many as the last of them says; `newcomm` is valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Graph_create(
    comm: MPI_Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    _reorder: c_int,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Graph_create", comm, |job, comm| {
        // SAFETY: the caller's.
        unsafe {
            let ends = list(index, nnodes, "nodes")?;
            let rises = ends.is_sorted() && ends.first().is_none_or(|end| *end >= 0);
            need!(rises, abi::ERR_ARG, "the index {ends:?} does not rise");
            let neighbours = list(edges, ends.last().copied().unwrap_or(0), "edges")?;
            if let Some(to) = neighbours.iter().find(|to| !(0..nnodes).contains(to)) {
                fail!(abi::ERR_ARG, "an edge to node {to} of {nnodes}");
            }
            let details = || format!("index {}, edges {}", numbers(ends), numbers(neighbours));
            checked("MPI_Graph_create", job, comm, || Shape::detailed(details()))?;
            let topology = Topology::Graph { ends: ends.to_vec(), neighbours: neighbours.to_vec() };
            arrange(job, comm, nnodes.into(), topology, newcomm)
        }
    })
}

/// MPI_Graphdims_get.
///
/// # Safety
///
/// `nnodes` and `nedges` are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Graphdims_get(
    comm: MPI_Comm,
    nnodes: *mut c_int,
    nedges: *mut c_int,
) -> c_int {
    call_on("MPI_Graphdims_get", comm, |_, comm| {
        let (ends, neighbours) = graph(comm)?;
        // SAFETY: the caller's.
        unsafe {
            nnodes.write(ends.len() as c_int);
            nedges.write(neighbours.len() as c_int);
        }
        Ok(())
    })
}

/// MPI_Graph_get.
///
/// # Safety
///
/// `index` and `edges` are valid for a write of `maxindex` and `maxedges` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Graph_get(
    comm: MPI_Comm,
    maxindex: c_int,
    maxedges: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> c_int {
    call_on("MPI_Graph_get", comm, |_, comm| {
        let (ends, neighbours) = graph(comm)?;
        // SAFETY: the caller's.
        unsafe {
            write(ends, index, maxindex)?;
            write(neighbours, edges, maxedges)
        }
    })
}

/// The neighbours of a rank in a graph.
pub(super) fn neighbours_of(comm: &CommRef, rank: c_int) -> Answer<&[c_int]> {
    let (ends, neighbours) = graph(comm)?;
    comm.rank_of(rank)?;
    let at = rank as usize;
    let begin = at.checked_sub(1).map_or(0, |before| ends[before] as usize);
    Ok(&neighbours[begin..ends[at] as usize])
}

/// MPI_Graph_neighbors_count.
///
/// # Safety
///
/// `count` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Graph_neighbors_count(
    comm: MPI_Comm,
    rank: c_int,
    count: *mut c_int,
) -> c_int {
    call_on("MPI_Graph_neighbors_count", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { count.write(neighbours_of(comm, rank)?.len() as c_int) };
        Ok(())
    })
}

/// MPI_Graph_neighbors.
///
/// # Safety
///
/// `neighbors` is valid for a write of `max` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Graph_neighbors(
    comm: MPI_Comm,
    rank: c_int,
    max: c_int,
    neighbors: *mut c_int,
) -> c_int {
    call_on("MPI_Graph_neighbors", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { write(neighbours_of(comm, rank)?, neighbors, max) }
    })
}

/// MPI_Graph_map.
///
/// # Safety
///
/// `newrank` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Graph_map(
    comm: MPI_Comm,
    nnodes: c_int,
    _index: *const c_int,
    _edges: *const c_int,
    newrank: *mut c_int,
) -> c_int {
    call_on("MPI_Graph_map", comm, |_, comm| {
        let own = comm.rank() as c_int;
        // SAFETY: the caller's.
        unsafe { newrank.write(if own < nnodes { own } else { abi::UNDEFINED }) };
        Ok(())
    })
}
