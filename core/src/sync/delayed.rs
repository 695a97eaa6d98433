//! The processor's atomics with occasional delays around them: between any two steps
//! of a lock-free structure, other threads and processes get time to take their own
//! steps. Loom tries all orders of a few steps; this module tries some orders of
//! everything, with real processes and networks.
//!
//! All threads that access an atomic draw from one sequence, so no two runs are
//! alike, and there is no seed.

#![expect(missing_docs, reason = "they are `core`'s")]

use crate::random;
use core::fmt;
use core::sync::atomic as plain;
pub use core::sync::atomic::{Ordering, compiler_fence, fence};

/// One access in this number is delayed; the build's environment can set it as
/// `TSUMUGI_TEST_DELAY_ONE_IN`.
const RARELY: u64 = match option_env!("TSUMUGI_TEST_DELAY_ONE_IN") {
    Some(given) => match u64::from_str_radix(given, 10) {
        Ok(given) if given > 0 => given,
        _ => panic!("TSUMUGI_TEST_DELAY_ONE_IN is no number above zero"),
    },
    None => 2_048,
};
/// The upper limit of most delays, nanoseconds.
const SHORT_NS: u64 = 60_000;
/// The upper limit of one delay in 32, as long as another process's time slice,
/// nanoseconds.
const LONG_NS: u64 = 6_000_000;

static STATE: plain::AtomicU64 = plain::AtomicU64::new(0);

/// Waits if this access is one of those that are delayed.
#[inline]
fn delay() {
    // One generator for all threads. Relaxed: its state orders nothing.
    let drawn = random::finalize(STATE.fetch_add(random::INCREMENT, plain::Ordering::Relaxed));
    if drawn.is_multiple_of(RARELY) {
        let longest = if (drawn >> 16).is_multiple_of(32) { LONG_NS } else { SHORT_NS };
        sleep((drawn >> 24) % longest);
    }
}

/// Gives the processor to other threads for `ns` nanoseconds.
#[cold]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn sleep(ns: u64) {
    const NANOSLEEP: u64 = 35;
    let limit = [0, ns];
    // SAFETY: a system call that reads `limit` and accesses no other memory of this
    // process. It leaves `errno` as it is, and a signal handler may do it.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") NANOSLEEP => _,
            in("rdi") limit.as_ptr(),
            in("rsi") 0_u64,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
}

/// Spins for about `ns` nanoseconds.
#[cold]
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn sleep(ns: u64) {
    (0..ns / 8).for_each(|_| core::hint::spin_loop());
}

/// Runs `access` with a possible delay before and after it.
#[inline]
fn around<R>(access: impl FnOnce() -> R) -> R {
    delay();
    let result = access();
    delay();
    result
}

macro_rules! atomics {
    ($($(#[$attribute:meta])* $name:ident$(<$of:ident>)?: $value:ty { $($call:ident($($given:ident: $kind:ty),*) -> $result:ty;)* })*) => {$(
        /// `core`'s type, with delays.
        #[repr(transparent)]
        pub struct $name$(<$of>)?(plain::$name$(<$of>)?);

        impl$(<$of>)? $name$(<$of>)? {
            #[inline]
            pub const fn new(value: $value) -> Self {
                Self(plain::$name::new(value))
            }

            /// # Safety
            ///
            /// As `core`'s.
            #[inline]
            pub const unsafe fn from_ptr<'a>(at: *mut $value) -> &'a Self {
                // SAFETY: the caller keeps `core`'s contract, and the layout is the
                // value's.
                unsafe { &*at.cast::<Self>() }
            }

            #[inline]
            pub const fn as_ptr(&self) -> *mut $value {
                self.0.as_ptr()
            }

            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            #[inline]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                around(|| self.0.load(order))
            }

            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                around(|| self.0.store(value, order))
            }

            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                around(|| self.0.swap(value, order))
            }

            #[inline]
            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                around(|| self.0.compare_exchange(old, new, order, failed))
            }

            #[inline]
            pub fn compare_exchange_weak(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                around(|| self.0.compare_exchange_weak(old, new, order, failed))
            }

            #[inline]
            pub fn fetch_update(
                &self,
                order: Ordering,
                fetch: Ordering,
                f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                around(|| self.0.fetch_update(order, fetch, f))
            }

            $(#[inline]
            pub fn $call(&self $(, $given: $kind)*) -> $result {
                around(|| self.0.$call($($given),*))
            })*
        }

        impl$(<$of>)? fmt::Debug for $name$(<$of>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl$(<$of>)? Default for $name$(<$of>)? {
            fn default() -> Self {
                Self(plain::$name::default())
            }
        }

        impl$(<$of>)? From<$value> for $name$(<$of>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    )*};
}

macro_rules! integers {
    ($($name:ident: $value:ty;)*) => {
        atomics! {$(
            $name: $value {
                fetch_add(value: $value, order: Ordering) -> $value;
                fetch_sub(value: $value, order: Ordering) -> $value;
                fetch_and(value: $value, order: Ordering) -> $value;
                fetch_or(value: $value, order: Ordering) -> $value;
                fetch_xor(value: $value, order: Ordering) -> $value;
                fetch_max(value: $value, order: Ordering) -> $value;
                fetch_min(value: $value, order: Ordering) -> $value;
            }
        )*}
    };
}

integers! {
    AtomicI32: i32;
    AtomicI64: i64;
    AtomicU8: u8;
    AtomicU16: u16;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicUsize: usize;
}

atomics! {
    AtomicBool: bool {
        fetch_and(value: bool, order: Ordering) -> bool;
        fetch_or(value: bool, order: Ordering) -> bool;
        fetch_xor(value: bool, order: Ordering) -> bool;
    }
    AtomicPtr<T>: *mut T {}
}
