//! Graphs of which each rank knows its own neighbours alone: those that send to it, and those to
//! which it sends.

use crate::abi::{self, MPI_Comm, MPI_Info};
use crate::arguments::list;
use crate::call::call_on;
use crate::fault::{Answer, fail, need};
use crate::object::communicator::CommRef;
use crate::object::shape::{Flow, Shape};
use crate::object::topology::{Adjacent, Topology};
use crate::topology::arrange::{arrange, checked, write};
use std::ffi::c_int;

fn adjacent(comm: &CommRef) -> Answer<&Adjacent> {
    match &comm.topology {
        Some(Topology::Adjacent(adjacent)) => Ok(adjacent),
        _ => fail!(abi::ERR_TOPOLOGY, "{} has no distributed graph topology", &**comm),
    }
}

/// A list of weights; `None` if there are none.
///
/// # Safety
///
/// It has `count` numbers, unless it is one of the standard's two constants.
unsafe fn weights<'a>(at: *const c_int, count: i64) -> Answer<Option<&'a [c_int]>> {
    match at.addr() {
        UNWEIGHTED => Ok(None),
        WEIGHTS_EMPTY => Ok(Some(&[])),
        // SAFETY: the caller's.
        _ => unsafe { list(at, count, "weights") }.map(Some),
    }
}

fn check_members(comm: &CommRef, ranks: &[c_int]) -> Answer {
    ranks.iter().try_for_each(|rank| comm.rank_of(*rank).map(drop))
}

/// MPI_Dist_graph_create_adjacent.
///
/// # Safety
///
/// The lists have as many numbers as their counts say, `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Dist_graph_create_adjacent(
    comm: MPI_Comm,
    indegree: c_int,
    sources: *const c_int,
    source_weights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destination_weights: *const c_int,
    _info: MPI_Info,
    _reorder: c_int,
    out: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Dist_graph_create_adjacent", comm, |job, comm| {
        // SAFETY: the caller's.
        unsafe {
            let sources = list(sources, indegree, "sources")?.to_vec();
            let destinations = list(destinations, outdegree, "destinations")?.to_vec();
            check_members(comm, &sources)?;
            check_members(comm, &destinations)?;
            let of = weights(source_weights, indegree.into())?;
            let to = weights(destination_weights, outdegree.into())?;
            let weights = match (of, to) {
                (Some(of), Some(to)) => Some([of.to_vec(), to.to_vec()]),
                (None, None) => None,
                _ => fail!(abi::ERR_ARG, "weights are of sources and destinations, or of none"),
            };
            let flow = || {
                let count = |list: &[c_int]| {
                    let mut counts = vec![Some(0); comm.size() as usize];
                    for rank in list {
                        counts[*rank as usize] = counts[*rank as usize].map(|count| count + 1);
                    }
                    counts
                };
                Shape::of_edges(Flow { to: count(&destinations), from: count(&sources) })
            };
            checked("MPI_Dist_graph_create_adjacent", job, comm, flow)?;
            let topology = Topology::Adjacent(Adjacent { sources, destinations, weights });
            arrange(job, comm, comm.size().into(), topology, out)
        }
    })
}

