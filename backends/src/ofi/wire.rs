//! One domain of libfabric's with all that one owner needs: an address
//! vector, a completion queue and an endpoint.
//!
//! ```text
//!  Fabric ── Wire { domain, av, cq, ep }      one owner at a time, no locks
//!         └─ Wire { domain, av, cq, ep }      inside (FI_THREAD_DOMAIN)
//! ```
//!
//! The methods are libfabric's calls and nothing more; each answers what
//! libfabric answers.

use super::choice::{Choice, Fabric};
use super::config::OpenError;
use super::probe::Atomic;
use super::sys::*;
use crate::net::{ADDRESS_BYTES_MAX, Answer, Far, Key, Mr, Near};
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use std::os::fd::RawFd;
use std::sync::Arc;

/// See the module.
pub(super) struct Wire {
    fabric: Arc<Fabric>,
    domain: *mut fid_domain,
    av: *mut fid_av,
    cq: *mut fid_cq,
    ep: *mut fid_ep,
    event: Option<RawFd>,
    mr_mode: c_int,
    delivery: u64,
}

/// What a completion queue says of an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CqError {
    pub context: usize,
    pub code: c_int,
    pub provider_code: c_int,
}

// SAFETY: the objects belong to no thread; one at a time is FI_THREAD_DOMAIN.
unsafe impl Send for Wire {}

impl Wire {
    /// Opens a domain with a queue of at least `completions` entries.
    pub(super) fn open(
        fabric: &Arc<Fabric>,
        choice: &Choice,
        completions: usize,
        event: bool,
    ) -> Result<Self, OpenError> {
        let mut wire = Self {
            fabric: fabric.clone(),
            domain: null_mut(),
            av: null_mut(),
            cq: null_mut(),
            ep: null_mut(),
            event: None,
            mr_mode: choice.facts.mr_mode,
            delivery: if choice.facts.delivery { FI_DELIVERY_COMPLETE } else { 0 },
        };
        let info = choice.info.raw();
        macro_rules! call {
            ($table:expr, $type:ty, $slot:ident, $($argument:expr),*) => {{
                let table = $table;
                if !has_slot(table, core::mem::offset_of!($type, $slot)) {
                    return Err(OpenError::NoSuchCall { name: stringify!($slot) });
                }
                let name = stringify!($slot);
                let Some(slot) = (*table).$slot else { return Err(OpenError::NoSuchCall { name }) };
                match slot($($argument),*) {
                    0 => {}
                    code => return Err(OpenError::Call { name, code: -code }),
                }
            }};
        }
        // SAFETY: every object is of the library's own making, every table's
        // size is looked at before a slot of it is used, and the attributes
        // are whole structures of version 1.17, which is what we asked for.
        unsafe {
            let domain = &mut wire.domain;
            call!((*fabric.raw).ops, fi_ops_fabric, domain, fabric.raw, info, domain, null_mut());
            let domain = wire.domain;
            let mut attr = fi_av_attr {
                type_: FI_AV_TABLE,
                rx_ctx_bits: 0,
                count: 0,
                ep_per_node: 0,
                name: null(),
                map_addr: null_mut(),
                flags: 0,
            };
            call!(
                (*domain).ops,
                fi_ops_domain,
                av_open,
                domain,
                &mut attr,
                &mut wire.av,
                null_mut()
            );
            if !event || wire.open_cq(completions, FI_WAIT_FD) != 0 {
                match wire.open_cq(completions, FI_WAIT_NONE) {
                    0 => {}
                    code => return Err(OpenError::Call { name: "cq_open", code: -code }),
                }
            }
            call!((*domain).ops, fi_ops_domain, endpoint, domain, info, &mut wire.ep, null_mut());
            let ep = &raw mut (*wire.ep).fid;
            let table = (*wire.ep).fid.ops;
            call!(table, fi_ops, bind, ep, &raw mut (*wire.av).fid, 0);
            call!(table, fi_ops, bind, ep, &raw mut (*wire.cq).fid, FI_TRANSMIT | FI_RECV);
            call!(table, fi_ops, control, ep, FI_ENABLE, null_mut());
        }
        wire.check_tables(choice.facts.atomics)?;
        Ok(wire)
    }

