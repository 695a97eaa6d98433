//! The outbox to one remote rank: the lane here from which parcels are cut.
//!
//! ```text
//!   cut          sent            tail
//!    ▼            ▼               ▼
//!  ──┬────────────┬───────────────┬──────────  at most as many lines as the
//!    │ on the way │  waits here   │ free       receiver has reported free
//!  ──┴────────────┴───────────────┴──────────
//!        window of numbered parcels that were not acknowledged
//! ```
//!
//! A parcel is built from `sent` on, as far as it has room. It counts as sent
//! when the network has taken it. A parcel that is refused changes nothing, and
//! the next one built contains more.
//!
//! Returned counts go in every parcel. They get a parcel of their own only if the
//! peer has requested more, or if they are large. A peer that needs more sends a
//! request, and gets all new counts as the answer. The count of taken messages is
//! not sent before all packets that were pushed earlier, because the peer
//! concludes from it which offers can still come.

use super::buffers::Buffers;
use super::chunk::Pool;
use super::inbox::Inbox;
use super::parcel::{
    BYTES_HEAD, HEAD_BYTES, INLINE_HEAD, ParcelHead, RECORD_BYTES_MAX, conceal, lines_of,
    packet_of, payload, record_bytes, write_alone, write_bytes_head, write_packet,
};
use super::ring::{self, Ring, Slots};
use super::window::{WINDOW, is_after};
use crate::msg::packet::{Offer, Packet, PacketKind, PacketLoad};
use crate::msg::shape::MessageShape;
use crate::msg::wire::Returned;
use crate::mutate;

/// Packets that wait, and the counts that the peer was sent.
#[derive(Debug)]
pub(super) struct Outbox<'t> {
    lines: Ring<'t>,
    slots: Slots<'t>,
    tail: u32,
    sent: Cut,
    /// The counts that the peer has returned.
    pub(super) returned: Returned,
    /// The number of the next parcel, and the number before which all have
    /// arrived.
    number: u32,
    acked: u32,
    /// How often more was requested, and how often that was sent to the peer.
    asked: u32,
    asked_sent: u32,
    /// The counts returned to the peer last, with the lane's tail at that time;
    /// the oldest such count of messages that was not sent; the counts that were
    /// sent.
    here: CreditUpdate,
    next: Option<CreditUpdate>,
    there: CreditUpdate,
    is_due: bool,
    /// The parcel that was built last.
    built: Option<Built>,
}

/// Where the next parcel starts: a line, and how many bytes in slots of that
/// line's packet were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cut {
    line: u32,
    bytes: u64,
}

/// Returned counts, and the lane's tail at that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CreditUpdate {
    returned: Returned,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Built {
    cut: Cut,
    told: CreditUpdate,
    acked: u32,
    is_numbered: bool,
}

impl<'t> Outbox<'t> {
    pub(super) fn new(lines: Ring<'t>, slots: Slots<'t>) -> Self {
        Self {
            lines,
            slots,
            tail: 0,
            sent: Cut::default(),
            returned: Returned::default(),
            number: 0,
            acked: 0,
            asked: 0,
            asked_sent: 0,
            here: CreditUpdate::default(),
            next: None,
            there: CreditUpdate::default(),
            is_due: false,
            built: None,
        }
    }

    pub(super) fn has_room(&self, lines: u32) -> bool {
        self.tail.wrapping_sub(self.returned.lines) + lines <= self.lines.lines()
    }

    pub(super) fn push(
        &mut self,
        pool: &mut Pool<'t>,
        packet: &Packet,
        load: PacketLoad,
        buffers: &mut impl Buffers,
    ) {
        let mut packet = *packet;
        let is_told = packet.kind == PacketKind::Rts && packet.has(Packet::IN_REACH);
        match if is_told { buffers.place(packet.b, packet.a) } else { None } {
            Some(place) => packet.b = place,
            None => conceal(&mut packet),
        }
        let offer = match load {
            PacketLoad::Offer(offer) => Some(Offer { at: None, ..offer }),
            PacketLoad::Empty | PacketLoad::Inline(_) => None,
        };
        let mut record = [0; RECORD_BYTES_MAX];
        let len = write_packet(&packet, offer, &mut record);
        if let PacketLoad::Inline(at) = load {
            buffers.read(at, &mut record[INLINE_HEAD..len]);
        }
        self.lines.write(pool, self.tail, &record[..len]);
        self.tail = self.tail.wrapping_add(packet.lines());
    }

