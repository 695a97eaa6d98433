//! One-sided operations that are complete when they return.
//!
//! Each checks rank, liveness, key, range and alignment, and then accesses the
//! target's memory; the target takes no part. Operations of one thread take effect
//! in its order. Words of 1, 2, 4 and 8 bytes never tear.
//!
//! Operations on a rank of another node go over the network, and the caller sleeps
//! meanwhile; a thread of the target's runtime carries out operations that need a
//! processor. Slices of 128 KiB and more that lie in this rank's heap or in
//! [`Adopted`](crate::Adopted) memory are moved by the device without a copy, over
//! libibverbs: both kinds of memory are registered in windows, of which the device
//! has a bounded number. All other memory is copied once more here, through
//! registered chunks: memory that is not adopted, such as a mapped file, may be
//! unmapped without notice to the device. A [`Buffer`](crate::Buffer) is moved
//! without a copy at any length.
//!
//! Progress: wait-free between ranks of a node, otherwise blocking.

use crate::{AddrError, Plain, Remote, Runtime, Word};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Need, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mapped::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The change of the signal word after the data of a
/// [`put_signal`](Runtime::put_signal) have landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// The word is set to this value.
    Set(u64),
    /// This value is added to the word.
    Add(u64),
}

impl Runtime {
    /// Reads the `T` at `from`.
    ///
    /// # Errors
    ///
    /// - [`AddrError::NoSuchRank`]: the job does not have the rank of `from`.
    /// - [`AddrError::StaleKey`]: no region for other ranks is registered under the
    ///   key of `from`, or its registration has ended.
    /// - [`AddrError::OutOfRange`]: the `T` does not lie within the region.
    /// - [`AddrError::Unaligned`]: `T` is a word of 1, 2, 4 or 8 bytes, and `from`
    ///   is not aligned to its size.
    /// - [`AddrError::PeerLost`]: the rank has died.
    /// - [`AddrError::Unsupported`]: the network device that leads to the memory
    ///   cannot carry out the access.
    #[inline(always)]
    pub fn get<T: Plain>(&self, from: Remote<T>) -> Result<T, AddrError> {
        match const { width_of::<T>() } {
            Some(width) => self.handle().carry(&Op::get_word(from.addr(), width)).map(value_of),
            None => {
                let mut value = MaybeUninit::<T>::uninit();
                // SAFETY: `value` has room for a `T`.
                unsafe {
                    let to = value.as_mut_ptr().cast();
                    self.handle().load(from.addr(), to, size_of::<T>())?;
                }
                // SAFETY: all bytes were written, and a `Plain` type has no
                // invalid ones.
                Ok(unsafe { value.assume_init() })
            }
        }
    }

    /// Writes `value` to `to`.
    ///
    /// # Errors
    ///
    /// - [`AddrError::NoSuchRank`]: the job does not have the rank of `to`.
    /// - [`AddrError::StaleKey`]: no region for other ranks is registered under the
    ///   key of `to`, or its registration has ended.
    /// - [`AddrError::OutOfRange`]: the `T` does not lie within the region.
    /// - [`AddrError::Unaligned`]: `T` is a word of 1, 2, 4 or 8 bytes, and `to` is
    ///   not aligned to its size.
    /// - [`AddrError::ReadOnly`]: the region is registered for reading only, or the
    ///   job lets ranks only read the memory of others (`TSUMUGI_PEERS`).
    /// - [`AddrError::PeerLost`]: the rank has died. The value may have been
    ///   written.
    /// - [`AddrError::Unsupported`]: the network device that leads to the memory
    ///   cannot carry out the access.
    #[inline(always)]
    pub fn put<T: Plain>(&self, to: Remote<T>, value: T) -> Result<(), AddrError> {
        match const { width_of::<T>() } {
            Some(width) => {
                let op = Op::put_word(to.addr(), width, bits_of(value));
                self.handle().carry(&op).map(|_| ())
            }
            None => self.put_slice(to, std::slice::from_ref(&value)),
        }
    }

    /// Reads `into.len()` values from `from` on.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get), for all `into.len()` values; they need no
    /// alignment. After an error, some of `into` may have been overwritten.
    #[inline]
    pub fn get_slice<T: Plain>(&self, from: Remote<T>, into: &mut [T]) -> Result<(), AddrError> {
        let (to, bytes) = (into.as_mut_ptr().cast(), size_of_val(into));
        // SAFETY: the slice is exclusively borrowed for as many bytes, and any
        // bytes are values of a `Plain` type.
        unsafe { self.handle().load(from.addr(), to, bytes) }
    }

    /// Writes `values` from `to` on. One word is written once, whole; of more, each
    /// byte may be written more than once, and bytes in any order.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for all of `values`; they need no alignment.
    /// After an error on another node, some of the values may have been written.
    #[inline]
    pub fn put_slice<T: Plain>(&self, to: Remote<T>, values: &[T]) -> Result<(), AddrError> {
        self.handle().store(to.addr(), bytes_of(values))
    }

