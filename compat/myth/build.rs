//! Gives the library the name by which programs of MassiveThreads look for it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmyth.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
