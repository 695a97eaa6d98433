//! The connection manager: messages between ranks about their queue pairs
//! (*messages*), as datagrams. They may be lost, or come twice or late; no thread
//! waits for one.
//!
//! ```text
//!  "TsVb" 4 | version 2 | word 2 | job 8 | from 4 | to 4 | pair 4 | psn 4
//!  turn 8 | address 28
//! ```
//!
//! All numbers are little-endian. A message comes from the network: its parser accepts
//! any bytes.

use super::address::{ADDRESS_BYTES, Address};
use super::device::VerbsDevice;
use super::pair::{QKEY, QpParams, number_of};
use super::sys::*;
use crate::net::{Mr, ZeroedPages};
use core::ffi::c_int;
use core::ptr::null_mut;
use tsumugi_core::mem::{Access, Rank};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum CmKind {
    /// The sender requests a connection to the receiver, from this pair.
    ConnectRequest = 1,
    /// The receiver reaches the sender at this pair.
    ConnectReply = 2,
    /// The sender does not need the connection any more.
    Disconnect = 3,
    /// The sender requests that the receiver closes its link.
    DisconnectRequest = 4,
}

/// A message about a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CmMessage {
    pub word: CmKind,
    pub job: u64,
    pub from: Rank,
    pub to: Rank,
    pub pair: u32,
    pub psn: u32,
    /// The number of the attempt that this message is about, counted by the rank that
    /// sends the connect request.
    pub attempt: u64,
    pub address: Address,
}

/// The queue pair for messages, and its buffers.
pub(super) struct CmEndpoint {
    qp: *mut ibv_qp,
    area: ZeroedPages,
    mr: Mr,
    /// The send buffers without a message.
    free: Vec<u32>,
    /// The number of the first buffer's context.
    first: usize,
}

impl CmEndpoint {
    /// Opens a CM endpoint; its requests have context numbers from `first` on.
    pub(super) fn open(
        device: &VerbsDevice,
        qp_params: &QpParams,
        first: usize,
    ) -> Result<Self, c_int> {
        let area = ZeroedPages::new(COUNT * SLOT_BYTES);
        // SAFETY: pages of the CM endpoint, which outlive it.
        let mr = unsafe {
            device.register(area.base.as_ptr(), (COUNT * SLOT_BYTES) as u64, Access::Local)?
        };
        let made = device.create_cm_qp(qp_params, SENDS as u32, RECEIVES as u32);
        let qp = made.inspect_err(|_| device.close_mr(&mr))?;
        let free = (RECEIVES as u32..COUNT as u32).collect();
        Ok(Self { qp, area, mr, free, first })
    }

    /// The number of the CM endpoint's pair.
    pub(super) fn number(&self) -> u32 {
        // SAFETY: the pair is open as long as the CM endpoint.
        unsafe { number_of(self.qp) }
    }

