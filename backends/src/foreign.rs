//! The parts that every `sys` module shares: structures with offsets that a test
//! compares with the headers, constants, strings.

use core::ffi::{CStr, c_char};

/// Declares structures of C. `LAYOUT` has their sizes and the offsets of their
/// fields.
macro_rules! structures {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            pub struct $name { $(pub $field: $type),* }
        )*

        /// Every structure, its size, and its fields with their offsets. A trailing
        /// underscore in a name is added for Rust; a leading underscore marks a
        /// gap.
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

/// Declares constants of C, of one type.
macro_rules! constants {
    ($type:ty: $($name:ident = $value:expr),* $(,)?) => {
        $(pub const $name: $type = $value;)*
    };
}

pub(crate) use {constants, structures};

/// A copy of a string of the library; empty if the pointer is null.
///
/// # Safety
///
/// `text` must be null or a C string.
pub(crate) unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, so the caller guarantees a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The output of a C program of `ci/`: lines `structure.field offset` and
/// `structure size`. `None` without the header; `who` is what installs it.
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
