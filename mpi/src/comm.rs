//! The calls that make communicators, compare them, and tell of them.

use crate::abi::{self, MPI_Comm, MPI_Group, MPI_Info, MPI_Request, MPI_Status};
use crate::agreement::{give, of_group};
use crate::arguments::{text, write_text};
use crate::call::{call, call_on};
use crate::fault::{Answer, fail, need};
use crate::intercommunicator::{self, of_comm};
use crate::job::Job;
use crate::object::communicator::{CommRef, Communicator};
use crate::object::group::RankGroup;
use crate::object::shape::Shape;
use crate::object::table::lock;
use crate::object::task::{Task, Work};
use crate::object::verification::verify;
use std::ffi::{c_char, c_int};
use tsumugi::Rank;

/// MPI_Comm_rank.
///
/// # Safety
///
/// `rank` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) -> c_int {
    call_on("MPI_Comm_rank", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { rank.write(comm.rank() as c_int) };
        Ok(())
    })
}

/// MPI_Comm_size.
///
/// # Safety
///
/// `size` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_size(comm: MPI_Comm, size: *mut c_int) -> c_int {
    call_on("MPI_Comm_size", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { size.write(comm.size() as c_int) };
        Ok(())
    })
}

/// MPI_Comm_test_inter.
///
/// # Safety
///
/// `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> c_int {
    call_on("MPI_Comm_test_inter", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { flag.write(comm.remote.is_some().into()) };
        Ok(())
    })
}

/// MPI_Comm_compare.
///
/// # Safety
///
/// `result` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_compare(
    comm1: MPI_Comm,
    comm2: MPI_Comm,
    result: *mut c_int,
) -> c_int {
    call_on("MPI_Comm_compare", comm1, |job, one| {
        let other = job.comm(comm2)?;
        let of = |comm: &CommRef| RankGroup { ranks: comm.ranks() };
        let remote = match (&one.remote, &other.remote) {
            (None, None) => abi::IDENT,
            (Some(one), Some(other)) => one.group().compare(&other.group()),
            _ => abi::UNEQUAL,
        };
        let found = match (of(one).compare(&of(&other)), remote) {
            _ if comm1 == comm2 => abi::IDENT,
            (abi::IDENT, abi::IDENT) => abi::CONGRUENT,
            (abi::UNEQUAL, _) | (_, abi::UNEQUAL) => abi::UNEQUAL,
            _ => abi::SIMILAR,
        };
        // SAFETY: the caller's.
        unsafe { result.write(found) };
        Ok(())
    })
}

/// In the checking mode compares the call with those of the other members.
fn checked(name: &str, job: &Job, comm: &CommRef) -> Answer {
    if job.checks && comm.remote.is_none() { verify(name, comm, &Shape::default()) } else { Ok(()) }
}

/// The parts of a communicator by colors.
pub(crate) fn split(comm: &CommRef, color: Option<u32>, key: i64) -> Answer<Option<Communicator>> {
    let part = comm.group.split(color, key)?;
    part.map(Communicator::new).transpose()
}

/// A copy of a communicator, with its attributes if the program wants them.
fn duplicate(
    job: &Job,
    comm: &CommRef,
    info: Option<Vec<(String, String)>>,
) -> Answer<Communicator> {
    let attributes = comm.attributes.copies(comm.handle().0)?;
    let group = comm.group.duplicate()?;
    let mut made = match &comm.remote {
        None => Communicator::new(group)?,
        Some(remote) => intercommunicator::join(job, group, remote.ranks.clone(), of_comm(comm))?,
    };
    made.attributes = attributes;
    *lock(&made.info) = info.unwrap_or_else(|| lock(&comm.info).clone());
    Ok(made.arranged(comm.topology.clone()))
}

/// MPI_Comm_dup.
///
/// # Safety
///
/// `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int {
    call_on("MPI_Comm_dup", comm, |job, comm| {
        checked("MPI_Comm_dup", job, comm)?;
        // SAFETY: the caller's.
        unsafe { give(job, comm, Some(duplicate(job, comm, None)?), newcomm) }
    })
}

