//! The buffers of buffered sends: of the program, of a communicator, and of a session.

use crate::abi::{self, MPI_Comm, MPI_Request, MPI_Session};
use crate::call::{call, call_in, call_on};
use crate::fault::fail;
use crate::object::communicator::CommRef;
use crate::object::exchange::Exchanging;
use crate::object::task::{Task, Work};
use crate::sized::sized;
use std::ffi::{c_int, c_void};

/// The functions of one kind of buffers.
macro_rules! buffers {
    ($($attach:ident, $attach_c:ident, $attached:literal; $detach:ident, $detach_c:ident,
        $detached:literal; $flush:ident, $flushed:literal; $iflush:ident, $iflushed:literal;
        ($($of:ident: $type:ty)?), |$call:ident, $job:ident| $buffered:expr;)*) => { $(
        sized! {
            #[doc = $attached]
            $attach, $attach_c, ($($of: $type,)? buffer: *mut c_void, size: N) {
                $call(NAME, $($of,)? |$job $(, $of)?| {
                    let Ok(bytes) = usize::try_from(i64::from(size)) else {
                        fail!(abi::ERR_ARG, "a buffer of {size} bytes")
                    };
                    let _ = $job;
                    $buffered.attach(buffer, bytes)
                })
            }

            #[doc = $detached]
            $detach, $detach_c, ($($of: $type,)? buffer: *mut *mut c_void, size: *mut N) {
                $call(NAME, $($of,)? |$job $(, $of)?| {
                    let (at, bytes) = $buffered.detach(&$job.messages);
                    // SAFETY: the caller's.
                    unsafe {
                        buffer.write(std::ptr::with_exposed_provenance_mut(at));
                        size.write(N::try_from(bytes as i64).unwrap_or(N::MAX));
                    }
                    Ok(())
                })
            }
        }

        #[doc = $flushed]
        #[unsafe(no_mangle)]
        pub extern "C" fn $flush($($of: $type)?) -> c_int {
            $call($flushed, $($of,)? |$job $(, $of)?| {
                $buffered.drain(&$job.messages);
                Ok(())
            })
        }

        #[doc = $iflushed]
        ///
        /// # Safety
        ///
        /// `request` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $iflush($($of: $type,)? request: *mut MPI_Request) -> c_int {
            $call($iflushed, $($of,)? |$job $(, $of)?| {
                let (unders, bytes) = $buffered.take();
                let work = Work::Exchange(Exchanging::of(unders), Box::new(move || drop(bytes)));
                let task = Task { work, comm: CommRef::Given(&$job.own) };
                // SAFETY: the caller's.
                unsafe { request.write($job.add_task(task)?) };
                Ok(())
            })
        }
    )* };
}

buffers! {
    PMPI_Buffer_attach, PMPI_Buffer_attach_c, "MPI_Buffer_attach";
        PMPI_Buffer_detach, PMPI_Buffer_detach_c, "MPI_Buffer_detach";
        PMPI_Buffer_flush, "MPI_Buffer_flush"; PMPI_Buffer_iflush, "MPI_Buffer_iflush";
        (), |call, job| job.buffered;
    PMPI_Comm_attach_buffer, PMPI_Comm_attach_buffer_c, "MPI_Comm_attach_buffer";
        PMPI_Comm_detach_buffer, PMPI_Comm_detach_buffer_c, "MPI_Comm_detach_buffer";
        PMPI_Comm_flush_buffer, "MPI_Comm_flush_buffer";
        PMPI_Comm_iflush_buffer, "MPI_Comm_iflush_buffer";
        (of: MPI_Comm), |call_on, job| of.buffered;
    PMPI_Session_attach_buffer, PMPI_Session_attach_buffer_c, "MPI_Session_attach_buffer";
        PMPI_Session_detach_buffer, PMPI_Session_detach_buffer_c, "MPI_Session_detach_buffer";
        PMPI_Session_flush_buffer, "MPI_Session_flush_buffer";
        PMPI_Session_iflush_buffer, "MPI_Session_iflush_buffer";
        (of: MPI_Session), |call_in, job| of.buffered;
}
