//! Memory that the program has and gives a global address, and the questions
//! that there are to an address.

use super::retire::Retiring;
use super::{AccessError, Global, GlobalAddr, GlobalPtr};
use crate::{Error, Plain, Rank, Runtime};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Access, Need, RegionKey, RegisterError};

/// Values of the program's own with a global address. When it is dropped the
/// address is stale, as that of a [`GlobalBlock`](super::GlobalBlock).
pub struct GlobalRegion<T> {
    global: Global,
    first: GlobalAddr,
    len: usize,
    registration: Option<Registration>,
    of: PhantomData<fn() -> T>,
}

/// What ends when nobody reaches the memory.
struct Registration {
    runtime: Runtime,
    key: RegionKey,
    /// Whose it is, if it is to live as long.
    _owner: Option<Box<dyn Send>>,
}

impl Global {
    /// Lets all ranks read values that are this rank's, where they are: in its
    /// heap, where all of a program lies whose allocator is
    /// [`GlobalHeap`](crate::GlobalHeap). They are kept until nobody reads
    /// them any more.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tsumugi::global::AccessError;
    /// #[global_allocator]
    /// static HEAP: tsumugi::GlobalHeap = tsumugi::GlobalHeap;
    ///
    /// # fn main() {
    /// tsumugi::run(|rt| {
    ///     let global = rt.global()?;
    ///     // Allocated by a ULT of the rank's: in its heap.
    ///     let squares: Arc<[u64]> = (0..1000).map(|n| n * n).collect();
    ///     let region = global.publish(squares.clone())?;
    ///     let at = global.index(region.first(), 30)?;
    ///     assert_eq!(global.get(at)?, squares[30]);
    ///     // The way there and back.
    ///     assert_eq!(global.addr_of(&squares[30]), Some(at));
    ///     assert_eq!(global.local(at, 1)?.as_ptr().cast_const(), &raw const squares[30]);
    ///     // It is for reading.
    ///     let put = global.put(at, 1);
    ///     assert!(matches!(put, Err(AccessError::ReadOnly { .. })), "{put:?}");
    ///     Ok::<_, tsumugi::Error>(())
    /// })
    /// # .unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Register`] for values that are elsewhere, [`Error::Name`].
    pub fn publish<T: Plain>(&self, values: Arc<[T]>) -> Result<GlobalRegion<T>, Error> {
        let base = NonNull::from(&*values).cast::<T>();
        let len = values.len();
        // SAFETY: nobody changes what is shared so, and the region has a share
        // of it until nobody reaches it.
        unsafe { self.name(base, len, Access::Read, Some(Box::new(values))) }
    }

    /// Gives the `len` values at `base` a global address: any part of this
    /// rank's exposed memory, which all may read and change from then on.
    ///
    /// # Errors
    ///
    /// [`Error::Register`] for memory that is elsewhere, [`Error::Name`].
    ///
    /// # Safety
    ///
    /// They are plain bytes, which this process reads and changes as other
    /// threads' (by atomics, or through operations), until
    /// [`unregister`](GlobalRegion::unregister) has returned; if the region is
    /// dropped instead, for the rest of the job.
    pub unsafe fn register_at<T: Plain>(
        &self,
        base: NonNull<T>,
        len: usize,
    ) -> Result<GlobalRegion<T>, Error> {
        // SAFETY: the caller's.
        unsafe { self.name(base, len, Access::ReadWrite, None) }
    }

    /// # Safety
    ///
    /// That of [`register_at`](Self::register_at), as far as `access` says.
    unsafe fn name<T: Plain>(
        &self,
        base: NonNull<T>,
        len: usize,
        access: Access,
        owner: Option<Box<dyn Send>>,
    ) -> Result<GlobalRegion<T>, Error> {
        let (runtime, bytes) = (self.runtime.clone(), len.checked_mul(size_of::<T>()));
        let out_of_reach =
            RegisterError::OutOfReach { base: base.as_ptr() as usize, bytes: u64::MAX };
        let bytes = bytes.ok_or(out_of_reach)? as u64;
        // SAFETY: the caller's.
        let region = unsafe { runtime.direct.register(base.cast(), bytes, access)? };
        let registration =
            Registration { runtime: runtime.clone(), key: region.key, _owner: owner };
        if let Some(far) = &runtime.far {
            far.register(&region)?;
        }
        let first = self.driver.name(self.color, &region)?;
        let (global, registration) = (self.clone(), Some(registration));
        Ok(GlobalRegion { global, first, len, registration, of: PhantomData })
    }

    /// The global address of memory of this rank's, by a registration that it
    /// lies in; `None` if there is none. It looks at all registrations.
    pub fn addr_of<T: Plain>(&self, at: *const T) -> Option<GlobalPtr<T>> {
        let at = NonNull::new(at.cast_mut())?;
        self.driver.addr_of(at.cast()).map(GlobalPtr::new)
    }

    /// Whose memory an address is of; `None` for one that is nowhere. Its
    /// colour, region and offset are [`Split::place`](super::Split::place).
    pub fn rank_of<T: Plain>(&self, at: GlobalPtr<T>) -> Option<Rank> {
        let rank = self.split().rank(at.addr());
        rank.filter(|rank| rank.0 < self.runtime.size())
    }

    /// Where the `count` values at `at` lie in this process, if they are this
    /// rank's or a rank's of its node. What a program does through the pointer
    /// is its own business; it is valid as long as the memory is registered
    /// and its rank runs.
    ///
    /// # Errors
    ///
    /// The errors of a get; [`AccessError::Unsupported`] for a rank of another
    /// node, [`AccessError::Stale`] for another rank's memory that is the
    /// device's.
    pub fn local<T: Plain>(
        &self,
        at: GlobalPtr<T>,
        count: usize,
    ) -> Result<NonNull<T>, AccessError> {
        let bytes = super::access::bytes_of::<T>(at.addr(), count)?;
        self.with(at, count, Need::Read, |at| {
            let is_own = at.addr().rank == self.runtime.rank();
            let need = if is_own { Need::Local } else { Need::Read };
            self.runtime.direct.resolve(at.addr(), bytes, need).map(NonNull::cast)
        })
    }
}

impl<T: Plain> GlobalRegion<T> {
    /// The address of its first value.
    pub fn first(&self) -> GlobalPtr<T> {
        GlobalPtr::new(self.first)
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the address away, and waits until nobody reaches the memory by
    /// it any more: from then on it is the program's alone. Blocking, as
    /// [`GlobalBlock::unregister`](super::GlobalBlock::unregister).
    pub fn unregister(mut self) {
        let registration = self.registration.take().expect("it goes once");
        let mut retiring = Retiring::new(registration);
        self.global.driver.retire(self.first, retiring.memory());
        drop(retiring.wait());
    }
}

impl<T> Drop for GlobalRegion<T> {
    fn drop(&mut self) {
        if let Some(registration) = self.registration.take() {
            self.global.driver.retire(self.first, Box::new(registration));
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(far) = &self.runtime.far {
            far.unregister(self.key);
        }
        self.runtime.direct.unregister(self.key);
    }
}

impl<T> fmt::Debug for GlobalRegion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = std::any::type_name::<T>();
        write!(f, "GlobalRegion<{of}>({} at {})", self.len, self.first)
    }
}