/// MPI_Comm_dup_with_info.
///
/// # Safety
///
/// `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_dup_with_info(
    comm: MPI_Comm,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Comm_dup_with_info", comm, |job, comm| {
        checked("MPI_Comm_dup_with_info", job, comm)?;
        let keys = job.given_info(info)?;
        // SAFETY: the caller's.
        unsafe { give(job, comm, Some(duplicate(job, comm, Some(keys))?), newcomm) }
    })
}

/// Duplicates a communicator, and writes a request that has ended: all members have come.
///
/// # Safety
///
/// `newcomm` and `request` are valid for a write.
unsafe fn idup(
    name: &str,
    comm: MPI_Comm,
    info: Option<MPI_Info>,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> c_int {
    call_on(name, comm, |job, comm| {
        checked(name, job, comm)?;
        let keys = info.map(|info| job.given_info(info)).transpose()?;
        // SAFETY: the caller's.
        unsafe { give(job, comm, Some(duplicate(job, comm, keys)?), newcomm) }?;
        let task = Task { work: Work::Ended(MPI_Status::EMPTY), comm: comm.clone() };
        // SAFETY: the caller's.
        unsafe { request.write(job.add_task(task)?) };
        Ok(())
    })
}

/// MPI_Comm_idup.
///
/// # Safety
///
/// `newcomm` and `request` are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_idup(
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { idup("MPI_Comm_idup", comm, None, newcomm, request) }
}

/// MPI_Comm_idup_with_info.
///
/// # Safety
///
/// `newcomm` and `request` are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_idup_with_info(
    comm: MPI_Comm,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { idup("MPI_Comm_idup_with_info", comm, Some(info), newcomm, request) }
}

/// MPI_Comm_split.
///
/// # Safety
///
/// `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_split(
    comm: MPI_Comm,
    color: c_int,
    key: c_int,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Comm_split", comm, |job, comm| {
        checked("MPI_Comm_split", job, comm)?;
        let color = match color {
            abi::UNDEFINED => None,
            color if color >= 0 => Some(color as u32),
            color => fail!(abi::ERR_ARG, "the color {color} is negative"),
        };
        let made = match &comm.remote {
            None => split(comm, color, key.into())?,
            Some(remote) => intercommunicator::split(job, comm, remote, color, key.into())?,
        };
        // SAFETY: the caller's.
        unsafe { give(job, comm, made, newcomm) }
    })
}

/// MPI_Comm_split_type. Parts are the ranks of one node; a program may name it by info, too.
///
/// # Safety
///
/// `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_split_type(
    comm: MPI_Comm,
    split_type: c_int,
    key: c_int,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Comm_split_type", comm, |job, comm| {
        checked("MPI_Comm_split_type", job, comm)?;
        let node = || job.runtime.neighbours().map(|rank| rank.0).min();
        let keys = job.given_info(info)?;
        let names_node = || keys.iter().any(|(key, of)| key == RESOURCE && of == SHARED_MEMORY);
        let color = match split_type {
            abi::COMM_TYPE_SHARED => node(),
            abi::COMM_TYPE_HW_GUIDED | abi::COMM_TYPE_RESOURCE_GUIDED if names_node() => node(),
            // No finer parts are known, and others that the program names are not there.
            abi::COMM_TYPE_HW_UNGUIDED
            | abi::COMM_TYPE_HW_GUIDED
            | abi::COMM_TYPE_RESOURCE_GUIDED
            | abi::UNDEFINED => None,
            _ => fail!(abi::ERR_ARG, "{split_type} is no kind of split"),
        };
        // SAFETY: the caller's.
        unsafe { give(job, comm, split(comm, color, key.into())?, newcomm) }
    })
}

