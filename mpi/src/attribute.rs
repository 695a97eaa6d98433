//! Attributes: values that a program keeps at communicators and datatypes under keys, with
//! functions that copy and delete them.

use crate::abi::{self, MPI_Comm, MPI_Datatype};
use crate::call::{call, call_on};
use crate::fault::{Answer, need};
use crate::job::Job;
use crate::object::attribute::{KeyOf, Keyval, Word};
use crate::object::table::lock;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

impl Job {
    fn keyval(&self, key: c_int, of: KeyOf) -> Answer<Arc<Keyval>> {
        lock(&self.keyvals).get(key, of)
    }

    /// The attributes that the world has from the beginning.
    fn predefined(&'static self, key: c_int) -> Option<*const c_int> {
        Some(match key {
            abi::TAG_UB => &raw const self.tag_max,
            abi::IO | abi::HOST => &raw const PROC_NULL,
            abi::WTIME_IS_GLOBAL => &raw const WTIME_IS_GLOBAL,
            abi::APPNUM => &raw const APPNUM,
            abi::UNIVERSE_SIZE => &raw const self.size,
            abi::LASTUSEDCODE => (&raw const self.last_code).cast(),
            _ => return None,
        })
    }
}

static PROC_NULL: c_int = abi::PROC_NULL;
/// The clocks of the ranks of a node are one; those of nodes are not.
static WTIME_IS_GLOBAL: c_int = 0;
static APPNUM: c_int = 0;

/// The functions of keys, for communicators and for datatypes.
macro_rules! keyvals {
    ($($create:ident, $created:literal, $free:ident, $freed:literal, $of:expr;)*) => { $(
        #[doc = concat!($created, ".")]
        ///
        /// # Safety
        ///
        /// The functions are those of keys of this kind; `key` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $create(
            copy: usize,
            delete: usize,
            key: *mut c_int,
            extra: *mut c_void,
        ) -> c_int {
            call($created, |job| {
                let keyval = Keyval { of: $of, copy, delete, extra: Word(extra) };
                let made = lock(&job.keyvals).add(keyval)?;
                // SAFETY: the caller's.
                unsafe { key.write(made) };
                Ok(())
            })
        }

        #[doc = concat!($freed, ".")]
        ///
        /// # Safety
        ///
        /// `key` is valid for reads and writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $free(key: *mut c_int) -> c_int {
            call($freed, |job| {
                // SAFETY: the caller's.
                lock(&job.keyvals).free(unsafe { key.read() }, $of)?;
                // SAFETY: the caller's.
                unsafe { key.write(abi::KEYVAL_INVALID) };
                Ok(())
            })
        }
    )* };
}

keyvals! {
    PMPI_Comm_create_keyval, "MPI_Comm_create_keyval",
        PMPI_Comm_free_keyval, "MPI_Comm_free_keyval", KeyOf::Comm;
    PMPI_Keyval_create, "MPI_Keyval_create", PMPI_Keyval_free, "MPI_Keyval_free", KeyOf::Comm;
    PMPI_Type_create_keyval, "MPI_Type_create_keyval",
        PMPI_Type_free_keyval, "MPI_Type_free_keyval", KeyOf::Datatype;
}

/// The functions of attributes of communicators, by their new and their old names.
macro_rules! of_comms {
    ($($set:ident, $was_set:literal, $get:ident, $was_got:literal,
        $delete:ident, $deleted:literal;)*) => { $(
        #[doc = concat!($was_set, ".")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(comm: MPI_Comm, key: c_int, value: *mut c_void) -> c_int {
            call_on($was_set, comm, |job, comm| {
                let keyval = job.keyval(key, KeyOf::Comm)?;
                comm.attributes.set(comm.handle().0, key, keyval, value)
            })
        }

        #[doc = concat!($was_got, ".")]
        ///
        /// # Safety
        ///
        /// `value` and `flag` are valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            comm: MPI_Comm,
            key: c_int,
            value: *mut *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            call_on($was_got, comm, |job, comm| {
                let predefined = job.predefined(key).map(|at| at.cast_mut().cast());
                if predefined.is_none() {
                    job.keyval(key, KeyOf::Comm)?;
                }
                let found = predefined.or_else(|| comm.attributes.get(key));
                // SAFETY: the caller's.
                unsafe { tell(found, value, flag) };
                Ok(())
            })
        }

        #[doc = concat!($deleted, ".")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $delete(comm: MPI_Comm, key: c_int) -> c_int {
            call_on($deleted, comm, |job, comm| {
                job.keyval(key, KeyOf::Comm)?;
                comm.attributes.delete(comm.handle().0, key)
            })
        }
    )* };
}

of_comms! {
    PMPI_Comm_set_attr, "MPI_Comm_set_attr", PMPI_Comm_get_attr, "MPI_Comm_get_attr",
        PMPI_Comm_delete_attr, "MPI_Comm_delete_attr";
    PMPI_Attr_put, "MPI_Attr_put", PMPI_Attr_get, "MPI_Attr_get",
        PMPI_Attr_delete, "MPI_Attr_delete";
}

/// MPI_Type_set_attr.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Type_set_attr(
    datatype: MPI_Datatype,
    key: c_int,
    value: *mut c_void,
) -> c_int {
    call("MPI_Type_set_attr", |job| {
        let keyval = job.keyval(key, KeyOf::Datatype)?;
        job.datatype(datatype)?.attributes.set(datatype.0, key, keyval, value)
    })
}

/// MPI_Type_get_attr.
///
/// # Safety
///
/// `value` and `flag` are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_attr(
    datatype: MPI_Datatype,
    key: c_int,
    value: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    call("MPI_Type_get_attr", |job| {
        job.keyval(key, KeyOf::Datatype)?;
        let found = job.datatype(datatype)?.attributes.get(key);
        // SAFETY: the caller's.
        unsafe { tell(found, value, flag) };
        Ok(())
    })
}

/// MPI_Type_delete_attr.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Type_delete_attr(datatype: MPI_Datatype, key: c_int) -> c_int {
    call("MPI_Type_delete_attr", |job| {
        need!(key != abi::KEYVAL_INVALID, abi::ERR_KEYVAL, "the key is MPI_KEYVAL_INVALID");
        job.keyval(key, KeyOf::Datatype)?;
        job.datatype(datatype)?.attributes.delete(datatype.0, key)
    })
}

/// Writes what was found.
///
/// # Safety
///
/// `value` and `flag` are valid for a write.
unsafe fn tell(found: Option<*mut c_void>, value: *mut *mut c_void, flag: *mut c_int) {
    // SAFETY: the caller's.
    unsafe {
        if let Some(found) = found {
            value.write(found);
        }
        flag.write(c_int::from(found.is_some()));
    }
}