    /// # Safety
    ///
    /// The domain is open.
    unsafe fn open_cq(&mut self, completions: usize, wait_obj: c_int) -> c_int {
        let mut attr = fi_cq_attr {
            size: completions,
            flags: 0,
            format: FI_CQ_FORMAT_MSG,
            wait_obj,
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: null_mut(),
        };
        // SAFETY: as in `open`.
        unsafe {
            let table = (*self.domain).ops;
            if !has_slot(table, core::mem::offset_of!(fi_ops_domain, cq_open)) {
                return -ENOSYS;
            }
            let Some(slot) = (*table).cq_open else { return -ENOSYS };
            let answer = slot(self.domain, &mut attr, &mut self.cq, null_mut());
            if answer != 0 || wait_obj == FI_WAIT_NONE {
                return answer;
            }
            let mut fd: c_int = -1;
            let cq = &raw mut (*self.cq).fid;
            let asked = match (*(*cq).ops).control {
                Some(control) => control(cq, FI_GETWAIT, (&raw mut fd).cast()),
                None => -ENOSYS,
            };
            let trywait = core::mem::offset_of!(fi_ops_fabric, trywait);
            if asked != 0 || fd < 0 || !has_slot((*self.fabric.raw).ops, trywait) {
                close(cq);
                self.cq = null_mut();
                return -ENOSYS;
            }
            self.event = Some(fd);
            0
        }
    }

    /// The tables of the data path, whose slots are then used unchecked.
    fn check_tables(&self, atomics: bool) -> Result<(), OpenError> {
        use core::mem::offset_of;
        // SAFETY: the endpoint's and the queue's own tables, or null.
        let slots = unsafe {
            let ep = &*self.ep;
            [
                ("cq read", has_slot((*self.cq).ops, offset_of!(fi_ops_cq, readerr))),
                ("av insert", has_slot((*self.av).ops, offset_of!(fi_ops_av, remove))),
                ("getname", has_slot(ep.cm, offset_of!(fi_ops_cm, getname))),
                ("fi_send", has_slot(ep.msg, offset_of!(fi_ops_msg, send))),
                ("fi_write", has_slot(ep.rma, offset_of!(fi_ops_rma, writemsg))),
                ("memory registration", has_slot((*self.domain).mr, offset_of!(fi_ops_mr, reg))),
                (
                    "fi_atomic",
                    !atomics || has_slot(ep.atomic, offset_of!(fi_ops_atomic, compwritevalid)),
                ),
            ]
        };
        match slots.iter().find(|(_, has)| !has) {
            Some((name, _)) => Err(OpenError::NoSuchCall { name }),
            None => Ok(()),
        }
    }

    /// The descriptor that becomes readable when something completes.
    pub(super) fn event(&self) -> Option<RawFd> {
        self.event
    }

    /// Whether it is all right to sleep on [`event`](Self::event) now.
    pub(super) fn try_wait(&mut self) -> bool {
        if self.event.is_none() {
            return false;
        }
        // SAFETY: the slot was checked when the event was made.
        unsafe {
            let mut cq = &raw mut (*self.cq).fid;
            match (*(*self.fabric.raw).ops).trywait {
                Some(trywait) => trywait(self.fabric.raw, &mut cq, 1) == 0,
                None => false,
            }
        }
    }

    /// Where peers find the endpoint.
    pub(super) fn address(&self) -> Result<Vec<u8>, c_int> {
        let mut name = [0u8; ADDRESS_BYTES_MAX];
        let mut bytes = name.len();
        // SAFETY: the table was checked, and the buffer has as many bytes.
        let answer = unsafe {
            let getname = (*(*self.ep).cm).getname.ok_or(ENOSYS)?;
            getname(&raw mut (*self.ep).fid, name.as_mut_ptr().cast(), &mut bytes)
        };
        if answer != 0 || bytes > name.len() {
            return Err(if answer != 0 { -answer } else { libc::EMSGSIZE });
        }
        Ok(name[..bytes].to_vec())
    }

