//! A delegate over a device under the control of the test.

use super::super::*;
use super::script::*;
use crate::completion::{CompletionTable, Completions};
use crate::ring::Mpsc;
use crate::sync::{AtomicU32, Ordering};
use core::cell::Cell;
use std::vec::Vec;

/// A delegate and its ring of `$ring` places.
macro_rules! delegate {
    ($delegate:ident, $view:ident, $device:expr, $told:ident, $ring:expr) => {
        let table = CompletionTable::<2>::new();
        let $view = table.view();
        let ring = Mpsc::<Work, $ring>::new();
        let $told = PortCounts::new();
        let port = Port::new($device, $view, &$told);
        // SAFETY: no other consumer pops from the ring.
        let $delegate = unsafe { Delegate::new(port, ring.view()) };
    };
}

#[test]
fn a_free_delegate_gathers_and_posts_on_request() {
    let (device, ends) = (Device::new(16), AtomicU32::new(0));
    delegate!(delegate, view, device.clone(), told, 2);
    assert!(delegate.is_quiet() && !delegate.has_gathered());
    assert!(delegate.try_now(&get()).is_none(), "the device carries nothing out in the call");
    delegate.enqueue(counted(&view, &ends)).unwrap();
    assert!(delegate.has_gathered() && !delegate.is_quiet());
    assert_eq!(device.script().posted.len(), 0);
    delegate.flush();
    assert_eq!(device.script().posted.len(), 1);
    assert!(!delegate.has_gathered() && !delegate.is_quiet());
    device.end_all();
    assert_eq!((delegate.poll(), delegate.poll(), ends.load(Ordering::Relaxed)), (1, 0, 1));
    assert!(delegate.is_quiet());
    delegate.enqueue_now(counted(&view, &ends)).unwrap();
    assert_eq!(device.script().posted.len(), 1, "the batch is posted at once");
    assert_eq!(device.script().turns, 1);
    device.end_all();
    delegate.enqueue_now(counted(&view, &ends)).unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 2, "the completions are taken, too");
    assert_eq!(counts(&told), [3, 3, 2, 0]);
}

/// A device that takes nothing: the batch fills, then the ring, and further operations are
/// given back. When there is room again, all operations go out in their order.
#[test]
fn a_full_device_fills_the_batch_and_then_the_ring() {
    let (device, ends) = (Device::new(0), AtomicU32::new(0));
    delegate!(delegate, view, device.clone(), told, 4);
    let ops: Vec<Op> = (0..BATCH_MAX + 6).map(|_| counted(&view, &ends)).collect();
    for op in &ops[..BATCH_MAX + 2] {
        delegate.enqueue(*op).unwrap();
    }
    for op in &ops[BATCH_MAX + 2..BATCH_MAX + 4] {
        delegate.enqueue_now(*op).unwrap();
    }
    assert!(delegate.has_gathered() && !delegate.is_quiet());
    for op in &ops[BATCH_MAX + 4..] {
        assert_eq!(delegate.enqueue(*op).unwrap_err().tag, op.tag);
        assert_eq!(delegate.enqueue_now(*op).unwrap_err().tag, op.tag);
        assert!(delegate.leave(Work::Op(*op)).is_err());
    }
    assert_eq!(delegate.poll(), 0);
    device.script().room = 1;
    delegate.poll();
    assert_eq!(device.script().posted.len(), 6, "a place for each of the ring, and one");
    while delegate.has_gathered() {
        delegate.poll();
    }
    let tags: Vec<usize> = ops[..BATCH_MAX + 4].iter().map(|op| op.tag.index()).collect();
    assert_eq!(device.indices(), tags);
    assert_eq!(counts(&told)[1], BATCH_MAX as u64 + 4);
    device.end_all();
    while !delegate.is_quiet() {
        delegate.poll();
    }
    assert_eq!(ends.load(Ordering::Relaxed), BATCH_MAX as u32 + 4);
}

/// The function that a callback runs in the middle of a poll.
struct Inside<'a> {
    run: &'a dyn Fn(),
}

