//! Bounded queues between threads, in the caller's memory or in their own.
//!
//! | ring | producers | consumers | full is decided by |
//! |---|---|---|---|
//! | [`Mpsc`], [`MpscView`] | any number | one; a mark in the ring can say that it sleeps | the slot's sequence |
//! | [`Spsc`], [`SpscView`] | one | one | the other side's index |
//! | [`Marked`] | any number | one; a mark in the ring says that it sleeps | the head |
//!
//! Each algorithm is written once, on the view. A view lies over memory that the
//! caller gives and that may be shared with other processes: it is `#[repr(C)]` and
//! holds no pointer. The owned forms contain their slots and return a view of
//! themselves.
//!
//! ```text
//!  given memory:   tail        head, shape     slot 0   slot 1   ...
//!                  (128)         (128)         ────── a power of two ─────
//!                producers'    consumer's
//! ```
//!
//! # Example
//!
//! ```
//! use tsumugi_core::ring::Mpsc;
//!
//! let mut ring = Mpsc::<u64, 4>::new();
//! let (producer, mut consumer) = ring.split();
//! for value in 0..4 {
//!     producer.try_push(value).expect("there is room for four");
//! }
//! assert_eq!(producer.try_push(4), Err(4), "full: the value comes back");
//! assert_eq!(consumer.try_pop(), Some(0));
//! assert!(producer.try_push(4).is_ok());
//! ```
//!
//! # What it does not do
//!
//! A producer that is stopped between its claim of a slot and its publication delays
//! the producers behind it: they can push, but the consumer does not see their
//! elements. So the only work between the two steps is one copy of the element.

mod mpsc;
mod spsc;
mod marked;

pub use marked::{Marked, Pushed};
pub use mpsc::{Mpsc, MpscConsumer, MpscView};
pub use spsc::{Spsc, SpscConsumer, SpscProducer, SpscView};

use crate::sync::{AtomicU64, CachePadded, Ordering, mutant};
use core::fmt;
use core::ptr::NonNull;

/// Why no ring was made, or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// The number of slots is not a power of two from 2 to 2^31.
    Slots {
        /// The number of slots that the caller asked for.
        slots: usize,
    },
    /// The memory is not aligned to the view's `ALIGN`.
    Unaligned {
        /// The address of the memory.
        address: usize,
        /// The alignment that the view needs.
        align: usize,
    },
    /// The memory contains no ring, or a ring of another shape.
    Shape {
        /// Slots found; 0 if there is no ring.
        slots: u32,
        /// Bytes of each slot found.
        slot_bytes: u32,
    },
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots { slots } => {
                write!(f, "a ring of {slots} slots: it needs a power of two from 2 to 2^31")
            }
            Self::Unaligned { address, align } => {
                write!(f, "the memory at {address:#x} is not aligned to {align} bytes")
            }
            Self::Shape { slots: 0, .. } => f.write_str("the memory contains no ring"),
            Self::Shape { slots, slot_bytes } => {
                write!(f, "the memory contains another ring: {slots} slots of {slot_bytes} bytes")
            }
        }
    }
}

impl core::error::Error for RingError {}

/// The indices of a ring. They only count up, and are masked at each use; 63 bits
/// never wrap.
#[repr(C)]
struct Header {
    /// Written by producers.
    tail: CachePadded<AtomicU64>,
    /// Written by the consumer.
    consumer: CachePadded<Consumer>,
}

#[repr(C)]
struct Consumer {
    head: AtomicU64,
    /// The number of slots, and the bytes of a slot; 0 until the ring is made, and
    /// constant afterwards.
    shape: AtomicU64,
}

impl Header {
    #[cfg(not(tsumugi_loom))]
    const fn new() -> Self {
        let (head, shape) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            consumer: CachePadded::new(Consumer { head, shape }),
        }
    }

    #[cfg(tsumugi_loom)]
    fn new() -> Self {
        let (head, shape) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            consumer: CachePadded::new(Consumer { head, shape }),
        }
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.consumer.head
    }

    /// The approximate number of elements.
    fn len(&self, slots: usize) -> usize {
        // Relaxed: a hint. Head is loaded first, so that it is seldom beyond the
        // tail loaded after it; such a difference counts as 0.
        let head = self.head().load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed) & !ASLEEP;
        (tail.wrapping_sub(head) as i64).clamp(0, slots as i64) as usize
    }
}

/// Whether a ring can have `slots` slots. One slot is too few: a full slot could not
/// be told from the free slot of the next lap.
const fn is_slot_count(slots: usize) -> bool {
    slots.is_power_of_two() && slots >= 2 && slots <= 1 << 31
}

const fn memory_size<S>(slots: usize) -> usize {
    slots_offset::<S>() + slots * size_of::<S>()
}

const fn align<S>() -> usize {
    if align_of::<S>() > align_of::<Header>() { align_of::<S>() } else { align_of::<Header>() }
}

const fn slots_offset<S>() -> usize {
    size_of::<Header>().next_multiple_of(align::<S>())
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
unsafe fn init<'a, S>(
    memory: NonNull<u8>,
    slots: usize,
    slot: impl Fn(usize) -> S,
) -> Result<(&'a Header, &'a [S]), RingError> {
    check::<S>(memory, slots)?;
    let header = memory.cast::<Header>();
    // SAFETY: the caller promises enough valid memory, and the alignment was
    // checked.
    let first = unsafe { memory.add(slots_offset::<S>()).cast::<S>() };
    // SAFETY: the same.
    unsafe { header.write(Header::new()) };
    for index in 0..slots {
        // SAFETY: the same.
        unsafe { first.add(index).write(slot(index)) };
    }
    // SAFETY: the header was just written; only its atomics change from here on.
    let header: &'a Header = unsafe { header.as_ref() };
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
unsafe fn attach<'a, S>(
    memory: NonNull<u8>,
    slots: usize,
) -> Result<(&'a Header, &'a [S]), RingError> {
    check::<S>(memory, slots)?;
    // SAFETY: the caller promises valid memory; a header consists of atomics, for
    // which all bytes are valid values.
    let header: &'a Header = unsafe { memory.cast::<Header>().as_ref() };
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
const ASLEEP: u64 = 1 << 63;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;

/// Release, or Relaxed if a test has planted `defect`.
#[inline(always)]
fn order(defect: &'static str) -> Ordering {
    if mutant(defect) { Ordering::Relaxed } else { Ordering::Release }
}
