//! Collectives that move data, with a number of elements for each member.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Request};
use crate::arguments::is_in_place;
use crate::collective::between::{self, Part};
use crate::collective::moving::input;
use crate::collective::prepared::{Prepared, begin, collectives, run};
use crate::collective::spread::Spread;
use crate::fault::{Answer, need};
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::shape::Flow;
use std::ffi::{c_int, c_void};
use tsumugi::group::{RawBlocks, RawCollective};

collectives! {
    "MPI_Gatherv" [PMPI_Gatherv PMPI_Gatherv_c] [PMPI_Igatherv PMPI_Igatherv_c]
        [PMPI_Gatherv_init PMPI_Gatherv_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void,
        counts: *const N, places: *const N, into_type: MPI_Datatype, root: c_int) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::rooted(remote, root, true, |part| match part {
                Part::Root => lists.spread(job, comm, into, (counts, places), into_type),
                _ => Spread::even(job, sent.cast_mut(), sent_count.into(), 1, sent_type),
            });
        }
        let root = comm.root(root)?;
        if root != comm.rank() {
            let own = input(job, sent, sent_count.into(), sent_type)?;
            let none = RawBlocks { bytes: &[], places: None };
            let (plan, bytes) = (comm.group.raw_gather_v(own.bytes, none, root)?, own.bytes);
            return Ok(Prepared::moving(plan, own, Data::NOTHING)
                .called(job, Some(root), Some(sent_type), None, None)
                .with_flow(job, || Flow::to_one(comm.size(), root, bytes)));
        }
        let all = lists.spread(job, comm, into, (counts, places), into_type)?;
        let own = if is_in_place(sent) {
            Data::of_bytes(all.block(root as usize))
        } else {
            job.check_apart_from((sent, sent_count.into(), sent_type), &all)?;
            input(job, sent, sent_count.into(), sent_type)?
        };
        let bytes = own.bytes;
        check_own(bytes, all.lens[root as usize])?;
        let (offsets, is_direct) = (all.offsets(), all.is_direct());
        let places = is_direct.then_some(&offsets[..]);
        let blocks = RawBlocks { bytes: &all.lens, places };
        let plan = comm.group.raw_gather_v(own.bytes, blocks, root)?;
        let lens = all.lens.clone();
        Ok(received(plan, own, all, is_direct)
            .called(job, Some(root), Some(into_type), None, None)
            .with_flow(job, || Flow { from: flow(&lens), ..Flow::to_one(comm.size(), root, bytes) }))
    }

    "MPI_Scatterv" [PMPI_Scatterv PMPI_Scatterv_c] [PMPI_Iscatterv PMPI_Iscatterv_c]
        [PMPI_Scatterv_init PMPI_Scatterv_init_c]
    (sent: *const c_void, counts: *const N, places: *const N, sent_type: MPI_Datatype,
        into: *mut c_void, room: N, into_type: MPI_Datatype, root: c_int) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::rooted(remote, root, false, |part| match part {
                Part::Root => lists.spread(job, comm, sent.cast_mut(), (counts, places), sent_type),
                _ => Spread::even(job, into, room.into(), 1, into_type),
            });
        }
        let root = comm.root(root)?;
        if root != comm.rank() {
            let own = Data::incoming(into, room.into(), job.datatype(into_type)?)?;
            let none = RawBlocks { bytes: &[], places: None };
            let (plan, bytes) = (comm.group.raw_scatter_v(own.bytes, none, root)?, own.bytes);
            return Ok(Prepared::moving(plan, Data::NOTHING, own)
                .called(job, Some(root), Some(into_type), None, None)
                .with_flow(job, || Flow::from_one(comm.size(), root, bytes)));
        }
        let mut all = lists.spread(job, comm, sent.cast_mut(), (counts, places), sent_type)?;
        let mut own = if is_in_place(into) {
            Data::of_bytes(vec![0; all.lens[root as usize]])
        } else {
            job.check_apart_from((into.cast_const(), room.into(), into_type), &all)?;
            Data::incoming(into, room.into(), job.datatype(into_type)?)?
        };
        let bytes = own.bytes;
        check_own(all.lens[root as usize], bytes)?;
        let (offsets, is_direct) = (all.offsets(), all.is_direct());
        let places = is_direct.then_some(&offsets[..]);
        let blocks = RawBlocks { bytes: &all.lens, places };
        let plan = comm.group.raw_scatter_v(own.bytes, blocks, root)?;
        let input = if is_direct { all.buffer.cast_const() } else { all.packed() };
        let output = own.at();
        let lens = all.lens.clone();
        let end = Box::new(move || { drop(all); own.arrived(own.bytes); });
        Ok(Prepared { input, output, end, ..Prepared::of(plan) }
            .called(job, Some(root), Some(sent_type), None, None)
            .with_flow(job, || Flow { to: flow(&lens), ..Flow::from_one(comm.size(), root, bytes) }))
    }

    "MPI_Allgatherv" [PMPI_Allgatherv PMPI_Allgatherv_c] [PMPI_Iallgatherv PMPI_Iallgatherv_c]
        [PMPI_Allgatherv_init PMPI_Allgatherv_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void,
        counts: *const N, places: *const N, into_type: MPI_Datatype) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::all(
                remote,
                sent,
                || Spread::even(job, sent.cast_mut(), sent_count.into(), 1, sent_type),
                || lists.spread(job, comm, into, (counts, places), into_type),
            );
        }
        let all = lists.spread(job, comm, into, (counts, places), into_type)?;
        let own = if is_in_place(sent) {
            Data::of_bytes(all.block(comm.rank() as usize))
        } else {
            job.check_apart_from((sent, sent_count.into(), sent_type), &all)?;
            input(job, sent, sent_count.into(), sent_type)?
        };
        let bytes = own.bytes;
        check_own(bytes, all.lens[comm.rank() as usize])?;
        let plan = comm.group.raw_allgather_v(own.bytes, &all.lens)?;
        // Blocks that follow each other go where they belong at once.
        let mut next = 0;
        let is_direct = all.is_direct() && all.places.iter().zip(&all.lens).all(|(place, len)| {
            let follows = *place == next;
            next += *len as isize;
            follows
        });
        let lens = all.lens.clone();
        Ok(received(plan, own, all, is_direct)
            .called(job, None, Some(into_type), None, None)
            .with_flow(job, || Flow { to: vec![Some(bytes); lens.len()], from: flow(&lens) }))
    }

    "MPI_Alltoallv" [PMPI_Alltoallv PMPI_Alltoallv_c] [PMPI_Ialltoallv PMPI_Ialltoallv_c]
        [PMPI_Alltoallv_init PMPI_Alltoallv_init_c]
    (sent: *const c_void, sent_counts: *const N, sent_places: *const N, sent_type: MPI_Datatype,
        into: *mut c_void, counts: *const N, places: *const N, into_type: MPI_Datatype)
        |job, comm, lists| {
        let all = lists.spread(job, comm, into, (counts, places), into_type)?;
        let from = if is_in_place(sent) {
            None
        } else {
            let lens = (sent_counts, sent_places);
            Some(lists.spread(job, comm, sent.cast_mut(), lens, sent_type)?)
        };
        match &comm.remote {
            None => exchange(job, comm, from, all),
            Some(remote) => {
                between::all(remote, sent, || Ok(from.unwrap_or_else(Spread::none)), || Ok(all))
            }
        }
    }

    "MPI_Alltoallw" [PMPI_Alltoallw PMPI_Alltoallw_c] [PMPI_Ialltoallw PMPI_Ialltoallw_c]
        [PMPI_Alltoallw_init PMPI_Alltoallw_init_c]
    (sent: *const c_void, sent_counts: *const N, sent_places: *const N,
        sent_types: *const MPI_Datatype, into: *mut c_void, counts: *const N, places: *const N,
        into_types: *const MPI_Datatype) |job, comm, lists| {
        let (counts, places) = lists.blocks(comm, counts, places)?;
        let all = Spread::of_types(job, into, counts, places, into_types, lists)?;
        let from = if is_in_place(sent) {
            None
        } else {
            let (counts, places) = lists.blocks(comm, sent_counts, sent_places)?;
            Some(Spread::of_types(job, sent.cast_mut(), counts, places, sent_types, lists)?)
        };
        match &comm.remote {
            None => exchange(job, comm, from, all),
            Some(remote) => {
                between::all(remote, sent, || Ok(from.unwrap_or_else(Spread::none)), || Ok(all))
            }
        }
    }
}

