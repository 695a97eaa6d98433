//! Fuzzes the handling of parcels (packet payloads) of messages from another node.
#![no_main]

#[path = "../../core/tests/hostile/parcels.rs"]
mod parcels;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    parcels::parcels(bytes);
});
