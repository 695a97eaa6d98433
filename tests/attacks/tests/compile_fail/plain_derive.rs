//! Structs that may not cross between ranks byte by byte.

use tsumugi::Plain;

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Padded {
    small: u32,
    large: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C, align(64))]
struct Aligned {
    word: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Flag {
    flag: bool,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Letter(char);

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Name {
    name: &'static str,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Borrowed<'a> {
    name: &'a u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Pointer {
    at: *const u64,
}

#[derive(Clone, Copy, Plain)]
struct AnyOrder {
    word: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(u32)]
enum Colour {
    Red,
    Green,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
union Either {
    word: u64,
    float: f64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Pair<A, B> {
    first: A,
    second: B,
}

#[derive(Clone, Copy, Plain)]
#[repr(C, align(64))]
struct AlignedPair<A> {
    first: A,
    second: A,
}

#[derive(Plain)]
#[repr(C)]
struct Owner {
    word: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct One<T> {
    value: T,
}

fn main() {
    fn send<T: Plain>() {}
    send::<One<u64>>();
    send::<One<bool>>();
}
