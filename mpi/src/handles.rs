//! Handles as integers, and back: both directions keep the value.

use crate::abi::{
    MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_File, MPI_Group, MPI_Info, MPI_Message, MPI_Op,
    MPI_Request, MPI_Session, MPI_Win,
};
use std::ffi::c_int;

macro_rules! as_integers {
    ($($handle:ident, $to:ident, $from:ident;)*) => { $(
        #[doc = concat!("The number of a handle of type ", stringify!($handle), ".")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $to(handle: $handle) -> c_int {
            handle.0 as c_int
        }

        #[doc = concat!("The handle of type ", stringify!($handle), " that has a number.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $from(number: c_int) -> $handle {
            $handle(number.cast_unsigned() as usize)
        }
    )* };
}

as_integers! {
    MPI_Comm, PMPI_Comm_toint, PMPI_Comm_fromint;
    MPI_Datatype, PMPI_Type_toint, PMPI_Type_fromint;
    MPI_Errhandler, PMPI_Errhandler_toint, PMPI_Errhandler_fromint;
    MPI_File, PMPI_File_toint, PMPI_File_fromint;
    MPI_Group, PMPI_Group_toint, PMPI_Group_fromint;
    MPI_Info, PMPI_Info_toint, PMPI_Info_fromint;
    MPI_Message, PMPI_Message_toint, PMPI_Message_fromint;
    MPI_Op, PMPI_Op_toint, PMPI_Op_fromint;
    MPI_Request, PMPI_Request_toint, PMPI_Request_fromint;
    MPI_Session, PMPI_Session_toint, PMPI_Session_fromint;
    MPI_Win, PMPI_Win_toint, PMPI_Win_fromint;
}
