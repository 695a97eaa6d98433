//! Datatypes that are found by what they hold: by a size, by the digits of a number of Fortran,
//! or as the pair of a value and an index.

use crate::abi::{self, MPI_Datatype};
use crate::call::call;
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::object::basic::all;
use crate::object::datatype::{Datatype, DatatypeRef, Recipe};
use crate::object::table::lock;
use std::ffi::c_int;
use std::sync::Mutex;

/// The datatype of the standard with a name.
fn named(name: &str) -> MPI_Datatype {
    let found = all().find(|(_, basic)| basic.name == name);
    found.expect("the standard has this datatype").0
}

/// MPI_Type_match_size.
///
/// # Safety
///
/// `datatype` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_match_size(
    class: c_int,
    size: c_int,
    datatype: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_match_size", |_| {
        let name = match (class, size) {
            (abi::TYPECLASS_INTEGER, 1) => "MPI_INTEGER1",
            (abi::TYPECLASS_INTEGER, 2) => "MPI_INTEGER2",
            (abi::TYPECLASS_INTEGER, 4) => "MPI_INTEGER4",
            (abi::TYPECLASS_INTEGER, 8) => "MPI_INTEGER8",
            (abi::TYPECLASS_INTEGER, 16) => "MPI_INTEGER16",
            (abi::TYPECLASS_REAL, 2) => "MPI_REAL2",
            (abi::TYPECLASS_REAL, 4) => "MPI_REAL4",
            (abi::TYPECLASS_REAL, 8) => "MPI_REAL8",
            (abi::TYPECLASS_REAL, 16) => "MPI_REAL16",
            (abi::TYPECLASS_COMPLEX, 4) => "MPI_COMPLEX4",
            (abi::TYPECLASS_COMPLEX, 8) => "MPI_COMPLEX8",
            (abi::TYPECLASS_COMPLEX, 16) => "MPI_COMPLEX16",
            (abi::TYPECLASS_COMPLEX, 32) => "MPI_COMPLEX32",
            _ => fail!(abi::ERR_ARG, "class {class} has no datatype of {size} bytes"),
        };
        // SAFETY: the caller's.
        unsafe { datatype.write(named(name)) };
        Ok(())
    })
}

/// MPI_Type_get_value_index. MPI_DATATYPE_NULL: there is no such pair.
///
/// # Safety
///
/// `pair` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_get_value_index(
    value: MPI_Datatype,
    index: MPI_Datatype,
    pair: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_get_value_index", |job| {
        let (of, at) = (job.datatype(value)?.name(), job.datatype(index)?.name());
        let name = PAIRS.iter().find(|(value, index, _)| *value == of && *index == at);
        // SAFETY: the caller's.
        unsafe { pair.write(name.map_or(MPI_Datatype::NULL, |(_, _, pair)| named(pair))) };
        Ok(())
    })
}

/// A value, an index, and their pair.
const PAIRS: [(&str, &str, &str); 9] = [
    ("MPI_FLOAT", "MPI_INT", "MPI_FLOAT_INT"),
    ("MPI_DOUBLE", "MPI_INT", "MPI_DOUBLE_INT"),
    ("MPI_LONG", "MPI_INT", "MPI_LONG_INT"),
    ("MPI_INT", "MPI_INT", "MPI_2INT"),
    ("MPI_SHORT", "MPI_INT", "MPI_SHORT_INT"),
    ("MPI_LONG_DOUBLE", "MPI_INT", "MPI_LONG_DOUBLE_INT"),
    ("MPI_REAL", "MPI_REAL", "MPI_2REAL"),
    ("MPI_DOUBLE_PRECISION", "MPI_DOUBLE_PRECISION", "MPI_2DOUBLE_PRECISION"),
    ("MPI_INTEGER", "MPI_INTEGER", "MPI_2INTEGER"),
];

