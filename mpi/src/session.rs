//! The calls on sessions, the sets of processes that they know, and the communicators that are
//! made of groups alone. A session that begins before MPI_Init makes the process a rank.

use crate::abi::{self, MPI_Comm, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Session};
use crate::agreement::{of_group, swap};
use crate::arguments::{text, write_text};
use crate::call::{call, call_in, failed};
use crate::fault::{Answer, Fault, fail};
use crate::intercommunicator::join;
use crate::job::{self, Job, User, job};
use crate::left;
use crate::object::communicator::Communicator;
use crate::object::errhandler::Handling;
use crate::object::group::RankGroup;
use crate::object::session::Session;
use crate::object::table::lock;
use crate::tables::added;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use tsumugi::Rank;

/// The sets of processes.
const SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// The ranks of a set.
fn ranks_of(job: &Job, name: &str) -> Answer<Vec<u32>> {
    match SETS.iter().position(|set| set.eq_ignore_ascii_case(name)) {
        Some(0) => Ok(job.world.ranks()),
        Some(_) => Ok(job.own.ranks()),
        None => fail!(abi::ERR_ARG, "there is no set of processes {name:?}"),
    }
}

/// MPI_Session_init.
///
/// # Safety
///
/// `session` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_init(
    _info: MPI_Info,
    errhandler: MPI_Errhandler,
    session: *mut MPI_Session,
) -> c_int {
    let begin = || {
        job::init(abi::THREAD_MULTIPLE, User::Session)?;
        let job = job()?;
        let made = Arc::new(Session::new(job.errhandler(errhandler)?));
        lock(&job.open_sessions).insert(0, made.clone());
        // SAFETY: the caller's.
        unsafe { session.write(MPI_Session(added(job.sessions.add(made), "sessions")?)) };
        Ok(())
    };
    begin().map_or_else(|fault: Fault| failed("MPI_Session_init", None, &fault), |()| abi::SUCCESS)
}

/// MPI_Session_finalize.
///
/// # Safety
///
/// `session` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_finalize(session: *mut MPI_Session) -> c_int {
    // SAFETY: the caller's.
    let handle = unsafe { session.read() };
    call_in("MPI_Session_finalize", handle, |job, found| {
        found.buffered.drain(&job.messages);
        if job.checks {
            left::report_ults(job, "MPI_Session_finalize");
        }
        job::finalize(job, User::Session)?;
        lock(&job.open_sessions).retain(|open| !std::ptr::eq(&**open, found));
        job.sessions.remove(handle.0);
        // SAFETY: the caller's.
        unsafe { session.write(MPI_Session::NULL) };
        Ok(())
    })
}

/// MPI_Session_get_info.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_get_info(session: MPI_Session, info: *mut MPI_Info) -> c_int {
    call_in("MPI_Session_get_info", session, |job, _| {
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(Vec::new())?) };
        Ok(())
    })
}

/// MPI_Session_get_num_psets.
///
/// # Safety
///
/// `count` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_get_num_psets(
    session: MPI_Session,
    _info: MPI_Info,
    count: *mut c_int,
) -> c_int {
    call_in("MPI_Session_get_num_psets", session, |_, _| {
        // SAFETY: the caller's.
        unsafe { count.write(SETS.len() as c_int) };
        Ok(())
    })
}

/// MPI_Session_get_nth_pset. With a length of 0 it gives the length alone.
///
/// # Safety
///
/// `len` is valid for reads and writes, `name` for a write of so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_get_nth_pset(
    session: MPI_Session,
    _info: MPI_Info,
    n: c_int,
    len: *mut c_int,
    name: *mut c_char,
) -> c_int {
    call_in("MPI_Session_get_nth_pset", session, |_, _| {
        let Some(set) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
            fail!(abi::ERR_ARG, "set {n} of {}", SETS.len())
        };
        // SAFETY: the caller's.
        unsafe {
            if let Ok(room @ 1..) = usize::try_from(len.read()) {
                write_text(set, name, room);
            }
            len.write(set.len() as c_int + 1);
        }
        Ok(())
    })
}

/// MPI_Session_get_pset_info.
///
/// # Safety
///
/// `name` is a string, `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_get_pset_info(
    session: MPI_Session,
    name: *const c_char,
    info: *mut MPI_Info,
) -> c_int {
    call_in("MPI_Session_get_pset_info", session, |job, _| {
        // SAFETY: the caller's.
        let ranks = ranks_of(job, &unsafe { text(name, "name") }?)?;
        let keys = vec![("mpi_size".to_owned(), ranks.len().to_string())];
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(keys)?) };
        Ok(())
    })
}