/// A call of a plan in which blocks come: to where they belong if `is_direct`, else to a copy.
fn received(
    plan: RawCollective<'_>,
    mut own: Data,
    mut all: Spread,
    is_direct: bool,
) -> Prepared<'_> {
    let input = own.at().cast_const();
    let output = if is_direct { all.buffer } else { all.room() };
    let end = Box::new(move || {
        drop(own);
        if !is_direct {
            all.unpack();
        }
    });
    Prepared { input, output, end, ..Prepared::of(plan) }
}

/// Checks the bytes that a member sends to itself.
fn check_own(sent: usize, received: usize) -> Answer {
    need!(
        sent == received,
        abi::ERR_TRUNCATE,
        "{sent} bytes are sent to this rank itself, and {received} received"
    );
    Ok(())
}

/// Lengths of blocks that are compared.
fn flow(lens: &[usize]) -> Vec<Option<usize>> {
    lens.iter().copied().map(Some).collect()
}

/// An exchange of blocks; without `from`, of those that lie where the others go.
fn exchange<'a>(
    job: &Job,
    comm: &'a CommRef,
    from: Option<Spread>,
    mut all: Spread,
) -> Answer<Prepared<'a>> {
    let is_direct = all.is_direct();
    let (own, peers) = (comm.rank() as usize, all.offsets());
    let mut kept = Vec::new();
    let (input, sent_lens, sent_offsets) = match from {
        None => {
            all.packed();
            kept = std::mem::take(&mut all.copy);
            (kept.as_ptr(), all.lens.clone(), None)
        }
        Some(mut from) => {
            job.check_spreads_apart(&from, &all)?;
            let offsets = from.is_direct().then(|| from.offsets());
            let input = match offsets {
                Some(_) => from.buffer.cast_const(),
                None => {
                    from.packed();
                    kept = std::mem::take(&mut from.copy);
                    kept.as_ptr()
                }
            };
            (input, from.lens, offsets)
        }
    };
    check_own(sent_lens[own], all.lens[own])?;
    let sent = RawBlocks { bytes: &sent_lens, places: sent_offsets.as_deref() };
    let received = RawBlocks { bytes: &all.lens, places: is_direct.then_some(&peers[..]) };
    let plan = comm.group.raw_alltoall_v(sent, received)?;
    let output = if is_direct { all.buffer } else { all.room() };
    let lens = all.lens.clone();
    let end = Box::new(move || {
        drop(kept);
        if !is_direct {
            all.unpack();
        }
    });
    Ok(Prepared { input, output, end, ..Prepared::of(plan) }
        .called(job, None, None, None, None)
        .with_flow(job, || Flow { to: flow(&sent_lens), from: flow(&lens) }))
}
