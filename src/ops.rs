//! One-sided operations that are over when they return.
//!
//! Each checks rank, liveness, key, range and alignment, and then touches the
//! other rank's memory; that rank takes no part. Operations of one thread
//! take effect in its order. Words of 1, 2, 4 and 8 bytes never tear.
//!
//! To a rank of another node they go over the network, and the caller sleeps
//! meanwhile; there a thread of the runtime's does what needs a processor.
//! Slices of 128 KiB and more that lie in this rank's heap or in
//! [`Adopted`](crate::Adopted) memory are then moved by the device from and to
//! where they are, over libibverbs: it is shown both in windows, of which it
//! knows a bounded number. All others are copied once more here, through chunks
//! that it knows: of memory that nobody has adopted, as a mapped file, nobody
//! would tell it when it is unmapped. What is to be moved from and to its own
//! place at any length is a [`Buffer`](crate::Buffer).
//!
//! Progress: wait-free between ranks of a node, else blocking.

use crate::lasting::Lasting;
use crate::{AddrError, Plain, Remote, Runtime, Word};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_core::backend::{LoadStore, execute, load_bytes, store_bytes};
use tsumugi_core::mem::{Access, Agent, LocalAddr, Need, Region, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mapped::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// What happens to the signal word when the data of a
/// [`put_signal`](Runtime::put_signal) have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It is set to this.
    Set(u64),
    /// This is added to it.
    Add(u64),
}

impl Runtime {
    /// Reads the `T` at `from`.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn get<T: Plain>(&self, from: Remote<T>) -> Result<T, AddrError> {
        match const { width_of::<T>() } {
            Some(width) => {
                let bits = self.carry(&Op::get_word(from.addr(), width))?;
                // SAFETY: on a little-endian machine the low bytes of `bits`
                // are the bytes of a `T`, and every pattern of them is valid.
                Ok(unsafe { std::mem::transmute_copy(&bits) })
            }
            None => {
                let mut value = MaybeUninit::<T>::uninit();
                // SAFETY: `value` has room for a `T`.
                unsafe {
                    let to = value.as_mut_ptr().cast();
                    self.load(from.addr(), to, size_of::<T>())?;
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
    /// [`AddrError`].
    #[inline(always)]
    pub fn put<T: Plain>(&self, to: Remote<T>, value: T) -> Result<(), AddrError> {
        match const { width_of::<T>() } {
            Some(width) => {
                let op = Op::put_word(to.addr(), width, bits_of(value));
                self.carry(&op).map(|_| ())
            }
            None => self.put_slice(to, std::slice::from_ref(&value)),
        }
    }

    /// Reads `into.len()` values from `from` on.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline]
    pub fn get_slice<T: Plain>(&self, from: Remote<T>, into: &mut [T]) -> Result<(), AddrError> {
        let (to, bytes) = (into.as_mut_ptr().cast(), size_of_val(into));
        // SAFETY: the slice is exclusively borrowed for as many bytes, and any
        // bytes are values of a `Plain` type.
        unsafe { self.load(from.addr(), to, bytes) }
    }

    /// Writes `values` from `to` on: one word once, whole; of more bytes each may
    /// be written more than once, in any order.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline]
    pub fn put_slice<T: Plain>(&self, to: Remote<T>, values: &[T]) -> Result<(), AddrError> {
        self.store(to.addr(), bytes_of(values))
    }

    /// Adds `value`, wrapping, and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn fetch_add<T: Word>(&self, at: Remote<T>, value: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchAdd, at, value)
    }

    /// Keeps the bits of `mask` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn fetch_and<T: Word>(&self, at: Remote<T>, mask: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchAnd, at, mask)
    }

    /// Sets the bits of `mask` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn fetch_or<T: Word>(&self, at: Remote<T>, mask: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchOr, at, mask)
    }

