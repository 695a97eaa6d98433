//! Fuzzes the parser of launchers' environment variables, one in each line.
#![no_main]

#[path = "../../backends/tests/boot/parsers.rs"]
#[allow(dead_code)]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::variables(bytes));