    pub(super) fn write_slots(
        &mut self,
        pool: &mut Pool<'t>,
        shape: &MessageShape,
        slots: u32,
        at: u64,
        len: u64,
        buffers: &mut impl Buffers,
    ) {
        for (slot, offset, len) in ring::each_slot(shape, slots, len) {
            self.slots.fill(pool, slot, 0, len, |done, into| {
                buffers.read(at + offset + done as u64, into);
            });
        }
    }

    /// Returns these counts to the peer, with the next parcel; soon, if the peer
    /// waits for them or they are large.
    pub(super) fn give_back(&mut self, shape: &MessageShape, returned: Returned, is_asked: bool) {
        self.here = CreditUpdate { returned, tail: self.tail };
        self.next.get_or_insert(self.here);
        let there = &self.there.returned;
        let is_much = returned.lines.wrapping_sub(there.lines) >= shape.lines / 4
            || returned.matched.wrapping_sub(there.matched) >= shape.quota.div_ceil(4)
            || returned.slots != there.slots;
        self.is_due |= is_asked || is_much;
    }

    pub(super) fn ask(&mut self) {
        self.asked = self.asked.wrapping_add(1);
    }

    /// Takes the peer's request for more: it may be for counts that are not sent
    /// yet.
    pub(super) fn asked(&mut self) {
        self.is_due |= self.here.returned != self.there.returned;
    }

    /// Takes the acknowledgement of all parcels before `number`. Returns whether
    /// it is possible.
    pub(super) fn acknowledge(&mut self, number: u32) -> bool {
        if !is_after(number, self.acked) {
            // The acknowledgement is of a parcel that came late.
            return true;
        }
        let is_sent = !is_after(number, self.number);
        if is_sent {
            self.acked = number;
        }
        is_sent
    }

    /// Takes the counts that the peer has returned, if they are possible.
    pub(super) fn learn(&mut self, returned: Returned) {
        let out = self.sent.line.wrapping_sub(self.returned.lines);
        if returned.lines.wrapping_sub(self.returned.lines) <= out {
            self.returned = returned;
        }
    }

    /// Returns whether there is a parcel to be sent.
    pub(super) fn wants(&self, inbox: &Inbox<'_>) -> bool {
        self.wants_number() || inbox.owes_ack()
    }

