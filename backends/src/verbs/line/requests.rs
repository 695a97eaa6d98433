//! Requests: written down, sent with one doorbell for each peer, completed.

use super::super::door;
use super::super::link::State;
use super::super::sys::*;
use super::Line;
use super::request::{NOBODY, Request};
use crate::net::{End, Entry, Near};
use core::ffi::c_int;
use core::ptr::null_mut;

impl Line {
    /// A new identifier for a request of this context.
    pub(in crate::verbs) fn wr_id(&mut self, number: usize) -> u64 {
        let generation = &mut self.generations[number];
        *generation = generation.wrapping_add(1);
        number as u64 | u64::from(*generation) << 32
    }

    /// Whether a request may be written down for this link now.
    #[inline]
    pub(super) fn enter(&mut self, peer: u64) -> Result<(), c_int> {
        if self.links[peer as usize].state == State::Open { Ok(()) } else { self.try_open(peer) }
    }

    /// Writes a request down.
    #[inline]
    pub(super) fn write(
        &mut self,
        context: usize,
        peer: u64,
        (opcode, imm): (u32, u32),
        near: Near,
        bytes: usize,
        wr: ibv_wr,
    ) {
        let wr_id = self.wr_id(context);
        let is_short = bytes <= self.terms.inline_bytes as usize;
        let is_given =
            matches!(opcode, IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM | IBV_WR_SEND);
        let flags = if is_short && is_given { IBV_SEND_INLINE } else { 0 };
        let lkey = near.desc.addr() as u32;
        // The address cannot wrap: there are as many requests as contexts.
        let place = self.requests.base.as_ptr().cast::<Request>().wrapping_add(context);
        // SAFETY: the context's own request, which the device does not have: its
        // last use has completed.
        let request = unsafe {
            (*place).sge = ibv_sge { addr: near.at as u64, length: bytes as u32, lkey };
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
        let link = &mut self.links[peer as usize];
        if link.last.is_null() {
            link.first = request;
            self.touched.push(peer as u32);
        } else {
            // SAFETY: `last` is one of `requests`, and has not been sent yet.
            unsafe { (*link.last).next = request };
        }
        link.last = request;
        link.in_flight += 1;
        self.owners[context] = peer as u32;
    }

    /// Sends the requests that were written down for a link.
    pub(super) fn send_all(&mut self, at: u32) {
        let link = &mut self.links[at as usize];
        let (first, mut bad) = (link.first, null_mut());
        (link.first, link.last) = (null_mut(), null_mut());
        self.clock += 1;
        link.used = self.clock;
        if link.fresh.take().is_some() {
            // The link can be closed now to make room.
            self.full = None;
        }
        self.counts.doorbells += 1;
        // SAFETY: the pair is open (requests are written only for open pairs, and a
        // pair with requests in flight is not closed), and the requests are the
        // line's own.
        let code = unsafe {
            match link.lent {
                false => ibv_post_send(link.qp, first, &mut bad),
                true => {
                    bad = first;
                    self.device.post_to(link.qp, first, link.ah, link.address.target)
                }
            }
        };
        if code != 0 {
            self.take_back(at, bad, code);
        }
    }

    #[cold]
    fn take_back(&mut self, at: u32, mut bad: *mut ibv_send_wr, code: c_int) {
        // The first request was refused; the others were not tried.
        let mut end = End::Refused { code, provider_code: 0 };
        while !bad.is_null() {
            // SAFETY: the request is in the line's own list.
            let (wr_id, next) = unsafe { ((*bad).wr_id, (*bad).next) };
            self.unsent.push_back(Entry { context: wr_id as u32 as usize, end });
            (bad, end) = (next, End::Again);
            self.links[at as usize].in_flight -= 1;
        }
        self.settle(at);
    }

    /// The entry for the rail that a completion makes, if any.
    pub(super) fn completed(&mut self, at: usize) -> Option<Entry> {
        let ibv_wc { wr_id, status, opcode, byte_len, imm_data, vendor_err, .. } =
            self.completions[at];
        let (number, generation) = (wr_id as u32 as usize, (wr_id >> 32) as u32);
        if self.generations.get(number) != Some(&generation) {
            self.counts.strays += 1;
            return None;
        }
        if let Some(slot) = number.checked_sub(self.contexts) {
            self.heard(slot, status == IBV_WC_SUCCESS, byte_len as usize);
            return None;
        }
        let owner = core::mem::replace(&mut self.owners[number], NOBODY);
        if owner == NOBODY {
            // A packet that came; after a failure its buffer is posted again.
            let end = match (status, opcode) {
                (IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM) => End::Rang(u32::from_be(imm_data)),
                (IBV_WC_SUCCESS, _) => End::Done(byte_len as usize),
                _ => End::Again,
            };
            return Some(Entry { context: number, end });
        }
        self.links[owner as usize].in_flight -= 1;
        let end = match status {
            IBV_WC_SUCCESS => End::Done(0),
            _ => self.broken(owner, status, vendor_err),
        };
        self.settle(owner);
        Some(Entry { context: number, end })
    }

    fn heard(&mut self, slot: usize, is_well: bool, bytes: usize) {
        let number = self.contexts + slot;
        if slot >= door::RECEIVES {
            self.door.as_mut().expect("the door is open").said(slot);
            return;
        }
        let call = self.door.as_ref().expect("the door is open").heard(slot, bytes);
        if let Some(call) = call.filter(|_| is_well) {
            self.hear(&call);
        }
        let wr_id = self.wr_id(number);
        self.door.as_mut().expect("the door is open").listen(slot, wr_id);
    }
}