    /// Flips the bits of `mask` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn fetch_xor<T: Word>(&self, at: Remote<T>, mask: T) -> Result<T, AddrError> {
        self.atomic(Kind::FetchXor, at, mask)
    }

    /// Writes `value` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn swap<T: Word>(&self, at: Remote<T>, value: T) -> Result<T, AddrError> {
        self.atomic(Kind::Swap, at, value)
    }

    /// Writes `new` if `expected` is there, and answers what was there: the
    /// swap took place if that is `expected`.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn compare_swap<T: Word>(
        &self,
        at: Remote<T>,
        expected: T,
        new: T,
    ) -> Result<T, AddrError> {
        self.carry(&Op::compare_swap(at.addr(), expected, new)).map(T::from_bits)
    }

    /// Adds `value`, wrapping. Nobody asks what was
    /// there: between ranks of a node it is one instruction that fetches
    /// nothing, elsewhere the answer has no value to bring.
    /// When it returns, it has been done; what is not to be waited for is
    /// [`Global::begin`](crate::Global::begin)'s.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn add<T: Word>(&self, at: Remote<T>, value: T) -> Result<(), AddrError> {
        self.fetch_add(at, value).map(drop)
    }

    /// Keeps the bits of `mask`. Nobody asks what was there, as of
    /// [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn and<T: Word>(&self, at: Remote<T>, mask: T) -> Result<(), AddrError> {
        self.fetch_and(at, mask).map(drop)
    }

    /// Sets the bits of `mask`. Nobody asks what was there, as of
    /// [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn or<T: Word>(&self, at: Remote<T>, mask: T) -> Result<(), AddrError> {
        self.fetch_or(at, mask).map(drop)
    }

    /// Flips the bits of `mask`. Nobody asks what was there, as of
    /// [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline(always)]
    pub fn xor<T: Word>(&self, at: Remote<T>, mask: T) -> Result<(), AddrError> {
        self.fetch_xor(at, mask).map(drop)
    }

    /// Where the `T` at `at` lies in this process, for a rank of this node:
    /// what a program does through the pointer is its own business, unchecked
    /// and uncounted. It is valid as long as the memory is registered and its
    /// rank runs; others may change it at any time.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    pub fn pointer<T: Plain>(&self, at: Remote<T>) -> Result<NonNull<T>, AddrError> {
        let place = self.direct.resolve(at.addr(), size_of::<T>() as u64, Need::Write)?;
        match place.cast::<T>() {
            place if place.is_aligned() => Ok(place),
            _ => Err(AddrError::Unaligned { addr: at.addr(), align: align_of::<T>() as u64 }),
        }
    }

    /// Writes `values` from `to` on, then changes the word `at` of the same
    /// or another rank and wakes whoever waits for it: who sees the signal
    /// sees the data.
    ///
    /// # Errors
    ///
    /// [`AddrError`]. Of an error in `to`, nothing has happened; of one in
    /// `at`, the data have arrived.
    pub fn put_signal<T: Plain>(
        &self,
        to: Remote<T>,
        values: &[T],
        at: Remote<u64>,
        signal: Signal,
    ) -> Result<(), AddrError> {
        self.put_slice(to, values)?;
        match signal {
            // Nobody asks what was there: one put, which tells by itself.
            Signal::Set(value) => {
                let put = Op::put_word(at.addr(), Width::W8, value);
                self.carry(&put.notifying()).map(|_| ())
            }
            Signal::Add(_) => self.signal(at, signal).map(|_| ()),
        }
    }

    /// Changes the word `at`, wakes whoever waits for it, and answers what
    /// was there.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline]
    pub fn signal(&self, at: Remote<u64>, signal: Signal) -> Result<u64, AddrError> {
        let (kind, value) = match signal {
            Signal::Set(value) => (Kind::Swap, value),
            Signal::Add(value) => (Kind::FetchAdd, value),
        };
        self.carry(&Op::atomic(kind, at.addr(), value).notifying())
    }

    /// Waits until a word of this rank's own memory, changed by
    /// [`signal`](Self::signal) or [`put_signal`](Self::put_signal) of any
    /// rank, satisfies `until`, and answers the value that did. A ULT sleeps
    /// meanwhile, and an OS thread too.
    ///
    /// Changes by plain puts and atomics are seen, but wake nobody.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] when a rank has died; the errors of a put;
    /// [`AddrError::NotOwn`] if the word is another rank's.
    pub fn wait_until(&self, word: Remote<u64>, until: Until) -> Result<u64, AddrError> {
        let word = self.own_word(word)?;
        self.lot_wait(word, until)
    }

    /// As [`wait_until`](Self::wait_until), for `limit` at most: `Ok(None)` if
    /// it has passed.
    ///
    /// # Errors
    ///
    /// Those of [`wait_until`](Self::wait_until).
    pub fn wait_until_within(
        &self,
        word: Remote<u64>,
        until: Until,
        limit: Duration,
    ) -> Result<Option<u64>, AddrError> {
        let word = self.own_word(word)?;
        self.lot_wait_for(word, until, limit)
    }

    /// The word at `at`, if this rank's processors may change it at once: for
    /// whoever would have its atomics cost no more than they do, and otherwise
    /// [`carry`](Self::carry) them.
    #[inline(always)]
    pub(crate) fn word_at_hand(&self, at: RemoteAddr) -> Option<&AtomicU64> {
        if self.queue.is_some() {
            return None;
        }
        self.direct.word(at.rank, at.key, at.offset)
    }

    /// Where these bytes are, if this rank's processors may read them at once.
    /// Otherwise an operation says why not, or finds them after all.
    #[inline(always)]
    pub(crate) fn bytes_at_hand(&self, at: RemoteAddr, bytes: u64) -> Option<NonNull<u8>> {
        if self.queue.is_some() {
            return None;
        }
        self.direct.resolve(at, bytes, Need::Read).ok()
    }

    /// Every word operation.
    #[inline(always)]
    pub(crate) fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let result = match &self.queue {
            None => execute(&self.direct, op),
            Some(queue) => queue.run(op),
        };
        match result {
            Err(error) if is_elsewhere(error) => self.run_far(op),
            result => result,
        }
    }

    /// What an operation comes to that this node's processors carry out here and now.
    pub(crate) fn carry_at_hand(&self, op: &Op) -> Option<Result<u64, AddrError>> {
        if self.queue.is_some() {
            return None;
        }
        let result = execute(&self.direct, op);
        (!matches!(result, Err(error) if is_elsewhere(error))).then_some(result)
    }

    /// As [`carry`](Self::carry), of one that outlasts its caller.
    #[cold]
    pub(crate) fn carry_lasting(&self, lasting: &Lasting) -> Result<u64, AddrError> {
        if !lasting.is_far() {
            let result = match &self.queue {
                None => execute(&self.direct, &lasting.op()),
                Some(queue) => queue.run_lasting(lasting),
            };
            match result {
                Err(error) if is_elsewhere(error) => lasting.goes_far(),
                result => return result,
            }
        }
        match &self.far {
            Some(far) => far.run_lasting(lasting),
            None => Err(AddrError::OtherNode { rank: lasting.op().remote.rank }),
        }
    }

    /// What is not in reach of this node's processors.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_far(&self, op: &Op) -> Result<u64, AddrError> {
        match &self.far {
            Some(far) => far.run(op),
            None => Err(AddrError::OtherNode { rank: op.remote.rank }),
        }
    }

    #[inline]
    fn store(&self, to: RemoteAddr, from: &[u8]) -> Result<(), AddrError> {
        let result = match &self.queue {
            None => store_bytes(&self.direct, to, from),
            // SAFETY: a put only reads its local end, which is borrowed until the call
            // returns, when it is over, or for good, if the ULT is cut off in it.
            Some(queue) => unsafe {
                self.lend(from.as_ptr().cast_mut(), from.len(), |region| {
                    let local = LocalAddr { key: region.key, offset: 0 };
                    queue.run(&Op::put(local, to, from.len() as u64))
                })
            },
        };
        match (result, &self.far) {
            (Err(error), Some(far)) if is_elsewhere(error) => far.store(to, from),
            (result, _) => result,
        }
    }

    /// Reads bytes to memory that need not be registered.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes, and nobody else uses it, until this
    /// returns; if it never does, because its ULT is cut off, for good. (What a
    /// frame of that ULT owns or borrows stays: no scope of ULTs ends under one.)
    #[inline]
    pub(crate) unsafe fn load(
        &self,
        from: RemoteAddr,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        let result = match &self.queue {
            // SAFETY: the caller's.
            None => unsafe { load_bytes(&self.direct, from, to, bytes) },
            // SAFETY: the caller's, also where the call does not return; the get is
            // over when it does.
            Some(queue) => unsafe {
                self.lend(to, bytes, |region| {
                    let local = LocalAddr { key: region.key, offset: 0 };
                    queue.run(&Op::get(from, local, bytes as u64))
                })
            },
        };
        match (result, &self.far) {
            // SAFETY: the caller's, of this call as of any: nothing of the first
            // attempt, which was refused, still writes.
            (Err(error), Some(far)) if is_elsewhere(error) => unsafe { far.load(from, to, bytes) },
            (result, _) => result,
        }
    }

    /// Registers a borrow for the time of a call.
    ///
    /// # Safety
    ///
    /// Whatever `call` does to the memory, it has done when it returns, and
    /// the caller may do. If it never returns, because its ULT is cut off, the
    /// memory stays: no scope of ULTs ends under one of them.
    unsafe fn lend(
        &self,
        at: *mut u8,
        bytes: usize,
        call: impl FnOnce(&Region) -> Result<u64, AddrError>,
    ) -> Result<(), AddrError> {
        // Before an operation has what the caller would take back by a panic.
        tsumugi_ult::assert_may_block("completion");
        let base = NonNull::new(at).unwrap_or(NonNull::dangling());
        loop {
            // SAFETY: the caller's, and unregistered below.
            match unsafe { self.direct.register(base, bytes as u64, Access::Local) } {
                Ok(region) => {
                    let result = call(&region);
                    self.direct.unregister(region.key);
                    return result.map(|_| ());
                }
                // Others have the slots, for the time of their calls.
                Err(_) => tsumugi_ult::yield_now(),
            }
        }
    }

    #[inline(always)]
    fn atomic<T: Word>(&self, kind: Kind, at: Remote<T>, value: T) -> Result<T, AddrError> {
        self.carry(&Op::atomic(kind, at.addr(), value)).map(T::from_bits)
    }
}

