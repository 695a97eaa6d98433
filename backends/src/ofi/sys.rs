//! The functions and structures of libfabric that are used.
//!
//! The library is loaded at run time. It exports a handful of functions by name;
//! all others are slots of tables that belong to the objects:
//!
//! ```text
//!  fi_getinfo ─► fi_info ─► fi_fabric ─► fid_fabric ─ ops.domain ─► fid_domain
//!    fid_domain ─ ops.{av_open, cq_open, endpoint}, mr.reg
//!    fid_ep ─ {rma, atomic, msg}.{read, write, ...}
//! ```
//!
//! Layouts are those of version 1.17, of which later libraries keep every field
//! that is declared here: structures grow at their ends. Therefore this code
//! allocates none of them (`fi_dupinfo(NULL)` does that), reads only the fields
//! below, and checks a table's `size` before it uses a slot of the table. Names are
//! libfabric's own; `ci/ofi_layout.c` prints the offsets from its headers, and a
//! test compares.

#![allow(non_camel_case_types)]
#![allow(missing_docs, missing_debug_implementations)]

use core::ffi::{CStr, c_char, c_int, c_void};

pub type fi_addr_t = u64;

use crate::foreign::{constants, structures};
use crate::net::PostResult;

/// A slot of a table that is not used here.
pub type Unused = *const c_void;

