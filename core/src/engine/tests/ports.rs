//! A port over a device under the control of the test.

use super::super::*;
use super::script::*;
use crate::completion::CompletionTable;
use crate::sync::{AtomicU32, Ordering};
use std::vec::Vec;

#[test]
fn a_new_port_has_nothing_to_do() {
    let table = CompletionTable::<1>::new();
    let (device, told) = (Device::new(16), PortCounts::new());
    let mut port = Port::new(device.clone(), table.view(), &told);
    assert!(port.is_quiet() && !port.has_gathered() && port.has_room());
    assert!(port.arm(), "no event of the device is awaited");
    assert_eq!((port.flush(), port.poll(), port.turn()), (0, 0, (0, 0)));
    assert_eq!(counts(&told), [0; 4]);
    let script = device.script();
    assert_eq!(
        (script.posts, script.turns, script.arms),
        (0, 0, 0),
        "no doorbell without operations"
    );
    assert_eq!(script.polls, 2);
}

#[test]
fn operations_that_a_device_refuses_keep_their_order() {
    let table = CompletionTable::<1>::new();
    let (device, told, ends) = (Device::new(5), PortCounts::new(), AtomicU32::new(0));
    let mut port = Port::new(device.clone(), table.view(), &told);
    let ops: Vec<Op> = (0..18).map(|_| counted(&table.view(), &ends)).collect();
    let tags = |range: core::ops::Range<usize>| -> Vec<usize> {
        ops[range].iter().map(|op| op.tag.index()).collect()
    };
    for op in &ops[..15] {
        port.gather(*op).unwrap();
    }
    assert_eq!(counts(&told), [0; 4], "the batch is not full");
    assert!(port.has_gathered() && port.has_room() && !port.arm() && !port.is_quiet());
    port.gather(ops[15]).unwrap();
    assert_eq!((counts(&told), device.indices()), ([1, 5, 0, 0], tags(0..5)));
    assert_eq!((port.flush(), device.indices()), (5, tags(0..10)));
    // A doorbell that posts nothing is not counted.
    device.script().room = 0;
    assert_eq!((port.flush(), counts(&told)), (0, [2, 10, 0, 0]));
    for op in &ops[..10] {
        device.ends(op.tag, 0);
    }
    assert_eq!((port.poll(), ends.load(Ordering::Relaxed)), (10, 10));
    assert!(!port.is_quiet() && port.has_gathered());
    for op in &ops[16..] {
        port.gather(*op).unwrap();
    }
    device.script().room = 16;
    assert_eq!((port.turn(), device.indices()), ((8, 0), tags(0..18)));
    assert!(!port.has_gathered() && !port.is_quiet());
    assert_eq!(device.script().turns, 1, "post and poll in one call");
    for op in &ops[10..] {
        device.ends(op.tag, 0);
    }
    assert_eq!(port.turn(), (0, 8));
    assert!(port.is_quiet());
    assert_eq!((counts(&told), ends.load(Ordering::Relaxed)), ([3, 18, 18, 0], 18));
    assert_eq!(device.script().turns, 1, "without operations a turn is a poll");
}

#[test]
fn a_full_batch_refuses_operations_until_the_device_has_room() {
    let table = CompletionTable::<1>::new();
    let (device, told, ends) = (Device::new(0), PortCounts::new(), AtomicU32::new(0));
    let mut port = Port::new(device.clone(), table.view(), &told);
    for _ in 0..BATCH_MAX {
        port.gather(counted(&table.view(), &ends)).unwrap();
    }
    assert!(!port.has_room());
    let more = counted(&table.view(), &ends);
    assert_eq!(port.gather(more).unwrap_err().tag, more.tag);
    device.script().room = 1;
    port.gather(more).unwrap();
    assert_eq!(
        device.script().posted.len(),
        2,
        "one post for the free place, one since the batch is full again"
    );
    assert!(port.has_room());
    while port.flush() > 0 {}
    assert_eq!(device.script().posted.last(), Some(&more.tag));
    assert_eq!(counts(&told), [BATCH_MAX as u64 + 1, BATCH_MAX as u64 + 1, 0, 0]);
}

#[test]
fn a_duplicate_completion_ends_no_operation() {
    let table = CompletionTable::<1>::new();
    let (device, told, ends) = (Device::new(16), PortCounts::new(), AtomicU32::new(0));
    let mut port = Port::new(device.clone(), table.view(), &told);
    let (one, other) = (counted(&table.view(), &ends), counted(&table.view(), &ends));
    port.gather(one).unwrap();
    port.gather(other).unwrap();
    assert_eq!(port.flush(), 2);
    for tag in [one.tag, one.tag, one.tag] {
        device.ends(tag, 0);
    }
    assert_eq!(port.poll(), 3);
    assert_eq!((counts(&told), ends.load(Ordering::Relaxed)), ([1, 2, 3, 2], 1));
    assert!(!port.is_quiet(), "the other operation is in flight");
    assert!(!port.arm(), "the device cannot arm");
    device.script().can_arm = true;
    assert!(port.arm());
    device.ends(other.tag, 0);
    device.ends(other.tag, 0);
    assert_eq!(port.poll(), 2);
    assert!(port.is_quiet());
    // With no operation in flight, a stale completion is counted as stale.
    device.ends(one.tag, 0);
    assert_eq!((port.poll(), counts(&told)), (1, [1, 2, 6, 4]));
    device.script().can_arm = false;
    assert!(port.is_quiet() && port.arm());
    assert_eq!(device.script().arms, 2, "the device is armed only with operations in flight");
}

#[test]
fn completions_kept_by_a_panic_come_before_new_ones() {
    let table = CompletionTable::<1>::new();
    let (device, told, ends) = (Device::new(16), PortCounts::new(), AtomicU32::new(0));
    let mut port = Port::new(device.clone(), table.view(), &told);
    let bad = panicking(&table.view());
    let ops: Vec<Op> = (0..3).map(|_| counted(&table.view(), &ends)).collect();
    for op in [bad, ops[0], ops[1]] {
        port.gather(op).unwrap();
        device.ends(op.tag, 0);
    }
    let turned = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| port.turn()));
    assert!(turned.is_err());
    assert_eq!(ends.load(Ordering::Relaxed), 0);
    port.gather(ops[2]).unwrap();
    device.ends(ops[2].tag, 0);
    assert_eq!(port.turn(), (1, 2), "the two kept completions, without a poll of the device");
    assert_eq!((ends.load(Ordering::Relaxed), port.is_quiet()), (2, false));
    assert_eq!((port.poll(), port.poll()), (1, 0));
    assert_eq!((ends.load(Ordering::Relaxed), port.is_quiet()), (3, true));
    assert_eq!(counts(&told), [2, 4, 4, 0]);
}
