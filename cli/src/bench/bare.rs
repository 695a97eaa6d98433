//! The bare loops: the same operations on the same memory by plain instructions,
//! without rank, key, range or liveness checks.
//!
//! The cost of a blocking call is its difference from these loops, in the same run.

use tsumugi_core::sync::{AtomicU64, Ordering};

/// Loads every word; returns their sum so that the compiler cannot remove a load.
#[inline(never)]
pub fn get8(words: &[&AtomicU64]) -> u64 {
    words.iter().fold(0, |sum: u64, word| sum.wrapping_add(word.load(Ordering::Relaxed)))
}

/// Stores to every word; returns the number of words.
#[inline(never)]
pub fn put8(words: &[&AtomicU64], value: u64) -> u64 {
    for word in words {
        word.store(value, Ordering::Relaxed);
    }
    words.len() as u64
}

/// Adds to every word; returns the sum of the old values.
#[inline(never)]
pub fn fadd8(words: &[&AtomicU64], value: u64) -> u64 {
    let add =
        |sum: u64, word: &&AtomicU64| sum.wrapping_add(word.fetch_add(value, Ordering::Relaxed));
    words.iter().fold(0, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_loops_get_put_and_add() {
        let memory: Vec<AtomicU64> = (0..4).map(AtomicU64::new).collect();
        let words = [&memory[3], &memory[1], &memory[3]];
        assert_eq!(get8(&words), 7);
        assert_eq!(fadd8(&words, 10), 3 + 1 + 13);
        assert_eq!(put8(&words, 5), 3);
        let held: Vec<u64> = memory.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        assert_eq!(held, [0, 5, 2, 5]);
    }
}