structures! {
    fid { fclass: usize, context: *mut c_void, ops: *const fi_ops }
    fi_ops {
        size: usize,
        close: Option<unsafe extern "C" fn(*mut fid) -> c_int>,
        bind: Option<unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int>,
        control: Option<unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int>,
    }
    fi_tx_attr {
        caps: u64, mode: u64, op_flags: u64, msg_order: u64, comp_order: u64,
        inject_size: usize, size: usize, iov_limit: usize, rma_iov_limit: usize,
    }
    fi_rx_attr { caps: u64, mode: u64, op_flags: u64, msg_order: u64 }
    fi_ep_attr {
        type_: c_int, protocol: u32, protocol_version: u32, max_msg_size: usize,
    }
    fi_domain_attr {
        domain: *mut fid_domain, name: *mut c_char, threading: c_int,
        control_progress: c_int, data_progress: c_int, resource_mgmt: c_int,
        av_type: c_int, mr_mode: c_int, mr_key_size: usize,
    }
    fi_fabric_attr {
        fabric: *mut fid_fabric, name: *mut c_char, prov_name: *mut c_char,
        prov_version: u32, api_version: u32,
    }
    fi_info {
        next: *mut fi_info, caps: u64, mode: u64, addr_format: u32,
        src_addrlen: usize, dest_addrlen: usize,
        src_addr: *mut c_void, dest_addr: *mut c_void, handle: *mut fid,
        tx_attr: *mut fi_tx_attr, rx_attr: *mut fi_rx_attr, ep_attr: *mut fi_ep_attr,
        domain_attr: *mut fi_domain_attr, fabric_attr: *mut fi_fabric_attr,
    }
    fid_fabric { fid: fid, ops: *const fi_ops_fabric, api_version: u32 }
    fi_ops_fabric {
        size: usize,
        domain: Option<unsafe extern "C" fn(
            *mut fid_fabric, *mut fi_info, *mut *mut fid_domain, *mut c_void) -> c_int>,
        passive_ep: Unused, eq_open: Unused, wait_open: Unused,
        trywait: Option<unsafe extern "C" fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int>,
    }
    fid_domain { fid: fid, ops: *const fi_ops_domain, mr: *const fi_ops_mr }
    fi_ops_domain {
        size: usize,
        av_open: Option<unsafe extern "C" fn(
            *mut fid_domain, *mut fi_av_attr, *mut *mut fid_av, *mut c_void) -> c_int>,
        cq_open: Option<unsafe extern "C" fn(
            *mut fid_domain, *mut fi_cq_attr, *mut *mut fid_cq, *mut c_void) -> c_int>,
        endpoint: Option<unsafe extern "C" fn(
            *mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int>,
    }
    fi_ops_mr {
        size: usize,
        reg: Option<unsafe extern "C" fn(
            *mut fid, *const c_void, usize, u64, u64, u64, u64,
            *mut *mut fid_mr, *mut c_void) -> c_int>,
    }
    fid_mr { fid: fid, mem_desc: *mut c_void, key: u64 }
    fi_mr_raw_attr { flags: u64, base_addr: *mut u64, raw_key: *mut u8, key_size: *mut usize }
    fi_mr_map_raw {
        flags: u64, base_addr: u64, raw_key: *mut u8, key_size: usize, key: *mut u64,
    }
    fi_av_attr {
        type_: c_int, rx_ctx_bits: c_int, count: usize, ep_per_node: usize,
        name: *const c_char, map_addr: *mut c_void, flags: u64,
    }
    fid_av { fid: fid, ops: *const fi_ops_av }
    fi_ops_av {
        size: usize,
        insert: Option<unsafe extern "C" fn(
            *mut fid_av, *const c_void, usize, *mut fi_addr_t, u64, *mut c_void) -> c_int>,
        insertsvc: Unused, insertsym: Unused,
        remove: Option<unsafe extern "C" fn(*mut fid_av, *mut fi_addr_t, usize, u64) -> c_int>,
        lookup: Option<unsafe extern "C" fn(
            *mut fid_av, fi_addr_t, *mut c_void, *mut usize) -> c_int>,
    }
    fi_cq_attr {
        size: usize, flags: u64, format: c_int, wait_obj: c_int, signaling_vector: c_int,
        wait_cond: c_int, wait_set: *mut c_void,
    }
    fid_cq { fid: fid, ops: *const fi_ops_cq }
    fi_ops_cq {
        size: usize,
        read: Option<unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> PostResult>,
        readfrom: Unused,
        readerr: Option<unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> PostResult>,
    }
    fi_cq_msg_entry { op_context: *mut c_void, flags: u64, len: usize }
    fi_cq_err_entry {
        op_context: *mut c_void, flags: u64, len: usize, buf: *mut c_void, data: u64, tag: u64,
        olen: usize, err: c_int, prov_errno: c_int, err_data: *mut c_void, err_data_size: usize,
    }
    fid_ep {
        fid: fid, ops: Unused, cm: *const fi_ops_cm, msg: *const fi_ops_msg,
        rma: *const fi_ops_rma, tagged: Unused, atomic: *const fi_ops_atomic,
    }
    fi_ops_cm {
        size: usize, setname: Unused,
        getname: Option<unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int>,
    }
    fi_ops_msg {
        size: usize,
        recv: Option<unsafe extern "C" fn(
            *mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> PostResult>,
        recvv: Unused, recvmsg: Unused,
        send: Option<unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> PostResult>,
        sendv: Unused, sendmsg: Unused,
        inject: Option<unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, fi_addr_t) -> PostResult>,
    }
    fi_ops_rma {
        size: usize,
        read: Option<unsafe extern "C" fn(
            *mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, u64, u64,
            *mut c_void) -> PostResult>,
        readv: Unused,
        readmsg: Option<unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> PostResult>,
        write: Option<unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, u64, u64,
            *mut c_void) -> PostResult>,
        writev: Unused,
        writemsg: Option<unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> PostResult>,
    }
    fi_rma_iov { addr: u64, len: usize, key: u64 }
    fi_msg_rma {
        msg_iov: *const libc::iovec, desc: *mut *mut c_void, iov_count: usize, addr: fi_addr_t,
        rma_iov: *const fi_rma_iov, rma_iov_count: usize, context: *mut c_void, data: u64,
    }
    fi_ops_atomic {
        size: usize,
        write: Option<unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, u64, u64,
            c_int, c_int, *mut c_void) -> PostResult>,
        writev: Unused, writemsg: Unused, inject: Unused,
        readwrite: Option<unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            u64, u64, c_int, c_int, *mut c_void) -> PostResult>,
        readwritev: Unused, readwritemsg: Unused,
        compwrite: Option<unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *const c_void, *mut c_void,
            *mut c_void, *mut c_void, fi_addr_t, u64, u64, c_int, c_int, *mut c_void) -> PostResult>,
        compwritev: Unused, compwritemsg: Unused,
        writevalid: Option<unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut usize) -> c_int>,
        readwritevalid:
            Option<unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut usize) -> c_int>,
        compwritevalid:
            Option<unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut usize) -> c_int>,
    }
}

