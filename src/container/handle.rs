//! The common part of all handles: making a container, opening it by its name, freeing it.

use super::header::{Header, Shape};
use super::options::ContainerOptions;
use super::stored::Stored;
use crate::global::{GlobalAddr, Pool};
use crate::{Error, Rank, Runtime};
use std::sync::Arc;
use tsumugi_gas::container::{ContainerError, Data, Element, Store};

/// The kinds of containers. It is sealed: the types of this module implement it, and
/// [`ContainerOptions`] makes them.
pub trait Container: sealed::Parts {}

pub(super) mod sealed {
    use super::*;

    /// The differences between the kinds.
    pub trait Parts: Sized {
        /// The container of bytes.
        type Object: Copy + Send + Sync;
        /// The kind and the types.
        const SHAPE: Shape;

        /// Makes the container of bytes, and returns its address.
        fn make(
            pool: &Pool,
            rt: &Runtime,
            options: &ContainerOptions<Self>,
        ) -> Result<GlobalAddr, ContainerError>;

        /// The container of bytes that is at `addr`.
        fn at_addr(pool: &Pool, addr: GlobalAddr) -> Result<Self::Object, ContainerError>;

        /// Frees the container of bytes.
        fn destroy(pool: &Pool, object: Self::Object) -> Result<(), ContainerError>;

        /// The handle.
        fn of(opened: Arc<Opened<Self::Object>>) -> Self;
    }

    /// What the clones of a handle have in common.
    #[derive(Debug)]
    pub struct Opened<T> {
        pub(in crate::container) pool: Pool,
        pub(in crate::container) object: T,
        pub(in crate::container) header: Header,
        /// Whether the header counts it.
        pub(in crate::container) is_counted: bool,
    }
}

pub(super) use sealed::{Opened, Parts};

impl<T> Opened<T> {
    /// Makes a call on the container of bytes.
    #[inline]
    pub(super) fn call<R>(
        &self,
        call: impl FnOnce(&T, &Pool) -> Result<R, ContainerError>,
    ) -> Result<R, Error> {
        call(&self.object, &self.pool).map_err(|error| self.pool.error(error))
    }

    /// The rank on which the header lies.
    pub(super) fn home(&self) -> Rank {
        self.pool.split().rank(self.header.0).unwrap_or(Rank(0))
    }
}

impl<T> Drop for Opened<T> {
    fn drop(&mut self) {
        // After the end of the rank no thread carries out operations.
        if self.is_counted && self.pool.runtime().handle().node().is_watched() {
            self.header.leave(&self.pool);
        }
    }
}

impl<C: Container> ContainerOptions<C> {
    /// Makes an empty container. Collective: every rank calls it with the same options.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the pool has no block of this size, or the exposed memory
    ///   none for the pool. The other ranks get [`Error::Container`] with
    ///   [`NotMade`](ContainerError::NotMade).
    /// - [`Error::Container`] with [`NoSlots`](ContainerError::NoSlots): there are no ranks
    ///   or no buckets.
    /// - [`Error::Register`], [`Error::Name`]: the pool could not be made.
    /// - [`Error::HomesDiffer`]: another rank has another [home](Self::home).
    /// - [`Error::Coll`], [`Error::Addr`], [`Error::Access`]: a rank has died; [`Error::Addr`]
    ///   also if the home is not a rank of the job, and [`Error::Coll`] if another thread of this rank is in a collective.
    ///
    /// # Panics
    ///
    /// If the pool belongs to another rank or another job.
    pub fn create(self, rt: &Runtime) -> Result<C, Error> {
        let pool = match &self.pool {
            Some(pool) => pool.clone(),
            None => rt.pool_of_containers()?,
        };
        rt.assert_owns("the pool", pool.runtime());
        rt.check_home(self.home)?;
        let made = (rt.rank() == self.home).then(|| {
            let object = C::make(&pool, rt, &self)?;
            let header = Header::make(&pool, C::SHAPE, object);
            header.inspect_err(|_| {
                let _ = C::at_addr(&pool, object).and_then(|object| C::destroy(&pool, object));
            })
        });
        let own = made.and_then(Result::ok).map_or(0, |header| header.0.to_bits());
        // The ranks that have not made it have 0.
        let bits = rt.sum(own)?;
        if let Some(Err(error)) = made {
            return Err(pool.error(error));
        }
        if bits == 0 {
            return Err(ContainerError::NotMade { rank: self.home }.into());
        }
        at_header(pool, Header(GlobalAddr::from_bits(bits)), false)
    }
}

/// Opens the container that has this name.
pub(super) fn open<C: Parts>(pool: Option<Pool>, addr: GlobalAddr) -> Result<C, Error> {
    let pool = pool.ok_or(ContainerError::NoContainer { addr })?;
    at_header(pool, Header(addr), true)
}

fn at_header<C: Parts>(pool: Pool, header: Header, is_counted: bool) -> Result<C, Error> {
    let object = header.object(&pool, C::SHAPE)?;
    if is_counted {
        header.enter(&pool)?;
    }
    let object = C::at_addr(&pool, object).inspect_err(|_| {
        if is_counted {
            header.leave(&pool);
        }
    })?;
    Ok(C::of(Arc::new(Opened { pool, object, header, is_counted })))
}

