//! Defects in this crate that the sanitizers must report (`ci/asan.sh`,
//! `ci/tsan.sh`).

use crate::backend::copy_bytes;
use core::hint::black_box;
use std::vec;
use tsumugi_conformance::planted::{Racy, on_two_threads};

tsumugi_conformance::planted! {
    overflow: || {
        let mut to = vec![0u8; 32];
        // SAFETY: none: the overflow is the planted defect.
        unsafe { copy_bytes([1u8; 40].as_ptr(), black_box(to.as_mut_ptr()), black_box(40)) };
    },
    race: || {
        let racy = Racy::default();
        // SAFETY: none: the race is the planted defect. Three bytes are not a word.
        on_two_threads(|thread| unsafe {
            copy_bytes((&raw const thread).cast(), racy.get().cast(), black_box(3));
        });
    },
}
