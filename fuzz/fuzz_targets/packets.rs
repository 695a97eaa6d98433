//! Fuzzes the handling of packets from another node: emulated operations and heartbeats
//! (heartbeats).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tsumugi_runtime::net::hostile::packets(bytes);
});
