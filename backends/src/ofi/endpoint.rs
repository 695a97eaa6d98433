//! One domain of libfabric with the objects that one owner needs: an address
//! vector, a completion queue and an endpoint.
//!
//! ```text
//!  Fabric ── Wire { domain, av, cq, ep }      one owner at a time, no locks
//!         └─ Wire { domain, av, cq, ep }      inside (FI_THREAD_DOMAIN)
//! ```
//!
//! The methods are libfabric's calls and nothing more; each returns libfabric's
//! result.
//!
//! | file | what is in it |
//! |---|---|
//! | here | the objects, opened and closed; peers' addresses |
//! | `memory` | registrations and keys |
//! | `post` | puts and gets, words, packets |
//! | `complete` | completions, and sleeping until some have come |
//! | `peers` | the end of all connections with a peer that was given up, and the notice |

mod complete;
mod memory;
mod peers;
mod post;

use super::choice::Choice;
use super::config::OpenError;
use super::fabric::{Fabric, close};
use super::fencing::Fence;
use super::notice::NoticeSocket;
use super::sys::*;
use crate::net::{ADDRESS_BYTES_MAX, Mr};
use core::ffi::c_int;
use core::ptr::{null, null_mut};
use std::os::fd::RawFd;
use std::sync::Arc;

/// The objects of one domain; see the module.
pub(super) struct RdmEndpoint {
    fabric: Arc<Fabric>,
    domain: *mut fid_domain,
    av: *mut fid_av,
    cq: *mut fid_cq,
    ep: *mut fid_ep,
    event: Option<RawFd>,
    mr_mode: c_int,
    delivery: u64,
    /// The largest number of a peer, and one.
    peers: fi_addr_t,
    given_up: Vec<fi_addr_t>,
    notices: Option<NoticeSocket>,
    pub(super) fence: Fence,
}

// SAFETY: the objects are not bound to a thread; FI_THREAD_DOMAIN requires only
// that one thread at a time uses them, which `&mut self` guarantees.
unsafe impl Send for RdmEndpoint {}

impl RdmEndpoint {
    /// Opens a domain with a queue of at least `completions` entries.
    pub(super) fn open(
        fabric: &Arc<Fabric>,
        choice: &Choice,
        completions: usize,
        event: bool,
    ) -> Result<Self, OpenError> {
        let mut endpoint = Self {
            fabric: fabric.clone(),
            domain: null_mut(),
            av: null_mut(),
            cq: null_mut(),
            ep: null_mut(),
            event: None,
            mr_mode: choice.facts.mr_mode,
            delivery: if choice.facts.delivery { FI_DELIVERY_COMPLETE } else { 0 },
            peers: 0,
            given_up: Vec::new(),
            notices: None,
            fence: Fence::default(),
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
        // SAFETY: the library made every object, every table's size is checked
        // before a slot of it is used, and the attributes are whole structures of
        // version 1.17, which is the version that was requested.
        unsafe {
            let domain = &mut endpoint.domain;
            call!((*fabric.raw).ops, fi_ops_fabric, domain, fabric.raw, info, domain, null_mut());
            let domain = endpoint.domain;
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
                &mut endpoint.av,
                null_mut()
            );
            if !event || endpoint.open_cq(completions, FI_WAIT_FD) != 0 {
                match endpoint.open_cq(completions, FI_WAIT_NONE) {
                    0 => {}
                    code => return Err(OpenError::Call { name: "cq_open", code: -code }),
                }
            }
            call!(
                (*domain).ops,
                fi_ops_domain,
                endpoint,
                domain,
                info,
                &mut endpoint.ep,
                null_mut()
            );
            let ep = &raw mut (*endpoint.ep).fid;
            let table = (*endpoint.ep).fid.ops;
            call!(table, fi_ops, bind, ep, &raw mut (*endpoint.av).fid, 0);
            call!(table, fi_ops, bind, ep, &raw mut (*endpoint.cq).fid, FI_TRANSMIT | FI_RECV);
            call!(table, fi_ops, control, ep, FI_ENABLE, null_mut());
        }
        endpoint.check_tables(choice.facts.atomics)?;
        endpoint.notices = endpoint.address().ok().and_then(|address| NoticeSocket::open(&address));
        Ok(endpoint)
    }

    /// # Safety
    ///
    /// The domain must be open.
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

    /// Checks the tables of the data path; their slots are then used unchecked.
    fn check_tables(&self, atomics: bool) -> Result<(), OpenError> {
        use core::mem::offset_of;
        // SAFETY: the tables are the endpoint's and the queue's own, or null.
        let slots = unsafe {
            let ep = &*self.ep;
            [
                ("cq read", has_slot((*self.cq).ops, offset_of!(fi_ops_cq, readerr))),
                ("av insert", has_slot((*self.av).ops, offset_of!(fi_ops_av, remove))),
                ("getname", has_slot(ep.cm, offset_of!(fi_ops_cm, getname))),
                ("fi_send", has_slot(ep.msg, offset_of!(fi_ops_msg, inject))),
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

    /// The address of the endpoint for peers.
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

    /// Adds a peer with its address, which must be as long as this endpoint's own:
    /// the parser of cards checks that.
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
            1 if peer != FI_ADDR_UNSPEC => {
                self.peers = self.peers.max(peer + 1);
                Ok(peer)
            }
            error => Err(if error < 0 { -error } else { libc::EINVAL }),
        }
    }

    /// Ends the endpoint: the provider does not use operations in flight any more.
    /// The registrations end here too, before or after it as the provider requires.
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
            // SAFETY: this value owns the endpoint, and drops the pointer
            // afterwards.
            unsafe { close(&raw mut (*self.ep).fid) };
            self.ep = null_mut();
        }
    }
}

impl Drop for RdmEndpoint {
    fn drop(&mut self) {
        self.close_ep();
        // SAFETY: each is owned or null, and is closed once, the domain last.
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
