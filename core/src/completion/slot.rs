//! The slot of one operation in flight. The module above draws which thread may
//! access which field.

use super::callback::{Callback, OnEnd, RunOwned, run_owned};
use super::waiter::SlotWaiter;
use crate::mem::AddrError;
use crate::mutate;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use crate::tag::Tag;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Largest buffer handle that a ticket can own, and largest callback in a slot.
pub const BUFFER_BYTES: usize = 48;

/// The bytes of a buffer or a callback.
pub(super) type SlotBytes = MaybeUninit<[u64; BUFFER_BYTES / 8]>;

/// A slot: two cache lines, of which the path of a callback by pointer touches the first.
#[repr(C, align(64))]
pub(super) struct CompletionSlot {
    pub(super) state: AtomicU64,
    waiting: UnsafeCell<SlotWaiter>,
    result: UnsafeCell<Result<u64, AddrError>>,
    buffer: UnsafeCell<OwnedBuffer>,
}

/// What `CompletionSlot::end` found, and what it leaves to its caller.
pub(super) enum EndedOperation {
    /// The completion came late or twice.
    Stale,
    /// The tag is free already; the caller must call the callback.
    Callback(Callback),
    /// The tag is free already; the caller must call the function with these bytes.
    Owned(RunOwned, SlotBytes),
    /// The slot is the ticket's now; the caller must wake the waiter.
    Waiting(SlotWaiter),
    /// The ticket was dropped: the caller must drop the buffer and free the tag.
    Abandoned,
}

/// Whether the thread that ends the operation will find the waker of `CompletionSlot::arm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    /// The thread that ends the operation will use the waker.
    Yes,
    /// The operation is just ending: the ticket must look again.
    Ending,
}

#[repr(C)]
struct OwnedBuffer {
    bytes: SlotBytes,
    drop: Option<unsafe fn(*mut ())>,
}

