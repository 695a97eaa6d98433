//! The header of a ring, and the ring's place in given memory.

use super::error::RingError;
use crate::sync::{AtomicU64, CachePadded, Ordering};
use core::ptr::NonNull;

/// The indices of a ring. They only count up, and are masked at each use; 63 bits
/// never wrap.
#[repr(C)]
pub(super) struct RingHeader {
    /// Written by producers.
    pub(super) tail: CachePadded<AtomicU64>,
    /// Written by the consumer.
    consumer: CachePadded<ConsumerHeader>,
}

#[repr(C)]
struct ConsumerHeader {
    head: AtomicU64,
    /// The number of slots, and the bytes of a slot; 0 until the ring is made, and
    /// constant afterwards.
    shape: AtomicU64,
}

impl RingHeader {
    #[cfg(not(tsumugi_loom))]
    pub(super) const fn new() -> Self {
        let (head, shape) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            consumer: CachePadded::new(ConsumerHeader { head, shape }),
        }
    }

    #[cfg(tsumugi_loom)]
    pub(super) fn new() -> Self {
        let (head, shape) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            consumer: CachePadded::new(ConsumerHeader { head, shape }),
        }
    }

    #[inline(always)]
    pub(super) fn head(&self) -> &AtomicU64 {
        &self.consumer.head
    }

    /// The approximate number of elements.
    pub(super) fn len(&self, slots: usize) -> usize {
        // Relaxed: a hint. Head is loaded first, so that it is seldom beyond the
        // tail loaded after it; such a difference counts as 0.
        let head = self.head().load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed) & !ASLEEP;
        (tail.wrapping_sub(head) as i64).clamp(0, slots as i64) as usize
    }
}

/// Whether a ring can have `slots` slots. One slot is too few: a full slot could not
/// be told from the free slot of the next lap.
pub(super) const fn is_slot_count(slots: usize) -> bool {
    slots.is_power_of_two() && slots >= 2 && slots <= 1 << 31
}

pub(super) const fn memory_size<S>(slots: usize) -> usize {
    slots_offset::<S>() + slots * size_of::<S>()
}

pub(super) const fn align<S>() -> usize {
    if align_of::<S>() > align_of::<RingHeader>() {
        align_of::<S>()
    } else {
        align_of::<RingHeader>()
    }
}

const fn slots_offset<S>() -> usize {
    size_of::<RingHeader>().next_multiple_of(align::<S>())
}

fn check<S>(memory: NonNull<u8>, slots: usize) -> Result<(), RingError> {
    if !is_slot_count(slots) {
        return Err(RingError::Slots { slots });
    }
    let (address, align) = (memory.as_ptr() as usize, align::<S>());
    if !address.is_multiple_of(align) {
        return Err(RingError::Unaligned { address, align });
    }
    Ok(())
}

/// Makes a ring in the given memory.
///
/// # Safety
///
/// `memory` points to `memory_size::<S>(slots)` bytes that no other code uses before
/// this returns, and that stay valid for `'a`.
pub(super) unsafe fn init<'a, S>(
    memory: NonNull<u8>,
    slots: usize,
    slot: impl Fn(usize) -> S,
) -> Result<(&'a RingHeader, &'a [S]), RingError> {
    check::<S>(memory, slots)?;
    let header = memory.cast::<RingHeader>();
    // SAFETY: the caller promises enough valid memory, and the alignment was
    // checked.
    let first = unsafe { memory.add(slots_offset::<S>()).cast::<S>() };
    // SAFETY: the same.
    unsafe { header.write(RingHeader::new()) };
    for index in 0..slots {
        // SAFETY: the same.
        unsafe { first.add(index).write(slot(index)) };
    }
    // SAFETY: the header was just written; only its atomics change from here on.
    let header: &'a RingHeader = unsafe { header.as_ref() };
    // Release: pairs with the Acquire in `attach`.
    header.consumer.shape.store(shape::<S>(slots), Ordering::Release);
    // SAFETY: the slots were just written.
    Ok((header, unsafe { core::slice::from_raw_parts(first.as_ptr(), slots) }))
}

/// Finds a ring that [`init`] has made.
///
/// # Safety
///
/// `memory` points to `memory_size::<S>(slots)` bytes that stay valid for
/// `'a` and are either zero or a ring of such slots.
pub(super) unsafe fn attach<'a, S>(
    memory: NonNull<u8>,
    slots: usize,
) -> Result<(&'a RingHeader, &'a [S]), RingError> {
    check::<S>(memory, slots)?;
    // SAFETY: the caller promises valid memory; a header consists of atomics, for
    // which all bytes are valid values.
    let header: &'a RingHeader = unsafe { memory.cast::<RingHeader>().as_ref() };
    // Acquire: pairs with the Release in `init`.
    let found = header.consumer.shape.load(Ordering::Acquire);
    if found != shape::<S>(slots) {
        let (slots, slot_bytes) = ((found >> 32) as u32, found as u32);
        return Err(RingError::Shape { slots, slot_bytes });
    }
    // SAFETY: the shape was found, so `init` has written the slots.
    let slots = unsafe {
        let first = memory.add(slots_offset::<S>()).cast::<S>();
        core::slice::from_raw_parts(first.as_ptr(), slots)
    };
    Ok((header, slots))
}

const fn shape<S>(slots: usize) -> u64 {
    (slots as u64) << 32 | size_of::<S>() as u64
}

/// The bit in a tail that marks the consumer as asleep.
pub(super) const ASLEEP: u64 = 1 << 63;
