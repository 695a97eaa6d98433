//! Operations of reductions: the standard's, and functions of the program.

use crate::abi::{self, MPI_Datatype, MPI_Op};
use crate::fault::{Answer, fail};
use crate::object::basic::Value;
use crate::object::datatype::DatatypeRef;
use crate::object::extended::{F80, add, less, multiply, subtract};
use crate::object::program_function::InFunction;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use tsumugi_core::coll::schedule::CombineOrder;

/// A function of the program, by the type of its length.
#[derive(Clone, Copy)]
pub(crate) enum UserFn {
    Int(unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype)),
    Count(unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut MPI_Datatype)),
}

/// An operation of the program.
pub(crate) struct UserOp {
    pub(crate) function: UserFn,
    pub(crate) commutes: bool,
}

/// An operation that a call uses.
pub(crate) enum OpRef {
    Given(MPI_Op),
    Made(Arc<UserOp>),
}

impl OpRef {
    /// An operation of the standard.
    pub(crate) fn given(handle: MPI_Op) -> Option<Self> {
        (handle.0 > MPI_Op::NULL.0 && handle.0 <= MPI_Op::NO_OP.0).then_some(Self::Given(handle))
    }

    pub(crate) fn commutes(&self) -> bool {
        match self {
            Self::Given(op) => !matches!(*op, MPI_Op::REPLACE | MPI_Op::NO_OP),
            Self::Made(op) => op.commutes,
        }
    }
}

/// Combines elements: `into = from ∘ into`, or `into ∘ from`.
pub(crate) type CombineBytes = Box<dyn Fn(*const u8, *mut u8, usize, CombineOrder) + Send + Sync>;

/// The function that combines elements of a datatype, of which the data has no holes; for
/// functions of the program they have the extent of the datatype.
pub(crate) fn combine(op: OpRef, of: &DatatypeRef) -> Answer<CombineBytes> {
    match op {
        OpRef::Given(op) => of_standard(op, of),
        OpRef::Made(op) => Ok(of_program(op, of.clone())),
    }
}

fn of_program(op: Arc<UserOp>, of: DatatypeRef) -> CombineBytes {
    Box::new(move |from, into, bytes, order| {
        let extent = of.bounds.extent().cast_unsigned().max(1);
        let (count, mut handle) = (bytes / extent, of.handle());
        // The bytes of an element begin at its lower bound, and its address may be another.
        let at = |bytes: *mut u8| bytes.wrapping_offset(-of.bounds.lb);
        // SAFETY: whole elements, as the collective gives them. The program's function
        // changes its second argument alone: `inout = in ∘ inout`.
        unsafe {
            match order {
                CombineOrder::FromFirst => {
                    op.apply(at(from.cast_mut()), at(into), count, &mut handle);
                }
                CombineOrder::IntoFirst => {
                    // The result goes where the higher values are, and is copied back.
                    let mut higher = vec![0u128; bytes.div_ceil(size_of::<u128>())];
                    let higher = higher.as_mut_ptr().cast::<u8>();
                    higher.copy_from_nonoverlapping(from, bytes);
                    op.apply(at(into), at(higher), count, &mut handle);
                    into.copy_from_nonoverlapping(higher, bytes);
                }
            }
        }
    })
}

impl UserOp {
    /// Calls the function.
    ///
    /// # Safety
    ///
    /// Both buffers have `count` elements.
    unsafe fn apply(&self, from: *mut u8, into: *mut u8, count: usize, of: &mut MPI_Datatype) {
        let (from, into) = (from.cast(), into.cast());
        let _inside = InFunction::enter();
        // SAFETY: the caller's; the program's function is for such elements.
        unsafe {
            match self.function {
                UserFn::Int(function) => {
                    let mut count = count as c_int;
                    function(from, into, &raw mut count, &raw mut *of);
                }
                UserFn::Count(function) => {
                    let mut count = count as i64;
                    function(from, into, &raw mut count, &raw mut *of);
                }
            }
        }
    }
}

