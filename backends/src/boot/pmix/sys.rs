//! The few functions and structures of PMIx that are used: the same in
//! versions 2 to 5 of its library.

use crate::boot::sys::symbol;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Proc {
    pub nspace: [c_char; 256],
    pub rank: u32,
}

/// `pmix_value_t`: a kind, and a union of which only the first words are used.
#[repr(C)]
pub struct Value {
    pub kind: u16,
    data: [u64; 3],
}

/// `pmix_info_t`: a directive of a call.
#[repr(C)]
pub struct PmixInfo {
    key: [c_char; 512],
    flags: u32,
    value: Value,
}

type PmixInfos = *const PmixInfo;
type DoneFn = unsafe extern "C" fn(c_int, *mut c_void);

/// The functions that are called.
pub struct Functions {
    pub init: InitFn,
    pub finalize: FinalizeFn,
    pub put: PutFn,
    pub commit: CommitFn,
    pub fence: FenceFn,
    pub fence_begin: FenceBeginFn,
    pub get: GetFn,
    /// The function that frees values, if the library has it.
    free: Option<FreeFn>,
}

type InitFn = unsafe extern "C" fn(*mut Proc, PmixInfos, usize) -> c_int;
type FinalizeFn = unsafe extern "C" fn(PmixInfos, usize) -> c_int;
type PutFn = unsafe extern "C" fn(u8, *const c_char, *const Value) -> c_int;
type CommitFn = unsafe extern "C" fn() -> c_int;
type FenceFn = unsafe extern "C" fn(*const Proc, usize, PmixInfos, usize) -> c_int;
type FenceBeginFn =
    unsafe extern "C" fn(*const Proc, usize, PmixInfos, usize, DoneFn, *mut c_void) -> c_int;
type FreeFn = unsafe extern "C" fn(*mut Value, usize);
type GetFn =
    unsafe extern "C" fn(*const Proc, *const c_char, PmixInfos, usize, *mut *mut Value) -> c_int;

impl Functions {
    /// The functions of a loaded library; `None` if one of them is missing.
    pub fn of(library: *mut c_void) -> Option<Self> {
        let at = |name| symbol(library, name);
        // SAFETY: functions of these names have these types in every version.
        unsafe {
            Some(Self {
                init: transmute::<*mut c_void, InitFn>(at(c"PMIx_Init")?),
                finalize: transmute::<*mut c_void, FinalizeFn>(at(c"PMIx_Finalize")?),
                put: transmute::<*mut c_void, PutFn>(at(c"PMIx_Put")?),
                commit: transmute::<*mut c_void, CommitFn>(at(c"PMIx_Commit")?),
                fence: transmute::<*mut c_void, FenceFn>(at(c"PMIx_Fence")?),
                fence_begin: transmute::<*mut c_void, FenceBeginFn>(at(c"PMIx_Fence_nb")?),
                get: transmute::<*mut c_void, GetFn>(at(c"PMIx_Get")?),
                free: at(c"PMIx_Value_free").map(|at| transmute::<*mut c_void, FreeFn>(at)),
            })
        }
    }

    /// Frees a value that the library has made: a number or a string.
    ///
    /// # Safety
    ///
    /// `value` must come from the library, and must not be used any more.
    pub unsafe fn free(&self, value: *mut Value) {
        // SAFETY: the caller guarantees that the library made the value. A library
        // that does not export the function has a macro in its header that does the
        // same as this.
        unsafe {
            match self.free {
                Some(free) => free(value, 1),
                None => {
                    if (*value).kind == STRING {
                        libc::free((*value).data[0] as *mut c_void);
                    }
                    libc::free(value.cast());
                }
            }
        }
    }
}

impl PmixInfo {
    /// A directive that is a switch, set to on.
    pub fn on(key: &CStr) -> Self {
        Self::new(key, Value { kind: BOOL, data: [1, 0, 0] })
    }

    /// A directive that is a number.
    pub fn number(key: &CStr, number: u32) -> Self {
        Self::new(key, Value { kind: INT, data: [number.into(), 0, 0] })
    }

    fn new(name: &CStr, value: Value) -> Self {
        let mut key = [0; 512];
        let bytes = name.to_bytes().iter();
        key.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte as c_char);
        Self { key, flags: 0, value }
    }
}

impl Default for Proc {
    fn default() -> Self {
        Self { nspace: [0; 256], rank: 0 }
    }
}

impl Value {
    /// A string value; valid as long as `text` is.
    pub fn string(text: &CStr) -> Self {
        Self { kind: STRING, data: [text.as_ptr() as u64, 0, 0] }
    }

    /// The number, if the value is one of 32 bits.
    pub fn number(&self) -> Option<u32> {
        (self.kind == UINT32).then_some(self.data[0] as u32)
    }

    /// The text, if the value is a text of at most `bytes_max` bytes.
    pub fn text(&self, bytes_max: usize) -> Option<&str> {
        let at = self.data[0] as *const c_char;
        if self.kind != STRING || at.is_null() {
            return None;
        }
        // SAFETY: the string comes from the library, or from the caller of
        // `string`; it ends in 0 and lives as long as the value.
        let text = unsafe { CStr::from_ptr(at) };
        text.to_str().ok().filter(|text| text.len() <= bytes_max)
    }
}

/// `PMIX_COLLECT_DATA`.
pub const COLLECT: &CStr = c"pmix.collect";
/// `PMIX_TIMEOUT`, in seconds.
pub const TIMEOUT: &CStr = c"pmix.timeout";
/// `PMIX_BOOL`.
const BOOL: u16 = 1;
/// `PMIX_INT`.
const INT: u16 = 6;
/// `PMIX_STRING`.
pub const STRING: u16 = 3;
/// `PMIX_UINT32`.
const UINT32: u16 = 14;
/// `PMIX_GLOBAL`.
pub const GLOBAL: u8 = 3;
/// `PMIX_RANK_WILDCARD`.
pub const WILDCARD: u32 = u32::MAX - 1;
/// `PMIX_ERR_NOT_FOUND`.
pub const NOT_FOUND: c_int = -46;

const _: () = assert!(size_of::<Value>() == 32 && size_of::<Proc>() == 260);
const _: () = assert!(size_of::<PmixInfo>() == 552);
