//! Functions that MPI 3.0 has removed, for programs from before it. Those with a successor call
//! it, so the report of an error has the name of the successor.

use crate::abi::{MPI_Comm, MPI_Datatype, MPI_Errhandler};
use crate::call::call;
use crate::object::datatype::Bounds;
use crate::object::errhandler::ErrhandlerFn;
use std::ffi::{c_int, c_void};

macro_rules! renamed {
    ($($(#[$doc:meta])* $old:ident => $new:ident($($arg:ident: $type:ty),*);)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// That of its successor.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $old($($arg: $type),*) -> c_int {
            unsafe extern "C" {
                fn $new($($arg: $type),*) -> c_int;
            }
            // SAFETY: the caller's; this library defines the successor so.
            unsafe { $new($($arg),*) }
        }
    )* };
}

renamed! {
    /// MPI_Address.
    PMPI_Address => PMPI_Get_address(location: *const c_void, address: *mut isize);
    /// MPI_Errhandler_create.
    PMPI_Errhandler_create => PMPI_Comm_create_errhandler(
        function: Option<ErrhandlerFn>, errhandler: *mut MPI_Errhandler
    );
    /// MPI_Errhandler_get.
    PMPI_Errhandler_get => PMPI_Comm_get_errhandler(
        comm: MPI_Comm, errhandler: *mut MPI_Errhandler
    );
    /// MPI_Errhandler_set.
    PMPI_Errhandler_set => PMPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler);
    /// MPI_Type_hindexed.
    PMPI_Type_hindexed => PMPI_Type_create_hindexed(
        count: c_int, blocklengths: *const c_int, displacements: *const isize,
        oldtype: MPI_Datatype, newtype: *mut MPI_Datatype
    );
    /// MPI_Type_hvector.
    PMPI_Type_hvector => PMPI_Type_create_hvector(
        count: c_int, blocklength: c_int, stride: isize, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype
    );
    /// MPI_Type_struct.
    PMPI_Type_struct => PMPI_Type_create_struct(
        count: c_int, blocklengths: *const c_int, displacements: *const isize,
        types: *const MPI_Datatype, newtype: *mut MPI_Datatype
    );
}

macro_rules! bound {
    ($($(#[$doc:meta])* $function:ident, $name:literal, $bound:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// `bound` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(datatype: MPI_Datatype, bound: *mut isize) -> c_int {
            call($name, |job| {
                let bounds = job.datatype(datatype)?.bounds;
                // SAFETY: the caller's.
                unsafe { bound.write($bound(bounds)) };
                Ok(())
            })
        }
    )* };
}

bound! {
    /// MPI_Type_extent.
    PMPI_Type_extent, "MPI_Type_extent", |bounds: Bounds| bounds.extent();
    /// MPI_Type_lb.
    PMPI_Type_lb, "MPI_Type_lb", |bounds: Bounds| bounds.lb;
    /// MPI_Type_ub.
    PMPI_Type_ub, "MPI_Type_ub", |bounds: Bounds| bounds.ub;
}
