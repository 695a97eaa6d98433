//! What a reduction combines: the type of the elements, and the operation.

use super::object::{given, refuse};
use super::parameter::{self, read};
use super::{TSUMUGI_ERROR_FLAGS, TSUMUGI_ERROR_VALUE};
use std::ffi::{c_int, c_void};
use tsumugi::Error;
use tsumugi::Plain;
use tsumugi::group::{
    And, CombineFn, Max, Min, Operation, Or, Prod, RawCollective, StartedCollective, Sum, Xor,
    raw_combine,
};
use tsumugi_core::coll::schedule::{CombineOrder, Elements};

/// The sum; integers wrap. Of floats the same at all members, and in every run with the
/// same numbers of members and elements.
pub const TSUMUGI_SUM: u32 = 0;
/// The product; integers wrap.
pub const TSUMUGI_PROD: u32 = 1;
/// The smaller value. Of floats a NaN loses.
pub const TSUMUGI_MIN: u32 = 2;
/// The greater value. Of floats a NaN loses.
pub const TSUMUGI_MAX: u32 = 3;
/// The bits that both have; of integers alone, as the next two.
pub const TSUMUGI_AND: u32 = 4;
/// The bits that one of them has.
pub const TSUMUGI_OR: u32 = 5;
/// The bits that exactly one of them has.
pub const TSUMUGI_XOR: u32 = 6;

/// Elements are `uint64_t`.
pub const TSUMUGI_U64: u32 = 0;
/// Elements are `int64_t`.
pub const TSUMUGI_I64: u32 = 1;
/// Elements are `double`.
pub const TSUMUGI_F64: u32 = 2;
/// Elements are `uint32_t`.
pub const TSUMUGI_U32: u32 = 3;
/// Elements are `int32_t`.
pub const TSUMUGI_I32: u32 = 4;
/// Elements are `float`.
pub const TSUMUGI_F32: u32 = 5;
/// Elements are `uint16_t`.
pub const TSUMUGI_U16: u32 = 6;
/// Elements are `int16_t`.
pub const TSUMUGI_I16: u32 = 7;
/// Elements are `uint8_t`.
pub const TSUMUGI_U8: u32 = 8;
/// Elements are `int8_t`.
pub const TSUMUGI_I8: u32 = 9;

/// `function` commutes: values may be combined in any order, for which there are faster
/// algorithms.
pub const TSUMUGI_COMMUTES: usize = 1;

/// How elements are combined: by `what`, on elements of the type `element`; or, if
/// `function` is not NULL, by that. All zeroes but for the size: the sum of `uint64_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_reduction {
    /// `sizeof(struct tsumugi_reduction)`.
    pub size: usize,
    /// The operation: `TSUMUGI_SUM` and the others.
    pub what: u32,
    /// The type of an element: `TSUMUGI_U64` and the others.
    pub element: u32,
    /// An operation of the program's own, which is associative: writes the combined values
    /// of `left`, from lower members, and of `right`, from higher ones, to `into`, which is
    /// `left` or `right`, `count` times. It may run on any thread, also between the
    /// beginning of a collective and its end, and must not block. The elements are aligned
    /// as the buffers of the collective are.
    pub function: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            left: *const c_void,
            right: *const c_void,
            into: *mut c_void,
            count: usize,
        ),
    >,
    /// The first argument of `function`.
    pub context: *mut c_void,
    /// The bytes of an element of `function`.
    pub element_bytes: usize,
    /// `TSUMUGI_COMMUTES`, or 0.
    pub flags: usize,
}

// SAFETY: all members are words and halves of words that fill words, or an optional
// function, and the first is the size.
unsafe impl parameter::Versioned for tsumugi_reduction {}

/// An operation on elements.
pub(super) struct Fold {
    by: FoldBy,
    element_bytes: usize,
    commutes: bool,
}

enum FoldBy {
    /// Of the library; the box has no bytes.
    Known(Box<CombineFn<'static>>),
    Program(ProgramFold),
}

/// The function of a program.
#[derive(Clone, Copy)]
struct ProgramFold {
    function: unsafe extern "C" fn(*mut c_void, *const c_void, *const c_void, *mut c_void, usize),
    context: *mut c_void,
    element_bytes: usize,
}

// SAFETY: by the contract of `tsumugi_reduction`, the function may be called on any
// thread with the context.
unsafe impl Send for ProgramFold {}
// SAFETY: as for `Send`.
unsafe impl Sync for ProgramFold {}

impl Fold {
    /// The operation that a program has described.
    ///
    /// # Safety
    ///
    /// `by` is null or valid for a read of as many bytes as its `size` states.
    pub(super) unsafe fn of(by: *const tsumugi_reduction) -> Result<Self, c_int> {
        given(by.cast_mut(), "by")?;
        // SAFETY: the caller's.
        let of = unsafe { read(by) }?;
        if of.flags & !TSUMUGI_COMMUTES != 0 {
            let reason = format_args!("{:#x} are no flags of a reduction", of.flags);
            return Err(refuse(TSUMUGI_ERROR_FLAGS, reason));
        }
        let Some(function) = of.function else { return Self::known(of.what, of.element) };
        let tsumugi_reduction { context, element_bytes, .. } = of;
        if element_bytes == 0 {
            let reason = "0 bytes are no size of an element";
            return Err(refuse(TSUMUGI_ERROR_VALUE, reason));
        }
        let by = FoldBy::Program(ProgramFold { function, context, element_bytes });
        Ok(Self { by, element_bytes, commutes: of.flags & TSUMUGI_COMMUTES != 0 })
    }