impl CompletionSlot {
    /// Makes an idle slot.
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU64::new(IDLE),
            waiting: UnsafeCell::new(SlotWaiter::Nobody),
            result: UnsafeCell::new(Ok(0)),
            buffer: UnsafeCell::new(OwnedBuffer { bytes: MaybeUninit::uninit(), drop: None }),
        }
    }

    /// Begins a life with a ticket. The caller has just taken the tag.
    #[inline(always)]
    pub(super) fn begin<B: Send + 'static>(&self, tag: Tag, buf: B) {
        const {
            assert!(
                size_of::<B>() <= BUFFER_BYTES,
                "the buffer handle is larger than BUFFER_BYTES (48 bytes)"
            );
        }
        // SAFETY: the slot is idle and the caller has taken the tag, so no other thread
        // accesses the cells.
        unsafe { self.put_buffer(buf) };
        self.state.store(live(tag), begin_order());
    }

    /// Moves a buffer or a callback in.
    ///
    /// # Safety
    ///
    /// No other thread accesses the slot's cells.
    #[inline(always)]
    unsafe fn put_buffer<B: Send + 'static>(&self, buf: B) {
        const {
            assert!(
                align_of::<B>() <= align_of::<u64>(),
                "the alignment of the buffer handle is above 8 bytes"
            );
        }
        self.buffer.with_mut(|buffer| {
            // SAFETY: the cell is the caller's; `begin` and `begin_owned` have checked
            // the size.
            unsafe {
                (*buffer).bytes.as_mut_ptr().cast::<B>().write(buf);
                (*buffer).drop = Some(drop_in_place::<B>);
            }
        });
    }

    /// Begins a life with a callback. The caller has just taken the tag.
    #[inline(always)]
    pub(super) fn begin_callback(&self, tag: Tag, callback: Callback) {
        // SAFETY: the slot is idle and the caller has taken the tag, so no other
        // thread accesses the cell.
        self.waiting.with_mut(|cell| unsafe { *cell = SlotWaiter::Callback(callback) });
        self.state.store(live(tag) | CALLBACK, begin_order());
    }

    /// Begins a life with a callback that lies in the slot. The caller has just taken the
    /// tag.
    #[inline(always)]
    pub(super) fn begin_owned<C: OnEnd>(&self, tag: Tag, callback: C) {
        const {
            assert!(
                size_of::<C>() <= BUFFER_BYTES,
                "the callback of the operation, with the buffer that the operation owns, is \
                 larger than BUFFER_BYTES (48 bytes): keep what it captures in a Box or an Arc"
            );
        }
        // SAFETY: the slot is idle and the caller has taken the tag, so no other thread
        // accesses the cells.
        unsafe { self.put_buffer(callback) };
        // SAFETY: the same.
        self.waiting.with_mut(|cell| unsafe { *cell = SlotWaiter::Owned(run_owned::<C>) });
        self.state.store(live(tag) | CALLBACK, begin_order());
    }

    /// Ends a life: claims the slot, stores the result, and returns what is left
    /// to do. `free` frees the tag.
    #[inline(always)]
    pub(super) fn end(
        &self,
        tag: Tag,
        result: Result<u64, AddrError>,
        free: impl Fn(),
    ) -> EndedOperation {
        let Some(was) = self.claim(tag) else { return EndedOperation::Stale };
        if was & CALLBACK != 0 {
            mutate!("completion_free_before_copy": {} => free());
            let ended = match self.take_waiting() {
                SlotWaiter::Callback(callback) => EndedOperation::Callback(callback),
                SlotWaiter::Owned(run) => EndedOperation::Owned(run, self.take_bytes()),
                _ => unreachable!("{tag:?}: the slot is marked CALLBACK and has no callback"),
            };
            mutate!("completion_free_before_copy": free() => {});
            return ended;
        }
        let mut waiting = SlotWaiter::Nobody;
        if was & WAKER != 0 {
            mutate!("completion_waker_taken_late": waiting = self.take_waiting() => ());
        }
        // SAFETY: this thread has claimed the slot, and the ticket does not read
        // the result before DONE.
        self.result.with_mut(|cell| unsafe { *cell = result });
        // Release: pairs with the Acquire in `is_done`. Acquire: pairs with the
        // Release in `abandon`.
        let order = mutate!("completion_done_relaxed": Ordering::AcqRel => Ordering::Relaxed);
        let now = self.state.fetch_or(DONE, order);
        mutate!("completion_waker_taken_late": {} => if was & WAKER != 0 {
            waiting = self.take_waiting();
        });
        // From here on the slot is the ticket's, unless the ticket was dropped.
        if now & ABANDONED != 0 {
            EndedOperation::Abandoned
        } else {
            EndedOperation::Waiting(waiting)
        }
    }

    /// Returns whether the result can be read. Called by the ticket.
    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.state.load(Ordering::Acquire) & DONE != 0
    }

    /// Leaves a waker for the claimer, in place of an earlier one. Only the
    /// ticket calls this function. After `Yes` the slot may already belong to
    /// another life.
    pub(super) fn arm(&self, tag: Tag, waiting: SlotWaiter) -> Armed {
        if !self.disarm(tag) {
            return Armed::Ending;
        }
        // SAFETY: neither WAKER nor CLAIMED was set, and a thread that claims the
        // slot now reads the cell only if WAKER is set.
        self.waiting.with_mut(|cell| unsafe { *cell = waiting });
        let unarmed = live(tag);
        let (state, armed) = (&self.state, unarmed | WAKER);
        // Release: pairs with the Acquire in `claim`.
        let armed = mutate!("completion_arm_without_look":
            state.compare_exchange(unarmed, armed, Ordering::Release, Ordering::Relaxed)
            => Ok(state.fetch_or(WAKER, Ordering::Release))
        );
        if armed.is_ok() {
            return Armed::Yes;
        }
        drop(self.take_waiting());
        Armed::Ending
    }

    /// Takes an earlier waker back. Returns false if the slot is claimed; then
    /// the waker belongs to the claimer. Only the ticket calls this function.
    pub(super) fn disarm(&self, tag: Tag) -> bool {
        let armed = live(tag) | WAKER;
        // Relaxed: only the ticket sets WAKER; a CLAIMED that this load misses
        // makes the exchange below fail.
        let seen = self.state.load(Ordering::Relaxed);
        if seen == armed {
            // Relaxed: this ticket was the last to write the cell.
            let back =
                self.state.compare_exchange(armed, live(tag), Ordering::Relaxed, Ordering::Relaxed);
            if back.is_ok() {
                drop(self.take_waiting());
            }
            return back.is_ok();
        }
        seen == live(tag)
    }

    /// Gives the ticket's part of the slot up. Returns true if the operation
    /// ended before; then the caller must drop the buffer and free the tag.
    pub(super) fn abandon(&self, tag: Tag) -> bool {
        self.disarm(tag);
        // AcqRel: pairs with the fetch_or in `end`; the later of the two sees all
        // that the other thread did before its own.
        let seen = mutate!("completion_abandon_load_store":
            self.state.fetch_or(ABANDONED, Ordering::AcqRel)
            => {
                let seen = self.state.load(Ordering::Acquire);
                self.state.store(seen | ABANDONED, Ordering::Release);
                seen
            }
        );
        seen & DONE != 0
    }

    /// Ends a life with a callback, of an operation that will never be completed.
    /// Returns false if the operation has been completed.
    pub(super) fn retract_callback(&self, tag: Tag) -> bool {
        let begun = live(tag) | CALLBACK;
        let claimed = begun | CLAIMED;
        // Acquire: as in `claim`.
        self.state.compare_exchange(begun, claimed, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends a life with a ticket, of an operation that was never posted.
    ///
    /// # Panics
    ///
    /// If the operation was completed all the same.
    pub(super) fn retract(&self, tag: Tag) {
        self.disarm(tag);
        let state = self.state.load(Ordering::Acquire);
        assert!(state == live(tag), "{tag:?} was completed although it was never posted");
    }

    /// Returns the result. Called by the ticket after `is_done`.
    #[inline(always)]
    pub(super) fn result(&self) -> Result<u64, AddrError> {
        // SAFETY: DONE is set, and the result is not written again before the tag
        // is freed.
        self.result.with(|cell| unsafe { *cell })
    }

    /// Moves the buffer out.
    ///
    /// # Safety
    ///
    /// The slot is the caller's, its life began with a `B`, and neither this
    /// function nor `drop_buffer` was called in this life.
    #[inline(always)]
    pub(super) unsafe fn take_buffer<B>(&self) -> B {
        // SAFETY: the caller of `take_buffer` owns the slot, and its bytes are a
        // `B`.
        self.buffer.with_mut(|buffer| unsafe {
            (*buffer).drop = None;
            (*buffer).bytes.as_ptr().cast::<B>().read()
        })
    }

    /// Moves the bytes of a callback out. The slot is the caller's.
    fn take_bytes(&self) -> SlotBytes {
        self.buffer.with_mut(|buffer| {
            // SAFETY: the slot is the caller's, as this function demands.
            unsafe {
                (*buffer).drop = None;
                (*buffer).bytes
            }
        })
    }

    /// Returns the address of the buffer.
    pub(super) fn buffer(&self) -> NonNull<()> {
        self.buffer.with_mut(|buffer| {
            // SAFETY: the slot is allocated; no reference is made, and nothing is read.
            unsafe { NonNull::new_unchecked((&raw mut (*buffer).bytes).cast()) }
        })
    }

    /// Drops the buffer where it lies. The slot is the caller's.
    pub(super) fn drop_buffer(&self) {
        let (drop, bytes) = self.buffer.with_mut(|buffer| {
            // SAFETY: the slot is the caller's, as this function demands.
            unsafe { ((*buffer).drop.take(), (*buffer).bytes.as_mut_ptr().cast::<()>()) }
        });
        if let Some(drop) = drop {
            // SAFETY: `begin` stored the function together with the buffer for
            // which it is made, and `take` prevents a second call.
            unsafe { drop(bytes) };
        }
    }

    /// Makes the slot idle: later completions of this life are dropped.
    #[inline(always)]
    pub(super) fn rest(&self) {
        // Relaxed: the next life begins after its owner has taken the tag again,
        // and the pool orders that.
        self.state.store(IDLE, Ordering::Relaxed);
    }

    /// Makes the caller the thread that ends this life. Returns the word before
    /// the claim, or `None` if the slot is not in this life or is claimed
    /// already.
    #[inline(always)]
    pub(super) fn claim(&self, tag: Tag) -> Option<u64> {
        let mut seen = self.state.load(Ordering::Relaxed);
        if !is_claimable(seen, tag) {
            // The path through a device orders nothing, so the load may return a
            // value from before the life began. An exchange sees the latest value
            // of the word.
            seen = mutate!("completion_stale_trusted": live(tag) => seen);
        }
        while is_claimable(seen, tag) {
            // Acquire: pairs with the Release in `begin` and in `arm`. The
            // tag came through a device, which orders nothing by itself.
            match self.state.compare_exchange_weak(
                seen,
                seen | CLAIMED,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(seen),
                Err(changed) => seen = changed,
            }
        }
        None
    }

    fn take_waiting(&self) -> SlotWaiter {
        // SAFETY: the cell is the caller's: the caller has claimed the slot with
        // WAKER or CALLBACK set, or it is the ticket while neither WAKER nor
        // CLAIMED is set.
        self.waiting.with_mut(|cell| unsafe { core::mem::replace(&mut *cell, SlotWaiter::Nobody) })
    }
}

// SAFETY: the state word gives each cell one holder at a time, as drawn in the
// module above; buffers and wakers are `Send`.
unsafe impl Sync for CompletionSlot {}
// SAFETY: the same.
unsafe impl Send for CompletionSlot {}

/// Drops the `B` at `buf`.
///
/// # Safety
///
/// `buf` points to a `B` that is not used afterwards.
unsafe fn drop_in_place<B>(buf: *mut ()) {
    // SAFETY: the caller of `drop_in_place` promises it.
    unsafe { buf.cast::<B>().drop_in_place() };
}

#[inline(always)]
fn live(tag: Tag) -> u64 {
    tag.generation() << GENERATION_SHIFT | LIVE
}

#[inline(always)]
fn is_claimable(state: u64, tag: Tag) -> bool {
    mutate!("completion_no_generation":
        state & !(WAKER | ABANDONED | CALLBACK) == live(tag)
        => state & (LIVE | CLAIMED) == LIVE
    )
}

#[inline(always)]
fn begin_order() -> Ordering {
    // Release: pairs with the Acquire in `claim`.
    mutate!("completion_begin_relaxed": Ordering::Release => Ordering::Relaxed)
}

/// The word between two lives, for every generation.
const IDLE: u64 = 0;
const LIVE: u64 = 1;
const CLAIMED: u64 = 1 << 1;
pub(super) const DONE: u64 = 1 << 2;
const WAKER: u64 = 1 << 3;
const ABANDONED: u64 = 1 << 4;
const CALLBACK: u64 = 1 << 5;
const GENERATION_SHIFT: u32 = 8;

const _: () = assert!(cfg!(tsumugi_loom) || size_of::<CompletionSlot>() == 128);
