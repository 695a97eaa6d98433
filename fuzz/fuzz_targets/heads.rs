//! How all cards start, as the server of the exchange over TCP says it.
#![no_main]

#[path = "../../backends/tests/boot/parsers.rs"]
#[allow(dead_code)]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::heads(bytes));