/// Frees a container of which this is the only handle at each rank. Collective.
pub(super) fn free<C: Parts>(opened: Arc<Opened<C::Object>>) -> Result<(), Error> {
    let (pool, header, object) = (opened.pool.clone(), opened.header, opened.object);
    // A handle that was opened beside the one of the constructor does not count for it.
    let is_only = Arc::strong_count(&opened) == 1 && !opened.is_counted;
    let home = opened.home();
    drop(opened);
    let rt = pool.runtime();
    // Each rank has ended its calls before it comes here.
    let only = rt.sum(u64::from(is_only))?;
    if only < u64::from(rt.size()) {
        return Err(ContainerError::InUse.into());
    }
    let freed = match rt.rank() == home {
        true => header.end(&pool).and_then(|()| C::destroy(&pool, object)),
        false => Ok(()),
    };
    let how = match &freed {
        Ok(()) => 0,
        Err(ContainerError::InUse) => 1,
        Err(_) => 2,
    };
    let how = rt.sum(how)?;
    freed.map_err(|error| pool.error(error))?;
    match how {
        0 => Ok(()),
        1 => Err(ContainerError::InUse.into()),
        // The home could not free all of it, and it is a container no more.
        _ => Err(ContainerError::NoContainer { addr: header.0 }.into()),
    }
}

/// Reads a value that lies in the pool.
#[inline]
pub(super) fn fetch<T: Stored + ?Sized>(
    pool: &Pool,
    element: Element,
) -> Result<T::Owned, ContainerError> {
    let Element { addr, bytes } = element;
    check(pool, bytes)?;
    T::fetch(bytes, |into| if bytes == 0 { Ok(()) } else { Ok(pool.read(addr, into)?) })
}

/// Refuses a number of bytes that no block has, which a stray write has left.
pub(super) fn check(pool: &Pool, bytes: u64) -> Result<(), ContainerError> {
    let size = pool.heap_bytes();
    if bytes > size { Err(ContainerError::OutOfRange { at: 0, bytes, size }) } else { Ok(()) }
}

/// The bytes of a value.
#[inline]
pub(super) fn data<'a, T: Stored + ?Sized>(value: &'a T::Arg<'_>) -> Data<'a> {
    Data::Here(T::bytes(value))
}

/// The calls that all handles have.
macro_rules! handle_calls {
    ($name:ident<$($of:ident),*>: $bound:path) => {
        impl<$($of: $bound + ?Sized),*> $name<$($of),*> {
            /// Chooses how the container is made: [`ContainerOptions::create`] makes it.
            pub fn options() -> ContainerOptions<Self> {
                ContainerOptions::default()
            }

            /// Makes a handle of a container by its [name](Self::addr), in the pool that
            /// each rank has once. Not collective.
            ///
            /// # Errors
            ///
            /// [`Error::Container`] if no container of this kind and with types of these
            /// sizes has the name, or it was freed; [`Error::Access`] if a rank has died.
            pub fn open(rt: &Runtime, addr: GlobalAddr) -> Result<Self, Error> {
                handle::open(rt.kept_pool(), addr)
            }

            /// Makes a handle of a container by its name, in a pool of the program.
            ///
            /// # Errors
            ///
            /// Those of [`open`](Self::open).
            pub fn open_in(pool: &Pool, addr: GlobalAddr) -> Result<Self, Error> {
                handle::open(Some(pool.clone()), addr)
            }

            /// The name of the container: a word, the same for all ranks.
            pub fn addr(&self) -> GlobalAddr {
                self.opened.header.0
            }

            /// The rank that has made the container, and that has its header.
            pub fn home(&self) -> Rank {
                self.opened.home()
            }

            /// Frees the memory of the container. Collective: every rank calls it with the
            /// handle that the collective constructor has returned to it.
            ///
            /// # Errors
            ///
            /// [`Error::Container`] with
            /// [`InUse`](super::ContainerError::InUse), on all ranks, if a rank has a clone
            /// of its handle, or has opened the container and not dropped that handle: then
            /// nothing is freed before the end of the job. [`Error::Coll`],
            /// [`Error::Access`]: a rank has died.
            pub fn free(self) -> Result<(), Error> {
                let opened = self.opened.clone();
                drop(self);
                handle::free::<Self>(opened)
            }
        }

        impl<$($of: $bound + ?Sized),*> Container for $name<$($of),*> {}

        impl<$($of: $bound + ?Sized),*> Clone for $name<$($of),*> {
            fn clone(&self) -> Self {
                Self::of(self.opened.clone())
            }
        }

        impl<$($of: $bound + ?Sized),*> fmt::Debug for $name<$($of),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let types = [$(type_name::<$of>()),*].join(", ");
                write!(f, "{}<{types}>({})", stringify!($name), self.addr())
            }
        }
    };
}

pub(super) use handle_calls;
