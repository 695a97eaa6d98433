//! The names of the library: each function `MPI_X` is a weak symbol, so that a tool can
//! replace it and call `PMPI_X`; and functions that are not built yet. `build.rs` makes the
//! list of `include/mpi.h`.

use crate::call::unsupported;

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($to:literal) => {
        concat!("jmp ", $to, "@PLT")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($to:literal) => {
        concat!("b ", $to)
    };
}

macro_rules! weak {
    ($name:literal, $to:literal) => {
        std::arch::global_asm!(
            ".text",
            concat!(".weak ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            jump!($to),
            concat!(".size ", $name, ", . - ", $name),
        );
    };
}

macro_rules! unbuilt {
    ($function:ident, $name:literal) => {
        /// Not built: reports so, whatever its arguments are.
        #[unsafe(no_mangle)]
        extern "C" fn $function() -> std::ffi::c_int {
            unsupported($name)
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));
