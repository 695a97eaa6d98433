//! Fuzzes the parser of the ranks' cards (endpoint information).
#![no_main]

#[path = "../../backends/tests/boot/parsers.rs"]
#[allow(dead_code)]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::card(bytes));