    /// Posts a receive buffer for messages.
    pub(super) fn post_receive(&mut self, slot: usize, wr_id: u64) {
        let mut sge = self.sge(slot, SLOT_BYTES);
        let mut request = ibv_recv_wr { wr_id, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
        // SAFETY: the slot's own bytes. If the post fails there is one buffer less,
        // and messages may be lost, which the protocol allows.
        unsafe { ibv_post_recv(self.qp, &mut request, &mut null_mut()) };
    }

    /// The message in a receive buffer; `None` if it is no valid message.
    pub(super) fn received(&self, slot: usize, bytes: usize) -> Option<CmMessage> {
        let length = bytes.min(SLOT_BYTES);
        // SAFETY: the slot's own bytes, with which the device has finished.
        let bytes = unsafe { core::slice::from_raw_parts(self.at(slot), length) };
        CmMessage::parse(bytes.get(GRH_BYTES..)?)
    }

    /// Sends a message, if a buffer is free; otherwise the message is lost.
    pub(super) fn send_cm(
        &mut self,
        message: &CmMessage,
        (ah, cm_qp): (*mut ibv_ah, u32),
        wr_id: impl FnOnce(usize) -> u64,
    ) {
        let Some(slot) = self.free.pop().map(|slot| slot as usize) else { return };
        // SAFETY: a free slot's own bytes.
        unsafe { self.at(slot).cast::<[u8; CALL_BYTES]>().write(message.to_bytes()) };
        let mut sge = self.sge(slot, CALL_BYTES);
        let ud = ibv_wr_ud { ah, remote_qpn: cm_qp, remote_qkey: QKEY };
        let mut request = ibv_send_wr {
            wr_id: wr_id(self.first + slot),
            next: null_mut(),
            sg_list: &mut sge,
            num_sge: 1,
            opcode: IBV_WR_SEND,
            send_flags: IBV_SEND_SIGNALED,
            imm_data: 0,
            wr: ibv_wr { ud: core::mem::ManuallyDrop::new(ud) },
            qp_type: 0,
            _last: [0; 6],
        };
        // SAFETY: the slot belongs to the message until it has completed.
        if unsafe { ibv_post_send(self.qp, &mut request, &mut null_mut()) } != 0 {
            self.free.push(slot as u32);
        }
    }

    /// Releases the buffer of a message that has been sent.
    pub(super) fn sent(&mut self, slot: usize) {
        self.free.push(slot as u32);
    }

    pub(super) fn shut(self, device: &VerbsDevice) {
        device.destroy_qp(self.qp);
        device.close_mr(&self.mr);
    }

    fn at(&self, slot: usize) -> *mut u8 {
        self.area.base.as_ptr().wrapping_add(slot * SLOT_BYTES)
    }

    fn sge(&self, slot: usize, bytes: usize) -> ibv_sge {
        let lkey = self.mr.desc.addr() as u32;
        ibv_sge { addr: self.at(slot) as u64, length: bytes as u32, lkey }
    }
}

impl CmMessage {
    fn to_bytes(self) -> [u8; CALL_BYTES] {
        let mut bytes = [0; CALL_BYTES];
        bytes[..8].copy_from_slice(&(START | (self.word as u64) << 48).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.job.to_le_bytes());
        for (at, number) in [self.from.0, self.to.0, self.pair, self.psn].into_iter().enumerate() {
            bytes[16 + 4 * at..20 + 4 * at].copy_from_slice(&number.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&self.attempt.to_le_bytes());
        bytes[40..].copy_from_slice(&self.address.to_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CALL_BYTES] = bytes.try_into().ok()?;
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        if long(0) & ((1 << 48) - 1) != START {
            return None;
        }
        let word = match long(0) >> 48 {
            1 => CmKind::ConnectRequest,
            2 => CmKind::ConnectReply,
            3 => CmKind::Disconnect,
            4 => CmKind::DisconnectRequest,
            _ => return None,
        };
        Some(Self {
            word,
            job: long(8),
            from: Rank(short(16)),
            to: Rank(short(20)),
            pair: short(24) & PAIR_MASK,
            psn: short(28) & PAIR_MASK,
            attempt: long(32),
            address: Address::parse(&bytes[40..])?,
        })
    }
}

/// "TsVb" and the version.
const START: u64 = u32::from_le_bytes(*b"TsVb") as u64 | 1 << 32;

/// Pair numbers and sequence numbers have 24 bits.
const PAIR_MASK: u32 = (1 << 24) - 1;

/// The number of receive buffers; messages beyond it are lost.
pub(super) const RECEIVES: usize = 64;
const SENDS: usize = 32;

/// The number of contexts of a CM endpoint.
pub(super) const COUNT: usize = RECEIVES + SENDS;

const CALL_BYTES: usize = 40 + ADDRESS_BYTES;
/// The bytes that the device puts before a datagram.
const GRH_BYTES: usize = 40;
const SLOT_BYTES: usize = 128;

const _: () = assert!(GRH_BYTES + CALL_BYTES <= SLOT_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_conformance::Seeded;

    fn message() -> CmMessage {
        CmMessage {
            word: CmKind::ConnectReply,
            job: 1 << 60 | 7,
            from: Rank(3),
            to: Rank(u32::MAX),
            pair: 0x12_3456,
            psn: 0xff_ffff,
            attempt: 1 << 40,
            address: Address {
                gid: ibv_gid { raw: [9; 16] },
                cm_qp: 17,
                lid: 2,
                mtu: 3,
                reads_max: 4,
                target: 0x65_4321,
            },
        }
    }

    #[test]
    fn a_call_is_parsed_as_it_was_written() {
        for word in [
            CmKind::ConnectRequest,
            CmKind::ConnectReply,
            CmKind::Disconnect,
            CmKind::DisconnectRequest,
        ] {
            let message = CmMessage { word, ..message() };
            assert_eq!(CmMessage::parse(&message.to_bytes()), Some(message));
        }
    }

    #[test]
    fn a_malformed_call_is_ignored() {
        let bytes = message().to_bytes();
        assert_eq!(CmMessage::parse(&bytes[..CALL_BYTES - 1]), None);
        for (at, value) in [(0, 0), (4, 2), (6, 0), (6, 5), (7, 1), (62, 0), (63, 0)] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert_eq!(CmMessage::parse(&bytes), None, "{at}");
        }
        let mut seeded = Seeded(9);
        for _ in 0..10_000 {
            let mut bytes = bytes.to_vec();
            let at = seeded.below(CALL_BYTES as u64) as usize;
            bytes[at] = seeded.next() as u8;
            bytes.truncate(seeded.below(2 * CALL_BYTES as u64) as usize);
            if let Some(message) = CmMessage::parse(&bytes) {
                assert!(message.pair < 1 << 24 && message.psn < 1 << 24);
            }
        }
    }
}
