use super::*;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// Bytes that differ by their position.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Copies from and to every alignment, and checks the bytes around.
fn check(lengths: impl Iterator<Item = usize> + Clone, copy: impl Fn(&[u8], &mut [u8])) {
    let from = pattern(8192);
    for (from_at, to_at) in [(0, 0), (0, 1), (1, 0), (3, 63), (64, 32), (17, 16), (63, 1), (8, 40)]
    {
        for len in lengths.clone() {
            let mut to = vec![0xee; to_at + len + 64];
            copy(&from[from_at..from_at + len], &mut to[to_at..to_at + len]);
            assert!(to[..to_at].iter().all(|byte| *byte == 0xee), "before {len} at {to_at}");
            assert!(to[to_at + len..].iter().all(|byte| *byte == 0xee), "after {len} at {to_at}");
            assert!(
                to[to_at..to_at + len] == from[from_at..from_at + len],
                "{len} bytes from {from_at} to {to_at}"
            );
        }
    }
}

fn ends(from: &[u8], to: &mut [u8]) -> (NonNull<u8>, NonNull<u8>, usize) {
    (NonNull::from(from).cast(), NonNull::from(&mut *to).cast(), from.len())
}

fn lengths() -> impl Iterator<Item = usize> + Clone {
    (0..700).chain([1023, 1024, 1025, 4095, 4096, 4097, 8000])
}

#[test]
fn every_mode_copies_every_length_at_every_alignment() {
    for mode in [CopyMode::Plain, CopyMode::Pieces, CopyMode::Streaming] {
        check(lengths(), |from, to| {
            let (from, to, len) = ends(from, to);
            // SAFETY: two slices of the same length.
            unsafe { copy(mode, from, to, len) };
        });
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_vector_width_of_this_processor_copies() {
    use stream::Width::{Avx2, Avx512, Sse2};
    let best = streaming_bytes();
    for width in [Sse2, Avx2, Avx512].into_iter().filter(|width| width.bytes() <= best) {
        check(lengths(), |from, to| {
            let (from, to, len) = ends(from, to);
            // SAFETY: two slices of the same length; wider ones were left out.
            unsafe { stream::tests::copy_by(width, from.as_ptr(), to.as_ptr(), len) };
        });
    }
}

#[test]
fn a_release_store_publishes_streamed_bytes() {
    const ROUNDS: usize = 200;
    let from: Vec<Vec<u8>> = (0..ROUNDS).map(|round| vec![round as u8 + 1; 1000]).collect();
    let mut to = vec![vec![0u8; 1000]; ROUNDS];
    let flags: Vec<AtomicBool> = (0..ROUNDS).map(|_| AtomicBool::new(false)).collect();
    let places: Vec<usize> = to.iter_mut().map(|to| to.as_mut_ptr() as usize).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                let from = NonNull::from(&from[round][..]).cast();
                let to = NonNull::new(places[round] as *mut u8).unwrap();
                // SAFETY: a vector each, read only after the flag.
                unsafe { copy(CopyMode::Streaming, from, to, 1000) };
                flags[round].store(true, Ordering::Release);
            }
        });
        for round in 0..ROUNDS {
            while !flags[round].load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // SAFETY: written before the flag was set, and not again.
            let seen = unsafe { std::slice::from_raw_parts(places[round] as *const u8, 1000) };
            assert!(seen.iter().all(|byte| *byte == round as u8 + 1), "round {round}");
        }
    });
}
