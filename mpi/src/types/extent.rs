//! Sizes, extents and names of datatypes, and how much a status has received.

use crate::abi::{self, MPI_Datatype, MPI_Status};
use crate::arguments::{text, write_text};
use crate::call::call;
use crate::fault::{fail, need};
use crate::object::datatype::Datatype;
use crate::sized::sized;
use std::ffi::{c_char, c_int};

/// A number for the program: MPI_UNDEFINED if it does not fit.
fn fit<N: TryFrom<i64> + From<i16>>(number: u64) -> N {
    let number = i64::try_from(number).ok();
    number
        .and_then(|number| N::try_from(number).ok())
        .unwrap_or_else(|| N::from(abi::UNDEFINED as i16))
}

/// The elements of the standard in so many bytes of data. `None`: a part of an element is
/// there.
fn elements_in(of: &Datatype, bytes: u64) -> Option<u64> {
    if of.size == 0 {
        return Some(0);
    }
    let mut elements = bytes / of.size as u64 * of.elements();
    let mut left = bytes % of.size as u64;
    for (leaf, count) in &of.leaves {
        let size = crate::object::basic::basic(*leaf)?.value.layout().0 as u64;
        let whole = (left / size).min(*count);
        elements += whole;
        left -= whole * size;
        if whole < *count {
            return (left == 0).then_some(elements);
        }
    }
    Some(elements)
}

sized! {
    /// MPI_Type_size.
    PMPI_Type_size, PMPI_Type_size_c, (datatype: MPI_Datatype, size: *mut N) {
        call(NAME, |job| {
            // SAFETY: the caller's.
            unsafe { size.write(fit(job.datatype(datatype)?.size as u64)) };
            Ok(())
        })
    }

    /// MPI_Get_count.
    PMPI_Get_count, PMPI_Get_count_c, (
        status: *const MPI_Status, datatype: MPI_Datatype, count: *mut N,
    ) {
        call(NAME, |job| {
            let of = job.datatype(datatype)?;
            // SAFETY: the caller's.
            let bytes = unsafe { status.read() }.bytes();
            let found = match of.size as u64 {
                0 => fit(if bytes == 0 { 0 } else { u64::MAX }),
                size if bytes % size == 0 => fit(bytes / size),
                _ => fit(u64::MAX),
            };
            // SAFETY: the caller's.
            unsafe { count.write(found) };
            Ok(())
        })
    }

    /// MPI_Get_elements.
    PMPI_Get_elements, PMPI_Get_elements_c, (
        status: *const MPI_Status, datatype: MPI_Datatype, count: *mut N,
    ) {
        call(NAME, |job| {
            let of = job.datatype(datatype)?;
            // SAFETY: the caller's.
            let bytes = unsafe { status.read() }.bytes();
            // SAFETY: the caller's.
            unsafe { count.write(fit(elements_in(&of, bytes).unwrap_or(u64::MAX))) };
            Ok(())
        })
    }

    /// MPI_Status_set_elements.
    PMPI_Status_set_elements, PMPI_Status_set_elements_c, (
        status: *mut MPI_Status, datatype: MPI_Datatype, count: N,
    ) {
        call(NAME, |job| {
            let of = job.datatype(datatype)?;
            let count = i64::from(count);
            need!(count >= 0, abi::ERR_COUNT, "{count} elements");
            let mut left = count as u64;
            let mut bytes = 0;
            if of.elements() > 0 {
                bytes = left / of.elements() * of.size as u64;
                left %= of.elements();
                for (leaf, each) in &of.leaves {
                    let some = left.min(*each);
                    let size = crate::object::basic::basic(*leaf).map_or(0, |leaf| leaf.value.layout().0);
                    bytes += some * size as u64;
                    left -= some;
                }
            }
            // SAFETY: the caller's.
            unsafe { (*status).set_bytes(bytes) };
            Ok(())
        })
    }

    /// MPI_Type_get_extent.
    PMPI_Type_get_extent, PMPI_Type_get_extent_c, (
        datatype: MPI_Datatype, lb: *mut isize, extent: *mut isize,
    ) {
        call(NAME, |job| {
            let bounds = job.datatype(datatype)?.bounds;
            // SAFETY: the caller's.
            unsafe {
                lb.write(bounds.lb);
                extent.write(bounds.extent());
            }
            Ok(())
        })
    }

    /// MPI_Type_get_true_extent.
    PMPI_Type_get_true_extent, PMPI_Type_get_true_extent_c, (
        datatype: MPI_Datatype, lb: *mut isize, extent: *mut isize,
    ) {
        call(NAME, |job| {
            let bounds = job.datatype(datatype)?.bounds;
            // SAFETY: the caller's.
            unsafe {
                lb.write(bounds.true_lb);
                extent.write(bounds.true_ub - bounds.true_lb);
            }
            Ok(())
        })
    }
}

