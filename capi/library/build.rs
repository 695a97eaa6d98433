//! Gives the shared library the name by which programs look for it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtsumugi.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
