//! Start and end, versions, clocks, memory, and what the library says of itself.

use crate::abi::{self, MPI_Comm, MPI_Info};
use crate::arguments::write_text;
use crate::call::{call, failed};
use crate::counts;
use crate::fault::{fail, need};
use crate::job::{self, User, job};
use crate::left;
use crate::object::info::host_name;
use std::ffi::{c_char, c_int, c_void};

/// Starts the job.
fn start(name: &str, level: c_int) -> Result<c_int, c_int> {
    job::init(level, User::World).map_err(|fault| failed(name, None, &fault))
}

/// MPI_Init.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int {
    start("MPI_Init", abi::THREAD_SINGLE).map_or_else(|code| code, |_| abi::SUCCESS)
}

/// MPI_Init_thread.
///
/// # Safety
///
/// `provided` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    match start("MPI_Init_thread", required) {
        Ok(level) => {
            // SAFETY: the caller's.
            unsafe { provided.write(level) };
            abi::SUCCESS
        }
        Err(code) => code,
    }
}

/// MPI_Finalize.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Finalize() -> c_int {
    call("MPI_Finalize", |job| {
        if job.is_verbose {
            counts::print(job)?;
        }
        if job.checks {
            left::report(job);
            left::report_ults(job, "MPI_Finalize");
        }
        job::finalize(job, User::World)
    })
}

/// MPI_Initialized.
///
/// # Safety
///
/// `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Initialized(flag: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { flag.write(c_int::from(job::state().0)) };
    abi::SUCCESS
}

/// MPI_Finalized.
///
/// # Safety
///
/// `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Finalized(flag: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { flag.write(c_int::from(job::state().1)) };
    abi::SUCCESS
}

/// MPI_Abort. The job ends with this code.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Abort(comm: MPI_Comm, errorcode: c_int) -> c_int {
    let name = match job().and_then(|job| job.comm(comm)) {
        Ok(comm) => comm.to_string(),
        Err(fault) if job::is_fork() => return failed("MPI_Abort", None, &fault),
        Err(_) => "the communicator".to_owned(),
    };
    eprintln!("{}MPI_Abort({name}, {errorcode})", crate::call::rank_prefix());
    job::abort(errorcode)
}

/// MPI_Query_thread.
///
/// # Safety
///
/// `provided` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Query_thread(provided: *mut c_int) -> c_int {
    call("MPI_Query_thread", |job| {
        // SAFETY: the caller's.
        unsafe { provided.write(job.thread_level) };
        Ok(())
    })
}

/// MPI_Is_thread_main.
///
/// # Safety
///
/// `flag` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Is_thread_main(flag: *mut c_int) -> c_int {
    call("MPI_Is_thread_main", |_| {
        // SAFETY: the caller's.
        unsafe { flag.write(c_int::from(job::is_main())) };
        Ok(())
    })
}

/// Writes two numbers, at any time.
///
/// # Safety
///
/// Both are valid for a write.
unsafe fn two((one, at): (c_int, *mut c_int), (other, place): (c_int, *mut c_int)) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        at.write(one);
        place.write(other);
    }
    abi::SUCCESS
}

/// MPI_Get_version.
///
/// # Safety
///
/// Both pointers are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Get_version(version: *mut c_int, subversion: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { two((abi::VERSION, version), (abi::SUBVERSION, subversion)) }
}

/// MPI_Abi_get_version.
///
/// # Safety
///
/// Both pointers are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { two((abi::ABI_VERSION, major), (abi::ABI_SUBVERSION, minor)) }
}

/// MPI_Abi_get_info.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Abi_get_info(info: *mut MPI_Info) -> c_int {
    call("MPI_Abi_get_info", |job| {
        let size = |name: &str, bytes: usize| (name.to_owned(), bytes.to_string());
        let keys = vec![
            size("mpi_aint_size", size_of::<isize>()),
            size("mpi_count_size", size_of::<i64>()),
            size("mpi_offset_size", size_of::<i64>()),
        ];
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(keys)?) };
        Ok(())
    })
}

/// MPI_Abi_get_fortran_info. The library has no interface for Fortran.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Abi_get_fortran_info(info: *mut MPI_Info) -> c_int {
    // SAFETY: the caller's.
    unsafe { info.write(MPI_Info::NULL) };
    abi::SUCCESS
}

/// MPI_Get_library_version.
///
/// # Safety
///
/// `version` is valid for a write of `MPI_MAX_LIBRARY_VERSION_STRING` bytes, `resultlen` for
/// one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Get_library_version(
    version: *mut c_char,
    resultlen: *mut c_int,
) -> c_int {
    let text = concat!("tsumugi ", env!("CARGO_PKG_VERSION"), ", MPI 5.0, standard ABI 1.0");
    // SAFETY: the caller's.
    unsafe {
        resultlen.write(write_text(text, version, abi::MAX_LIBRARY_VERSION_STRING as usize));
    }
    abi::SUCCESS
}

/// MPI_Get_processor_name.
///
/// # Safety
///
/// `name` is valid for a write of `MPI_MAX_PROCESSOR_NAME` bytes, `resultlen` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Get_processor_name(
    name: *mut c_char,
    resultlen: *mut c_int,
) -> c_int {
    call("MPI_Get_processor_name", |_| {
        // SAFETY: the caller's.
        unsafe {
            resultlen.write(write_text(&host_name(), name, abi::MAX_PROCESSOR_NAME as usize));
        }
        Ok(())
    })
}

/// MPI_Get_hw_resource_info.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Get_hw_resource_info(info: *mut MPI_Info) -> c_int {
    call("MPI_Get_hw_resource_info", |job| {
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(Vec::new())?) };
        Ok(())
    })
}

/// MPI_Wtime: seconds since a moment in the past, the same for all ranks of a node.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Wtime() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// MPI_Wtick.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Wtick() -> f64 {
    1e-9
}

/// MPI_Pcontrol.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Pcontrol(_level: c_int) -> c_int {
    abi::SUCCESS
}

/// MPI_Alloc_mem.
///
/// # Safety
///
/// `baseptr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Alloc_mem(
    size: isize,
    _info: MPI_Info,
    baseptr: *mut *mut c_void,
) -> c_int {
    call("MPI_Alloc_mem", |_| {
        let Ok(bytes) = usize::try_from(size) else { fail!(abi::ERR_ARG, "{size} bytes") };
        // SAFETY: any number of bytes may be requested.
        let at = unsafe { libc::malloc(bytes.max(1)) };
        need!(!at.is_null(), abi::ERR_NO_MEM, "there are no {bytes} bytes");
        // SAFETY: the caller's.
        unsafe { baseptr.write(at) };
        Ok(())
    })
}

/// MPI_Free_mem.
///
/// # Safety
///
/// `base` is what MPI_Alloc_mem has given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Free_mem(base: *mut c_void) -> c_int {
    call("MPI_Free_mem", |_| {
        // SAFETY: the caller's.
        unsafe { libc::free(base) };
        Ok(())
    })
}
