//! Intercommunicators: two groups of ranks, in which messages go to the members of the other
//! group.

use crate::abi::{self, MPI_Comm, MPI_Group};
use crate::agreement::{Talk, give, of_group, swap};
use crate::call::call_on;
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::object::communicator::{CommRef, Communicator, Remote};
use crate::object::exchange::{SLOTS, tag};
use crate::object::group::RankGroup;
use std::ffi::c_int;
use tsumugi::{Group, Rank};

/// The tag by which the members of a communicator agree on others.
pub(crate) fn of_comm(comm: &CommRef) -> u32 {
    tag(comm.context(), SLOTS)
}

/// Makes the communicator between a group and another one. Collective over both.
pub(crate) fn join(job: &Job, group: Group, remote: Box<[Rank]>, tag: u32) -> Answer<Communicator> {
    let own = ranks_of(&group);
    let all = in_order(&own, &remote, is_first(&own, &remote));
    let claim = talk(job, &all, tag).claim()?;
    Ok(Communicator::between(group, claim, remote))
}

/// Some ranks that talk, of which this is one.
fn talk<'a>(job: &'a Job, ranks: &'a [u32], tag: u32) -> Talk<'a> {
    let own = job.runtime.rank().0;
    let me = ranks.iter().position(|rank| *rank == own).expect("this rank is one of them");
    Talk { job, ranks, me, tag }
}

fn ranks_of(group: &Group) -> Vec<Rank> {
    (0..group.size()).map(|member| group.handle().rank_of(member)).collect()
}

/// Of two groups, which have no member together, the same one is first at all ranks.
fn is_first(own: &[Rank], remote: &[Rank]) -> bool {
    own.iter().min() < remote.iter().min()
}

fn in_order(own: &[Rank], remote: &[Rank], is_own_first: bool) -> Vec<u32> {
    let (first, second) = if is_own_first { (own, remote) } else { (remote, own) };
    first.iter().chain(second).map(|rank| rank.0).collect()
}

/// The parts of an intercommunicator by colors: each has the ranks of both groups with one
/// color. `None`: this rank has no color, or no rank of the other group has the same.
pub(crate) fn split(
    job: &Job,
    comm: &CommRef,
    remote: &Remote,
    color: Option<u32>,
    key: i64,
) -> Answer<Option<Communicator>> {
    let color_word = color.map_or(-1, i64::from);
    let own = comm.group.allgather(&[color_word, key, job.runtime.rank().0.into()])?;
    let other = swap(job, &comm.group, 0, remote.ranks[0], of_comm(comm), &own)?;
    let mut found: Vec<(i64, usize, Rank)> = other
        .chunks_exact(3)
        .enumerate()
        .filter(|(_, words)| words[0] == color_word)
        .map(|(at, words)| (words[1], at, Rank(words[2] as u32)))
        .collect();
    found.sort_unstable();
    let color = color.filter(|_| !found.is_empty());
    let Some(part) = comm.group.split(color, key)? else { return Ok(None) };
    let ranks = found.into_iter().map(|(_, _, rank)| rank).collect();
    Ok(Some(join(job, part, ranks, of_comm(comm))?))
}

fn remote(comm: &CommRef) -> Answer<&Remote> {
    match &comm.remote {
        Some(remote) => Ok(remote),
        None => fail!(abi::ERR_COMM, "{} is no intercommunicator", &**comm),
    }
}

/// MPI_Comm_remote_size.
///
/// # Safety
///
/// `size` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) -> c_int {
    call_on("MPI_Comm_remote_size", comm, |_, comm| {
        // SAFETY: the caller's.
        unsafe { size.write(remote(comm)?.ranks.len() as c_int) };
        Ok(())
    })
}

/// MPI_Comm_remote_group.
///
/// # Safety
///
/// `group` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int {
    call_on("MPI_Comm_remote_group", comm, |job, comm| {
        let made = job.add_group(remote(comm)?.group())?;
        // SAFETY: the caller's.
        unsafe { group.write(made) };
        Ok(())
    })
}

/// MPI_Intercomm_create. The leaders tell each other by the communicator of peers who is in
/// their groups.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Intercomm_create(
    comm: MPI_Comm,
    leader: c_int,
    peers: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
    out: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Intercomm_create", comm, |job, comm| {
        need!(comm.remote.is_none(), abi::ERR_COMM, "{} is an intercommunicator", &**comm);
        let is_member = u32::try_from(leader).is_ok_and(|leader| leader < comm.size());
        need!(is_member, abi::ERR_RANK, "leader {leader} is not one of {}", &**comm);
        let peer = match comm.rank() == leader as u32 {
            true => job.comm(peers)?.rank_of(remote_leader)?,
            // Significant at the leader alone.
            false => Rank(0),
        };
        let own: Vec<i64> = comm.ranks().into_iter().map(i64::from).collect();
        let word = tag.cast_unsigned();
        let other = swap(job, &comm.group, leader as u32, peer, word, &own)?;
        let both = other.iter().find(|rank| own.contains(rank));
        if let Some(rank) = both {
            fail!(abi::ERR_COMM, "rank {rank} of the job is in both groups");
        }
        let ranks = other.iter().map(|rank| Rank(*rank as u32)).collect();
        let made = join(job, comm.group.duplicate()?, ranks, word)?;
        // SAFETY: the caller's.
        unsafe { give(job, comm, Some(made), out) }
    })
}

/// MPI_Intercomm_merge. The group that is not high comes first.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Intercomm_merge(
    comm: MPI_Comm,
    high: c_int,
    out: *mut MPI_Comm,
) -> c_int {
    call_on("MPI_Intercomm_merge", comm, |job, comm| {
        let (own, remote) = (ranks_of(&comm.group), &remote(comm)?.ranks);
        let is_first = is_first(&own, remote);
        let agreed = in_order(&own, remote, is_first);
        let talk = talk(job, &agreed, of_comm(comm));
        // A bit of each group: whether it is high.
        let bit = u64::from(high != 0) << u32::from(!is_first);
        let all = talk.agree(bit, |one, other| one | other)?;
        // If both say the same, the order is the one that they have agreed on.
        let is_swapped = all == 0b01;
        let ranks = in_order(&own, remote, is_first != is_swapped);
        let made = of_group(job, &RankGroup { ranks }, of_comm(comm))?;
        // SAFETY: the caller's.
        unsafe { give(job, comm, made, out) }
    })
}
