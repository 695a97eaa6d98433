//! The receiving side of one endpoint.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::Access;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// The receiving side of one endpoint.
pub(super) struct Station {
    /// Registered memory by its key.
    pub regions: Mutex<BTreeMap<u64, Registered>>,
    pub packets: Mutex<VecDeque<Vec<u8>>>,
    pub event: OwnedFd,
    pub is_armed: AtomicBool,
    pub has_rung: AtomicBool,
    pub is_shut: AtomicBool,
}

#[derive(Clone, Copy)]
pub(super) struct Registered {
    pub base: u64,
    pub bytes: u64,
    pub access: Access,
}

impl Station {
    /// Accepts a packet, if there is room for one more.
    pub(super) fn take(&self, bytes: &[u8]) -> bool {
        let mut packets = lock(&self.packets);
        if packets.len() >= WAITING_MAX {
            return false;
        }
        packets.push_back(bytes.to_vec());
        drop(packets);
        // SeqCst: after the packet, because `try_wait` arms first and then checks
        // for packets.
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.has_rung.store(true, Ordering::SeqCst);
            // SAFETY: the station's own descriptor, and 8 bytes.
            unsafe { libc::eventfd_write(self.event.as_raw_fd(), 1) };
        }
        true
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The largest number of packets that wait at a station for buffers.
const WAITING_MAX: usize = 64;
