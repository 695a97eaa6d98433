//! The calls that make operations of reductions.

use crate::abi::{self, MPI_Datatype, MPI_Op};
use crate::call::call;
use crate::fault::fail;
use crate::function_rule::watch_functions;
use crate::object::operation::{OpRef, UserFn, UserOp, name_of};
use crate::tables::added;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Makes an operation of the program.
///
/// # Safety
///
/// `op` is valid for a write.
unsafe fn create(name: &str, function: Option<UserFn>, commute: c_int, op: *mut MPI_Op) -> c_int {
    call(name, |job| {
        let Some(function) = function else { fail!(abi::ERR_ARG, "the function is NULL") };
        watch_functions();
        let made = Arc::new(UserOp { function, commutes: commute != 0 });
        let handle = added(job.operations.add(made), "operations")?;
        // SAFETY: the caller's.
        unsafe { op.write(MPI_Op(handle)) };
        Ok(())
    })
}

/// MPI_Op_create.
///
/// # Safety
///
/// `op` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Op_create(
    function: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype)>,
    commute: c_int,
    op: *mut MPI_Op,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { create("MPI_Op_create", function.map(UserFn::Int), commute, op) }
}

/// MPI_Op_create_c.
///
/// # Safety
///
/// `op` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Op_create_c(
    function: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut MPI_Datatype)>,
    commute: c_int,
    op: *mut MPI_Op,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { create("MPI_Op_create_c", function.map(UserFn::Count), commute, op) }
}

/// MPI_Op_free.
///
/// # Safety
///
/// `op` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Op_free(op: *mut MPI_Op) -> c_int {
    call("MPI_Op_free", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { op.read() };
        if let OpRef::Given(given) = job.operation(handle)? {
            fail!(abi::ERR_OP, "{} is the standard's, and not freed", name_of(given));
        }
        job.operations.remove(handle.0);
        // SAFETY: the caller's.
        unsafe { op.write(MPI_Op::NULL) };
        Ok(())
    })
}

/// MPI_Op_commutative.
///
/// # Safety
///
/// `commute` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Op_commutative(op: MPI_Op, commute: *mut c_int) -> c_int {
    call("MPI_Op_commutative", |job| {
        // SAFETY: the caller's.
        unsafe { commute.write(c_int::from(job.operation(op)?.commutes())) };
        Ok(())
    })
}
