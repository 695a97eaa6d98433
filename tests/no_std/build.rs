//! Links libc: without std, no crate does. C's start calls `main`.

fn main() {
    println!("cargo::rustc-link-lib=c");
}
