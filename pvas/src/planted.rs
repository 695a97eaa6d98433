//! Defects of this crate that the sanitizers must report (`ci/asan.sh`,
//! `ci/tsan.sh`): copies by instructions that the compiler does not see.

use crate::copy::{CopyMode, copy};
use std::hint::black_box;
use std::ptr::NonNull;
use tsumugi_conformance::planted::{Racy, on_two_threads};

tsumugi_conformance::planted! {
    overflow: || {
        let mut to = vec![0u8; 32];
        let to = black_box(NonNull::from(&mut to[..]).cast());
        let from = NonNull::from(&[1u8; 40]).cast();
        // SAFETY: none; this is the defect.
        unsafe { copy(CopyMode::Pieces, from, to, black_box(40)) };
    },
    race: || {
        let racy = Racy::default();
        on_two_threads(|thread| {
            let to = NonNull::new(racy.get()).unwrap().cast();
            // SAFETY: none; this is the defect.
            unsafe { copy(CopyMode::Pieces, NonNull::from(&thread).cast(), to, black_box(8)) };
        });
    },
}
