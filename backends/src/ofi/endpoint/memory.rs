//! Memory registrations of an endpoint, and the keys to them.
//!
//! A key is 64 bits, or, where the provider's keys are longer (`FI_MR_RAW`), bytes
//! that the owner requests and that peers map to 64 bits of their own.

use super::super::sys::*;
use super::{RdmEndpoint, close};
use crate::net::{Mr, WireKey};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

impl RdmEndpoint {
    /// Registers memory for `access`, under `key` if the caller chooses keys.
    ///
    /// # Safety
    ///
    /// The memory must stay mapped until [`close_mr`](Self::close_mr), and must be
    /// nothing but bytes that peers may change as far as `access` says.
    pub(in crate::ofi) unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: u64,
        key: u64,
    ) -> Result<Mr, c_int> {
        if self.mr_mode & FI_MR_ALLOCATED != 0 {
            // The pages must exist; `reg` fails if they do not.
            let page = base as usize & !(PAGE_BYTES - 1);
            let length = base as usize - page + bytes as usize;
            // SAFETY: the call touches only pages that the caller has mapped.
            unsafe { libc::madvise(page as *mut c_void, length, libc::MADV_POPULATE_WRITE) };
        }
        let mut raw = null_mut();
        // SAFETY: the table was checked; the caller guarantees the memory.
        unsafe {
            let reg = (*(*self.domain).mr).reg.ok_or(ENOSYS)?;
            let domain = &raw mut (*self.domain).fid;
            let (base, bytes) = (base.cast_const().cast(), bytes as usize);
            match reg(domain, base, bytes, access, 0, key, 0, &mut raw, null_mut()) {
                0 => {}
                code => return Err(-code),
            }
            let mr = &raw mut (*raw).fid;
            if self.mr_mode & FI_MR_ENDPOINT != 0 {
                let ops = &*(*mr).ops;
                let bound = ops.bind.map_or(-ENOSYS, |bind| bind(mr, &raw mut (*self.ep).fid, 0));
                let enabled =
                    ops.control.map_or(-ENOSYS, |control| control(mr, FI_ENABLE, null_mut()));
                if bound != 0 || enabled != 0 {
                    close(mr);
                    return Err(-bound.min(enabled));
                }
            }
            let is_virtual = self.mr_mode & FI_MR_VIRT_ADDR != 0;
            let mut origin = if is_virtual { base as u64 } else { 0 };
            let mut key = WireKey::of((*raw).key);
            if self.mr_mode & FI_MR_RAW != 0 {
                let mut size = size_of_val(&key.words);
                let mut from = 0u64;
                let mut attr = fi_mr_raw_attr {
                    flags: 0,
                    base_addr: &mut from,
                    raw_key: key.words.as_mut_ptr().cast(),
                    key_size: &mut size,
                };
                let control = (*(*mr).ops).control;
                let asked = control
                    .map_or(-ENOSYS, |control| control(mr, FI_GET_RAW_MR, (&raw mut attr).cast()));
                if asked != 0 || size > size_of_val(&key.words) {
                    close(mr);
                    return Err(if asked != 0 { -asked } else { libc::EMSGSIZE });
                }
                key.bytes = size as u32;
                if is_virtual {
                    origin = from;
                }
            }
            Ok(Mr { raw: raw.cast(), desc: (*raw).mem_desc, key, origin })
        }
    }

    /// Ends a registration.
    pub(in crate::ofi) fn close_mr(&mut self, mr: &Mr) {
        // SAFETY: it was registered here, and is closed once, because its holder
        // gives it up.
        unsafe { close(&raw mut (*mr.raw.cast::<fid_mr>()).fid) };
    }

    /// Makes the key that the calls take of a peer's key.
    pub(in crate::ofi) fn map_key(&mut self, key: &WireKey, origin: u64) -> Result<u64, c_int> {
        if self.mr_mode & FI_MR_RAW == 0 {
            return Ok(key.words[0]);
        }
        let (mut words, mut mapped) = (key.words, 0u64);
        let mut attr = fi_mr_map_raw {
            flags: 0,
            base_addr: origin,
            raw_key: words.as_mut_ptr().cast(),
            key_size: key.bytes as usize,
            key: &mut mapped,
        };
        match self.control_domain(FI_MAP_RAW_MR, (&raw mut attr).cast()) {
            0 => Ok(mapped),
            code => Err(-code),
        }
    }

    /// Releases a mapped key.
    pub(in crate::ofi) fn unmap_key(&mut self, mut key: u64) {
        if self.mr_mode & FI_MR_RAW != 0 {
            self.control_domain(FI_UNMAP_KEY, (&raw mut key).cast());
        }
    }

    fn control_domain(&mut self, command: c_int, argument: *mut c_void) -> c_int {
        // SAFETY: the first slots of a table always exist, and the argument has the
        // type that the command requires.
        unsafe {
            let domain = &raw mut (*self.domain).fid;
            (*(*domain).ops).control.map_or(-ENOSYS, |control| control(domain, command, argument))
        }
    }
}

const PAGE_BYTES: usize = 4096;
