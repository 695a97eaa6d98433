//! Statuses in the memory of the program: how they are written, and the calls on them.

use crate::abi::MPI_Status;
use crate::call::call;
use std::ffi::c_int;

/// Writes a status, unless the program ignores it. Its error stays as it is.
///
/// # Safety
///
/// `at` is NULL or valid for a write.
#[inline]
pub(crate) unsafe fn tell(status: MPI_Status, at: *mut MPI_Status) {
    if !at.is_null() {
        // SAFETY: the caller's.
        unsafe {
            (&raw mut (*at).source).write(status.source);
            (&raw mut (*at).tag).write(status.tag);
            (&raw mut (*at).internal).write(status.internal);
        }
    }
}

/// MPI_Test_cancelled.
///
/// # Safety
///
/// `status` is valid for a read, `flag` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> c_int {
    call("MPI_Test_cancelled", |_| {
        // SAFETY: the caller's.
        unsafe { flag.write(c_int::from((*status).is_cancelled())) };
        Ok(())
    })
}

/// MPI_Status_set_cancelled.
///
/// # Safety
///
/// `status` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> c_int {
    call("MPI_Status_set_cancelled", |_| {
        // SAFETY: the caller's.
        unsafe { (*status).set_cancelled(flag != 0) };
        Ok(())
    })
}

/// The functions that get and set a member of a status.
macro_rules! of_status {
    ($($get:ident, $set:ident, $got:literal, $was_set:literal, $member:ident;)*) => { $(
        #[doc = concat!($got, ".")]
        ///
        /// # Safety
        ///
        /// `status` is valid for a read, `value` for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(status: *const MPI_Status, value: *mut c_int) -> c_int {
            call($got, |_| {
                // SAFETY: the caller's.
                unsafe { value.write((*status).$member) };
                Ok(())
            })
        }

        #[doc = concat!($was_set, ".")]
        ///
        /// # Safety
        ///
        /// `status` is valid for reads and writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(status: *mut MPI_Status, value: c_int) -> c_int {
            call($was_set, |_| {
                // SAFETY: the caller's.
                unsafe { (*status).$member = value };
                Ok(())
            })
        }
    )* };
}

of_status! {
    PMPI_Status_get_source, PMPI_Status_set_source, "MPI_Status_get_source",
        "MPI_Status_set_source", source;
    PMPI_Status_get_tag, PMPI_Status_set_tag, "MPI_Status_get_tag", "MPI_Status_set_tag", tag;
    PMPI_Status_get_error, PMPI_Status_set_error, "MPI_Status_get_error",
        "MPI_Status_set_error", error;
}
