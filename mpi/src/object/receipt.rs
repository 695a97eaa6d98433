//! The end of a receive: what it has brought.

use crate::abi::MPI_Status;
use crate::fault::{Answer, Fault};
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use std::ffi::c_int;
use tsumugi::MessageError;
use tsumugi_runtime::service::messages::{Messages, Under};

/// Waits for the end of a receive.
#[inline]
pub(crate) fn received(
    messages: &Messages,
    comm: &CommRef,
    under: Under,
    mut data: Data,
) -> (MPI_Status, Answer) {
    match messages.finish(under) {
        Ok(received) => {
            data.arrived(received.bytes);
            let source = comm.place_of(received.source);
            (MPI_Status::new(source, received.tag as c_int, received.bytes as u64), Ok(()))
        }
        Err(MessageError::Cancelled) => {
            let mut status = MPI_Status::EMPTY;
            status.set_cancelled(true);
            (status, Ok(()))
        }
        Err(error) => {
            let mut status = MPI_Status::EMPTY;
            if let MessageError::Truncated { source, tag, room, .. } = error {
                data.arrived(room);
                status = MPI_Status::new(comm.place_of(source), tag as c_int, room as u64);
            }
            (status, Err(Fault::from(error)))
        }
    }
}