    /// Adds `value`, wrapping, and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn fetch_add<T: Word>(&self, at: Remote<T>, value: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchAdd, at, value)
    }

    /// Keeps the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn fetch_and<T: Word>(&self, at: Remote<T>, mask: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchAnd, at, mask)
    }

    /// Sets the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn fetch_or<T: Word>(&self, at: Remote<T>, mask: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchOr, at, mask)
    }

    /// Flips the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn fetch_xor<T: Word>(&self, at: Remote<T>, mask: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchXor, at, mask)
    }

    /// Writes `value` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn swap<T: Word>(&self, at: Remote<T>, value: T) -> Result<T, AddrError> {
        self.atomic(Kind::Swap, at, value)
    }

    /// Writes `new` if the old value is `expected`, and returns the old value: the
    /// swap took place if that is `expected`.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn compare_swap<T: Word>(
        &self,
        at: Remote<T>,
        expected: T,
        new: T,
    ) -> Result<T, AddrError> {
        self.handle().carry(&Op::compare_swap(at.addr(), expected, new)).map(T::from_bits)
    }

    /// Adds `value`, wrapping. The old value is not returned: between ranks of a
    /// node this is one instruction that fetches nothing, and elsewhere the answer
    /// carries no value. The addition is complete when this returns; to go on
    /// without waiting, use [`Global::begin`](crate::Global::begin).
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn add<T: Word>(&self, at: Remote<T>, value: T) -> Result<(), AddrError> {
        self.fetch_add(at, value).map(drop)
    }

    /// Keeps the bits of `mask`. The old value is not returned, as by
    /// [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn and<T: Word>(&self, at: Remote<T>, mask: T) -> Result<(), AddrError> {
        self.fetch_and(at, mask).map(drop)
    }

    /// Sets the bits of `mask`. The old value is not returned, as by
    /// [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn or<T: Word>(&self, at: Remote<T>, mask: T) -> Result<(), AddrError> {
        self.fetch_or(at, mask).map(drop)
    }

    /// Flips the bits of `mask`. The old value is not returned, as by
    /// [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline(always)]
    pub fn xor<T: Word>(&self, at: Remote<T>, mask: T) -> Result<(), AddrError> {
        self.fetch_xor(at, mask).map(drop)
    }

    /// Returns the address of the `T` at `at` in this process, for a rank of this
    /// node. Accesses through the pointer are neither checked nor counted. The
    /// pointer is valid as long as the memory is registered and its rank runs; other
    /// ranks may change the value at any time.
    ///
    /// # Errors
    ///
    /// - [`AddrError::NoSuchRank`]: the job does not have the rank of `at`.
    /// - [`AddrError::OtherNode`]: the rank is on another node.
    /// - [`AddrError::StaleKey`]: no region for other ranks is registered under the
    ///   key of `at`, or its registration has ended, or the device carries out the
    ///   atomics on the region.
    /// - [`AddrError::OutOfRange`]: the `T` does not lie within the region.
    /// - [`AddrError::ReadOnly`]: the region may not be written, as for
    ///   [`put`](Self::put).
    /// - [`AddrError::Unaligned`]: `at` is not aligned as a `T` must be.
    /// - [`AddrError::PeerLost`]: the rank has died.
    pub fn pointer<T: Plain>(&self, at: Remote<T>) -> Result<NonNull<T>, AddrError> {
        let place =
            self.handle().direct().resolve(at.addr(), size_of::<T>() as u64, Need::Write)?;
        match place.cast::<T>() {
            place if place.is_aligned() => Ok(place),
            _ => Err(AddrError::Unaligned { addr: at.addr(), align: align_of::<T>() as u64 }),
        }
    }

    /// Writes `values` from `to` on, then changes the word `at` of the same or
    /// another rank and wakes the threads that wait for it: a thread that sees the
    /// signal sees the data.
    ///
    /// # Errors
    ///
    /// Those of [`put_slice`](Self::put_slice) for `to`: then the word `at` is
    /// unchanged. Those of [`signal`](Self::signal) for `at`: then the values have
    /// landed.
    pub fn put_signal<T: Plain>(
        &self,
        to: Remote<T>,
        values: &[T],
        at: Remote<u64>,
        signal: Signal,
    ) -> Result<(), AddrError> {
        self.put_slice(to, values)?;
        match signal {
            // The old value is not needed: one put, which notifies by itself.
            Signal::Set(value) => {
                let put = Op::put_word(at.addr(), Width::W8, value);
                self.handle().carry(&put.notifying()).map(|_| ())
            }
            Signal::Add(_) => self.signal(at, signal).map(|_| ()),
        }
    }

    /// Changes the word `at`, wakes the threads that wait for it, and returns the
    /// old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn signal(&self, at: Remote<u64>, signal: Signal) -> Result<u64, AddrError> {
        self.handle().carry(&signal_op(at, signal))
    }

    /// Waits until a word of this rank's own memory, changed by
    /// [`signal`](Self::signal) or [`put_signal`](Self::put_signal) of any rank,
    /// satisfies `until`, and returns the value that did. The caller sleeps
    /// meanwhile, whether it is a ULT or an OS thread.
    ///
    /// Changes by plain puts and atomics are seen, but wake no thread.
    ///
    /// # Errors
    ///
    /// - [`AddrError::PeerLost`]: a rank of the job has died while the word did not
    ///   satisfy `until`.
    /// - [`AddrError::OtherRank`]: the word belongs to another rank of this node;
    ///   [`AddrError::OtherNode`]: to a rank of another node.
    /// - [`AddrError::NoSuchRank`], [`AddrError::StaleKey`],
    ///   [`AddrError::OutOfRange`], [`AddrError::Unaligned`],
    ///   [`AddrError::ReadOnly`]: as for a [`put`](Self::put) to the word.
    pub fn wait_until(&self, word: Remote<u64>, until: Until) -> Result<u64, AddrError> {
        let word = self.handle().own_word(word)?;
        self.handle().wait(word, until)
    }

    /// Waits as [`wait_until`](Self::wait_until) does, for `limit` at most:
    /// `Ok(None)` if the limit has passed.
    ///
    /// # Errors
    ///
    /// Those of [`wait_until`](Self::wait_until). A limit that has passed is no
    /// error.
    pub fn wait_until_timeout(
        &self,
        word: Remote<u64>,
        until: Until,
        limit: Duration,
    ) -> Result<Option<u64>, AddrError> {
        let word = self.handle().own_word(word)?;
        self.handle().wait_timeout(word, until, limit)
    }

    #[inline(always)]
    fn atomic<T: Word>(&self, kind: Kind, at: Remote<T>, value: T) -> Result<T, AddrError> {
        self.handle().carry(&Op::atomic(kind, at.addr(), value)).map(T::from_bits)
    }
}

