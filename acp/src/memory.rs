//! Global memory management: registration, and queries about an address.

use super::life::{Life, NULL, Reason, Region, Regions, with};
use super::mirror::mirrored;
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::{MutexGuard, PoisonError};
use tsumugi::AddrError;
use tsumugi::global::{AddressParts, GlobalAddr, GlobalPtr};

/// The global address of a byte of any rank's memory; 0 is no address. The bytes of
/// one region have consecutive addresses.
pub type acp_ga_t = u64;
/// The key of a region that this rank has registered; 0 is no key.
pub type acp_atkey_t = u64;

/// No region.
pub const ACP_ATKEY_NULL: acp_atkey_t = 0;
/// No address.
pub const ACP_GA_NULL: acp_ga_t = 0;

/// The global address of the first byte of `rank`'s starter memory, or
/// `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_starter_ga(rank: c_int) -> acp_ga_t {
    with(ACP_GA_NULL, |life| {
        let rank = life.rank_of(rank)?;
        let first = life.starters.of(&life.global, rank).ok_or("the rank has no starter memory")?;
        Ok(first.to_bits())
    })
}

/// Makes the `size` bytes at `addr`, which may lie anywhere in this process,
/// reachable for all ranks. Their pages become shared memory; while that happens,
/// all other threads of the process are stopped, by a real-time signal. A rank can
/// have 255 registrations at a time. Returns `ACP_ATKEY_NULL` on failure.
///
/// # Safety
///
/// The memory is readable and writable, and stays so until it is unregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_register_memory(
    addr: *mut c_void,
    size: usize,
    color: c_int,
) -> acp_atkey_t {
    with(ACP_ATKEY_NULL, |life| {
        if color != 0 || addr.is_null() {
            let what = format!("colour {color} at {addr:?}");
            return Err(format!("{what}: the colour must be 0, the address not NULL").into());
        }
        // SAFETY: the caller's.
        unsafe { life.register(addr as usize, size) }
    })
}

/// Ends a registration, and waits until no rank reaches the memory by it any more.
/// Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_unregister_memory(atkey: acp_atkey_t) -> c_int {
    with(-1, |life| {
        let region = life.regions().of.remove(&atkey);
        let region = region.ok_or_else(|| no_region(atkey))?;
        region.registration.unregister();
        Ok(0)
    })
}

/// The global address of a byte of a region, or `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_ga(atkey: acp_atkey_t, addr: *mut c_void) -> acp_ga_t {
    with(ACP_GA_NULL, |life| {
        let regions = life.regions();
        let region = regions.of.get(&atkey).ok_or_else(|| no_region(atkey))?;
        let offset = (addr as usize).wrapping_sub(region.addr);
        if offset > region.bytes {
            let region = format!("the region of {} bytes at {:#x}", region.bytes, region.addr);
            return Err(format!("{addr:?} does not lie in {region}").into());
        }
        Ok(atkey + offset as u64)
    })
}

/// The local address of a byte of this rank's memory, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_address(ga: acp_ga_t) -> *mut c_void {
    with(null_mut(), |life| life.address(GlobalAddr::from_bits(ga)).map(|addr| addr as *mut c_void))
}

/// The rank that owns the memory at `ga`, or -1 if no rank has memory there. The end of a
/// region counts as its memory. Reads the table of the rank's regions at first.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_rank(ga: acp_ga_t) -> c_int {
    with(-1, |life| Ok(life.number_of(life.owned(ga)?.rank) as c_int))
}

/// The colour of an address, which is always 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_color(ga: acp_ga_t) -> c_int {
    with(-1, |life| life.owned(ga).map(|_| 0))
}

/// The number of colours, which is always 1, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_colors() -> c_int {
    with(-1, |_| Ok(1))
}

impl Life {
    /// Registers memory of the program, and returns its key.
    ///
    /// # Safety
    ///
    /// As for `acp_register_memory`.
    pub(super) unsafe fn register(&self, addr: usize, bytes: usize) -> Result<acp_atkey_t, Reason> {
        let own = NonNull::new(addr as *mut u8).ok_or("the address of the memory is NULL")?;
        let base = if self.runtime.handle().exposed().contains(own) {
            own
        } else {
            // SAFETY: the caller's.
            unsafe { mirrored(&self.runtime, own, bytes)? }
        };
        // SAFETY: `base` is exposed memory: it belongs to the pool or to the
        // starter memory, which are plain bytes, or it is a window of the mirror,
        // which is never given back.
        let registration = unsafe { self.global.register_at(base, bytes)? };
        let key = registration.first().addr().to_bits();
        self.regions().of.insert(key, Region { addr, bytes, registration });
        Ok(key)
    }

    /// The local address of a byte of this rank's memory.
    pub(super) fn address(&self, addr: GlobalAddr) -> Result<usize, Reason> {
        let place = self.place(addr.to_bits())?;
        if place.rank != self.runtime.rank() {
            return Err(format!("{addr} belongs to another rank").into());
        }
        let first = addr.to_bits() - place.offset;
        let none = || format!("{addr} belongs to no region of this rank");
        let (start, bytes) = self.start_of(first).ok_or_else(none)?;
        if place.offset > bytes {
            return Err(format!("{addr} lies beyond its region of {bytes} bytes").into());
        }
        Ok(start + place.offset as usize)
    }

    /// The local address and the size of the region of this rank that begins at
    /// `first`.
    fn start_of(&self, first: u64) -> Option<(usize, u64)> {
        if let Some(region) = self.regions().of.get(&first) {
            return Some((region.addr, region.bytes as u64));
        }
        [&self.starter, self.pool.own()].into_iter().find_map(|array| {
            let (base, bytes) = array.memory();
            let is_it = array.at(0).addr().to_bits() == first;
            is_it.then_some((base.as_ptr() as usize, bytes))
        })
    }

    /// The fields of an address, at which a rank has memory.
    fn owned(&self, ga: acp_ga_t) -> Result<AddressParts, Reason> {
        let (place, at) = (self.place(ga)?, GlobalPtr::<u8>::new(GlobalAddr::from_bits(ga)));
        // SAFETY: no bytes are written.
        match unsafe { self.global.load(at, std::ptr::dangling_mut(), 0) } {
            Err(error @ (AddrError::StaleKey { .. } | AddrError::OutOfRange { .. })) => {
                Err(error.into())
            }
            _ => Ok(place),
        }
    }

    fn place(&self, ga: acp_ga_t) -> Result<AddressParts, Reason> {
        let place = self.global.split().place(GlobalAddr::from_bits(ga));
        let size = self.runtime.size();
        let place = place.filter(|place| ga != NULL && place.rank.0 < size);
        Ok(place.ok_or_else(|| format!("{ga:#x} belongs to no rank"))?)
    }

    fn regions(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_region(key: acp_atkey_t) -> String {
    format!("no region of this rank has the key {key:#x}")
}
