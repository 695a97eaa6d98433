//! Packets from another node: errands and beats.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tsumugi::hostile::packets(bytes);
});
