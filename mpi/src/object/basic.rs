//! The datatypes of the standard.

use crate::abi::MPI_Datatype;

/// A datatype of the standard: its bytes, and what an operation does with them.
#[derive(Debug)]
pub(crate) struct Basic {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
}

/// What the bytes of an element are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// No such datatype.
    None,
    Bytes,
    Char,
    /// `wchar_t`.
    Wide,
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    /// Two bytes of a float, for which there are no operations.
    F16,
    F32,
    F64,
    /// `long double`.
    F80,
    /// Sixteen bytes of a float of Fortran.
    F128,
    C16,
    C32,
    C64,
    C80,
    C128,
    /// Logical values of so many bytes.
    L8,
    L16,
    L32,
    L64,
    L128,
    /// Pairs of a value and an index, for MPI_MINLOC and MPI_MAXLOC.
    F32I32,
    F64I32,
    I64I32,
    I32I32,
    I16I32,
    F80I32,
    F32F32,
    F64F64,
}

impl Value {
    /// The bytes of data, the extent and the alignment.
    pub(crate) const fn layout(self) -> (usize, usize, usize) {
        match self {
            Self::None => (0, 0, 1),
            Self::Bytes | Self::Char | Self::I8 | Self::U8 | Self::L8 => (1, 1, 1),
            Self::I16 | Self::U16 | Self::F16 | Self::L16 => (2, 2, 2),
            Self::Wide | Self::I32 | Self::U32 | Self::F32 | Self::L32 => (4, 4, 4),
            Self::I64 | Self::U64 | Self::F64 | Self::L64 => (8, 8, 8),
            Self::I128 | Self::F80 | Self::F128 | Self::L128 => (16, 16, 16),
            Self::C16 => (4, 4, 2),
            Self::C32 | Self::F32I32 | Self::I32I32 | Self::F32F32 => (8, 8, 4),
            Self::C64 | Self::F64F64 => (16, 16, 8),
            Self::C80 | Self::C128 => (32, 32, 16),
            Self::F64I32 | Self::I64I32 => (12, 16, 8),
            Self::I16I32 => (6, 8, 4),
            Self::F80I32 => (20, 32, 16),
        }
    }

    /// Where the index of a pair lies, if the bytes before it have a hole.
    pub(crate) const fn index_at(self) -> Option<usize> {
        match self {
            Self::F32I32 | Self::I32I32 | Self::F32F32 | Self::I16I32 => Some(4),
            Self::F64I32 | Self::I64I32 | Self::F64F64 => Some(8),
            Self::F80I32 => Some(16),
            _ => None,
        }
    }
}

/// The datatype of a handle of the standard.
#[inline]
pub(crate) fn basic(handle: MPI_Datatype) -> Option<&'static Basic> {
    let basic = BASICS.get(handle.0.wrapping_sub(MPI_Datatype::NULL.0))?;
    (basic.value != Value::None).then_some(basic)
}

/// The bytes of an element of a datatype of the standard whose elements follow each other without
/// holes. `None`: the handle is of another one.
#[inline(always)]
pub(crate) fn dense_bytes(handle: MPI_Datatype) -> Option<usize> {
    let bytes = *DENSE.get(handle.0.wrapping_sub(MPI_Datatype::NULL.0))?;
    (bytes != 0).then_some(bytes as usize)
}

/// All handles of the standard with a datatype.
pub(crate) fn all() -> impl Iterator<Item = (MPI_Datatype, &'static Basic)> {
    (0..BASICS.len())
        .map(|at| MPI_Datatype(MPI_Datatype::NULL.0 + at))
        .filter_map(|handle| basic(handle).map(|basic| (handle, basic)))
}

macro_rules! basics {
    ($($at:literal $name:literal $value:ident,)*) => { {
        let mut all = [const { Basic { name: "", value: Value::None } }; 0x100];
        $( all[$at - MPI_Datatype::NULL.0] =
            Basic { name: $name, value: Value::$value }; )*
        all
    } };
}

