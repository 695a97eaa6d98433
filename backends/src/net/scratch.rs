//! Registered memory that a NIC endpoint's own operations use, and the numbers of
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
use super::wire::LocalBuffer;
use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Registered memory that the NIC endpoint's own operations use.
pub(super) struct Scratch {
    pub memory: ZeroedPages,
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

/// The object that a context stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Operation(usize),
    Read(usize),
    Send(usize),
    Receive(usize),
}

impl Scratch {
    pub(super) fn new(depth: usize, packets: usize, packet_bytes: usize) -> Self {
        let bytes =
            depth * size_of::<Words>() + READS_MAX * SLOT_BYTES + 2 * packets * packet_bytes;
        Self {
            memory: ZeroedPages::new(bytes),
            desc: core::ptr::null_mut(),
            depth,
            packets,
            packet_bytes,
        }
    }

    /// The context of an object.
    #[inline]
    pub(super) fn context(&self, of: Context) -> usize {
        match of {
            Context::Operation(at) => at,
            Context::Read(at) => self.depth + at,
            Context::Send(at) => self.depth + READS_MAX + at,
            Context::Receive(at) => self.depth + READS_MAX + self.packets + at,
        }
    }

    /// The object of a completion's context: mostly an operation.
    #[inline]
    pub(super) fn context_of(&self, context: usize) -> Option<Context> {
        match context.checked_sub(self.depth) {
            None => Some(Context::Operation(context)),
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
    pub(super) fn words(&self, in_flight_op: usize) -> *mut Words {
        self.memory.base.as_ptr().cast::<Words>().wrapping_add(in_flight_op)
    }

    /// The buffer of a directory read.
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

    /// The bytes of a packet buffer.
    pub(super) fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// Scratch memory as the local end of a transfer.
    #[inline]
    pub(super) fn local<T>(&self, at: *mut T) -> LocalBuffer {
        LocalBuffer { at: at.cast(), desc: self.desc }
    }
}

/// The number of contexts of a NIC endpoint.
pub const fn contexts_of(depth: usize, packets: usize) -> usize {
    depth + READS_MAX + 2 * packets
}

/// Zeroed pages that this value owns.
pub(crate) struct ZeroedPages {
    pub base: NonNull<u8>,
    pub layout: Layout,
}

impl ZeroedPages {
    pub(crate) fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), 4096).expect("a size that fits");
        // SAFETY: the layout has at least one byte.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) });
        Self { base: base.unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

impl Drop for ZeroedPages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// The largest number of directory slots that are read at once.
pub(super) const READS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_context_stands_for_one_thing() {
        let scratch = Scratch::new(3, 2, 64);
        let of = |context| scratch.context_of(context);
        let all = (0..3).map(Context::Operation).chain((0..READS_MAX).map(Context::Read));
        let all = all.chain((0..2).map(Context::Send)).chain((0..2).map(Context::Receive));
        for (context, wanted) in all.enumerate() {
            assert_eq!((of(context), scratch.context(wanted)), (Some(wanted), context));
        }
        assert_eq!((of(contexts_of(3, 2)), of(usize::MAX)), (None, None));
        assert_eq!(of(contexts_of(3, 2) - 1), Some(Context::Receive(1)));
    }

    #[test]
    fn the_places_do_not_overlap() {
        let scratch = Scratch::new(3, 2, 64);
        let mut places: Vec<(usize, usize)> = Vec::new();
        places.extend((0..3).map(|at| (scratch.words(at) as usize, size_of::<Words>())));
        places.extend((0..READS_MAX).map(|at| (scratch.slot(at) as usize, SLOT_BYTES)));
        places.extend((0..2).map(|at| (scratch.outgoing(at) as usize, 64)));
        places.extend((0..2).map(|at| (scratch.incoming(at) as usize, 64)));
        let start = scratch.memory.base.as_ptr() as usize;
        let mut end = start;
        for (place, bytes) in places {
            assert!(place >= end, "{place:#x} overlaps the place before it");
            end = place + bytes;
        }
        assert_eq!(end - start, scratch.memory.layout.size());
        assert_eq!((start % 4096, scratch.packet_bytes()), (0, 64));
    }
}
