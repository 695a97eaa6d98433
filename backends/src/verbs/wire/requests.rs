//! Requests: written down, sent with one doorbell for each peer, completed.

use super::super::cm;
use super::super::connection::ConnectionState;
use super::super::sys::*;
use super::VerbsWire;
use super::request::{NOBODY, SendRequest};
use crate::net::{CompletionEntry, CompletionStatus, LocalBuffer};
use core::ffi::c_int;
use core::ptr::null_mut;

impl VerbsWire {
    /// A new identifier for a request of this context.
    pub(in crate::verbs) fn wr_id(&mut self, number: usize) -> u64 {
        let generation = &mut self.generations[number];
        *generation = generation.wrapping_add(1);
        number as u64 | u64::from(*generation) << 32
    }

    /// Whether a request may be written down for this connection now.
    #[inline]
    pub(super) fn enter(&mut self, peer: u64) -> Result<(), c_int> {
        if self.connections[peer as usize].state == ConnectionState::Open {
            Ok(())
        } else {
            self.try_open(peer)
        }
    }

    /// Writes a request down.
    #[inline]
    pub(super) fn write(
        &mut self,
        context: usize,
        peer: u64,
        (opcode, imm): (u32, u32),
        local: LocalBuffer,
        bytes: usize,
        wr: ibv_wr,
    ) {
        let wr_id = self.wr_id(context);
        let is_short = bytes <= self.qp_params.inline_bytes as usize;
        let is_given =
            matches!(opcode, IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM | IBV_WR_SEND);
        let flags = if is_short && is_given { IBV_SEND_INLINE } else { 0 };
        let lkey = local.desc.addr() as u32;
        // The address cannot wrap: there are as many requests as contexts.
        let place = self.requests.base.as_ptr().cast::<SendRequest>().wrapping_add(context);
        // SAFETY: the context's own request, which the device does not have: its
        // last use has completed.
        let request = unsafe {
            (*place).sge = ibv_sge { addr: local.at as u64, length: bytes as u32, lkey };
            let request = &raw mut (*place).wr;
            (*request).wr_id = wr_id;
            (*request).next = null_mut();
            ((*request).sg_list, (*request).num_sge) = (&raw mut (*place).sge, 1);
            (*request).opcode = opcode;
            // In the byte order of the network.
            (*request).imm_data = imm.to_be();
            (*request).send_flags = flags | IBV_SEND_SIGNALED;
            (*request).wr = wr;
            request
        };
        let connection = &mut self.connections[peer as usize];
        if connection.last.is_null() {
            connection.first = request;
            self.touched.push(peer as u32);
        } else {
            // SAFETY: `last` is one of `requests`, and has not been sent yet.
            unsafe { (*connection.last).next = request };
        }
        connection.last = request;
        connection.in_flight += 1;
        self.owners[context] = peer as u32;
    }

    /// Sends the requests that were written down for a connection.
    pub(super) fn send_all(&mut self, at: u32) {
        let connection = &mut self.connections[at as usize];
        let (first, mut bad) = (connection.first, null_mut());
        (connection.first, connection.last) = (null_mut(), null_mut());
        self.clock += 1;
        connection.used = self.clock;
        if connection.opened_at.take().is_some() {
            // The connection can be closed now to make room.
            self.full_since = None;
        }
        self.counters.doorbells += 1;
        // SAFETY: the pair is open (requests are written only for open pairs, and a
        // pair with requests in flight is not closed), and the requests are the
        // wire's own.
        let code = unsafe {
            match connection.is_dci {
                false => ibv_post_send(connection.qp, first, &mut bad),
                true => {
                    bad = first;
                    self.device.post_dci(
                        connection.qp,
                        first,
                        connection.ah,
                        connection.address.target,
                    )
                }
            }
        };
        if code != 0 {
            self.fail_unposted(at, bad, code);
        }
    }

    #[cold]
    fn fail_unposted(&mut self, at: u32, mut bad: *mut ibv_send_wr, code: c_int) {
        // The first request was refused; the others were not tried.
        let mut end = CompletionStatus::Refused { code, provider_code: 0 };
        while !bad.is_null() {
            // SAFETY: the request is in the wire's own list.
            let (wr_id, next) = unsafe { ((*bad).wr_id, (*bad).next) };
            self.unsent.push_back(CompletionEntry { context: wr_id as u32 as usize, end });
            (bad, end) = (next, CompletionStatus::Again);
            self.connections[at as usize].in_flight -= 1;
        }
        self.finish_draining(at);
    }

    /// The entry for the NIC endpoint that a completion makes, if any.
    pub(super) fn completed(&mut self, at: usize) -> Option<CompletionEntry> {
        let ibv_wc { wr_id, status, opcode, byte_len, imm_data, vendor_err, .. } =
            self.completions[at];
        let (number, generation) = (wr_id as u32 as usize, (wr_id >> 32) as u32);
        if self.generations.get(number) != Some(&generation) {
            self.counters.strays += 1;
            return None;
        }
        if let Some(slot) = number.checked_sub(self.contexts) {
            self.received(slot, status == IBV_WC_SUCCESS, byte_len as usize);
            return None;
        }
        let owner = core::mem::replace(&mut self.owners[number], NOBODY);
        if owner == NOBODY {
            // A packet that came; after a failure its buffer is posted again.
            let end = match (status, opcode) {
                (IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM) => {
                    CompletionStatus::Immediate(u32::from_be(imm_data))
                }
                (IBV_WC_SUCCESS, _) => CompletionStatus::Done(byte_len as usize),
                _ => CompletionStatus::Again,
            };
            return Some(CompletionEntry { context: number, end });
        }
        self.connections[owner as usize].in_flight -= 1;
        let end = match status {
            IBV_WC_SUCCESS => CompletionStatus::Done(0),
            _ => self.fail_connection(owner, status, vendor_err),
        };
        self.finish_draining(owner);
        Some(CompletionEntry { context: number, end })
    }

    fn received(&mut self, slot: usize, is_well: bool, bytes: usize) {
        let number = self.contexts + slot;
        if slot >= cm::RECEIVES {
            self.cm.as_mut().expect("the CM endpoint is open").sent(slot);
            return;
        }
        let message = self.cm.as_ref().expect("the CM endpoint is open").received(slot, bytes);
        if let Some(message) = message.filter(|_| is_well) {
            self.handle_cm_message(&message);
        }
        let wr_id = self.wr_id(number);
        self.cm.as_mut().expect("the CM endpoint is open").post_receive(slot, wr_id);
    }
}