    /// Returns whether packets wait.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent.line != self.tail
    }

    /// Writes the next parcel. Returns its length, 0 if there is none.
    pub(super) fn build(
        &mut self,
        shape: &MessageShape,
        inbox: &Inbox<'_>,
        into: &mut [u8],
    ) -> usize {
        let acked = inbox.expected();
        if !self.wants_number() {
            if !inbox.owes_ack() {
                return 0;
            }
            let (cut, told) = (self.sent, self.there);
            self.built = Some(Built { cut, told, acked, is_numbered: false });
            return write_alone(acked, into);
        }
        let mut cut = self.sent;
        let mut len = HEAD_BYTES;
        while cut.line != self.tail
            && let Some(piece) = self.cut(shape, &mut cut, &mut into[len..])
        {
            len += piece;
        }
        let told = self.told_at(cut.line);
        let head = ParcelHead {
            number: self.number,
            acked,
            start: self.sent.line,
            lines: cut.line.wrapping_sub(self.sent.line),
            returned: told.returned,
            asked: self.asked,
        };
        head.write(into);
        self.built = Some(Built { cut, told, acked, is_numbered: true });
        len
    }

    /// Notes that the network has the parcel that was built last.
    pub(super) fn post(&mut self, pool: &mut Pool<'t>, inbox: &mut Inbox<'_>) {
        let Some(built) = self.built.take() else { return };
        inbox.acknowledge(built.acked);
        if !built.is_numbered {
            return;
        }
        self.number = self.number.wrapping_add(1);
        self.give_up_sent(pool, built.cut.line);
        self.sent = built.cut;
        self.there = built.told;
        self.asked_sent = self.asked;
        self.is_due = false;
        if self.next.is_some_and(|next| !is_after(next.tail, built.cut.line)) {
            let is_told = self.here.returned.taken == self.there.returned.taken;
            self.next = (!is_told).then_some(self.here);
        }
    }

    /// Drops all that waits, because the peer is gone.
    pub(super) fn drop_all(&mut self, pool: &mut Pool<'t>) {
        self.lines.give_up_all(pool);
        self.slots.give_up_all(pool);
        self.sent = Cut { line: self.tail, bytes: 0 };
        (self.asked_sent, self.is_due, self.built) = (self.asked, false, None);
    }

    /// Frees the packets before a line, which the network has copied.
    fn give_up_sent(&mut self, pool: &mut Pool<'t>, until: u32) {
        let mut line = self.sent.line;
        while !self.slots.is_unused() && line != until {
            let mut record = [0; RECORD_BYTES_MAX];
            self.lines.read(line, &mut record);
            if let Some(packet) = packet_of(&record) {
                self.slots.give_up(pool, payload(&packet).0);
            }
            line = line.wrapping_add(lines_of(&record));
        }
        self.lines.pass(pool, self.sent.line, until, self.tail);
    }

    fn wants_number(&self) -> bool {
        let asks = mutate!("mail_ask_kept": self.asked != self.asked_sent => false);
        let window = mutate!("mail_window_ignored": WINDOW => u32::MAX);
        (self.sent.line != self.tail || asks || self.is_due)
            && self.number.wrapping_sub(self.acked) < window
    }

    /// Returns the counts that can be sent together with the lane up to that
    /// line.
    fn told_at(&self, line: u32) -> CreditUpdate {
        let taken = match self.next {
            _ if !is_after(self.here.tail, line) => self.here.returned.taken,
            Some(next) if !is_after(next.tail, line) => next.returned.taken,
            _ => self.there.returned.taken,
        };
        let returned = Returned { taken, ..self.here.returned };
        CreditUpdate { returned, ..self.here }
    }

    /// Writes the packet at a line, or a piece of the bytes before it. Returns
    /// the length, if there is room.
    fn cut(&self, shape: &MessageShape, cut: &mut Cut, into: &mut [u8]) -> Option<usize> {
        let mut record = [0; RECORD_BYTES_MAX];
        self.lines.read(cut.line, &mut record);
        let packet = packet_of(&record).expect("the ring has whole packets");
        let (slots, bytes) = payload(&packet);
        if mutate!("mail_bytes_forgotten": cut.bytes < bytes => false) {
            let size = u64::from(shape.slot_bytes);
            let nth = (cut.bytes / size) as usize;
            let slot = ring::slots_of(shape, slots).nth(nth).expect("a packet names its slots");
            let offset = (cut.bytes % size) as usize;
            let room = into.len().checked_sub(BYTES_HEAD)?;
            let left = (size as usize - offset).min((bytes - cut.bytes) as usize);
            if room < left && room < PIECE_BYTES_MIN {
                return None;
            }
            let len = left.min(room);
            write_bytes_head(slot as u8, offset as u32, len as u32, into);
            let into = &mut into[BYTES_HEAD..][..len];
            self.slots.visit(slot, offset as u32, len, |done, bytes| {
                into[done..done + bytes.len()].copy_from_slice(bytes);
            });
            cut.bytes += len as u64;
            return Some(BYTES_HEAD + len);
        }
        let len = record_bytes(record[0], record[1]).expect("the ring has whole packets");
        into.get_mut(..len)?.copy_from_slice(&record[..len]);
        *cut = Cut { line: cut.line.wrapping_add(lines_of(&record)), bytes: 0 };
        Some(len)
    }
}

/// A shorter piece is not worth a record of its own.
const PIECE_BYTES_MIN: usize = 128;
