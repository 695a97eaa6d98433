//! Planted defects that the sanitizers must report in this crate (`ci/asan.sh`,
//! `ci/tsan.sh`).

use std::hint::black_box;
use tsumugi_conformance::planted::{Racy, on_two_threads};

tsumugi_conformance::planted! {
    overflow: || {
        let words = vec![0u64; 4];
        // SAFETY: none: this is the defect.
        unsafe { black_box(words.as_ptr()).add(black_box(4)).read_volatile() };
    },
    race: || {
        let racy = Racy::default();
        // SAFETY: none: this is the defect.
        on_two_threads(|thread| unsafe { racy.get().write_volatile(thread) });
    },
}
