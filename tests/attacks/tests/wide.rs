//! The typed calls on values that are aligned to more than a word: as in
//! `values_of_any_type`, with types that only `unsafe` can make plain. (Arrays
//! refuse them at compile time.)

// Only the program uses some items of these two modules.
#[allow(dead_code)]
#[path = "../src/types.rs"]
mod types;
#[allow(dead_code)]
#[path = "../src/values.rs"]
mod values;

use tsumugi::Plain;

type Attack = (&'static str, fn());

macro_rules! wide {
    ($($name:ident: $align:literal,)*) => {
        $(
            #[derive(Clone, Copy, Debug, PartialEq)]
            #[repr(C, align($align))]
            struct $name([u64; $align / 8]);

            // SAFETY: the type consists of words, without padding.
            unsafe impl Plain for $name {}
        )*
    };
}

wide! {
    Line: 64,
    Lines: 128,
}

#[test]
fn values_that_are_aligned_to_cache_lines_work() {
    values::all_ways(|rt| {
        values::all_calls(rt, |n| Line([n as u64; 8]))?;
        types::more_calls(rt, |n| Line([n as u64; 8]))?;
        values::all_calls(rt, |n| Lines([n as u64; 16]))?;
        types::more_calls(rt, |n| Lines([n as u64; 16]))
    });
}
