//! Fuzzes the parser of the frames in the streams of the exchange over TCP.
#![no_main]

#[path = "../../backends/tests/boot/parsers.rs"]
#[allow(dead_code)]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::frame(bytes));
