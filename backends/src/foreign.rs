//! What every `sys` has in common: structures whose offsets a test compares
//! with the headers, constants, strings.

use core::ffi::{CStr, c_char};

/// Structures of C. `LAYOUT` has their sizes and the offsets of their fields.
macro_rules! structures {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            pub struct $name { $(pub $field: $type),* }
        )*

        /// Every structure, its size, and its fields with their offsets. A
        /// trailing underscore is Rust's; a leading one is a gap.
        #[cfg(test)]
        pub const LAYOUT: &[(&str, usize, &[(&str, usize)])] = &[
            $((
                stringify!($name),
                size_of::<$name>(),
                &[$((stringify!($field), core::mem::offset_of!($name, $field))),*],
            )),*
        ];
    };
}

/// Constants of C, of one type.
macro_rules! constants {
    ($type:ty: $($name:ident = $value:expr),* $(,)?) => {
        $(pub const $name: $type = $value;)*
    };
}

pub(crate) use {constants, structures};

/// A string of the library's, or nothing for null.
///
/// # Safety
///
/// Null or a C string.
pub(crate) unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What a C program of `ci/` says: `structure.field offset`, `structure size`.
/// Nothing without the header; `who` installs it.
#[cfg(test)]
pub(crate) fn of_the_headers(
    source: &str,
    header: &str,
    who: &str,
) -> Option<std::collections::HashMap<String, usize>> {
    use std::path::Path;
    use std::process::Command;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci").join(source);
    if !Path::new(header).exists() {
        tsumugi_conformance::left_out(header, "it is not here", who);
        return None;
    }
    let name = source.file_stem().unwrap().to_string_lossy().into_owned();
    let thread = std::thread::current().id();
    let program = std::env::temp_dir().join(format!("{name}.{}.{thread:?}", std::process::id()));
    let built = Command::new("cc").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(built.success(), "{}", source.display());
    let output = Command::new(&program).output().unwrap();
    std::fs::remove_file(&program).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs = text.lines().map(|line| {
        let (name, value) = line.split_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    Some(pairs.collect())
}
