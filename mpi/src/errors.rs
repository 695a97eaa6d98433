//! The calls on error handlers.

use crate::abi::{self, MPI_Comm, MPI_Errhandler};
use crate::call::{call, call_on};
use crate::fault::{Fault, fail, need};
use crate::object::errhandler::{Errhandler, ErrhandlerFn, ErrhandlerRef, Handling};
use std::ffi::c_int;
use std::sync::Arc;

/// MPI_Comm_create_errhandler.
///
/// # Safety
///
/// `errhandler` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_create_errhandler(
    function: Option<ErrhandlerFn>,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { create("MPI_Comm_create_errhandler", function, errhandler) }
}

/// MPI_Session_create_errhandler. A session's handle is as long as that of a communicator.
///
/// # Safety
///
/// `errhandler` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Session_create_errhandler(
    function: Option<ErrhandlerFn>,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { create("MPI_Session_create_errhandler", function, errhandler) }
}

/// Makes a handler of a function of the program.
///
/// # Safety
///
/// `errhandler` is valid for a write.
unsafe fn create(
    name: &str,
    function: Option<ErrhandlerFn>,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    call(name, |job| {
        let Some(function) = function else { fail!(abi::ERR_ARG, "the function is NULL") };
        let handler = ErrhandlerRef::Made(Arc::new(Errhandler::new(function)));
        // SAFETY: the caller's.
        unsafe { errhandler.write(job.give_errhandler(&handler)?) };
        Ok(())
    })
}

/// MPI_Comm_set_errhandler.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> c_int {
    call_on("MPI_Comm_set_errhandler", comm, |job, comm| {
        comm.errhandler.set(job.errhandler(errhandler)?);
        Ok(())
    })
}

/// MPI_Comm_get_errhandler.
///
/// # Safety
///
/// `errhandler` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_get_errhandler(
    comm: MPI_Comm,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    call_on("MPI_Comm_get_errhandler", comm, |job, comm| {
        // SAFETY: the caller's.
        unsafe { errhandler.write(job.give_errhandler(&comm.errhandler.get())?) };
        Ok(())
    })
}

/// MPI_Errhandler_free. Communicators that have the handler keep it.
///
/// # Safety
///
/// `errhandler` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Errhandler_free(errhandler: *mut MPI_Errhandler) -> c_int {
    call("MPI_Errhandler_free", |job| {
        // SAFETY: the caller's.
        let handler = unsafe { errhandler.read() };
        job.free_errhandler(handler)?;
        // SAFETY: the caller's.
        unsafe { errhandler.write(MPI_Errhandler::NULL) };
        Ok(())
    })
}

/// MPI_Comm_call_errhandler.
#[unsafe(no_mangle)]
pub extern "C" fn PMPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> c_int {
    call_on("MPI_Comm_call_errhandler", comm, |_, comm| {
        need!(errorcode >= 0, abi::ERR_ARG, "{errorcode} is no error code");
        match comm.errhandler.get().handling() {
            Handling::Return => Ok(()),
            Handling::Fatal => Err(Fault::new(errorcode, "called by the program")),
            Handling::Call(function) => {
                let (mut handle, mut code) = (comm.handle(), errorcode);
                // SAFETY: the program's function, for a communicator and an error code.
                unsafe { function(&raw mut handle, &raw mut code) };
                Ok(())
            }
        }
    })
}
