//! The version of the header, and that of the library with which a program runs.

use std::ffi::c_char;

/// The first number of the header's version.
pub const TSUMUGI_VERSION_MAJOR: u32 = 0;
/// The second number; before version 1.0, another one may be another interface.
pub const TSUMUGI_VERSION_MINOR: u32 = 1;
/// The third number.
pub const TSUMUGI_VERSION_PATCH: u32 = 0;
/// All three numbers as one, which grows with each version:
/// `major * 10000 + minor * 100 + patch`.
pub const TSUMUGI_VERSION: u32 = 100;

/// The version of the library with which the program runs, as `TSUMUGI_VERSION` is
/// that of the header with which it was compiled. Wait-free.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_version() -> u32 {
    TSUMUGI_VERSION
}

/// The version of the library as a text, such as "0.1.0"; never freed. Wait-free.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_version_text() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The package's version is the source of the header's.
const _: () = assert!(
    number(env!("CARGO_PKG_VERSION_MAJOR")) == TSUMUGI_VERSION_MAJOR
        && number(env!("CARGO_PKG_VERSION_MINOR")) == TSUMUGI_VERSION_MINOR
        && number(env!("CARGO_PKG_VERSION_PATCH")) == TSUMUGI_VERSION_PATCH
        && TSUMUGI_VERSION
            == TSUMUGI_VERSION_MAJOR * 10_000 + TSUMUGI_VERSION_MINOR * 100 + TSUMUGI_VERSION_PATCH,
    "the constants of capi/src/version.rs are not the version of Cargo.toml"
);

/// The number that decimal digits stand for.
const fn number(digits: &str) -> u32 {
    let (digits, mut at, mut number) = (digits.as_bytes(), 0, 0);
    while at < digits.len() {
        number = number * 10 + (digits[at] - b'0') as u32;
        at += 1;
    }
    number
}
