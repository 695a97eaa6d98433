//! A copy of bytes that other threads may access meanwhile.
//!
//! A copy routine may write a byte twice: it may copy 8 bytes, if the compiler does
//! not know the length, by two stores of the same word. A put that releases a lock
//! by writing the lock's word would then also release it for the next holder. So a
//! naturally aligned word is read once and written once, as a whole; of other
//! lengths each byte may be written more than once, and in any order.

use crate::sync::mapped::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use core::ptr;

/// Copies `bytes` bytes; the two ranges may overlap. If the length is 2, 4 or 8, an
/// end that is aligned to that length is read or written as one word: by an Acquire
/// load, or by a Release store.
///
/// Progress: wait-free.
///
/// # Safety
///
/// `from` is valid for reads of `bytes` bytes and `to` for writes. If other threads
/// write to them meanwhile, the caller treats the result as bytes only.
#[inline(always)]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    macro_rules! word {
        ($atomic:ty, $word:ty) => {{
            let (from, to) = (from.cast_mut().cast::<$word>(), to.cast::<$word>());
            // Acquire and Release: see `access`.
            // SAFETY: the caller's; the access is atomic only where the pointer is
            // aligned.
            unsafe {
                let value = match from.is_aligned() {
                    true => <$atomic>::from_ptr(from).load(Ordering::Acquire),
                    false => from.read_unaligned(),
                };
                match to.is_aligned() {
                    true => <$atomic>::from_ptr(to).store(value, Ordering::Release),
                    false => to.write_unaligned(value),
                }
            }
        }};
    }
    match bytes {
        8 => word!(AtomicU64, u64),
        4 => word!(AtomicU32, u32),
        2 => word!(AtomicU16, u16),
        // SAFETY: the caller promises that both ranges are valid.
        _ => unsafe { ptr::copy(from, to, bytes) },
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use std::thread;
    use std::vec::Vec;

    /// A lock that is released by a copied word, around a counter that is copied too.
    #[test]
    fn copy_bytes_writes_a_word_once() {
        const ROUNDS: u64 = 1_000_000;
        let words = [const { AtomicU64::new(0) }; 2];
        let [lock, count] = &words;
        // SAFETY: both sides are words; `black_box` hides the length from the
        // compiler.
        let copy = |from: *const u64, to: *mut u64| unsafe {
            copy_bytes(from.cast(), to.cast(), core::hint::black_box(8));
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        // Acquire: pairs with the copy of 0.
                        while lock
                            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                            .is_err()
                        {
                            core::hint::spin_loop();
                        }
                        let mut own = 0;
                        copy(count.as_ptr(), &mut own);
                        own += 1;
                        copy(&own, count.as_ptr());
                        copy(&0, lock.as_ptr());
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 2 * ROUNDS);
    }

    #[test]
    fn copy_bytes_copies_any_length_at_any_alignment() {
        let from: Vec<u8> = (1..=64).collect();
        for bytes in 0..=24 {
            for (at, to_at) in (0..9).flat_map(|at| (0..9).map(move |to_at| (at, to_at))) {
                let mut to = [0u8; 64];
                // SAFETY: both arrays have room for `bytes` bytes at these places.
                unsafe { copy_bytes(from[at..].as_ptr(), to[to_at..].as_mut_ptr(), bytes) };
                assert_eq!(to[to_at..][..bytes], from[at..][..bytes], "{bytes} {at} {to_at}");
                assert!(to[..to_at].iter().chain(&to[to_at + bytes..]).all(|byte| *byte == 0));
            }
        }
    }
}
