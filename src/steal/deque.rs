//! The typed ends of the deques: the owner's, and those of thieves.

use super::raw::RawDeque;
use crate::{AddrError, Error, Plain, Rank, Runtime};
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// This rank's end of its deque, from which all ranks may steal. A rank has one, and the
/// thread that has it alone adds and takes items; it may be sent to another thread.
///
/// Items that are left when this is dropped can be stolen as long as a [`Stealer`] of
/// this rank exists. The memory is freed at the next barrier after that.
pub struct RankDeque<T> {
    deques: Arc<RawDeque>,
    items: PhantomData<T>,
}

/// The right to steal from the deques of all ranks. Cheap to clone.
pub struct Stealer<T> {
    deques: Arc<RawDeque>,
    items: PhantomData<T>,
}

impl Runtime {
    /// Makes a deque on every rank, with room for at least `capacity` items, the same on
    /// all ranks: `capacity` is rounded up to a power of two. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share), and an [`Error`] of the program if `capacity` is 0
    /// or above 2^23.
    pub fn rank_deque<T: Plain>(&self, capacity: usize) -> Result<RankDeque<T>, Error> {
        let deques = Arc::new(RawDeque::new(self, capacity, size_of::<T>())?);
        Ok(RankDeque { deques, items: PhantomData })
    }
}

impl<T: Plain> RankDeque<T> {
    /// Adds an item. Lock-free.
    ///
    /// # Errors
    ///
    /// The item, if there is no room for it.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        // SAFETY: the item is as long; `self` is borrowed exclusively, and is the only
        // value of its kind of this rank.
        match unsafe { self.deques.push((&raw const item).cast(), size_of::<T>()) } {
            true => Ok(()),
            false => Err(item),
        }
    }

    /// Takes the newest item, if thieves have left one. Lock-free.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Takes the newest item, if there is one and it is wanted. `is_wanted` may be called
    /// several times for the item, if thieves take older ones meanwhile. Lock-free.
    #[inline]
    pub fn pop_if(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut item = MaybeUninit::<T>::uninit();
        let at = item.as_mut_ptr();
        // SAFETY: the item has been written when `is_wanted` is called, and is not
        // written while it runs; a `Plain` type has no invalid values.
        let is_wanted = || is_wanted(unsafe { &*at });
        // SAFETY: the place is as long; `self` is the only value of its kind, as above.
        let is_taken = unsafe { self.deques.pop_if(at.cast(), size_of::<T>(), is_wanted) };
        // SAFETY: a taken item was written.
        is_taken.then(|| unsafe { item.assume_init() })
    }

    /// Takes the oldest item of a rank's deque, as [`Stealer::steal`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Stealer::steal`].
    pub fn steal(&self, from: Rank) -> Result<Option<T>, AddrError> {
        steal(&self.deques, from)
    }

    /// A handle with which other threads of this rank steal.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer { deques: self.deques.clone(), items: PhantomData }
    }

    /// The number of items. When it is returned, thieves may have taken some.
    pub fn len(&self) -> usize {
        self.deques.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.deques.is_empty()
    }

    /// The number of items for which there is room.
    pub fn capacity(&self) -> usize {
        self.deques.capacity()
    }
}

impl<T: Plain> Stealer<T> {
    /// Takes the oldest item of a rank's deque, which may be this rank's own. `None`:
    /// there is no item, or other thieves were faster each of four times. Lock-free;
    /// blocking if the rank is on another node.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank has died: an item that was being taken may be
    /// lost with it; [`AddrError::NoSuchRank`].
    pub fn steal(&self, from: Rank) -> Result<Option<T>, AddrError> {
        steal(&self.deques, from)
    }
}

fn steal<T: Plain>(deques: &RawDeque, from: Rank) -> Result<Option<T>, AddrError> {
    let mut item = MaybeUninit::<T>::uninit();
    // SAFETY: the place has room for an item.
    let is_taken = unsafe { deques.steal(from, item.as_mut_ptr().cast()) }?;
    // SAFETY: a stolen item was written; a `Plain` type has no invalid values.
    Ok(is_taken.then(|| unsafe { item.assume_init() }))
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self { deques: self.deques.clone(), items: PhantomData }
    }
}

impl<T> fmt::Debug for RankDeque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankDeque({:?})", self.deques)
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stealer({:?})", self.deques)
    }
}