constants! { u64:
    FI_MSG = 1 << 1, FI_RMA = 1 << 2, FI_ATOMIC = 1 << 4,
    FI_READ = 1 << 8, FI_WRITE = 1 << 9, FI_RECV = 1 << 10, FI_TRANSMIT = 1 << 11,
    FI_REMOTE_READ = 1 << 12, FI_REMOTE_WRITE = 1 << 13,
    FI_MORE = 1 << 18, FI_COMPLETION = 1 << 24, FI_INJECT = 1 << 25,
    FI_ORDER_SAW = 1 << 7, FI_DELIVERY_COMPLETE = 1 << 28, FI_REMOTE_COMM = 1 << 52, FI_SOURCE = 1 << 57,
    FI_CONTEXT = 1 << 59, FI_CONTEXT2 = 1 << 52,
    FI_ADDR_UNSPEC = u64::MAX,
}
constants! { c_int:
    FI_MR_LOCAL = 1 << 2, FI_MR_RAW = 1 << 3, FI_MR_VIRT_ADDR = 1 << 4,
    FI_MR_ALLOCATED = 1 << 5, FI_MR_PROV_KEY = 1 << 6, FI_MR_ENDPOINT = 1 << 9,
    FI_EP_RDM = 3, FI_THREAD_DOMAIN = 3, FI_RM_ENABLED = 2,
    FI_PROGRESS_AUTO = 1, FI_PROGRESS_MANUAL = 2,
    FI_AV_TABLE = 2, FI_CQ_FORMAT_MSG = 2, FI_WAIT_NONE = 0, FI_WAIT_FD = 3,
    FI_GETWAIT = 5, FI_ENABLE = 6, FI_GET_RAW_MR = 8, FI_MAP_RAW_MR = 9, FI_UNMAP_KEY = 10,
    FI_UINT32 = 5, FI_UINT64 = 7,
    FI_SUM = 2, FI_BOR = 6, FI_BAND = 7, FI_BXOR = 9, FI_ATOMIC_READ = 10,
    FI_ATOMIC_WRITE = 11, FI_CSWAP = 12,
}

// The errors that this crate distinguishes; all are positive here.
constants! { c_int:
    EAGAIN = libc::EAGAIN, EBUSY = libc::EBUSY, ENOMEM = libc::ENOMEM, ENOSYS = libc::ENOSYS,
    ENODATA = libc::ENODATA, ETIMEDOUT = libc::ETIMEDOUT, EIO = libc::EIO,
    EOPNOTSUPP = libc::EOPNOTSUPP, FI_EAVAIL = 259,
}

/// The version that is requested: 1.17.
pub const API_VERSION: u32 = 1 << 16 | 17;

/// The library, with the functions that it exports by name.
pub struct Library {
    getinfo: GetInfo,
    freeinfo: FreeInfo,
    dupinfo: DupInfo,
    fabric: OpenFabric,
    strerror: StrError,
    version: Version,
}

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;
type FreeInfo = unsafe extern "C" fn(*mut fi_info);
type DupInfo = unsafe extern "C" fn(*const fi_info) -> *mut fi_info;
type OpenFabric =
    unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;
type StrError = unsafe extern "C" fn(c_int) -> *const c_char;
type Version = unsafe extern "C" fn() -> u32;

