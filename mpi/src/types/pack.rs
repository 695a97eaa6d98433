//! Packing: elements of datatypes in a buffer of the program, without holes, as they are in
//! memory.

use crate::abi::{self, MPI_Comm, MPI_Datatype};
use crate::arguments::count;
use crate::call::call_on;
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::sized::sized;
use std::ffi::c_void;

/// Packs elements at a position of a buffer; returns the next position.
///
/// # Safety
///
/// The elements are valid for reads, and `room` bytes of `into` for writes.
unsafe fn pack(
    job: &Job,
    (from, number, datatype): (*const c_void, i64, MPI_Datatype),
    (into, room, at): (*mut c_void, i64, i64),
) -> Answer<i64> {
    let of = job.datatype(datatype)?;
    of.committed()?;
    let number = count(number, "elements")?;
    let bytes = of.bytes(number)? as i64;
    need!(
        at >= 0 && bytes <= room - at,
        abi::ERR_TRUNCATE,
        "{bytes} bytes at {at} of a buffer of {room} bytes"
    );
    // SAFETY: the caller's.
    unsafe { of.pack(from.cast(), number, into.cast::<u8>().add(at as usize)) };
    Ok(at + bytes)
}

/// Unpacks elements at a position of a buffer; returns the next position.
///
/// # Safety
///
/// The elements are valid for writes, and `there` bytes of `from` for reads.
unsafe fn unpack(
    job: &Job,
    (from, there, at): (*const c_void, i64, i64),
    (into, number, datatype): (*mut c_void, i64, MPI_Datatype),
) -> Answer<i64> {
    let of = job.datatype(datatype)?;
    of.committed()?;
    let bytes = of.bytes(count(number, "elements")?)? as i64;
    need!(
        at >= 0 && bytes <= there - at,
        abi::ERR_TRUNCATE,
        "{bytes} bytes at {at} of a buffer of {there} bytes"
    );
    // SAFETY: the caller's.
    unsafe { of.unpack(from.cast::<u8>().add(at as usize), bytes as usize, into.cast()) };
    Ok(at + bytes)
}

/// A number that fits in a position.
fn narrow<N: TryFrom<i64>>(number: i64) -> Answer<N> {
    match N::try_from(number) {
        Ok(number) => Ok(number),
        Err(_) => fail!(abi::ERR_VALUE_TOO_LARGE, "{number} does not fit in an int"),
    }
}

sized! {
    /// MPI_Pack.
    PMPI_Pack, PMPI_Pack_c, (
        from: *const c_void, number: N, datatype: MPI_Datatype, into: *mut c_void, room: N,
        position: *mut N, comm: MPI_Comm,
    ) {
        call_on(NAME, comm, |job, _| {
            // SAFETY: the caller's.
            unsafe {
                let into = (into, room.into(), position.read().into());
                position.write(narrow(pack(job, (from, number.into(), datatype), into)?)?);
            }
            Ok(())
        })
    }

    /// MPI_Unpack.
    PMPI_Unpack, PMPI_Unpack_c, (
        from: *const c_void, there: N, position: *mut N, into: *mut c_void, number: N,
        datatype: MPI_Datatype, comm: MPI_Comm,
    ) {
        call_on(NAME, comm, |job, _| {
            // SAFETY: the caller's.
            unsafe {
                let from = (from, there.into(), position.read().into());
                position.write(narrow(unpack(job, from, (into, number.into(), datatype))?)?);
            }
            Ok(())
        })
    }

    /// MPI_Pack_size.
    PMPI_Pack_size, PMPI_Pack_size_c, (
        number: N, datatype: MPI_Datatype, comm: MPI_Comm, size: *mut N,
    ) {
        call_on(NAME, comm, |job, _| {
            let of = job.datatype(datatype)?;
            let bytes = of.size.checked_mul(count(number.into(), "elements")?);
            let bytes = bytes.and_then(|bytes| N::try_from(bytes).ok());
            // SAFETY: the caller's.
            unsafe { size.write(bytes.unwrap_or(N::from(abi::UNDEFINED))) };
            Ok(())
        })
    }
}