/// MPI_Dist_graph_create: each rank brings some edges of the graph, also of other ranks.
///
/// # Safety
///
/// The lists have as many numbers as their counts say, `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Dist_graph_create(
    comm: MPI_Comm,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    given_weights: *const c_int,
    _info: MPI_Info,
    _reorder: c_int,
    out: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Dist_graph_create", comm, |job, comm| {
        // SAFETY: the caller's.
        let (sources, degrees, destinations, weights) = unsafe {
            let (sources, degrees) = (list(sources, n, "sources")?, list(degrees, n, "degrees")?);
            if let Some(degree) = degrees.iter().find(|degree| **degree < 0) {
                fail!(abi::ERR_ARG, "a degree of {degree}");
            }
            let edges: i64 = degrees.iter().map(|degree| i64::from(*degree)).sum();
            let destinations = list(destinations, edges, "destinations")?;
            (sources, degrees, destinations, weights(given_weights, edges)?)
        };
        check_members(comm, sources)?;
        check_members(comm, destinations)?;
        checked("MPI_Dist_graph_create", job, comm, Shape::default)?;
        // Each edge as three words.
        let from = sources
            .iter()
            .zip(degrees)
            .flat_map(|(source, degree)| std::iter::repeat_n(*source, *degree as usize));
        let edges: Vec<c_int> = from
            .zip(destinations)
            .enumerate()
            .flat_map(|(at, (source, destination))| {
                let weight = weights.and_then(|all| all.get(at)).copied().unwrap_or(0);
                [source, *destination, weight]
            })
            .collect();
        let own = [edges.len() as i64, i64::from(weights.is_some())];
        let heads = comm.group.allgather(&own)?;
        let counts: Vec<usize> = heads.chunks(own.len()).map(|head| head[0] as usize).collect();
        let all = comm.group.allgather_v(&edges, &counts)?;
        let me = comm.rank() as c_int;
        let mut found = Adjacent {
            sources: Vec::new(),
            destinations: Vec::new(),
            weights: heads.chunks(own.len()).any(|head| head[1] != 0).then(Default::default),
        };
        for edge in all.chunks_exact(3) {
            let [source, destination, weight] = *edge else { unreachable!("three words") };
            for (end, other, list, which) in [
                (destination, source, &mut found.sources, 0),
                (source, destination, &mut found.destinations, 1),
            ] {
                if end == me {
                    list.push(other);
                    found.weights.iter_mut().for_each(|weights| weights[which].push(weight));
                }
            }
        }
        // SAFETY: the caller's.
        unsafe { arrange(job, comm, comm.size().into(), Topology::Adjacent(found), out) }
    })
}

/// MPI_Dist_graph_neighbors_count.
///
/// # Safety
///
/// The pointers are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Dist_graph_neighbors_count(
    comm: MPI_Comm,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> c_int {
    call_on("MPI_Dist_graph_neighbors_count", comm, |_, comm| {
        let adjacent = adjacent(comm)?;
        // SAFETY: the caller's.
        unsafe {
            indegree.write(adjacent.sources.len() as c_int);
            outdegree.write(adjacent.destinations.len() as c_int);
            weighted.write(adjacent.weights.is_some().into());
        }
        Ok(())
    })
}

/// MPI_Dist_graph_neighbors.
///
/// # Safety
///
/// The lists are valid for a write of `max_sources` and `max_destinations` numbers; those of
/// weights are, unless the program gives MPI_UNWEIGHTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Dist_graph_neighbors(
    comm: MPI_Comm,
    max_sources: c_int,
    sources: *mut c_int,
    source_weights: *mut c_int,
    max_destinations: c_int,
    destinations: *mut c_int,
    destination_weights: *mut c_int,
) -> c_int {
    call_on("MPI_Dist_graph_neighbors", comm, |_, comm| {
        let all = adjacent(comm)?;
        need!(max_sources >= 0, abi::ERR_ARG, "room for {max_sources} sources");
        need!(max_destinations >= 0, abi::ERR_ARG, "room for {max_destinations} destinations");
        let first = |list: &[c_int], room: c_int| list[..list.len().min(room as usize)].to_vec();
        // SAFETY: the caller's.
        unsafe {
            write(&first(&all.sources, max_sources), sources, max_sources)?;
            write(&first(&all.destinations, max_destinations), destinations, max_destinations)?;
            let Some([of, to]) = &all.weights else { return Ok(()) };
            for (weights, at, room) in
                [(of, source_weights, max_sources), (to, destination_weights, max_destinations)]
            {
                if ![UNWEIGHTED, WEIGHTS_EMPTY].contains(&at.addr()) {
                    write(&first(weights, room), at, room)?;
                }
            }
        }
        Ok(())
    })
}

/// The lists of weights of a program that has none, and of a rank without edges.
const UNWEIGHTED: usize = 10;
const WEIGHTS_EMPTY: usize = 11;
