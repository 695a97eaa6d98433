//! Boxes from a pool of blocks of equal size: a value that is too large for a completion
//! slot, without an allocation.
//!
//! Progress: lock-free.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_core::tag::{Tag, TagPool};

/// A pool of [`BLOCKS`] blocks of [`BLOCK_BYTES`].
pub(crate) struct BlockPool {
    free: TagPool<'static>,
    at: NonNull<u8>,
    /// A bit for each block: its operation is to be ended when the rank ends.
    marks: [AtomicU64; BLOCKS / 64],
}

/// A value in a block of a pool.
pub(crate) struct PoolBox<T> {
    at: NonNull<T>,
    block: Tag,
    pool: NonNull<BlockPool>,
}

/// The number of blocks in a pool.
pub(crate) const BLOCKS: usize = 512;

/// The bytes of a block: what an operation owns, and the function that it calls.
pub(crate) const BLOCK_BYTES: usize = 256;

/// The bytes of a pool.
pub(crate) const POOL_BYTES: usize = BLOCKS_FROM + BLOCKS * BLOCK_BYTES;

impl BlockPool {
    #[cold]
    pub(crate) fn new() -> Self {
        // SAFETY: the size is not 0.
        let at = unsafe { alloc(LAYOUT) };
        let at = NonNull::new(at).unwrap_or_else(|| handle_alloc_error(LAYOUT));
        // SAFETY: memory of this size and alignment, which lives as long as this value.
        let free = unsafe { TagPool::init(at, BLOCKS) };
        let marks = std::array::from_fn(|_| AtomicU64::new(0));
        Self { free: free.expect("the number of blocks is valid"), at, marks }
    }

    /// Whether a block is marked.
    pub(crate) fn has_marked(&self) -> bool {
        // Acquire: pairs with the Release in `unmark`.
        self.marks.iter().any(|word| word.load(Ordering::Acquire) != 0)
    }

    /// Takes the mark of a block, and returns the block.
    pub(crate) fn take_marked(&self) -> Option<NonNull<u8>> {
        (0..BLOCKS).find(|index| self.unmark(*index)).map(|index| self.block(index))
    }

    /// Removes a mark; returns whether there was one.
    fn unmark(&self, index: usize) -> bool {
        let (word, bit) = (&self.marks[index / 64], 1 << (index % 64));
        // Acquire: pairs with the Release in `mark`. Release: pairs with `has_marked`.
        word.load(Ordering::Relaxed) & bit != 0 && word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    fn block(&self, index: usize) -> NonNull<u8> {
        // SAFETY: in the memory of the pool.
        unsafe { self.at.add(BLOCKS_FROM + index * BLOCK_BYTES) }
    }

    /// Puts `value` into a free block.
    ///
    /// # Errors
    ///
    /// The value: no block is free.
    ///
    /// # Safety
    ///
    /// The pool stays where it is until the box is dropped.
    #[inline]
    pub(crate) unsafe fn try_box<T>(&self, hint: usize, value: T) -> Result<PoolBox<T>, T> {
        const {
            assert!(
                size_of::<T>() <= BLOCK_BYTES,
                "the function that an operation calls, with what the operation owns, is larger \
                 than 256 bytes: keep what it captures in a Box or an Arc"
            );
            assert!(align_of::<T>() <= 16, "the alignment of a value in a block is above 16");
        }
        let Some(block) = self.free.try_take(hint) else { return Err(value) };
        // SAFETY: the block lies in the memory of the pool, and is not used by another
        // thread, because its tag was free.
        unsafe {
            let at = self.block(block.index()).cast::<T>();
            at.write(value);
            Ok(PoolBox { at, block, pool: NonNull::from(self) })
        }
    }
}

impl<T> PoolBox<T> {
    /// Takes the value out.
    #[inline]
    pub(crate) fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the block has the value, and is not used afterwards; the pool is there,
        // by the promise of `try_box`.
        unsafe {
            let value = this.at.read();
            this.pool.as_ref().free.release(this.block);
            value
        }
    }