/// By handles, from MPI_DATATYPE_NULL on.
static BASICS: [Basic; 0x100] = basics! {
    0x201 "MPI_AINT" I64,
    0x202 "MPI_COUNT" I64,
    0x203 "MPI_OFFSET" I64,
    0x207 "MPI_PACKED" Bytes,
    0x208 "MPI_SHORT" I16,
    0x209 "MPI_INT" I32,
    0x20a "MPI_LONG" I64,
    0x20b "MPI_LONG_LONG_INT" I64,
    0x20c "MPI_UNSIGNED_SHORT" U16,
    0x20d "MPI_UNSIGNED" U32,
    0x20e "MPI_UNSIGNED_LONG" U64,
    0x20f "MPI_UNSIGNED_LONG_LONG" U64,
    0x210 "MPI_FLOAT" F32,
    0x212 "MPI_C_FLOAT_COMPLEX" C32,
    0x213 "MPI_CXX_FLOAT_COMPLEX" C32,
    0x214 "MPI_DOUBLE" F64,
    0x216 "MPI_C_DOUBLE_COMPLEX" C64,
    0x217 "MPI_CXX_DOUBLE_COMPLEX" C64,
    0x218 "MPI_LOGICAL" L32,
    0x219 "MPI_INTEGER" I32,
    0x21a "MPI_REAL" F32,
    0x21b "MPI_COMPLEX" C32,
    0x21c "MPI_DOUBLE_PRECISION" F64,
    0x21d "MPI_DOUBLE_COMPLEX" C64,
    0x21e "MPI_CHARACTER" Char,
    0x220 "MPI_LONG_DOUBLE" F80,
    0x224 "MPI_C_LONG_DOUBLE_COMPLEX" C80,
    0x225 "MPI_CXX_LONG_DOUBLE_COMPLEX" C80,
    0x228 "MPI_FLOAT_INT" F32I32,
    0x229 "MPI_DOUBLE_INT" F64I32,
    0x22a "MPI_LONG_INT" I64I32,
    0x22b "MPI_2INT" I32I32,
    0x22c "MPI_SHORT_INT" I16I32,
    0x22d "MPI_LONG_DOUBLE_INT" F80I32,
    0x230 "MPI_2REAL" F32F32,
    0x231 "MPI_2DOUBLE_PRECISION" F64F64,
    0x232 "MPI_2INTEGER" I32I32,
    0x238 "MPI_C_BOOL" L8,
    0x239 "MPI_CXX_BOOL" L8,
    0x23c "MPI_WCHAR" Wide,
    0x240 "MPI_INT8_T" I8,
    0x241 "MPI_UINT8_T" U8,
    // The standard has no operations on it; MPICH and Open MPI have, and OSU's benchmarks
    // reduce arrays of it.
    0x243 "MPI_CHAR" I8,
    0x244 "MPI_SIGNED_CHAR" I8,
    0x245 "MPI_UNSIGNED_CHAR" U8,
    0x247 "MPI_BYTE" Bytes,
    0x248 "MPI_INT16_T" I16,
    0x249 "MPI_UINT16_T" U16,
    0x250 "MPI_INT32_T" I32,
    0x251 "MPI_UINT32_T" U32,
    0x258 "MPI_INT64_T" I64,
    0x259 "MPI_UINT64_T" U64,
    0x2c0 "MPI_LOGICAL1" L8,
    0x2c1 "MPI_INTEGER1" I8,
    0x2c8 "MPI_LOGICAL2" L16,
    0x2c9 "MPI_INTEGER2" I16,
    0x2ca "MPI_REAL2" F16,
    0x2d0 "MPI_LOGICAL4" L32,
    0x2d1 "MPI_INTEGER4" I32,
    0x2d2 "MPI_REAL4" F32,
    0x2d3 "MPI_COMPLEX4" C16,
    0x2d8 "MPI_LOGICAL8" L64,
    0x2d9 "MPI_INTEGER8" I64,
    0x2da "MPI_REAL8" F64,
    0x2db "MPI_COMPLEX8" C32,
    0x2e0 "MPI_LOGICAL16" L128,
    0x2e1 "MPI_INTEGER16" I128,
    0x2e2 "MPI_REAL16" F128,
    0x2e3 "MPI_COMPLEX16" C64,
    0x2eb "MPI_COMPLEX32" C128,
};

/// By handles as [`BASICS`]; zero where elements have holes, or there is no datatype.
static DENSE: [u8; 0x100] = {
    let mut all = [0; 0x100];
    let mut at = 0;
    while at < all.len() {
        let (size, extent, _) = BASICS[at].value.layout();
        if size == extent {
            all[at] = size as u8;
        }
        at += 1;
    }
    all
};
