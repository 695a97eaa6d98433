//! The address sanitizer sees the accesses of ULTs: defects planted on their stacks are caught, and
//! correct programs are not reported. Built by `ci/asan.sh` alone.
#![cfg(tsumugi_asan)]

mod common;

use common::scheduler;
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use tsumugi_conformance::planted;
use tsumugi_ult::{Builder, park, spawn, unparker, yield_now};

/// Runs the defect on a ULT of a child process; `None` in the child.
fn again(name: &str, defect: fn()) -> Option<(String, bool)> {
    planted::again(name, move || {
        scheduler(1, 8).run(move || {
            // Switches and a panic before the defect: the sanitizer still knows this stack.
            spawn(|| std::panic::resume_unwind(Box::new(()))).join().unwrap_err();
            Builder::new().stack_bytes(128 << 10).spawn(yield_now).join().unwrap();
            yield_now();
            spawn(defect).join().unwrap();
        });
    })
}

fn caught(name: &str, defect: fn(), report: &str) {
    if let Some((said, ended_well)) = again(name, defect) {
        assert!(!ended_well, "{name}: not caught");
        assert!(said.contains(&format!("ERROR: AddressSanitizer: {report}")), "{name}: {said}");
        assert!(!said.contains("WARNING: ASan"), "the sanitizer lost a stack: {said}");
    }
}

#[test]
fn a_use_after_free_is_caught() {
    let defect = || {
        let freed = Box::into_raw(Box::new([1u64; 4]));
        yield_now();
        // SAFETY: from `into_raw`.
        drop(unsafe { Box::from_raw(black_box(freed)) });
        // SAFETY: none: this is the defect.
        black_box(unsafe { freed.read_volatile() });
    };
    caught("a_use_after_free_is_caught", defect, "heap-use-after-free");
}

#[test]
fn a_write_past_an_array_on_a_stack_is_caught() {
    let defect = || {
        let mut array = [0u64; 4];
        let past = black_box(array.as_mut_ptr()).wrapping_add(black_box(4));
        yield_now();
        // SAFETY: none: this is the defect.
        unsafe { past.write_volatile(1) };
        black_box(&array);
    };
    caught("a_write_past_an_array_on_a_stack_is_caught", defect, "stack-buffer-overflow");
}

#[test]
fn a_write_past_an_array_of_a_sleeper_is_caught() {
    static ARRAY: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());
    let defect = || {
        let sleeper = spawn(|| {
            let mut array = [0u64; 4];
            ARRAY.store(array.as_mut_ptr(), Ordering::Release);
            park();
            black_box(&array);
        });
        while ARRAY.load(Ordering::Acquire).is_null() {
            yield_now();
        }
        // SAFETY: none: this is the defect, on the stack of another ULT.
        unsafe { ARRAY.load(Ordering::Acquire).wrapping_add(4).write_volatile(1) };
        drop(sleeper);
    };
    caught("a_write_past_an_array_of_a_sleeper_is_caught", defect, "stack-buffer-overflow");
}

#[test]
fn a_correct_program_is_not_reported() {
    let no_defect = || {
        for _ in 0..100 {
            let panics = spawn(|| {
                let local = black_box([1u8; 1000]);
                yield_now();
                if black_box(local[999]) == 1 {
                    std::panic::resume_unwind(Box::new(local));
                }
            });
            panics.join().unwrap_err();
            let own = unparker();
            let waker = spawn(move || {
                yield_now();
                own.unpark();
            });
            park();
            waker.join().unwrap();
        }
    };
    if let Some((said, ended_well)) = again("a_correct_program_is_not_reported", no_defect) {
        assert!(ended_well, "{said}");
        assert!(!said.contains("ASan") && !said.contains("AddressSanitizer"), "{said}");
    }
}
