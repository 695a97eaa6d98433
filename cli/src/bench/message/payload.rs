//! The payload of messages, which both sides touch.

use std::hint::black_box;

/// Writes one word to each cache line, by one store, so that the measurement is of
/// the message and not of this function.
pub fn dirty(bytes: &mut [u8], round: usize) {
    let value = round.to_le_bytes();
    let (lines, rest) = bytes.as_chunks_mut::<LINE>();
    for line in lines {
        line[..value.len()].copy_from_slice(&value);
    }
    match rest.first_chunk_mut() {
        Some(first) => *first = value,
        None => rest.copy_from_slice(&value[..rest.len()]),
    }
}

/// Reads one byte of each cache line.
pub fn look(bytes: &[u8]) {
    let sum: u64 = bytes.iter().step_by(LINE).map(|byte| u64::from(*byte)).sum();
    black_box(sum);
}

const LINE: usize = 64;