/// Why the library cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The system has no `libfabric.so.1`.
    NotFound,
    /// The library lacks a function.
    NoSuchFunction {
        /// The name of the function.
        name: &'static CStr,
    },
    /// The library is older than 1.17.
    TooOld {
        /// Its version, major in the upper half.
        version: u32,
    },
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotFound => {
                write!(f, "this machine has no {SONAME:?}: install it, or set LD_LIBRARY_PATH")
            }
            Self::NoSuchFunction { name } => write!(f, "{SONAME:?} has no function {name:?}"),
            Self::TooOld { version } => {
                let (major, minor) = (version >> 16, version & 0xffff);
                write!(f, "libfabric {major}.{minor} is too old: must be 1.17 or later")
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl Library {
    /// Loads the library, which is never unloaded: it has threads and handlers of
    /// its own that cannot be removed.
    ///
    /// Some libraries that it is linked with (libpsm2, libinfinipath) install
    /// handlers for SIGSEGV, SIGTERM and others when they are loaded. This function
    /// restores the previous handlers.
    ///
    /// # Errors
    ///
    /// [`LoadError::NotFound`] if the system has no `libfabric.so.1`;
    /// [`LoadError::NoSuchFunction`] if the library lacks a function;
    /// [`LoadError::TooOld`] if it is older than 1.17.
    pub fn load() -> Result<Self, LoadError> {
        let handlers = Handlers::saved();
        // SAFETY: the name is a C string; the library's constructors run, as with
        // any program that is linked with it.
        let handle = unsafe { libc::dlopen(SONAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        handlers.restore();
        if handle.is_null() {
            return Err(LoadError::NotFound);
        }
        let symbol = |name: &'static CStr| {
            // SAFETY: the handle is open and the name is a C string.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if found.is_null() { Err(LoadError::NoSuchFunction { name }) } else { Ok(found) }
        };
        macro_rules! function {
            ($name:literal, $type:ty) => {
                // SAFETY: libfabric's function of this name has this type,
                // and the library is never unloaded.
                unsafe { core::mem::transmute::<*mut c_void, $type>(symbol($name)?) }
            };
        }
        let library = Self {
            getinfo: function!(c"fi_getinfo", GetInfo),
            freeinfo: function!(c"fi_freeinfo", FreeInfo),
            dupinfo: function!(c"fi_dupinfo", DupInfo),
            fabric: function!(c"fi_fabric", OpenFabric),
            strerror: function!(c"fi_strerror", StrError),
            version: function!(c"fi_version", Version),
        };
        let version = library.version();
        if version < API_VERSION {
            return Err(LoadError::TooOld { version });
        }
        Ok(library)
    }

    /// The version of the library, major in the upper half.
    pub fn version(&self) -> u32 {
        // SAFETY: the function takes no arguments.
        unsafe { (self.version)() }
    }

    /// The text of an error, positive or negative.
    pub fn text(&self, error: c_int) -> &'static CStr {
        // SAFETY: any number has a text, which is static.
        unsafe { CStr::from_ptr((self.strerror)(error.abs())) }
    }

    /// An empty `fi_info`, to be filled and used as hints.
    pub fn hints(&self) -> Option<FiInfo<'_>> {
        // SAFETY: with null the function makes a new one.
        FiInfo::new(self, unsafe { (self.dupinfo)(core::ptr::null()) })
    }

    /// The offers that fit the hints: a list, best first. `source` is the address
    /// or the interface to use.
    pub fn getinfo(&self, source: Option<&CStr>, hints: &FiInfo<'_>) -> Result<FiInfo<'_>, c_int> {
        let mut list = core::ptr::null_mut();
        let (node, flags) = match source {
            Some(node) => (node.as_ptr(), FI_SOURCE),
            None => (core::ptr::null(), 0),
        };
        let handlers = Handlers::saved();
        // SAFETY: C strings or null, hints that the library made, and a place for
        // the result.
        let answer = unsafe {
            (self.getinfo)(API_VERSION, node, core::ptr::null(), flags, hints.raw, &mut list)
        };
        // The first call initialises the libraries that it is linked with.
        handlers.restore();
        match FiInfo::new(self, list) {
            Some(info) if answer == 0 => Ok(info),
            _ => Err(if answer == 0 { ENODATA } else { -answer }),
        }
    }

    /// Opens the fabric of an `fi_info`.
    pub fn fabric(&self, info: &FiInfo<'_>) -> Result<*mut fid_fabric, c_int> {
        let mut fabric = core::ptr::null_mut();
        // SAFETY: the library made the attributes.
        let answer =
            unsafe { (self.fabric)((*info.raw).fabric_attr, &mut fabric, core::ptr::null_mut()) };
        if answer == 0 { Ok(fabric) } else { Err(-answer) }
    }
}

/// An `fi_info` (or a list of them) that the library allocated, freed on drop.
pub struct FiInfo<'l> {
    library: &'l Library,
    raw: *mut fi_info,
}

impl<'l> FiInfo<'l> {
    fn new(library: &'l Library, raw: *mut fi_info) -> Option<Self> {
        (!raw.is_null()).then_some(Self { library, raw })
    }

    /// The first entry of the list.
    pub fn raw(&self) -> *mut fi_info {
        self.raw
    }

    /// A copy of the first entry alone.
    pub fn first(&self) -> Option<Self> {
        // SAFETY: the library made the list.
        Self::new(self.library, unsafe { (self.library.dupinfo)(self.raw) })
    }
}

impl Drop for FiInfo<'_> {
    fn drop(&mut self) {
        // SAFETY: the library allocated it, and this value owns it.
        unsafe { (self.library.freeinfo)(self.raw) };
    }
}

/// A string that the library will free.
pub fn duplicated(text: &CStr) -> *mut c_char {
    // SAFETY: `text` is a C string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// The saved signal actions of the process.
struct Handlers(Vec<(c_int, libc::sigaction)>);

impl Handlers {
    fn saved() -> Self {
        let mut all = Vec::new();
        for signal in 1..=SIGNALS_MAX {
            // SAFETY: a structure of integers and pointers, which the call fills
            // in.
            let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
            // SAFETY: the call only reads the action.
            if unsafe { libc::sigaction(signal, core::ptr::null(), &mut action) } == 0 {
                all.push((signal, action));
            }
        }
        Self(all)
    }

    fn restore(&self) {
        for (signal, action) in &self.0 {
            if !matches!(*signal, libc::SIGKILL | libc::SIGSTOP) {
                // SAFETY: the action was this process's a moment ago.
                unsafe { libc::sigaction(*signal, action, core::ptr::null_mut()) };
            }
        }
    }
}

/// Whether a table has a slot, by the size in the table.
///
/// # Safety
///
/// `table` must be null, or a table of libfabric, which starts with its size.
pub unsafe fn has_slot<T>(table: *const T, offset: usize) -> bool {
    // SAFETY: not null, so the caller guarantees that it starts with its size.
    !table.is_null() && unsafe { *table.cast::<usize>() } > offset
}

const SONAME: &CStr = c"libfabric.so.1";
const SIGNALS_MAX: c_int = 31;

#[cfg(test)]
mod tests;