/// The functions with lengths of type `MPI_Count` from before `_c`.
macro_rules! older {
    ($($(#[$doc:meta])* $function:ident, $new:path, ($($arg:ident: $type:ty),*);)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// Pointers are valid as the MPI standard says of this function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function($($arg: $type),*) -> c_int {
            // SAFETY: the caller's.
            unsafe { $new($($arg),*) }
        }
    )* };
}

older! {
    /// MPI_Type_size_x.
    PMPI_Type_size_x, PMPI_Type_size_c::PMPI_Type_size_c,
        (datatype: MPI_Datatype, size: *mut i64);
    /// MPI_Get_elements_x.
    PMPI_Get_elements_x, PMPI_Get_elements_c::PMPI_Get_elements_c,
        (status: *const MPI_Status, datatype: MPI_Datatype, count: *mut i64);
    /// MPI_Status_set_elements_x.
    PMPI_Status_set_elements_x, PMPI_Status_set_elements_c::PMPI_Status_set_elements_c,
        (status: *mut MPI_Status, datatype: MPI_Datatype, count: i64);
    /// MPI_Type_get_extent_x.
    PMPI_Type_get_extent_x, PMPI_Type_get_extent_c::PMPI_Type_get_extent_c,
        (datatype: MPI_Datatype, lb: *mut isize, extent: *mut isize);
    /// MPI_Type_get_true_extent_x.
    PMPI_Type_get_true_extent_x, PMPI_Type_get_true_extent_c::PMPI_Type_get_true_extent_c,
        (datatype: MPI_Datatype, lb: *mut isize, extent: *mut isize);
}

/// MPI_Type_set_name.
///
/// # Safety
///
/// `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_set_name(datatype: MPI_Datatype, name: *const c_char) -> c_int {
    call("MPI_Type_set_name", |job| {
        // SAFETY: the caller's.
        job.datatype(datatype)?.set_name(unsafe { text(name, "name") }?);
        Ok(())
    })
}

/// MPI_Type_get_name.
///
/// # Safety
///
/// `name` is valid for a write of `MPI_MAX_OBJECT_NAME` bytes, `resultlen` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_name(
    datatype: MPI_Datatype,
    name: *mut c_char,
    resultlen: *mut c_int,
) -> c_int {
    call("MPI_Type_get_name", |job| {
        if datatype == MPI_Datatype::NULL {
            // SAFETY: the caller's.
            unsafe {
                let len = write_text("MPI_DATATYPE_NULL", name, abi::MAX_OBJECT_NAME as usize);
                resultlen.write(len);
            }
            return Ok(());
        }
        let found = job.datatype(datatype)?.name();
        // SAFETY: the caller's.
        unsafe { resultlen.write(write_text(&found, name, abi::MAX_OBJECT_NAME as usize)) };
        Ok(())
    })
}

/// MPI_Get_address.
///
/// # Safety
///
/// `address` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Get_address(
    location: *const std::ffi::c_void,
    address: *mut isize,
) -> c_int {
    call("MPI_Get_address", |_| {
        if address.is_null() {
            fail!(abi::ERR_ARG, "the place for the address is NULL");
        }
        // SAFETY: the caller's.
        unsafe { address.write(location.expose_provenance().cast_signed()) };
        Ok(())
    })
}

/// MPI_Aint_add.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Aint_add(base: isize, disp: isize) -> isize {
    base.wrapping_add(disp)
}

/// MPI_Aint_diff.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Aint_diff(addr1: isize, addr2: isize) -> isize {
    addr1.wrapping_sub(addr2)
}
