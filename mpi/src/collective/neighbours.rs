//! Collectives of neighbours: each rank exchanges blocks with those next to it in the topology
//! of its communicator.

use crate::abi::{MPI_Comm, MPI_Datatype, MPI_Request};
use crate::collective::edges;
use crate::collective::prepared::{Prepared, begin, collectives, run};
use crate::collective::spread::Spread;
use crate::fault::Answer;
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::exchange::Edges;
use crate::topology::neighbours;
use std::ffi::c_void;

/// Sends a block to each neighbour, and receives one of each. A single block goes to all.
fn exchange<'a>(job: &Job, from: (Edges, Spread), into: (Edges, Spread)) -> Answer<Prepared<'a>> {
    job.check_spreads_apart(&from.1, &into.1)?;
    Ok(edges::exchange(from, into))
}

collectives! {
    "MPI_Neighbor_allgather" [PMPI_Neighbor_allgather PMPI_Neighbor_allgather_c]
        [PMPI_Ineighbor_allgather PMPI_Ineighbor_allgather_c]
        [PMPI_Neighbor_allgather_init PMPI_Neighbor_allgather_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void, room: N,
        into_type: MPI_Datatype) |job, comm, lists| {
        let (of, to) = neighbours(comm)?;
        let from = Spread::even(job, sent.cast_mut(), sent_count.into(), 1, sent_type)?;
        let into = Spread::even(job, into, room.into(), of.len(), into_type)?;
        exchange(job, (to, from), (of, into))
    }

    "MPI_Neighbor_allgatherv" [PMPI_Neighbor_allgatherv PMPI_Neighbor_allgatherv_c]
        [PMPI_Ineighbor_allgatherv PMPI_Ineighbor_allgatherv_c]
        [PMPI_Neighbor_allgatherv_init PMPI_Neighbor_allgatherv_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void,
        counts: *const N, places: *const N, into_type: MPI_Datatype) |job, comm, lists| {
        let (of, to) = neighbours(comm)?;
        let from = Spread::even(job, sent.cast_mut(), sent_count.into(), 1, sent_type)?;
        let counts = lists.numbers(counts, of.len() as u32, "counts")?;
        let places = lists.numbers(places, of.len() as u32, "displacements")?;
        let into = Spread::of(job, into, counts, places, into_type)?;
        exchange(job, (to, from), (of, into))
    }

    "MPI_Neighbor_alltoall" [PMPI_Neighbor_alltoall PMPI_Neighbor_alltoall_c]
        [PMPI_Ineighbor_alltoall PMPI_Ineighbor_alltoall_c]
        [PMPI_Neighbor_alltoall_init PMPI_Neighbor_alltoall_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void, room: N,
        into_type: MPI_Datatype) |job, comm, lists| {
        let (of, to) = neighbours(comm)?;
        let from = Spread::even(job, sent.cast_mut(), sent_count.into(), to.len(), sent_type)?;
        let into = Spread::even(job, into, room.into(), of.len(), into_type)?;
        exchange(job, (to, from), (of, into))
    }

    "MPI_Neighbor_alltoallv" [PMPI_Neighbor_alltoallv PMPI_Neighbor_alltoallv_c]
        [PMPI_Ineighbor_alltoallv PMPI_Ineighbor_alltoallv_c]
        [PMPI_Neighbor_alltoallv_init PMPI_Neighbor_alltoallv_init_c]
    (sent: *const c_void, sent_counts: *const N, sent_places: *const N, sent_type: MPI_Datatype,
        into: *mut c_void, counts: *const N, places: *const N, into_type: MPI_Datatype)
        |job, comm, lists| {
        let (of, to) = neighbours(comm)?;
        let sent_counts = lists.numbers(sent_counts, to.len() as u32, "counts")?;
        let sent_places = lists.numbers(sent_places, to.len() as u32, "displacements")?;
        let from = Spread::of(job, sent.cast_mut(), sent_counts, sent_places, sent_type)?;
        let counts = lists.numbers(counts, of.len() as u32, "counts")?;
        let places = lists.numbers(places, of.len() as u32, "displacements")?;
        let into = Spread::of(job, into, counts, places, into_type)?;
        exchange(job, (to, from), (of, into))
    }

    "MPI_Neighbor_alltoallw" [PMPI_Neighbor_alltoallw PMPI_Neighbor_alltoallw_c]
        [PMPI_Ineighbor_alltoallw PMPI_Ineighbor_alltoallw_c]
        [PMPI_Neighbor_alltoallw_init PMPI_Neighbor_alltoallw_init_c]
    (sent: *const c_void, sent_counts: *const N, sent_places: *const isize,
        sent_types: *const MPI_Datatype, into: *mut c_void, counts: *const N,
        places: *const isize, into_types: *const MPI_Datatype) |job, comm, lists| {
        let (of, to) = neighbours(comm)?;
        let wide = |place: isize| place as i64;
        let sent_counts = lists.numbers(sent_counts, to.len() as u32, "counts")?;
        let sent_places = lists.read(sent_places, to.len() as u32, "displacements", wide)?;
        let sent = sent.cast_mut();
        let from = Spread::of_types(job, sent, sent_counts, sent_places, sent_types, lists)?;
        let counts = lists.numbers(counts, of.len() as u32, "counts")?;
        let places = lists.read(places, of.len() as u32, "displacements", wide)?;
        let into = Spread::of_types(job, into, counts, places, into_types, lists)?;
        exchange(job, (to, from), (of, into))
    }
}
