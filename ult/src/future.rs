//! Waiting for a future, on a ULT, in a foreign task or on an OS thread.
//!
//! The waker is the caller's park token: a wake from any thread unparks the caller. A
//! ULT's waker is its descriptor and a count of its scheduler, without allocation. A
//! wake that comes after the ULT's end unparks the ULT that has the descriptor then,
//! which looks at its condition and parks again.

use crate::park::{ThreadParker, UltRef, own_parker, park, ult};
use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// Runs a future to its end; the caller sleeps while it is pending.
///
/// If the caller is a ULT that the [end of its scheduler](crate::Scheduler#the-end)
/// cuts off here, the future stays as it is: it keeps its place in queues, and keeps
/// what it is handed there.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        park();
    }
}

/// A waker that unparks the caller.
fn waker() -> Waker {
    match ult() {
        Some(slot) => {
            // SAFETY: the running ULT is alive, so its task is.
            let ult = unsafe { UltRef::new(slot) };
            // SAFETY: the table's functions keep the contract of `RawWaker`: each
            // waker stands for one count.
            unsafe { Waker::from_raw(RawWaker::new(ult.into_raw(), &ULT)) }
        }
        None => Waker::from(own_parker()),
    }
}

impl alloc::task::Wake for ThreadParker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

static ULT: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

unsafe fn clone(raw: *const ()) -> RawWaker {
    // SAFETY: `raw` stands for a count, which stays with the waker it belongs to.
    let ult = core::mem::ManuallyDrop::new(unsafe { UltRef::from_raw(raw) });
    RawWaker::new(UltRef::clone(&ult).into_raw(), &ULT)
}

unsafe fn wake(raw: *const ()) {
    // SAFETY: this call uses up the waker, and with it the waker's count.
    unsafe { UltRef::from_raw(raw) }.unpark();
}

unsafe fn wake_by_ref(raw: *const ()) {
    // SAFETY: as in `clone`: the count stays with the waker.
    core::mem::ManuallyDrop::new(unsafe { UltRef::from_raw(raw) }).unpark();
}

unsafe fn release(raw: *const ()) {
    // SAFETY: as in `wake`: the drop uses up the waker's count.
    drop(unsafe { UltRef::from_raw(raw) });
}
