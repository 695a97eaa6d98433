//! Registered memory that a rail's own operations use, and the numbers of
//! their contexts.
//!
//! ```text
//!  context   0 .. depth     an operation (its slot is its tag with the device)
//!            then 16        a directory slot that is being read
//!            then packets   one that is being sent
//!            then packets   one that may arrive
//!
//!  scratch   a line of words for each operation | directory slots | packets
//! ```

use super::memory::{SLOT_BYTES, SLOT_WORDS};
use super::wire::Near;
use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Registered memory that the rail's own operations use.
pub(super) struct Scratch {
    pub memory: Area,
    pub desc: *mut c_void,
    depth: usize,
    packets: usize,
    packet_bytes: usize,
}

/// The words of one operation, as a device reads and writes them.
#[repr(C, align(32))]
pub(super) struct Words {
    pub operand: u64,
    pub compare: u64,
    pub result: u64,
}

/// What a context stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Flight(usize),
    Read(usize),
    Send(usize),
    Receive(usize),
}

impl Scratch {
    pub(super) fn new(depth: usize, packets: usize, packet_bytes: usize) -> Self {
        let bytes =
            depth * size_of::<Words>() + READS_MAX * SLOT_BYTES + 2 * packets * packet_bytes;
        Self { memory: Area::new(bytes), desc: core::ptr::null_mut(), depth, packets, packet_bytes }
    }

    /// The context of what `of` names.
    #[inline]
    pub(super) fn context(&self, of: Context) -> usize {
        match of {
            Context::Flight(at) => at,
            Context::Read(at) => self.depth + at,
            Context::Send(at) => self.depth + READS_MAX + at,
            Context::Receive(at) => self.depth + READS_MAX + self.packets + at,
        }
    }

    /// What the context of a completion stands for: mostly an operation.
    #[inline]
    pub(super) fn context_of(&self, context: usize) -> Option<Context> {
        match context.checked_sub(self.depth) {
            None => Some(Context::Flight(context)),
            Some(beyond) => self.context_beyond(beyond),
        }
    }

    #[cold]
    fn context_beyond(&self, mut index: usize) -> Option<Context> {
        let packets = self.packets;
        for (count, of) in [
            (READS_MAX, Context::Read as fn(usize) -> Context),
            (packets, Context::Send),
            (packets, Context::Receive),
        ] {
            if index < count {
                return Some(of(index));
            }
            index -= count;
        }
        None
    }

    /// The words of an operation.
    #[inline]
    pub(super) fn words(&self, flight: usize) -> *mut Words {
        self.memory.base.as_ptr().cast::<Words>().wrapping_add(flight)
    }

    /// Where a directory slot is read to.
    pub(super) fn slot(&self, read: usize) -> *mut [u64; SLOT_WORDS] {
        let start = self.depth * size_of::<Words>();
        self.memory.base.as_ptr().wrapping_add(start + read * SLOT_BYTES).cast()
    }

    /// The bytes of a packet that is being sent.
    pub(super) fn outgoing(&self, packet: usize) -> *mut u8 {
        let start = self.depth * size_of::<Words>() + READS_MAX * SLOT_BYTES;
        self.memory.base.as_ptr().wrapping_add(start + packet * self.packet_bytes)
    }

    /// The bytes of a packet that may arrive.
    pub(super) fn incoming(&self, packet: usize) -> *mut u8 {
        self.outgoing(self.packets + packet)
    }

    /// Bytes of a packet.
    pub(super) fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// Scratch memory as the local end of a transfer.
    #[inline]
    pub(super) fn near<T>(&self, at: *mut T) -> Near {
        Near { at: at.cast(), desc: self.desc }
    }
}

/// How many contexts a rail has.
pub(crate) const fn contexts_of(depth: usize, packets: usize) -> usize {
    depth + READS_MAX + 2 * packets
}

/// Zeroed pages of our own.
pub(crate) struct Area {
    pub base: NonNull<u8>,
    pub layout: Layout,
}

impl Area {
    pub(crate) fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), 4096).expect("a size that fits");
        // SAFETY: at least one byte.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) });
        Self { base: base.unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// Directory slots that are read at once.
pub(super) const READS_MAX: usize = 16;