/// MPI_Comm_create.
///
/// # Safety
///
/// `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_create(
    comm: MPI_Comm,
    group: MPI_Group,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Comm_create", comm, |job, comm| {
        checked("MPI_Comm_create", job, comm)?;
        let group = job.group(group)?;
        let own = job.runtime.rank().0;
        for rank in &group.ranks {
            need!(
                comm.group.handle().place_of(Rank(*rank)).is_some(),
                abi::ERR_GROUP,
                "rank {rank} of the job is in the group, and not in {}",
                &**comm
            );
        }
        let key = group.ranks.iter().position(|rank| *rank == own);
        // Groups of different members are disjoint, so the first rank tells them apart. Between
        // two groups there is one communicator.
        let color = key.and(group.ranks.first().copied());
        let place = key.unwrap_or(0) as i64;
        let made = match &comm.remote {
            None => split(comm, color, place)?,
            Some(remote) => intercommunicator::split(job, comm, remote, color.map(|_| 0), place)?,
        };
        // SAFETY: the caller's.
        unsafe { give(job, comm, made, newcomm) }
    })
}

/// MPI_Comm_create_group. The members agree on contexts by messages.
///
/// # Safety
///
/// `newcomm` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_create_group(
    comm: MPI_Comm,
    group: MPI_Group,
    tag: c_int,
    newcomm: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Comm_create_group", comm, |job, comm| {
        let made = of_group(job, &*job.group(group)?, tag.cast_unsigned())?;
        // SAFETY: the caller's.
        unsafe { give(job, comm, made, newcomm) }
    })
}

/// Frees a communicator.
///
/// # Safety
///
/// `comm` is valid for reads and writes.
unsafe fn free(name: &str, comm: *mut MPI_Comm) -> c_int {
    // SAFETY: the caller's.
    let handle = unsafe { comm.read() };
    call_on(name, handle, |job, found| {
        let CommRef::Made(_) = found else { fail!(abi::ERR_COMM, "{} is not freed", &**found) };
        found.delete_attributes()?;
        found.buffered.drain(&job.messages);
        job.comms.remove(handle.0);
        // SAFETY: the caller's.
        unsafe { comm.write(MPI_Comm::NULL) };
        Ok(())
    })
}

/// MPI_Comm_free.
///
/// # Safety
///
/// `comm` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_free(comm: *mut MPI_Comm) -> c_int {
    // SAFETY: the caller's.
    unsafe { free("MPI_Comm_free", comm) }
}

/// MPI_Comm_disconnect.
///
/// # Safety
///
/// `comm` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_disconnect(comm: *mut MPI_Comm) -> c_int {
    // SAFETY: the caller's.
    unsafe { free("MPI_Comm_disconnect", comm) }
}

/// MPI_Comm_set_name.
///
/// # Safety
///
/// `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_set_name(comm: MPI_Comm, name: *const c_char) -> c_int {
    call_on("MPI_Comm_set_name", comm, |_, comm| {
        // SAFETY: the caller's.
        comm.set_name(unsafe { text(name, "name") }?);
        Ok(())
    })
}

/// MPI_Comm_get_name.
///
/// # Safety
///
/// `name` is valid for a write of `MPI_MAX_OBJECT_NAME` bytes, `resultlen` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_get_name(
    comm: MPI_Comm,
    name: *mut c_char,
    resultlen: *mut c_int,
) -> c_int {
    if comm == MPI_Comm::NULL {
        // SAFETY: the caller's.
        unsafe {
            resultlen.write(write_text("MPI_COMM_NULL", name, abi::MAX_OBJECT_NAME as usize));
        }
        return abi::SUCCESS;
    }
    call_on("MPI_Comm_get_name", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { resultlen.write(write_text(&comm.name(), name, abi::MAX_OBJECT_NAME as usize)) };
        Ok(())
    })
}

/// MPI_Comm_get_parent. No job of this library was started by another one.
///
/// # Safety
///
/// `parent` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_get_parent(parent: *mut MPI_Comm) -> c_int {
    call("MPI_Comm_get_parent", |_| {
        // SAFETY: the caller's.
        unsafe { parent.write(MPI_Comm::NULL) };
        Ok(())
    })
}

/// The key of info that names what the ranks of a part share, and its value for a node.
const RESOURCE: &str = "mpi_hw_resource_type";
const SHARED_MEMORY: &str = "mpi_shared_memory";