fn run_inside(inside: *mut (), _: Result<u64, AddrError>) {
    // SAFETY: what the test has, which outlives the poll.
    (unsafe { &*inside.cast::<Inside<'_>>() }.run)();
}

unsafe fn run_called(inside: *mut ()) {
    run_inside(inside, Ok(0));
}

/// Runs the function in a poll, which holds the lock.
fn inside(
    delegate: &Delegate<'_, Device>,
    view: &Completions<'_>,
    device: &Device,
    run: &dyn Fn(),
) {
    let inside = Inside { run };
    // SAFETY: it is called in the poll below.
    let callback = unsafe { Callback::new(run_inside, (&raw const inside).cast_mut().cast()) };
    let op = get().tagged(view.try_begin_callback(0, callback).unwrap());
    delegate.enqueue(op).unwrap();
    device.ends(op.tag, 0);
    assert_eq!(delegate.poll(), 1);
}

#[test]
fn work_that_is_left_while_the_lock_is_held_is_done_by_its_holder() {
    let (device, ends) = (Device::new(16), AtomicU32::new(0));
    delegate!(delegate, view, device.clone(), told, 4);
    let (one, other) = (counted(&view, &ends), counted(&view, &ends));
    let called = AtomicU32::new(0);
    let call = || {
        assert!(
            !delegate.is_quiet() && delegate.has_gathered(),
            "a held lock counts as gathered work"
        );
        called.fetch_add(1, Ordering::Relaxed);
    };
    let call = Inside { run: &call };
    inside(&delegate, &view, &device, &|| {
        delegate.enqueue(one).unwrap();
        delegate.enqueue_now(other).unwrap();
        // SAFETY: it is made before the poll ends.
        let call = unsafe { DeferredCall::new(run_called, (&raw const call).cast_mut().cast()) };
        delegate.leave(Work::Call(call)).unwrap();
        assert_eq!((delegate.poll(), called.load(Ordering::Relaxed)), (0, 0));
        delegate.flush();
        assert!(!delegate.is_quiet() && delegate.has_gathered());
        assert_eq!(device.script().posted.len(), 1);
    });
    assert_eq!(called.load(Ordering::Relaxed), 1);
    assert_eq!(device.indices()[1..], [one.tag.index(), other.tag.index()]);
    assert!(!delegate.has_gathered());
    // The lock is free again, and nothing is left: a call is made at once.
    // SAFETY: as above.
    let call = unsafe { DeferredCall::new(run_called, (&raw const call).cast_mut().cast()) };
    delegate.leave(Work::Call(call)).unwrap();
    assert_eq!((called.load(Ordering::Relaxed), delegate.is_quiet()), (2, false));
    assert_eq!(counts(&told)[1], 3);
}

#[test]
fn a_holder_helps_for_a_limited_time() {
    let device = Device::new(16);
    delegate!(delegate, view, device.clone(), told, 4);
    let (made, most) = (Cell::new(0), Cell::new(1));
    let again: Cell<Option<DeferredCall>> = Cell::new(None);
    let call = || {
        made.set(made.get() + 1);
        if made.get() < most.get() {
            delegate.leave(Work::Call(again.get().unwrap())).unwrap();
        }
    };
    let run = Inside { run: &call };
    // SAFETY: it is made while `run` is there.
    again.set(Some(unsafe { DeferredCall::new(run_called, (&raw const run).cast_mut().cast()) }));
    most.set(u32::MAX);
    delegate.leave(Work::Call(again.get().unwrap())).unwrap();
    let helped = made.get();
    assert!((17..1000).contains(&helped), "{helped} calls");
    assert!(delegate.has_gathered() && !delegate.is_quiet());
    // The next poll goes on with the work, and comes to an end.
    most.set(helped + 2);
    delegate.poll();
    assert_eq!(made.get(), helped + 2);
    assert!(!delegate.has_gathered() && delegate.is_quiet());
    assert_eq!(counts(&told), [0; 4]);
    assert_eq!(view.in_flight(), 0);
}