/// Reads the `T` at `at`, as [`Runtime::get`] does.
///
/// # Safety
///
/// `at` is resolved for a `T`, and aligned as a `T` is.
#[inline(always)]
pub(crate) unsafe fn load_value<T: Plain>(at: NonNull<u8>) -> T {
    let at = at.as_ptr();
    // Acquire: as a get of a word.
    // SAFETY: the caller's promise; each access has the width of `T`, which is also
    // its alignment.
    let bits = unsafe {
        match const { width_of::<T>() } {
            Some(Width::W1) => AtomicU8::from_ptr(at).load(Ordering::Acquire).into(),
            Some(Width::W2) => AtomicU16::from_ptr(at.cast()).load(Ordering::Acquire).into(),
            Some(Width::W4) => AtomicU32::from_ptr(at.cast()).load(Ordering::Acquire).into(),
            Some(Width::W8) => AtomicU64::from_ptr(at.cast()).load(Ordering::Acquire),
            // A plain copy: any bytes are a `T`, torn or not.
            None => return at.cast::<T>().read(),
        }
    };
    value_of(bits)
}

/// The value with these bits, of a type that has a [`width_of`].
#[inline(always)]
pub(crate) fn value_of<T: Plain>(bits: u64) -> T {
    assert!(size_of::<T>() <= size_of::<u64>(), "the value does not fit in a word");
    // SAFETY: checked above; on a little-endian machine the low bytes of `bits` are the bytes
    // of a `T`, and every pattern of them is valid.
    unsafe { std::mem::transmute_copy::<u64, T>(&bits) }
}

/// The operation that changes a word and wakes the threads that wait for it.
#[inline(always)]
pub(crate) fn signal_op(at: Remote<u64>, signal: Signal) -> Op {
    let (kind, value) = match signal {
        Signal::Set(value) => (Kind::Swap, value),
        Signal::Add(value) => (Kind::FetchAdd, value),
    };
    Op::atomic(kind, at.addr(), value).notifying()
}

/// The width of a `T` that fits in a descriptor, or `None`.
pub(crate) const fn width_of<T>() -> Option<Width> {
    if size_of::<T>() != align_of::<T>() {
        return None;
    }
    match size_of::<T>() {
        1 => Some(Width::W1),
        2 => Some(Width::W2),
        4 => Some(Width::W4),
        8 => Some(Width::W8),
        _ => None,
    }
}

/// The width of a word; a `T` that is none is an error at compile time.
pub(crate) const fn word_of<T>() -> Width {
    match width_of::<T>() {
        Some(width) => width,
        None => panic!(
            "the type is no word of 1, 2, 4 or 8 bytes: an operation owns more bytes in a Buffer \
             (get_buffer, put_buffer), and a copy moves them in global memory"
        ),
    }
}

/// The bytes of a value of a type that has a [`width_of`].
#[inline(always)]
pub(crate) fn bits_of<T: Plain>(value: T) -> u64 {
    let mut bits = 0u64;
    // SAFETY: a `T` has at most 8 bytes, and all are initialised, because it is
    // `Plain`.
    unsafe {
        let to = (&raw mut bits).cast::<u8>();
        std::ptr::copy_nonoverlapping((&raw const value).cast(), to, size_of::<T>());
    }
    bits
}

pub(crate) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` types have no padding, so all bytes are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(not(target_endian = "little"))]
compile_error!("tsumugi needs a little-endian target: words lie in the low bytes of a descriptor");
