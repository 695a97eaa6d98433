//! The calls on a datatype as a whole: other bounds, a copy, commit and free.

use crate::abi::{self, MPI_Datatype};
use crate::call::call;
use crate::fault::fail;
use crate::job::Job;
use crate::object::datatype::{Datatype, DatatypeRef};
use crate::object::type_map::TypeMap;
use crate::sized::sized;
use crate::types::recipe::{make, recipe};
use std::ffi::c_int;

sized! {
    /// MPI_Type_create_resized.
    PMPI_Type_create_resized, PMPI_Type_create_resized_c, (
        oldtype: MPI_Datatype, lb: isize, extent: isize, newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            let mut map = TypeMap::default();
            map.lay(&of, 1, 0)?;
            let addresses = vec![lb as i64, extent as i64];
            let recipe = recipe::<N>(abi::COMBINER_RESIZED, vec![], addresses, vec![of]);
            Ok(map.finish_with(lb, lb + extent, true, recipe))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }
}

/// MPI_Type_dup.
///
/// # Safety
///
/// `newtype` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int {
    let body = |job: &'static Job| {
        let of = job.datatype(oldtype)?;
        let recipe = recipe::<c_int>(abi::COMBINER_DUP, vec![], vec![], vec![of.clone()]);
        let mut made =
            Datatype::new(of.size, of.bounds, of.runs.clone(), of.leaves.clone(), recipe);
        made.basic = of.basic;
        made.attributes = of.attributes.copies(oldtype.0)?;
        if of.is_committed() {
            made.commit();
        }
        Ok(made)
    };
    // SAFETY: the caller's.
    unsafe { make("MPI_Type_dup", newtype, body) }
}

/// MPI_Type_commit.
///
/// # Safety
///
/// `datatype` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_commit(datatype: *mut MPI_Datatype) -> c_int {
    call("MPI_Type_commit", |job| {
        // SAFETY: the caller's.
        job.datatype(unsafe { datatype.read() })?.commit();
        Ok(())
    })
}

/// MPI_Type_free.
///
/// # Safety
///
/// `datatype` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_free(datatype: *mut MPI_Datatype) -> c_int {
    call("MPI_Type_free", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { datatype.read() };
        let DatatypeRef::Made(made) = job.datatype(handle)? else {
            fail!(abi::ERR_TYPE, "a datatype of the standard is not freed")
        };
        made.attributes.delete_all(handle.0)?;
        job.datatypes.remove(handle.0);
        // SAFETY: the caller's.
        unsafe { datatype.write(MPI_Datatype::NULL) };
        Ok(())
    })
}