/// MPI_Group_from_session_pset.
///
/// # Safety
///
/// `name` is a string, `group` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Group_from_session_pset(
    session: MPI_Session,
    name: *const c_char,
    group: *mut MPI_Group,
) -> c_int {
    call_in("MPI_Group_from_session_pset", session, |job, _| {
        // SAFETY: the caller's.
        let ranks = ranks_of(job, &unsafe { text(name, "name") }?)?;
        // SAFETY: the caller's.
        unsafe { group.write(job.add_group(RankGroup { ranks })?) };
        Ok(())
    })
}

/// MPI_Session_set_errhandler.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Session_set_errhandler(
    session: MPI_Session,
    errhandler: MPI_Errhandler,
) -> c_int {
    call_in("MPI_Session_set_errhandler", session, |job, session| {
        session.errhandler.set(job.errhandler(errhandler)?);
        Ok(())
    })
}

/// MPI_Session_get_errhandler.
///
/// # Safety
///
/// `errhandler` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_get_errhandler(
    session: MPI_Session,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    call_in("MPI_Session_get_errhandler", session, |job, session| {
        // SAFETY: the caller's.
        unsafe { errhandler.write(job.give_errhandler(&session.errhandler.get())?) };
        Ok(())
    })
}

/// MPI_Session_call_errhandler.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Session_call_errhandler(session: MPI_Session, errorcode: c_int) -> c_int {
    call_in("MPI_Session_call_errhandler", session, |_, found| {
        match found.errhandler.get().handling() {
            Handling::Return => Ok(()),
            Handling::Fatal => Err(Fault::new(errorcode, "called by the program")),
            Handling::Call(function) => {
                let (mut handle, mut code) = (MPI_Comm(session.0), errorcode);
                // SAFETY: the program's function, for a handle of a session and an error code.
                unsafe { function(&raw mut handle, &raw mut code) };
                Ok(())
            }
        }
    })
}

/// A tag of messages for a string of the program: FNV-1a.
fn tag_of(string: &str) -> u32 {
    let hash = string
        .bytes()
        .fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash & i32::MAX.cast_unsigned()
}

/// Adds a communicator with this handler, and writes its handle.
///
/// # Safety
///
/// `out` is valid for a write.
unsafe fn give(
    job: &Job,
    made: Option<Communicator>,
    errhandler: MPI_Errhandler,
    out: *mut MPI_Comm,
) -> Answer {
    let handle = match made {
        Some(made) => {
            made.errhandler.set(job.errhandler(errhandler)?);
            job.add_comm(made)?
        }
        None => MPI_Comm::NULL,
    };
    // SAFETY: the caller's.
    unsafe { out.write(handle) };
    Ok(())
}

/// MPI_Comm_create_from_group.
///
/// # Safety
///
/// `string` is a string, `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_create_from_group(
    group: MPI_Group,
    string: *const c_char,
    _info: MPI_Info,
    errhandler: MPI_Errhandler,
    out: *mut MPI_Comm,
) -> c_int {
    call("MPI_Comm_create_from_group", |job| {
        // SAFETY: the caller's.
        let tag = tag_of(&unsafe { text(string, "string") }?);
        let made = of_group(job, &*job.group(group)?, tag)?;
        // SAFETY: the caller's.
        unsafe { give(job, made, errhandler, out) }
    })
}

/// MPI_Intercomm_create_from_groups.
///
/// # Safety
///
/// `string` is a string, `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Intercomm_create_from_groups(
    group: MPI_Group,
    leader: c_int,
    remote: MPI_Group,
    remote_leader: c_int,
    string: *const c_char,
    _info: MPI_Info,
    errhandler: MPI_Errhandler,
    out: *mut MPI_Comm,
) -> c_int {
    call("MPI_Intercomm_create_from_groups", |job| {
        // SAFETY: the caller's.
        let tag = tag_of(&unsafe { text(string, "string") }?);
        let Some(own) = of_group(job, &*job.group(group)?, tag)? else {
            // SAFETY: the caller's.
            return unsafe { give(job, None, errhandler, out) };
        };
        let leader = own.root(leader)?;
        let peer = if own.rank() == leader {
            let ranks = &job.group(remote)?.ranks;
            match usize::try_from(remote_leader).ok().and_then(|at| ranks.get(at)) {
                Some(rank) => Rank(*rank),
                None => fail!(abi::ERR_RANK, "leader {remote_leader} of {} ranks", ranks.len()),
            }
        } else {
            // Significant at the leader alone.
            Rank(0)
        };
        let list: Vec<i64> = own.ranks().into_iter().map(i64::from).collect();
        let other = swap(job, &own.group, leader, peer, tag, &list)?;
        let ranks = other.iter().map(|rank| Rank(*rank as u32)).collect();
        let made = join(job, own.group.duplicate()?, ranks, tag)?;
        // SAFETY: the caller's.
        unsafe { give(job, Some(made), errhandler, out) }
    })
}
