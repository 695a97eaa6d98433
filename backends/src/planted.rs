//! Defects of this crate that the sanitizers must report (`ci/asan.sh`,
//! `ci/tsan.sh`).

use crate::foreign::owned;
use std::hint::black_box;
use tsumugi_conformance::planted::{Racy, on_two_threads};

tsumugi_conformance::planted! {
    overflow: || {
        let text = vec![1u8; 16];
        // SAFETY: none; this is the defect, a text without an end.
        black_box(unsafe { owned(black_box(text.as_ptr()).cast()) });
    },
    race: || {
        let racy = Racy::default();
        // SAFETY: none; this is the defect.
        on_two_threads(|thread| unsafe { racy.get().write_volatile(thread) });
    },
}