/// Combines whole values of a type. The box of an operation without a value has no bytes.
fn each<T: Copy + 'static>(combine: impl Fn(T, T) -> T + Send + Sync + 'static) -> CombineBytes {
    Box::new(move |from, into, bytes, order| {
        let (from, into) = (from.cast::<T>(), into.cast::<T>());
        for at in 0..bytes / size_of::<T>() {
            // SAFETY: whole elements, as the collective gives them. Scratch memory has no
            // type, and so no alignment.
            unsafe {
                let (from, into) = (from.add(at), into.add(at));
                let (other, own) = (from.read_unaligned(), into.read_unaligned());
                into.write_unaligned(match order {
                    CombineOrder::FromFirst => combine(other, own),
                    CombineOrder::IntoFirst => combine(own, other),
                });
            }
        }
    })
}

/// A complex number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Complex<T>(T, T);

/// A value with an index.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair<T, I>(T, I);

/// The lesser (or greater) value, and of equal ones the lower index.
macro_rules! pairs {
    ($op:expr, $value:ty, $index:ty, |$a:ident, $b:ident| $less:expr) => {
        match $op {
            MPI_Op::MINLOC => each::<Pair<$value, $index>>(|one, other| {
                let less = |$a: $value, $b: $value| $less;
                match (less(one.0, other.0), less(other.0, one.0)) {
                    (true, _) => one,
                    (_, true) => other,
                    _ => Pair(one.0, if one.1 < other.1 { one.1 } else { other.1 }),
                }
            }),
            MPI_Op::MAXLOC => each::<Pair<$value, $index>>(|one, other| {
                let less = |$a: $value, $b: $value| $less;
                match (less(other.0, one.0), less(one.0, other.0)) {
                    (true, _) => one,
                    (_, true) => other,
                    _ => Pair(one.0, if one.1 < other.1 { one.1 } else { other.1 }),
                }
            }),
            _ => return None,
        }
    };
}

macro_rules! integers {
    ($op:expr, $type:ty) => {
        match $op {
            MPI_Op::SUM => each::<$type>(|a, b| a.wrapping_add(b)),
            MPI_Op::PROD => each::<$type>(|a, b| a.wrapping_mul(b)),
            MPI_Op::MIN => each::<$type>(|a, b| a.min(b)),
            MPI_Op::MAX => each::<$type>(|a, b| a.max(b)),
            MPI_Op::BAND => each::<$type>(|a, b| a & b),
            MPI_Op::BOR => each::<$type>(|a, b| a | b),
            MPI_Op::BXOR => each::<$type>(|a, b| a ^ b),
            MPI_Op::LAND => each::<$type>(|a, b| <$type>::from(a != 0 && b != 0)),
            MPI_Op::LOR => each::<$type>(|a, b| <$type>::from(a != 0 || b != 0)),
            MPI_Op::LXOR => each::<$type>(|a, b| <$type>::from((a != 0) != (b != 0))),
            _ => return None,
        }
    };
}

macro_rules! floats {
    ($op:expr, $type:ty) => {
        match $op {
            MPI_Op::SUM => each::<$type>(|a, b| a + b),
            MPI_Op::PROD => each::<$type>(|a, b| a * b),
            MPI_Op::MIN => each::<$type>(|a, b| if b < a { b } else { a }),
            MPI_Op::MAX => each::<$type>(|a, b| if b > a { b } else { a }),
            _ => return None,
        }
    };
}

macro_rules! logicals {
    ($op:expr, $type:ty) => {
        match $op {
            MPI_Op::LAND | MPI_Op::BAND => each::<$type>(|a, b| <$type>::from(a != 0 && b != 0)),
            MPI_Op::LOR | MPI_Op::BOR => each::<$type>(|a, b| <$type>::from(a != 0 || b != 0)),
            MPI_Op::LXOR | MPI_Op::BXOR => {
                each::<$type>(|a, b| <$type>::from((a != 0) != (b != 0)))
            }
            _ => return None,
        }
    };
}

macro_rules! complexes {
    ($op:expr, $type:ty) => {
        match $op {
            MPI_Op::SUM => each::<Complex<$type>>(|a, b| Complex(a.0 + b.0, a.1 + b.1)),
            MPI_Op::PROD => {
                each::<Complex<$type>>(|a, b| Complex(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0))
            }
            _ => return None,
        }
    };
}

