//! Bytes from here to there, which others may look at meanwhile.
//!
//! A copy routine may write what it is given twice: 8 bytes, of a length that
//! the compiler does not know, are two stores of the same word. Whoever gives
//! a lock back by a put of its word would so give back the next holder's, too.
//! What is one word is therefore read once and written once, whole; of more
//! bytes each may be written more than once, and in any order.

use crate::sync::mapped::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use core::ptr;

/// Copies `bytes` bytes, which may overlap. Of 2, 4 or 8 an end that lies as a
/// word of as many bytes does is read or written as one: by a load that
/// acquires, by a store that releases.
///
/// Progress: wait-free.
///
/// # Safety
///
/// `from` is valid for reads of as many bytes and `to` for writes. Where others
/// write to them meanwhile, they are taken for no more than bytes.
#[inline(always)]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    macro_rules! word {
        ($atomic:ty, $word:ty) => {{
            let (from, to) = (from.cast_mut().cast::<$word>(), to.cast::<$word>());
            // Acquire and Release: see `access`.
            // SAFETY: the caller's; atomic only where it is aligned.
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
        // SAFETY: the caller's.
        _ => unsafe { ptr::copy(from, to, bytes) },
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use std::thread;
    use std::vec::Vec;

    /// A lock that is given back by a copy, around a counter that is copied.
    #[test]
    fn a_copied_word_is_written_once() {
        const ROUNDS: u64 = 1_000_000;
        let words = [const { AtomicU64::new(0) }; 2];
        let [lock, count] = &words;
        // SAFETY: words on both sides; the length is nobody's to know.
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
    fn all_lengths_and_places_are_copied() {
        let from: Vec<u8> = (1..=64).collect();
        for bytes in 0..=24 {
            for (at, to_at) in (0..9).flat_map(|at| (0..9).map(move |to_at| (at, to_at))) {
                let mut to = [0u8; 64];
                // SAFETY: both have as many bytes.
                unsafe { copy_bytes(from[at..].as_ptr(), to[to_at..].as_mut_ptr(), bytes) };
                assert_eq!(to[to_at..][..bytes], from[at..][..bytes], "{bytes} {at} {to_at}");
                assert!(to[..to_at].iter().chain(&to[to_at + bytes..]).all(|byte| *byte == 0));
            }
        }
    }
}
