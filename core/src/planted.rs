//! Defects that the sanitizers report of this crate (`ci/asan.sh`, `ci/tsan.sh`).

use crate::backend::copy_bytes;
use core::hint::black_box;
use std::vec;
use tsumugi_conformance::planted::{Racy, on_two_threads};

tsumugi_conformance::planted! {
    overflow: || {
        let mut to = vec![0u8; 32];
        // SAFETY: none: this is the defect.
        unsafe { copy_bytes([1u8; 40].as_ptr(), black_box(to.as_mut_ptr()), black_box(40)) };
    },
    race: || {
        let racy = Racy::default();
        // SAFETY: none: this is the defect. Three bytes are no word.
        on_two_threads(|thread| unsafe {
            copy_bytes((&raw const thread).cast(), racy.get().cast(), black_box(3));
        });
    },
}
