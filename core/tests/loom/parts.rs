//! Parts of a range: each copied once, and all seen by whoever waited.

use crate::check;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use tsumugi_core::mem::Parts;

const BYTES: u64 = 3;

struct Bytes([UnsafeCell<u8>; BYTES as usize]);

// SAFETY: that a byte has one writer and is read after it is what is checked.
unsafe impl Sync for Bytes {}

fn copy_all(parts: &Parts, bytes: &Bytes) {
    while let Some(part) = parts.claim(BYTES, 2) {
        for at in part {
            // SAFETY: as above; loom reports a second writer.
            bytes.0[at as usize].with_mut(|byte| unsafe { *byte += 1 });
        }
        parts.finish();
    }
}

#[test]
fn each_byte_is_copied_once_and_then_seen() {
    check(&["parts_claim_load_store", "parts_finish_relaxed"], || {
        let shared = Arc::new((Parts::new(), Bytes(std::array::from_fn(|_| UnsafeCell::new(0)))));
        let helper = thread::spawn({
            let shared = shared.clone();
            move || copy_all(&shared.0, &shared.1)
        });
        let (parts, bytes) = &*shared;
        copy_all(parts, bytes);
        if parts.is_done(BYTES, 2) {
            // SAFETY: as above.
            let seen = bytes.0.iter().map(|byte| byte.with(|byte| unsafe { *byte }));
            assert!(seen.into_iter().all(|byte| byte == 1));
        }
        helper.join().unwrap();
        assert!(parts.is_done(BYTES, 2));
    });
}
