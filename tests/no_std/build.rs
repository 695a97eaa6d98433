//! Without std nobody asks for libc; and main is C's.

fn main() {
    println!("cargo::rustc-link-lib=c");
}
