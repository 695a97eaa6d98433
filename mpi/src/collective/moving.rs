//! Collectives that move data, with as many elements for each member.

use crate::abi::{self, MPI_Comm, MPI_Datatype, MPI_Request};
use crate::arguments::is_in_place;
use crate::collective::between::{self, Part};
use crate::collective::prepared::{Prepared, begin, collectives, run};
use crate::collective::spread::Spread;
use crate::fault::{Answer, Fault, need};
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use std::ffi::{c_int, c_void};

/// The input of a call.
pub(super) fn input(
    job: &Job,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Answer<Data> {
    // SAFETY: the contract of the call: the elements are valid for reads.
    unsafe { Data::outgoing(buffer, count, job.datatype(datatype)?) }
}

/// Elements for each member.
fn for_all(count: i64, comm: &CommRef) -> Answer<i64> {
    let all = count.checked_mul(i64::from(comm.size()));
    all.ok_or_else(|| Fault::new(abi::ERR_COUNT, format_args!("{count} elements of each member")))
}

/// The block of a member in a buffer of blocks.
fn block_at(
    job: &Job,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    member: u32,
) -> Answer<*mut c_void> {
    let extent = job.datatype(datatype)?.bounds.extent();
    let step = extent.wrapping_mul(count as isize).wrapping_mul(member as isize);
    Ok(buffer.wrapping_byte_offset(step))
}

collectives! {
    "MPI_Bcast" [PMPI_Bcast PMPI_Bcast_c] [PMPI_Ibcast PMPI_Ibcast_c]
        [PMPI_Bcast_init PMPI_Bcast_init_c]
    (buffer: *mut c_void, count: N, datatype: MPI_Datatype, root: c_int) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::rooted(remote, root, false, |_| {
                Spread::even(job, buffer, count.into(), 1, datatype)
            });
        }
        let root = comm.root(root)?;
        let is_root = root == comm.rank();
        let mut data = if is_root {
            input(job, buffer, count.into(), datatype)?
        } else {
            Data::incoming(buffer, count.into(), job.datatype(datatype)?)?
        };
        let bytes = data.bytes;
        let (plan, output) = (comm.group.raw_broadcast(data.bytes, root)?, data.at());
        let end = Box::new(move || if is_root { drop(data) } else { data.arrived(data.bytes) });
        let bytes = Some(bytes);
        Ok(Prepared { output, end, ..Prepared::of(plan) }
            .called(job, Some(root), Some(datatype), bytes, None))
    }

    "MPI_Gather" [PMPI_Gather PMPI_Gather_c] [PMPI_Igather PMPI_Igather_c]
        [PMPI_Gather_init PMPI_Gather_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void, room: N,
        into_type: MPI_Datatype, root: c_int) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::rooted(remote, root, true, |part| match part {
                Part::Root => Spread::even(job, into, room.into(), comm.peers(), into_type),
                _ => Spread::even(job, sent.cast_mut(), sent_count.into(), 1, sent_type),
            });
        }
        let root = comm.root(root)?;
        let is_root = root == comm.rank();
        let own = if is_root && is_in_place(sent) {
            let block = block_at(job, into, room.into(), into_type, root)?;
            input(job, block, room.into(), into_type)?.copied()
        } else {
            if is_root {
                let all = (into, for_all(room.into(), comm)?, into_type);
                job.check_apart((sent, sent_count.into(), sent_type), all)?;
            }
            input(job, sent, sent_count.into(), sent_type)?
        };
        let all = match is_root {
            true => Data::incoming(into, for_all(room.into(), comm)?, job.datatype(into_type)?)?,
            false => Data::NOTHING,
        };
        need!(!is_root || all.bytes == own.bytes * comm.size() as usize, abi::ERR_TRUNCATE,
            "the root sends {} bytes, and receives {} of all", own.bytes, all.bytes);
        let (of, bytes) = (if is_root { into_type } else { sent_type }, own.bytes);
        let plan = comm.group.raw_gather(own.bytes, root)?;
        Ok(Prepared::moving(plan, own, all).called(job, Some(root), Some(of), Some(bytes), None))
    }

    "MPI_Scatter" [PMPI_Scatter PMPI_Scatter_c] [PMPI_Iscatter PMPI_Iscatter_c]
        [PMPI_Scatter_init PMPI_Scatter_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void, room: N,
        into_type: MPI_Datatype, root: c_int) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::rooted(remote, root, false, |part| match part {
                Part::Root => {
                    let (sent, each) = (sent.cast_mut(), sent_count.into());
                    Spread::even(job, sent, each, comm.peers(), sent_type)
                }
                _ => Spread::even(job, into, room.into(), 1, into_type),
            });
        }
        let root = comm.root(root)?;
        let is_root = root == comm.rank();
        let all = match is_root {
            true => input(job, sent, for_all(sent_count.into(), comm)?, sent_type)?,
            false => Data::NOTHING,
        };
        let own = if is_root && is_in_place(into) {
            Data::of_bytes(vec![0; all.bytes / comm.size() as usize])
        } else {
            if is_root {
                let all = (sent, for_all(sent_count.into(), comm)?, sent_type);
                job.check_apart(all, (into, room.into(), into_type))?;
            }
            Data::incoming(into, room.into(), job.datatype(into_type)?)?
        };
        need!(!is_root || all.bytes == own.bytes * comm.size() as usize, abi::ERR_TRUNCATE,
            "the root receives {} bytes, and sends {} to all", own.bytes, all.bytes);
        let (of, bytes) = (if is_root { sent_type } else { into_type }, own.bytes);
        let plan = comm.group.raw_scatter(own.bytes, root)?;
        Ok(Prepared::moving(plan, all, own).called(job, Some(root), Some(of), Some(bytes), None))
    }

    "MPI_Allgather" [PMPI_Allgather PMPI_Allgather_c] [PMPI_Iallgather PMPI_Iallgather_c]
        [PMPI_Allgather_init PMPI_Allgather_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void, room: N,
        into_type: MPI_Datatype) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            return between::all(
                remote,
                sent,
                || Spread::even(job, sent.cast_mut(), sent_count.into(), 1, sent_type),
                || Spread::even(job, into, room.into(), comm.peers(), into_type),
            );
        }
        let own = if is_in_place(sent) {
            let block = block_at(job, into, room.into(), into_type, comm.rank())?;
            input(job, block, room.into(), into_type)?.copied()
        } else {
            let all = (into, for_all(room.into(), comm)?, into_type);
            job.check_apart((sent, sent_count.into(), sent_type), all)?;
            input(job, sent, sent_count.into(), sent_type)?
        };
        let all = Data::incoming(into, for_all(room.into(), comm)?, job.datatype(into_type)?)?;
        need!(all.bytes == own.bytes * comm.size() as usize, abi::ERR_TRUNCATE,
            "{} bytes are sent, and {} received of all", own.bytes, all.bytes);
        let bytes = own.bytes;
        let plan = comm.group.raw_allgather(own.bytes)?;
        Ok(Prepared::moving(plan, own, all).called(job, None, Some(into_type), Some(bytes), None))
    }

    "MPI_Alltoall" [PMPI_Alltoall PMPI_Alltoall_c] [PMPI_Ialltoall PMPI_Ialltoall_c]
        [PMPI_Alltoall_init PMPI_Alltoall_init_c]
    (sent: *const c_void, sent_count: N, sent_type: MPI_Datatype, into: *mut c_void, room: N,
        into_type: MPI_Datatype) |job, comm, lists| {
        if let Some(remote) = &comm.remote {
            let peers = comm.peers();
            return between::all(
                remote,
                sent,
                || Spread::even(job, sent.cast_mut(), sent_count.into(), peers, sent_type),
                || Spread::even(job, into, room.into(), peers, into_type),
            );
        }
        let number = for_all(room.into(), comm)?;
        let from = if is_in_place(sent) {
            input(job, into, number, into_type)?.copied()
        } else {
            let sent_number = for_all(sent_count.into(), comm)?;
            job.check_apart((sent, sent_number, sent_type), (into, number, into_type))?;
            input(job, sent, sent_number, sent_type)?
        };
        let all = Data::incoming(into, number, job.datatype(into_type)?)?;
        need!(all.bytes == from.bytes, abi::ERR_TRUNCATE,
            "{} bytes are sent, and {} received", from.bytes, all.bytes);
        let bytes = all.bytes / comm.size() as usize;
        let plan = comm.group.raw_alltoall(bytes)?;
        Ok(Prepared::moving(plan, from, all).called(job, None, Some(into_type), Some(bytes), None))
    }
}
