//! The nodes' memory, and the interface through which operations access all of it.

use crate::backend::LoadStore;
use crate::mem::{AddrError, LocalAddr, Need, Rank, RegionTable, RemoteAddr};
use crate::op::Op;
use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::{self, NonNull};

/// Zero bytes that live as long as the network and never move.
pub(super) struct RegionBytes {
    base: NonNull<u8>,
    layout: Layout,
}

/// All nodes' memory, as operations of node `from` access it.
pub(super) struct SimMemory<'t> {
    pub(super) tables: &'t [RegionTable<REGIONS>],
    pub(super) from: Rank,
}

impl RegionBytes {
    /// At least `bytes` bytes, aligned to a cache line.
    ///
    /// # Panics
    ///
    /// If no memory layout is that large.
    pub(super) fn new(bytes: u64) -> Self {
        let size = usize::try_from(bytes).ok().and_then(|size| size.max(1).checked_add(LINE - 1));
        let layout = size.and_then(|size| Layout::from_size_align(size / LINE * LINE, LINE).ok());
        let layout = layout.unwrap_or_else(|| panic!("a region of {bytes} bytes is too large"));
        // SAFETY: the size is at least one line, so not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout }
    }

    pub(super) const fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for RegionBytes {
    fn drop(&mut self) {
        // SAFETY: the memory came from `alloc_zeroed` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

// SAFETY: plain bytes, which are accessed only through region tables.
unsafe impl Send for RegionBytes {}

impl SimMemory<'_> {
    /// Copies the local end of `op` out, as a device does if it completes a put
    /// before the put has landed.
    pub(super) fn copy_local(&self, op: &Op, to: &mut Vec<u8>) -> Result<(), AddrError> {
        let at = self.local(op.local(), op.bytes())?;
        copy_out(at, op.bytes(), to);
        Ok(())
    }

    /// Copies the remote end of `op` out: the first half of a get.
    pub(super) fn copy_remote(&self, op: &Op, to: &mut Vec<u8>) -> Result<(), AddrError> {
        let at = self.resolve(op.remote, op.bytes(), Need::Read)?;
        copy_out(at, op.bytes(), to);
        Ok(())
    }

    /// Copies to the local end of `op`: the second half of a get.
    pub(super) fn write_local(&self, op: &Op, from: &[u8]) -> Result<(), AddrError> {
        let at = self.local(op.local(), from.len() as u64)?;
        // SAFETY: `from.len()` bytes were resolved.
        unsafe { ptr::copy(from.as_ptr(), at.as_ptr(), from.len()) };
        Ok(())
    }
}

fn copy_out(at: NonNull<u8>, bytes: u64, to: &mut Vec<u8>) {
    to.clear();
    to.resize(bytes as usize, 0);
    // SAFETY: the callers have resolved `bytes` bytes.
    unsafe { ptr::copy(at.as_ptr(), to.as_mut_ptr(), bytes as usize) };
}

// SAFETY: `register` demands of its callers what `resolve` promises: mapped memory
// that holds plain bytes only.
unsafe impl LoadStore for SimMemory<'_> {
    fn size(&self) -> u32 {
        self.tables.len() as u32
    }

    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        RegionTable::<REGIONS>::check_rank(addr.rank, self.size())?;
        self.tables[addr.rank.0 as usize].resolve(addr, bytes, need)
    }

    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        let addr = RemoteAddr { rank: self.from, key: addr.key, offset: addr.offset };
        self.resolve(addr, bytes, Need::Local)
    }

    /// Does nothing: the network notifies a node by an event.
    fn notify(&self, _: RemoteAddr, _: NonNull<u8>) {}
}

const LINE: usize = 64;

/// The number of registrations that a node can have at a time.
pub(super) const REGIONS: usize = 16;
