//! Planted defects, to check that the sanitizers report defects of ranks that are
//! threads (`ci/asan.sh`, `ci/tsan.sh`).

use crate::{Config, Error, Runtime};
use std::hint::black_box;
use tsumugi_conformance::planted::{Racy, Turns};

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
        let (racy, turns) = (Racy::default(), Turns::default());
        let main = |rt: &Runtime| {
            let rank = rt.rank().0;
            // SAFETY: none: this is the defect, as nothing orders the two ranks here.
            turns.take(rank, || unsafe { racy.get().write_volatile(rank.into()) });
            Ok::<_, Error>(())
        };
        Config::default().run_ranks(2, main).unwrap();
    },
}
