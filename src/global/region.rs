//! Global addresses for memory that the program has already, and the translations
//! between memory and addresses.

use super::retire::Retiring;
use super::{Global, GlobalAddr, GlobalPtr};
use crate::{AddrError, Error, Plain, Rank, Runtime};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Access, Need, RegionKey, RegisterError};

/// Values of the program's own with a global address. When it is dropped, the
/// address is stale, as that of a dropped [`GlobalBlock`](super::GlobalBlock).
pub struct GlobalRegion<T> {
    global: Global,
    first: GlobalAddr,
    len: usize,
    registration: Option<RegionHandle>,
    of: PhantomData<fn() -> T>,
}

/// The registration, which ends when no rank reaches the memory any more.
struct RegionHandle {
    runtime: Runtime,
    key: RegionKey,
    /// The owner of the memory, if the memory must live as long.
    _owner: Option<Box<dyn Send>>,
}

impl Global {
    /// Makes values of this rank readable for all ranks, in place. The values must
    /// lie in the rank's heap; all allocations of a program lie there if its global
    /// allocator is [`GlobalHeap`](crate::GlobalHeap). The values are kept until no
    /// rank reads them any more.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tsumugi::AddrError;
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
    ///     assert!(matches!(put, Err(AddrError::ReadOnly { .. })), "{put:?}");
    ///     Ok::<_, tsumugi::Error>(())
    /// })
    /// # .unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Register`] if the values are not in the rank's heap, or the table
    /// of regions of this rank is full. [`Error::Name`] as for
    /// [`register`](Self::register).
    pub fn publish<T: Plain>(&self, values: Arc<[T]>) -> Result<GlobalRegion<T>, Error> {
        let base = NonNull::from(&*values).cast::<T>();
        let len = values.len();
        // SAFETY: values behind a shared `Arc` do not change, and the region keeps
        // a clone of the `Arc` until no rank reaches them.
        unsafe { self.name(base, len, Access::Read, Some(Box::new(values))) }
    }

    /// Gives the `len` values at `base` a global address. They may be any part of
    /// this rank's exposed memory; from then on all ranks may read and change them.
    ///
    /// # Errors
    ///
    /// [`Error::Register`] if the memory is not exposed, or the table of regions of
    /// this rank is full. [`Error::Name`] as for [`register`](Self::register).
    ///
    /// # Safety
    ///
    /// The values are plain bytes. Until [`unregister`](GlobalRegion::unregister)
    /// has returned, this process accesses them only as memory that other threads
    /// change (by atomics, or through operations); if the region is dropped
    /// instead, this holds for the rest of the job.
    pub unsafe fn register_at<T: Plain>(
        &self,
        base: NonNull<T>,
        len: usize,
    ) -> Result<GlobalRegion<T>, Error> {
        // SAFETY: the caller's.
        unsafe { self.name(base, len, Access::ReadWrite, None) }
    }

    /// Registers the values at `base` and gives them a global address.
    ///
    /// # Safety
    ///
    /// That of [`register_at`](Self::register_at), as far as `access` allows
    /// writes.
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
        let region = unsafe { runtime.handle().direct().register(base.cast(), bytes, access)? };
        let registration =
            RegionHandle { runtime: runtime.clone(), key: region.key, _owner: owner };
        if let Some(net) = runtime.handle().net() {
            net.register(&region)?;
        }
        let first = self.driver.name(self.color, &region)?;
        let (global, registration) = (self.clone(), Some(registration));
        Ok(GlobalRegion { global, first, len, registration, of: PhantomData })
    }

    /// The global address of memory of this rank, by any registration that contains
    /// it; `None` if there is none. The search visits all registrations.
    pub fn addr_of<T: Plain>(&self, at: *const T) -> Option<GlobalPtr<T>> {
        let at = NonNull::new(at.cast_mut())?;
        self.driver.addr_of(at.cast()).map(GlobalPtr::new)
    }

    /// The rank that owns the memory at an address; `None` for an address of no
    /// rank. [`Split::place`](super::Split::place) returns its colour, region and
    /// offset.
    pub fn rank_of<T: Plain>(&self, at: GlobalPtr<T>) -> Option<Rank> {
        let rank = self.split().rank(at.addr());
        rank.filter(|rank| rank.0 < self.runtime.size())
    }

    /// The address of the `count` values at `at` in this process, if they are in
    /// memory of this rank or of another rank of its node. The program is
    /// responsible for its accesses through the pointer; the pointer is valid as
    /// long as the memory is registered and its rank runs.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get), for all `count` values;
    /// [`AddrError::Unsupported`] for a rank of another node,
    /// [`AddrError::StaleKey`] for another rank's memory with the device as its
    /// agent.
    pub fn local<T: Plain>(
        &self,
        at: GlobalPtr<T>,
        count: usize,
    ) -> Result<NonNull<T>, AddrError<GlobalAddr>> {
        let bytes = super::access::bytes_of::<T>(at.addr(), count)?;
        self.with(at, count, Need::Read, |at| {
            let is_own = at.addr().rank == self.runtime.rank();
            let need = if is_own { Need::Local } else { Need::Read };
            self.runtime.handle().direct().resolve(at.addr(), bytes, need).map(NonNull::cast)
        })
    }
}

impl<T: Plain> GlobalRegion<T> {
    /// The address of the first value.
    pub fn first(&self) -> GlobalPtr<T> {
        GlobalPtr::new(self.first)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the region has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the address away, and waits until no rank reaches the memory by it any
    /// more; from then on the memory is the program's alone. Blocking, as
    /// [`GlobalBlock::unregister`](super::GlobalBlock::unregister).
    pub fn unregister(mut self) {
        let registration = self.registration.take().expect("the registration ends once");
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

impl Drop for RegionHandle {
    fn drop(&mut self) {
        if let Some(net) = self.runtime.handle().net() {
            net.unregister(self.key);
        }
        self.runtime.handle().direct().unregister(self.key);
    }
}

impl<T> fmt::Debug for GlobalRegion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = std::any::type_name::<T>();
        write!(f, "GlobalRegion<{of}>({} at {})", self.len, self.first)
    }
}