/// The standard's operation on values. `None`: it is not for such values.
fn on_values(op: MPI_Op, value: Value) -> Option<CombineBytes> {
    Some(match value {
        Value::I8 => integers!(op, i8),
        Value::I16 => integers!(op, i16),
        Value::I32 => integers!(op, i32),
        Value::I64 => integers!(op, i64),
        Value::I128 => integers!(op, i128),
        Value::U8 => integers!(op, u8),
        Value::U16 => integers!(op, u16),
        Value::U32 => integers!(op, u32),
        Value::U64 => integers!(op, u64),
        Value::F32 => floats!(op, f32),
        Value::F64 => floats!(op, f64),
        Value::F80 => match op {
            MPI_Op::SUM => each::<F80>(add),
            MPI_Op::PROD => each::<F80>(multiply),
            MPI_Op::MIN => each::<F80>(|a, b| if less(b, a) { b } else { a }),
            MPI_Op::MAX => each::<F80>(|a, b| if less(a, b) { b } else { a }),
            _ => return None,
        },
        Value::C32 => complexes!(op, f32),
        Value::C64 => complexes!(op, f64),
        Value::C80 => match op {
            MPI_Op::SUM => each::<Complex<F80>>(|a, b| Complex(add(a.0, b.0), add(a.1, b.1))),
            MPI_Op::PROD => each::<Complex<F80>>(|a, b| {
                let real = subtract(multiply(a.0, b.0), multiply(a.1, b.1));
                Complex(real, add(multiply(a.0, b.1), multiply(a.1, b.0)))
            }),
            _ => return None,
        },
        Value::L8 => logicals!(op, u8),
        Value::L16 => logicals!(op, u16),
        Value::L32 => logicals!(op, u32),
        Value::L64 => logicals!(op, u64),
        Value::L128 => logicals!(op, u128),
        Value::Bytes => match op {
            MPI_Op::BAND => each::<u8>(|a, b| a & b),
            MPI_Op::BOR => each::<u8>(|a, b| a | b),
            MPI_Op::BXOR => each::<u8>(|a, b| a ^ b),
            _ => return None,
        },
        Value::F32I32 => pairs!(op, f32, i32, |a, b| a < b),
        Value::F64I32 => pairs!(op, f64, i32, |a, b| a < b),
        Value::I64I32 => pairs!(op, i64, i32, |a, b| a < b),
        Value::I32I32 => pairs!(op, i32, i32, |a, b| a < b),
        Value::I16I32 => pairs!(op, i16, i32, |a, b| a < b),
        Value::F80I32 => pairs!(op, F80, i32, |a, b| less(a, b)),
        Value::F32F32 => pairs!(op, f32, f32, |a, b| a < b),
        Value::F64F64 => pairs!(op, f64, f64, |a, b| a < b),
        _ => return None,
    })
}

fn of_standard(op: MPI_Op, of: &DatatypeRef) -> Answer<CombineBytes> {
    let Some(basic) = of.basic else {
        fail!(abi::ERR_OP, "{} is not for datatypes of the program", name_of(op))
    };
    match on_values(op, basic.value) {
        Some(combine) => Ok(combine),
        None => fail!(abi::ERR_OP, "{} is not for {}", name_of(op), basic.name),
    }
}

pub(crate) fn name_of(op: MPI_Op) -> &'static str {
    match op {
        MPI_Op::SUM => "MPI_SUM",
        MPI_Op::MIN => "MPI_MIN",
        MPI_Op::MAX => "MPI_MAX",
        MPI_Op::PROD => "MPI_PROD",
        MPI_Op::BAND => "MPI_BAND",
        MPI_Op::BOR => "MPI_BOR",
        MPI_Op::BXOR => "MPI_BXOR",
        MPI_Op::LAND => "MPI_LAND",
        MPI_Op::LOR => "MPI_LOR",
        MPI_Op::LXOR => "MPI_LXOR",
        MPI_Op::MINLOC => "MPI_MINLOC",
        MPI_Op::MAXLOC => "MPI_MAXLOC",
        MPI_Op::REPLACE => "MPI_REPLACE",
        MPI_Op::NO_OP => "MPI_NO_OP",
        _ => "the operation",
    }
}
