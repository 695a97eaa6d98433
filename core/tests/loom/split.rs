//! Messages that both sides copy: each part is copied by one side, and a late side takes nothing
//! of the next message.

use crate::check;
use loom::thread;
use std::sync::Arc;
use tsumugi_core::msg::{Split, SplitSide};
use tsumugi_core::sync::UnsafeCell;

const UNITS: usize = 3;

/// The word of a lane, and the buffers of two receives.
struct Shared {
    split: Split,
    buffers: [[UnsafeCell<u32>; UNITS]; 2],
}

// SAFETY: the model checks which side writes which cell.
unsafe impl Sync for Shared {}
// SAFETY: the same.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let buffer = || [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self { split: Split::new(), buffers: [buffer(), buffer()] })
    }

    /// Copies, from one side, what it can claim of the message for a receive.
    fn share(&self, id: u32, side: SplitSide) -> [bool; 2] {
        self.split.share(id, side, UNITS as u64, 1, |part| {
            for at in part {
                // SAFETY: claimed by this side alone: loom sees it if not.
                self.buffers[id as usize][at as usize].with_mut(|word| unsafe { *word += 1 });
            }
        })
    }

    fn is_whole(&self, id: usize) -> bool {
        let count = |cell: &UnsafeCell<u32>| {
            // SAFETY: both threads have ended.
            cell.with(|word| unsafe { *word })
        };
        self.buffers[id].iter().all(|cell| count(cell) == 1)
    }
}

#[test]
fn each_part_of_a_message_is_copied_once() {
    check(&["msg_split_unclaimed"], || {
        let shared = Shared::new();
        assert!(shared.split.open(0));
        let receiver = {
            let shared = shared.clone();
            thread::spawn(move || shared.share(0, SplitSide::Receiver))
        };
        let sender = shared.share(0, SplitSide::Sender);
        let receiver = receiver.join().unwrap();
        assert!(shared.is_whole(0));
        assert_eq!(
            [sender[0], receiver[0]],
            [receiver[1], sender[1]],
            "each side knows whether the other has copied"
        );
        assert!(shared.split.open(1), "the word is free again");
    });
}

#[test]
fn a_late_side_takes_nothing_of_the_next_message() {
    check(&["msg_split_any_id"], || {
        let shared = Shared::new();
        assert!(shared.split.open(0));
        let receiver = {
            let shared = shared.clone();
            thread::spawn(move || shared.share(0, SplitSide::Receiver))
        };
        shared.share(0, SplitSide::Sender);
        // The sender opens the word for the next message as soon as it is free.
        let is_next = shared.split.open(1);
        if is_next {
            assert_eq!(shared.share(1, SplitSide::Sender), [true, false]);
        }
        receiver.join().unwrap();
        assert!(shared.is_whole(0) && shared.is_whole(1) == is_next);
    });
}
