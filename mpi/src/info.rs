//! Info objects: keys with values, in the order in which they were set.

use crate::abi::{self, MPI_Comm, MPI_Info};
use crate::arguments::{text, write_text};
use crate::call::{call, call_on};
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::object::info::{Info, environment};
use crate::object::table::lock;
use crate::tables::added;
use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex};

impl Job {
    /// The keys of an info argument, which may be MPI_INFO_NULL.
    pub(crate) fn given_info(&self, info: MPI_Info) -> Answer<Vec<(String, String)>> {
        match info {
            MPI_Info::NULL => Ok(Vec::new()),
            MPI_Info::ENV => Ok(environment()),
            _ => Ok(lock(&self.info(info)?.0).clone()),
        }
    }

    pub(crate) fn add_info(&self, keys: Vec<(String, String)>) -> Answer<MPI_Info> {
        let info = Arc::new(Info(Mutex::new(keys)));
        Ok(MPI_Info(added(self.infos.add(info), "info objects")?))
    }

    fn read_info(&self, info: MPI_Info) -> Answer<Arc<Info>> {
        match info {
            MPI_Info::ENV => Ok(Arc::new(Info(Mutex::new(environment())))),
            _ => self.info(info),
        }
    }
}

/// A key of the program.
///
/// # Safety
///
/// As for [`text`].
unsafe fn key_of(at: *const c_char) -> Answer<String> {
    // SAFETY: the caller's.
    let key = unsafe { text(at, "key") }?;
    let len = key.len();
    need!(
        len > 0 && len < abi::MAX_INFO_KEY as usize,
        abi::ERR_INFO_KEY,
        "a key of {len} bytes; a key has 1 to {}",
        abi::MAX_INFO_KEY - 1
    );
    Ok(key)
}

/// MPI_Info_create.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_create(info: *mut MPI_Info) -> c_int {
    call("MPI_Info_create", |job| {
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(Vec::new())?) };
        Ok(())
    })
}

/// MPI_Info_create_env.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_create_env(
    _argc: c_int,
    _argv: *mut *mut c_char,
    info: *mut MPI_Info,
) -> c_int {
    call("MPI_Info_create_env", |job| {
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(environment())?) };
        Ok(())
    })
}

/// MPI_Info_dup.
///
/// # Safety
///
/// `newinfo` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> c_int {
    call("MPI_Info_dup", |job| {
        let keys = lock(&job.read_info(info)?.0).clone();
        // SAFETY: the caller's.
        unsafe { newinfo.write(job.add_info(keys)?) };
        Ok(())
    })
}

/// MPI_Info_free.
///
/// # Safety
///
/// `info` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_free(info: *mut MPI_Info) -> c_int {
    call("MPI_Info_free", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { info.read() };
        job.info(handle)?;
        job.infos.remove(handle.0);
        // SAFETY: the caller's.
        unsafe { info.write(MPI_Info::NULL) };
        Ok(())
    })
}

/// MPI_Info_set.
///
/// # Safety
///
/// `key` and `value` are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_set(
    info: MPI_Info,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    call("MPI_Info_set", |job| {
        // SAFETY: the caller's.
        let (key, value) = unsafe { (key_of(key)?, text(value, "value")?) };
        let len = value.len();
        need!(
            len < abi::MAX_INFO_VAL as usize,
            abi::ERR_INFO_VALUE,
            "a value of {len} bytes; a value has at most {}",
            abi::MAX_INFO_VAL - 1
        );
        let info = job.info(info)?;
        let mut keys = lock(&info.0);
        match keys.iter_mut().find(|(of, _)| *of == key) {
            Some((_, old)) => *old = value,
            None => keys.push((key, value)),
        }
        Ok(())
    })
}

