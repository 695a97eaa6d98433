//! Another copy of tsumugi in the process, whose ULTs could not wait in calls of this one.

use std::ffi::{CStr, c_void};
use std::mem::zeroed;

/// Says which file has the functions that the program calls, if it is not this library: the
/// program was linked with libtsumugi as well, and that came first.
pub(crate) fn other_copy() -> Option<String> {
    // Not `tsumugi_start`, whose address is that of the copy that came first.
    let own: fn() -> Option<String> = other_copy;
    let own = object_of(own as *const c_void)?;
    let called = |name: &CStr| {
        // SAFETY: a name that ends with zero.
        object_of(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
    };
    let (called, other) = (called(c"tsumugi_start")?, called(c"tsumugi_reason")?);
    // A tool that replaces one of the functions is no copy.
    (called.dli_fbase != own.dli_fbase && called.dli_fbase == other.dli_fbase).then(|| {
        // SAFETY: the loader's names of objects that are loaded.
        let [called, own] = [called, own].map(|object| unsafe { CStr::from_ptr(object.dli_fname) });
        format!(
            "there are two copies of tsumugi in this process: tsumugi_start is that of {}, and \
             MPI_Init that of {}; link the program with the library of mpicc alone",
            called.to_string_lossy(),
            own.to_string_lossy()
        )
    })
}

/// The program or library in which an address lies.
fn object_of(addr: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: all zeroes are a valid value, and the call writes no more than that; any address
    // is allowed.
    unsafe {
        let mut found: libc::Dl_info = zeroed();
        (libc::dladdr(addr, &raw mut found) != 0).then_some(found)
    }
}