    /// An operation of the library.
    pub(super) fn known(what: u32, element: u32) -> Result<Self, c_int> {
        match element {
            TSUMUGI_U64 => integers::<u64>(what),
            TSUMUGI_I64 => integers::<i64>(what),
            TSUMUGI_F64 => numbers::<f64>(what),
            TSUMUGI_U32 => integers::<u32>(what),
            TSUMUGI_I32 => integers::<i32>(what),
            TSUMUGI_F32 => numbers::<f32>(what),
            TSUMUGI_U16 => integers::<u16>(what),
            TSUMUGI_I16 => integers::<i16>(what),
            TSUMUGI_U8 => integers::<u8>(what),
            TSUMUGI_I8 => integers::<i8>(what),
            _ => {
                let reason = format_args!("{element} is no type of elements");
                Err(refuse(TSUMUGI_ERROR_VALUE, reason))
            }
        }
    }

    /// `count` elements of this operation.
    pub(super) fn elements(&self, count: usize) -> Elements {
        Elements { count, bytes: self.element_bytes, commutes: self.commutes }
    }

    /// Carries out a collective with this operation.
    ///
    /// # Safety
    ///
    /// That of [`RawCollective::run`].
    pub(super) unsafe fn run(
        self,
        call: RawCollective<'_>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let program;
        let combine: &CombineFn<'_> = match &self.by {
            FoldBy::Known(combine) => &**combine,
            FoldBy::Program(by) => {
                program = by.combine();
                &program
            }
        };
        // SAFETY: the caller's.
        unsafe { call.run(input, output, Some(combine)) }
    }

    /// Begins a collective with this operation.
    ///
    /// # Safety
    ///
    /// That of [`RawCollective::begin`].
    pub(super) unsafe fn begin(
        self,
        call: RawCollective<'_>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<StartedCollective, Error> {
        let combine = match self.by {
            FoldBy::Known(combine) => combine,
            FoldBy::Program(program) => Box::new(program.combine()),
        };
        // SAFETY: the caller's.
        unsafe { call.begin(input, output, Some(combine), || ()) }
    }
}

impl ProgramFold {
    fn combine(self) -> impl Fn(*const u8, *mut u8, usize, CombineOrder) + Send + Sync + 'static {
        move |from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder| {
            // The whole of `self` moves in, not its fields.
            let Self { function, context, element_bytes } = { self };
            let own = into.cast_const();
            let (left, right) = match order {
                CombineOrder::FromFirst => (from, own),
                CombineOrder::IntoFirst => (own, from),
            };
            let count = bytes / element_bytes;
            // SAFETY: the contract of `tsumugi_reduction`; the caller of a combine function
            // gives whole elements.
            unsafe { function(context, left.cast(), right.cast(), into.cast(), count) };
        }
    }
}

fn integers<T: Plain>(what: u32) -> Result<Fold, c_int>
where
    Sum: Operation<T>,
    Prod: Operation<T>,
    Min: Operation<T>,
    Max: Operation<T>,
    And: Operation<T>,
    Or: Operation<T>,
    Xor: Operation<T>,
{
    match what {
        TSUMUGI_AND => Ok(fold::<T>(And)),
        TSUMUGI_OR => Ok(fold::<T>(Or)),
        TSUMUGI_XOR => Ok(fold::<T>(Xor)),
        _ => numbers::<T>(what),
    }
}

fn numbers<T: Plain>(what: u32) -> Result<Fold, c_int>
where
    Sum: Operation<T>,
    Prod: Operation<T>,
    Min: Operation<T>,
    Max: Operation<T>,
{
    match what {
        TSUMUGI_SUM => Ok(fold::<T>(Sum)),
        TSUMUGI_PROD => Ok(fold::<T>(Prod)),
        TSUMUGI_MIN => Ok(fold::<T>(Min)),
        TSUMUGI_MAX => Ok(fold::<T>(Max)),
        _ => {
            let reason = format_args!("{what} is no operation on elements of this type");
            Err(refuse(TSUMUGI_ERROR_VALUE, reason))
        }
    }
}

fn fold<T: Plain>(operation: impl Operation<T> + 'static) -> Fold {
    // SAFETY: a collective alone calls it, with elements of the size below.
    let by = FoldBy::Known(unsafe { raw_combine(operation) });
    Fold { by, element_bytes: size_of::<T>(), commutes: true }
}
