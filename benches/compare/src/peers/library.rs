//! C libraries that are loaded when they are asked for.

use std::ffi::{CStr, c_void};

/// A library. It stays as long as the process.
pub struct Library(*mut c_void);

impl Library {
    /// Finds it as the system's loader does.
    pub fn open(name: &CStr) -> Result<Self, String> {
        // SAFETY: a name that ends; what the library does on loading is its
        // own business.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        match handle.is_null() {
            true => Err(format!("is not installed ({})", name.to_string_lossy())),
            false => Ok(Self(handle)),
        }
    }

    /// A function of it.
    ///
    /// # Safety
    ///
    /// `F` is a pointer to a function of the type that the library declares.
    pub unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is open, the name ends.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        match address.is_null() {
            true => Err(format!("has no function {}", name.to_string_lossy())),
            // SAFETY: as the caller promises; the sizes are equal.
            false => Ok(unsafe { std::mem::transmute_copy(&address) }),
        }
    }
}

/// A table of functions of a library, which is loaded once.
macro_rules! functions {
    ($table:ident, $library:literal: $($name:ident($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that are used.
        #[derive(Clone, Copy)]
        struct $table { $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)* }

        impl $table {
            fn load() -> Result<Self, String> {
                let library = $crate::peers::library::Library::open($library)?;
                $(
                    // SAFETY: declared as in the library's header.
                    let $name = unsafe {
                        library.function(
                            const {
                                let name = concat!(stringify!($name), "\0").as_bytes();
                                match std::ffi::CStr::from_bytes_with_nul(name) {
                                    Ok(name) => name,
                                    Err(_) => panic!("a function's name contains a zero byte"),
                                }
                            },
                        )
                    }?;
                )*
                Ok(Self { $($name,)* })
            }
        }
    };
}
pub(crate) use functions;
