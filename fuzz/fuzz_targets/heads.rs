//! Fuzzes the parser of the heads of all cards, which the server of the exchange over
//! TCP sends at start.
#![no_main]

#[path = "../../backends/tests/boot/parsers.rs"]
#[allow(dead_code)]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::heads(bytes));
