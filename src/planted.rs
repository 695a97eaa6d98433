//! Defects that the sanitizers report of ranks that are threads (`ci/asan.sh`,
//! `ci/tsan.sh`).

use crate::{Config, Error, Runtime};
use std::hint::black_box;
use tsumugi_conformance::planted::Racy;
use tsumugi_core::sync::{AtomicU32, Ordering};

tsumugi_conformance::planted! {
    overflow: || {
        let main = |_: &Runtime| {
            let words = vec![0u64; 4];
            // SAFETY: none: this is the defect.
            unsafe { black_box(words.as_ptr()).add(black_box(4)).read_volatile() };
            Ok::<_, Error>(())
        };
        Config::default().run_ranks(2, main).unwrap();
    },
    race: || {
        let (racy, begun) = (Racy::default(), AtomicU32::new(0));
        let main = |rt: &Runtime| {
            // Neither rank has ended when the other writes; Relaxed orders nothing.
            begun.fetch_add(1, Ordering::Relaxed);
            while begun.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
            // SAFETY: none: this is the defect, as nothing orders the two ranks here.
            unsafe { racy.get().write_volatile(rt.rank().0.into()) };
            Ok::<_, Error>(())
        };
        Config::default().run_ranks(2, main).unwrap();
    },
}