    /// Makes a peer's address known. It is as long as our own: whoever reads
    /// cards checks that.
    pub(super) fn insert(&mut self, address: &[u8]) -> Result<fi_addr_t, c_int> {
        // Providers read as many bytes as their addresses have.
        let mut name = [0u8; ADDRESS_BYTES_MAX];
        name[..address.len()].copy_from_slice(address);
        let mut peer = FI_ADDR_UNSPEC;
        // SAFETY: the table was checked; one address in, one number out.
        let inserted = unsafe {
            let insert = (*(*self.av).ops).insert.ok_or(ENOSYS)?;
            insert(self.av, name.as_ptr().cast(), 1, &mut peer, 0, null_mut())
        };
        match inserted {
            1 if peer != FI_ADDR_UNSPEC => Ok(peer),
            error => Err(if error < 0 { -error } else { libc::EINVAL }),
        }
    }

    /// Forgets a peer; what is under way to it may end with an error.
    pub(super) fn remove(&mut self, peer: fi_addr_t) {
        let mut peer = peer;
        // SAFETY: the table was checked, and the peer was inserted here.
        unsafe {
            if let Some(remove) = (*(*self.av).ops).remove {
                remove(self.av, &mut peer, 1, 0);
            }
        }
    }

    /// Registers memory for `access`, under `key` if the caller chooses keys.
    ///
    /// # Safety
    ///
    /// The memory stays mapped until [`close_mr`](Self::close_mr), and is
    /// nothing but bytes that peers may change as far as `access` says.
    pub(super) unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: u64,
        key: u64,
    ) -> Result<Mr, c_int> {
        if self.mr_mode & FI_MR_ALLOCATED != 0 {
            // The pages must be there; whether they are, `reg` finds out.
            let page = base as usize & !(PAGE_BYTES - 1);
            let length = base as usize - page + bytes as usize;
            // SAFETY: touches pages that the caller has mapped.
            unsafe { libc::madvise(page as *mut c_void, length, libc::MADV_POPULATE_WRITE) };
        }
        let mut raw = null_mut();
        // SAFETY: the table was checked; the memory is the caller's promise.
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
            let mut key = Key::of((*raw).key);
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
    pub(super) fn close_mr(&mut self, mr: &Mr) {
        // SAFETY: registered here, and closed once: its holder gives it up.
        unsafe { close(&raw mut (*mr.raw.cast::<fid_mr>()).fid) };
    }

    /// A peer's key as the calls want it.
    pub(super) fn map_key(&mut self, key: &Key, origin: u64) -> Result<u64, c_int> {
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

    /// Gives a mapped key back.
    pub(super) fn unmap_key(&mut self, mut key: u64) {
        if self.mr_mode & FI_MR_RAW != 0 {
            self.control_domain(FI_UNMAP_KEY, (&raw mut key).cast());
        }
    }

    fn control_domain(&mut self, command: c_int, argument: *mut c_void) -> c_int {
        // SAFETY: the first slots of a table are always there, and the
        // argument is what the command wants.
        unsafe {
            let domain = &raw mut (*self.domain).fid;
            (*(*domain).ops).control.map_or(-ENOSYS, |control| control(domain, command, argument))
        }
    }

    /// Reads completions; as `fi_cq_read` answers.
    #[inline]
    pub(super) fn completions(&mut self, entries: &mut [fi_cq_msg_entry]) -> Answer {
        // SAFETY: the table was checked, and the entries have the format that
        // the queue was opened with.
        unsafe {
            match (*(*self.cq).ops).read {
                Some(read) => read(self.cq, entries.as_mut_ptr().cast(), entries.len()),
                None => -ENOSYS as Answer,
            }
        }
    }

    /// What failed, after `completions` answered that something did.
    pub(super) fn failure(&mut self) -> Option<CqError> {
        // Later libraries write more, but only to who asked for their version.
        // SAFETY: a structure of integers and pointers.
        let mut entry: [fi_cq_err_entry; 2] = unsafe { core::mem::zeroed() };
        // SAFETY: the table was checked.
        let read = unsafe {
            let readerr = (*(*self.cq).ops).readerr?;
            readerr(self.cq, entry.as_mut_ptr(), 0)
        };
        let entry = &entry[0];
        (read == 1).then_some(CqError {
            context: entry.op_context as usize,
            code: entry.err,
            provider_code: entry.prov_errno,
        })
    }

    /// # Safety
    ///
    /// `near` is good for `bytes` bytes, and both it and `context` stay until
    /// the completion.
    #[inline]
    pub(super) unsafe fn write(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: *mut c_void,
        flags: u64,
    ) -> Answer {
        // SAFETY: the table was checked; the rest is the caller's.
        unsafe {
            let rma = &*(*self.ep).rma;
            if flags == 0 {
                let Some(write) = rma.write else { return -ENOSYS as Answer };
                let at = near.at.cast_const().cast();
                return write(self.ep, at, bytes, near.desc, far.peer, far.addr, far.key, context);
            }
            let flags = flags | FI_COMPLETION | self.delivery;
            self.message(rma.writemsg, near, bytes, far, context, flags)
        }
    }

    /// # Safety
    ///
    /// The same.
    #[inline]
    pub(super) unsafe fn read(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: *mut c_void,
        flags: u64,
    ) -> Answer {
        // SAFETY: the same.
        unsafe {
            let rma = &*(*self.ep).rma;
            if flags == 0 {
                let Some(read) = rma.read else { return -ENOSYS as Answer };
                let at = near.at.cast();
                return read(self.ep, at, bytes, near.desc, far.peer, far.addr, far.key, context);
            }
            self.message(rma.readmsg, near, bytes, far, context, flags | FI_COMPLETION)
        }
    }

    /// # Safety
    ///
    /// The same.
    unsafe fn message(
        &mut self,
        slot: Option<unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> Answer>,
        near: Near,
        bytes: usize,
        far: Far,
        context: *mut c_void,
        flags: u64,
    ) -> Answer {
        let Some(slot) = slot else { return -ENOSYS as Answer };
        let mut desc = near.desc;
        let local = libc::iovec { iov_base: near.at.cast(), iov_len: bytes };
        let remote = fi_rma_iov { addr: far.addr, len: bytes, key: far.key };
        let message = fi_msg_rma {
            msg_iov: &local,
            desc: &mut desc,
            iov_count: 1,
            addr: far.peer,
            rma_iov: &remote,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        // SAFETY: the caller's; the vectors are read inside the call.
        unsafe { slot(self.ep, &message, flags) }
    }

    /// A word: stored, or changed without looking at what was there.
    ///
    /// # Safety
    ///
    /// `operand` is a word of that type, and it and `context` stay until the
    /// completion.
    #[inline]
    pub(super) unsafe fn atomic(
        &mut self,
        (datatype, op): (c_int, c_int),
        operand: Near,
        far: Far,
        context: *mut c_void,
    ) -> Answer {
        // SAFETY: the table was checked; the rest is the caller's.
        unsafe {
            let Some(slot) = self.atomics().and_then(|table| table.write) else {
                return -ENOSYS as Answer;
            };
            let at = operand.at.cast_const().cast();
            let (peer, addr, key) = (far.peer, far.addr, far.key);
            slot(self.ep, at, 1, operand.desc, peer, addr, key, datatype, op, context)
        }
    }

    /// A word, whose old value goes to `result`.
    ///
    /// # Safety
    ///
    /// The same, for `result` too.
    #[inline]
    pub(super) unsafe fn fetch(
        &mut self,
        (datatype, op): (c_int, c_int),
        operand: Near,
        result: Near,
        far: Far,
        context: *mut c_void,
    ) -> Answer {
        // SAFETY: the same.
        unsafe {
            let Some(slot) = self.atomics().and_then(|table| table.readwrite) else {
                return -ENOSYS as Answer;
            };
            let (at, into) = (operand.at.cast_const().cast(), result.at.cast());
            let (peer, addr, key) = (far.peer, far.addr, far.key);
            slot(
                self.ep,
                at,
                1,
                operand.desc,
                into,
                result.desc,
                peer,
                addr,
                key,
                datatype,
                op,
                context,
            )
        }
    }

    /// A word that is replaced if it is what `compare` is.
    ///
    /// # Safety
    ///
    /// The same, for `compare` too.
    #[inline]
    pub(super) unsafe fn compare(
        &mut self,
        datatype: c_int,
        operand: Near,
        compare: Near,
        result: Near,
        far: Far,
        context: *mut c_void,
    ) -> Answer {
        // SAFETY: the same.
        unsafe {
            let Some(slot) = self.atomics().and_then(|table| table.compwrite) else {
                return -ENOSYS as Answer;
            };
            let (at, with) = (operand.at.cast_const().cast(), compare.at.cast_const().cast());
            let into = result.at.cast();
            let (peer, addr, key) = (far.peer, far.addr, far.key);
            slot(
                self.ep,
                at,
                1,
                operand.desc,
                with,
                compare.desc,
                into,
                result.desc,
                peer,
                addr,
                key,
                datatype,
                FI_CSWAP,
                context,
            )
        }
    }

    /// Whether the provider says that it does this.
    pub(super) fn is_valid(&self, of: Atomic, datatype: c_int, op: c_int) -> bool {
        let Some(table) = self.atomics() else { return false };
        let slot = match of {
            Atomic::Store => table.writevalid,
            Atomic::Fetch => table.readwritevalid,
            Atomic::Compare => table.compwritevalid,
        };
        let mut count = 0;
        // SAFETY: the table was checked.
        slot.is_some_and(
            |slot| unsafe { slot(self.ep, datatype, op, &mut count) } == 0 && count > 0,
        )
    }

    fn atomics(&self) -> Option<&fi_ops_atomic> {
        // SAFETY: null, or the endpoint's own table.
        unsafe { (*self.ep).atomic.as_ref() }
    }

    /// # Safety
    ///
    /// `near` is good for `bytes` bytes, and both it and `context` stay until
    /// the completion.
    pub(super) unsafe fn send(
        &mut self,
        near: Near,
        bytes: usize,
        peer: fi_addr_t,
        context: *mut c_void,
    ) -> Answer {
        // SAFETY: the table was checked; the rest is the caller's.
        unsafe {
            let Some(slot) = (*(*self.ep).msg).send else { return -ENOSYS as Answer };
            slot(self.ep, near.at.cast_const().cast(), bytes, near.desc, peer, context)
        }
    }

    /// # Safety
    ///
    /// The same.
    pub(super) unsafe fn receive(
        &mut self,
        near: Near,
        bytes: usize,
        context: *mut c_void,
    ) -> Answer {
        // SAFETY: the same.
        unsafe {
            let Some(slot) = (*(*self.ep).msg).recv else { return -ENOSYS as Answer };
            slot(self.ep, near.at.cast(), bytes, near.desc, FI_ADDR_UNSPEC, context)
        }
    }

    /// Ends the endpoint: what was in flight is the provider's no more. The
    /// registrations end here too, before or after it as the provider wants.
    pub(super) fn shut(&mut self, mrs: impl Iterator<Item = Mr>) {
        let bound = self.mr_mode & FI_MR_ENDPOINT != 0;
        if !bound {
            self.close_ep();
        }
        for mr in mrs {
            self.close_mr(&mr);
        }
        self.close_ep();
    }

    fn close_ep(&mut self) {
        if !self.ep.is_null() {
            // SAFETY: ours, and forgotten.
            unsafe { close(&raw mut (*self.ep).fid) };
            self.ep = null_mut();
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.close_ep();
        // SAFETY: ours or null, each closed once, the domain last.
        unsafe {
            if !self.cq.is_null() {
                close(&raw mut (*self.cq).fid);
            }
            if !self.av.is_null() {
                close(&raw mut (*self.av).fid);
            }
            if !self.domain.is_null() {
                close(&raw mut (*self.domain).fid);
            }
        }
    }
}

/// # Safety
///
/// An open object, which nobody uses afterwards.
pub(super) unsafe fn close(object: *mut fid) {
    // SAFETY: the first slots of a table are always there.
    unsafe {
        if let Some(close) = (*(*object).ops).close {
            close(object);
        }
    }
}

const PAGE_BYTES: usize = 4096;
