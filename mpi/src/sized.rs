//! Functions that exist twice: with counts of type `int`, and, with `_c` at their names, with
//! counts of type `MPI_Count`.

/// Defines both functions of one body, in which `N` is the type of counts, and `NAME` the
/// name of the function.
macro_rules! sized {
    ($($(#[$doc:meta])* $small:ident, $large:ident, ($($arg:ident: $type:ty),* $(,)?) $body:block)*) => { $(
        sized!(@one $(#[$doc])* $small, std::ffi::c_int, ($($arg: $type),*) $body);
        sized!(@one $(#[$doc])* $large, i64, ($($arg: $type),*) $body);
    )* };
    (@one $(#[$doc:meta])* $name:ident, $count:ty, ($($arg:ident: $type:ty),*) $body:block) => {
        #[allow(clippy::useless_conversion, reason = "the type of counts may be the wide one")]
        mod $name {
            #[allow(unused_imports, reason = "not every body needs all")]
            use super::*;
            #[allow(dead_code, reason = "not every function has a count")]
            type N = $count;
            /// The name of the function in the program.
            #[allow(dead_code, reason = "not every body names it")]
            const NAME: &str = stringify!($name).split_at(1).1;

            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// Pointers are valid as the MPI standard says of this function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int $body
        }
    };
}
pub(crate) use sized;