/// The datatype for numbers of Fortran with so many digits: one for each choice, as long as the
/// job runs.
///
/// # Safety
///
/// `out` is valid for a write.
unsafe fn chosen(
    job: &Job,
    combiner: c_int,
    digits: Vec<i64>,
    name: &str,
    out: *mut MPI_Datatype,
) -> Answer {
    let mut made = lock(&CHOSEN);
    let there = made.iter().find(|(of, by, _)| (*of, by) == (combiner, &digits));
    let handle = match there {
        Some((_, _, handle)) => *handle,
        None => {
            let of = DatatypeRef::given(named(name)).expect("the standard's");
            let recipe = Recipe { combiner, integers: digits.clone(), ..Recipe::default() };
            let mut datatype =
                Datatype::new(of.size, of.bounds, of.runs.clone(), of.leaves.clone(), recipe);
            datatype.basic = of.basic;
            datatype.commit();
            let handle = job.add_datatype(datatype)?;
            made.push((combiner, digits, handle));
            handle
        }
    };
    // SAFETY: the caller's.
    unsafe { out.write(handle) };
    Ok(())
}

/// The combiner, the digits, and the datatype.
static CHOSEN: Mutex<Vec<(c_int, Vec<i64>, MPI_Datatype)>> = Mutex::new(Vec::new());

/// The bytes of a floating-point number with so many decimal digits, and powers of ten.
fn float_bytes(digits: c_int, range: c_int) -> Answer<usize> {
    let fits = |of: c_int, most: c_int| of == abi::UNDEFINED || (0..=most).contains(&of);
    need!(
        digits != abi::UNDEFINED || range != abi::UNDEFINED,
        abi::ERR_ARG,
        "the precision and the range are MPI_UNDEFINED"
    );
    let sizes = [(6, 37, 4), (15, 307, 8), (33, 4931, 16)];
    let found = sizes.iter().find(|(most, far, _)| fits(digits, *most) && fits(range, *far));
    match found {
        Some((_, _, bytes)) => Ok(*bytes),
        None => fail!(abi::ERR_ARG, "no number has {digits} digits and a range of {range}"),
    }
}

/// MPI_Type_create_f90_real.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_create_f90_real(
    digits: c_int,
    range: c_int,
    out: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_create_f90_real", |job| {
        let name = match float_bytes(digits, range)? {
            4 => "MPI_REAL4",
            8 => "MPI_REAL8",
            _ => "MPI_REAL16",
        };
        let by = vec![digits.into(), range.into()];
        // SAFETY: the caller's.
        unsafe { chosen(job, abi::COMBINER_F90_REAL, by, name, out) }
    })
}

/// MPI_Type_create_f90_complex.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_create_f90_complex(
    digits: c_int,
    range: c_int,
    out: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_create_f90_complex", |job| {
        let name = match float_bytes(digits, range)? {
            4 => "MPI_COMPLEX8",
            8 => "MPI_COMPLEX16",
            _ => "MPI_COMPLEX32",
        };
        let by = vec![digits.into(), range.into()];
        // SAFETY: the caller's.
        unsafe { chosen(job, abi::COMBINER_F90_COMPLEX, by, name, out) }
    })
}

/// MPI_Type_create_f90_integer.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Type_create_f90_integer(
    range: c_int,
    out: *mut MPI_Datatype,
) -> c_int {
    call("MPI_Type_create_f90_integer", |job| {
        let name = match range {
            ..=2 => "MPI_INTEGER1",
            3..=4 => "MPI_INTEGER2",
            5..=9 => "MPI_INTEGER4",
            10..=18 => "MPI_INTEGER8",
            19..=38 => "MPI_INTEGER16",
            _ => fail!(abi::ERR_ARG, "no integer has a range of {range}"),
        };
        // SAFETY: the caller's.
        unsafe { chosen(job, abi::COMBINER_F90_INTEGER, vec![range.into()], name, out) }
    })
}