    /// Marks the block, so that [`BlockPool::take_marked`] finds it.
    pub(crate) fn mark(&self) {
        let index = self.block.index();
        // SAFETY: the pool is there, by the promise of `try_box`.
        let marks = unsafe { &self.pool.as_ref().marks };
        // Release: pairs with the Acquire of the thread that takes the mark.
        marks[index / 64].fetch_or(1 << (index % 64), Ordering::Release);
    }

    /// Removes the mark; returns whether there was one.
    pub(crate) fn unmark(&self) -> bool {
        // SAFETY: the pool is there, by the promise of `try_box`.
        unsafe { self.pool.as_ref() }.unmark(self.block.index())
    }

    /// The address of the value.
    pub(crate) fn as_ptr(&self) -> NonNull<T> {
        self.at
    }
}

impl<T> Deref for PoolBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the block has the value, which this box owns.
        unsafe { self.at.as_ref() }
    }
}

impl<T> DerefMut for PoolBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the block has the value, which this box owns.
        unsafe { self.at.as_mut() }
    }
}

impl<T> Drop for PoolBox<T> {
    fn drop(&mut self) {
        // SAFETY: as in `into_inner`.
        unsafe {
            self.at.drop_in_place();
            self.pool.as_ref().free.release(self.block);
        }
    }
}

impl Drop for BlockPool {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; no box is left that is used.
        unsafe { dealloc(self.at.as_ptr(), LAYOUT) };
    }
}

// SAFETY: a box owns its value; the pool can be used from any thread.
unsafe impl<T: Send> Send for PoolBox<T> {}
// SAFETY: a shared box only shows its value.
unsafe impl<T: Sync> Sync for PoolBox<T> {}
// SAFETY: the pointer is to memory that the pool owns; blocks are taken by lock-free tags.
unsafe impl Send for BlockPool {}
// SAFETY: the same.
unsafe impl Sync for BlockPool {}

impl fmt::Debug for BlockPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockPool({} free)", self.free.available())
    }
}

const BLOCKS_FROM: usize = TagPool::memory_size(BLOCKS).next_multiple_of(BLOCK_BYTES);
const LAYOUT: Layout = match Layout::from_size_align(POOL_BYTES, TagPool::ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("the layout of the pool is invalid"),
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_block_is_free_again_when_its_box_is_gone() {
        let (pool, value) = (BlockPool::new(), Arc::new(5));
        // SAFETY: the pool outlives the boxes.
        let try_box = || unsafe { pool.try_box(0, (value.clone(), [1u64; 31])) }.ok();
        let boxes: Vec<_> = (0..BLOCKS).map(|_| try_box().unwrap()).collect();
        assert!(try_box().is_none());
        assert_eq!(Arc::strong_count(&value), 1 + BLOCKS);
        for (index, one) in boxes.into_iter().enumerate() {
            assert_eq!((*one.0, one.1[30]), (5, 1));
            if index % 2 == 0 { drop(one) } else { assert_eq!(*one.into_inner().0, 5) }
        }
        assert_eq!((Arc::strong_count(&value), pool.free.available()), (1, BLOCKS));
    }

    #[test]
    fn a_marked_block_is_found_once() {
        let pool = BlockPool::new();
        // SAFETY: the pool outlives the boxes.
        let try_box = |value| unsafe { pool.try_box(0, value) }.unwrap();
        let (one, other) = (try_box(1u64), try_box(2));
        assert!(!pool.has_marked() && !one.unmark());
        one.mark();
        other.mark();
        assert!(other.unmark() && !other.unmark() && pool.has_marked());
        assert_eq!(pool.take_marked(), Some(one.as_ptr().cast()));
        assert_eq!((pool.take_marked(), one.unmark()), (None, false));
    }
}
