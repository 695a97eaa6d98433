//! Global addresses and typed pointers, as words.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use tsumugi_core::mem::Plain;

/// A byte of any rank, or null.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GlobalAddr(pub(super) u64);

/// The address of a `T` in any rank's memory, or null.
#[repr(transparent)]
pub struct GlobalPtr<T> {
    pub(super) addr: GlobalAddr,
    pub(super) of: PhantomData<fn() -> T>,
}

impl GlobalAddr {
    /// The null address, which names no byte.
    pub const NULL: Self = Self(0);

    /// Whether the address is null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address as a word, for a compare-and-swap or a message.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The address in such a word. A word that is no address is refused at its first
    /// use.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl<T: Plain> GlobalPtr<T> {
    /// The null pointer.
    pub const NULL: Self = Self::new(GlobalAddr::NULL);

    /// A pointer to the bytes at `addr`, taken as a `T`. Every access checks region,
    /// range and alignment.
    #[inline(always)]
    pub const fn new(addr: GlobalAddr) -> Self {
        Self { addr, of: PhantomData }
    }

    /// The untyped address.
    #[inline(always)]
    pub const fn addr(self) -> GlobalAddr {
        self.addr
    }

    /// Whether the pointer is null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.addr.is_null()
    }

    /// A pointer to the same bytes, taken as a `U`.
    #[inline(always)]
    pub const fn cast<U: Plain>(self) -> GlobalPtr<U> {
        GlobalPtr::new(self.addr)
    }
}

// SAFETY: the type is one word (`repr(transparent)` over `u64`), and every value of
// it is valid: a value that is no address is refused at its use.
unsafe impl Plain for GlobalAddr {}
// SAFETY: as above, one word; the `PhantomData` has no bytes.
unsafe impl<T: 'static> Plain for GlobalPtr<T> {}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalPtr<T> {}

impl<T> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.addr == other.addr
    }
}

impl<T> Eq for GlobalPtr<T> {}

impl<T> PartialOrd for GlobalPtr<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for GlobalPtr<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.addr.cmp(&other.addr)
    }
}

impl<T> Hash for GlobalPtr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addr.hash(state);
    }
}

impl fmt::Display for GlobalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() { f.write_str("null") } else { write!(f, "{:#018x}", self.0) }
    }
}

impl fmt::Debug for GlobalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalAddr({self})")
    }
}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalPtr<{}>({})", core::any::type_name::<T>(), self.addr)
    }
}