/// MPI_Info_delete.
///
/// # Safety
///
/// `key` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_delete(info: MPI_Info, key: *const c_char) -> c_int {
    call("MPI_Info_delete", |job| {
        // SAFETY: the caller's.
        let key = unsafe { key_of(key) }?;
        let info = job.info(info)?;
        let mut keys = lock(&info.0);
        let Some(at) = keys.iter().position(|(of, _)| *of == key) else {
            fail!(abi::ERR_INFO_NOKEY, "there is no key {key:?}")
        };
        keys.remove(at);
        Ok(())
    })
}

/// MPI_Info_get.
///
/// # Safety
///
/// `key` is a string; `value` is valid for a write of `valuelen + 1` bytes, `flag` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_get(
    info: MPI_Info,
    key: *const c_char,
    valuelen: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    call("MPI_Info_get", |job| {
        need!(valuelen >= 0, abi::ERR_ARG, "a length of {valuelen}");
        // SAFETY: the caller's.
        let found = job.read_info(info)?.get(&unsafe { key_of(key) }?);
        // SAFETY: the caller's.
        unsafe {
            flag.write(c_int::from(found.is_some()));
            if let Some(found) = found {
                write_text(&found, value, valuelen as usize + 1);
            }
        }
        Ok(())
    })
}

/// MPI_Info_get_string.
///
/// # Safety
///
/// `key` is a string; `value` is valid for a write of `*buflen` bytes, `buflen` for reads and
/// writes, `flag` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_get_string(
    info: MPI_Info,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    call("MPI_Info_get_string", |job| {
        // SAFETY: the caller's.
        let found = job.read_info(info)?.get(&unsafe { key_of(key) }?);
        // SAFETY: the caller's.
        unsafe {
            flag.write(c_int::from(found.is_some()));
            if let Some(found) = found {
                write_text(&found, value, buflen.read().max(0) as usize);
                buflen.write(found.len() as c_int + 1);
            }
        }
        Ok(())
    })
}

/// MPI_Info_get_valuelen.
///
/// # Safety
///
/// `key` is a string; `valuelen` and `flag` are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_get_valuelen(
    info: MPI_Info,
    key: *const c_char,
    valuelen: *mut c_int,
    flag: *mut c_int,
) -> c_int {
    call("MPI_Info_get_valuelen", |job| {
        // SAFETY: the caller's.
        let found = job.read_info(info)?.get(&unsafe { key_of(key) }?);
        // SAFETY: the caller's.
        unsafe {
            flag.write(c_int::from(found.is_some()));
            if let Some(found) = found {
                valuelen.write(found.len() as c_int);
            }
        }
        Ok(())
    })
}

/// MPI_Info_get_nkeys.
///
/// # Safety
///
/// `nkeys` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> c_int {
    call("MPI_Info_get_nkeys", |job| {
        // SAFETY: the caller's.
        unsafe { nkeys.write(lock(&job.read_info(info)?.0).len() as c_int) };
        Ok(())
    })
}

/// MPI_Info_get_nthkey.
///
/// # Safety
///
/// `key` is valid for a write of `MPI_MAX_INFO_KEY` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> c_int {
    call("MPI_Info_get_nthkey", |job| {
        let info = job.read_info(info)?;
        let keys = lock(&info.0);
        let Some((nth, _)) = usize::try_from(n).ok().and_then(|n| keys.get(n)) else {
            fail!(abi::ERR_ARG, "key {n} of {}", keys.len())
        };
        // SAFETY: the caller's.
        unsafe { write_text(nth, key, abi::MAX_INFO_KEY as usize) };
        Ok(())
    })
}

/// MPI_Comm_set_info.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) -> c_int {
    call_on("MPI_Comm_set_info", comm, |job, comm| {
        *lock(&comm.info) = job.given_info(info)?;
        Ok(())
    })
}

/// MPI_Comm_get_info.
///
/// # Safety
///
/// `info` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_get_info(comm: MPI_Comm, info: *mut MPI_Info) -> c_int {
    call_on("MPI_Comm_get_info", comm, |job, comm| {
        let keys = lock(&comm.info).clone();
        // SAFETY: the caller's.
        unsafe { info.write(job.add_info(keys)?) };
        Ok(())
    })
}