/// Whether the device may have what this node's processors may not touch.
#[inline]
fn is_elsewhere(error: AddrError) -> bool {
    match error {
        AddrError::OtherNode { .. } => true,
        AddrError::StaleKey { addr } => addr.key.agent() == Agent::Device,
        _ => false,
    }
}

/// Reads the `T` at `at`, as [`Runtime::get`] does.
///
/// # Safety
///
/// There are as many resolved bytes, aligned as a `T` is.
#[inline(always)]
pub(crate) unsafe fn load_value<T: Plain>(at: NonNull<u8>) -> T {
    let at = at.as_ptr();
    // Acquire: as a get of a word.
    // SAFETY: the caller's; as wide as `T`, whose alignment is its width.
    let bits = unsafe {
        match const { width_of::<T>() } {
            Some(Width::W1) => AtomicU8::from_ptr(at).load(Ordering::Acquire).into(),
            Some(Width::W2) => AtomicU16::from_ptr(at.cast()).load(Ordering::Acquire).into(),
            Some(Width::W4) => AtomicU32::from_ptr(at.cast()).load(Ordering::Acquire).into(),
            Some(Width::W8) => AtomicU64::from_ptr(at.cast()).load(Ordering::Acquire),
            // A copy: any bytes are a `T`, torn or not.
            None => return at.cast::<T>().read(),
        }
    };
    // SAFETY: on a little-endian machine the low bytes of `bits` are the bytes
    // of a `T`, and every pattern of them is valid.
    unsafe { std::mem::transmute_copy::<u64, T>(&bits) }
}

/// How a `T` travels in a descriptor, if it does.
const fn width_of<T>() -> Option<Width> {
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

/// The bytes of a value that [`width_of`] has a width for.
#[inline(always)]
fn bits_of<T: Plain>(value: T) -> u64 {
    let mut bits = 0u64;
    // SAFETY: `T` is at most 8 bytes, all of them initialised: it is `Plain`.
    unsafe {
        let to = (&raw mut bits).cast::<u8>();
        std::ptr::copy_nonoverlapping((&raw const value).cast(), to, size_of::<T>());
    }
    bits
}

fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` types have no padding, so all bytes are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(not(target_endian = "little"))]
compile_error!("words travel in the low bytes of a descriptor: little-endian machines only");
