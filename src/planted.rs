//! Planted defects, to check that the sanitizers report defects of ranks that are
//! threads (`ci/asan.sh`, `ci/tsan.sh`).

use crate::{Config, Error, Runtime};
use std::hint::black_box;
use tsumugi_conformance::planted::Racy;
use tsumugi_core::sync::{AtomicU32, Ordering};

tsumugi_conformance::planted! {
    overflow: || {
        let main = |_: &Runtime| {
            let words = vec![0u64; 4];
            // SAFETY: none: this is the planted defect.
            unsafe { black_box(words.as_ptr()).add(black_box(4)).read_volatile() };
            Ok::<_, Error>(())
        };
        Config::default().run_ranks(2, main).unwrap();
    },
    race: || {
        let (racy, written) = (Racy::default(), AtomicU32::new(0));
        let main = |rt: &Runtime| {
            // In each round both ranks write, and Relaxed orders nothing.
            for round in 1..=ROUNDS {
                // SAFETY: none: this is the defect, as nothing orders the two ranks here.
                unsafe { racy.get().write_volatile(rt.rank().0.into()) };
                written.fetch_add(1, Ordering::Relaxed);
                while written.load(Ordering::Relaxed) < 2 * round {
                    std::thread::yield_now();
                }
            }
            Ok::<_, Error>(())
        };
        Config::default().run_ranks(2, main).unwrap();
    },
}

/// The sanitizer may have forgotten one write when the other comes, not each time.
const ROUNDS: u32 = 20;
