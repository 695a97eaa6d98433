//! The inbox of one remote rank: the lane here into which its parcels are put.
//!
//! Each parcel contains the positions of its packets in the lane and of its bytes
//! in slots. So it is put there at once, in whatever order parcels come. A parcel
//! becomes *visible* when all parcels before it have: until then its number is
//! only marked.
//!
//! ```text
//!   head       visible
//!    ▼            ▼
//!  ──┬────────────┬────────┬───────┬─────────
//!    │  packets   │  gap   │ here  │
//!  ──┴────────────┴────────┴───────┴─────────
//!                 ▲ parcel `next`  ▲ marked, held
//! ```

use super::buffers::Buffers;
use super::chunk::{ChunkPlace, Pool, Space};
use super::parcel::{
    INLINE_HEAD, ParcelError, ParcelHead, ParcelRecord, ParcelRecords, RECORD_BYTES_MAX, lines_of,
    offer_of, packet_of,
};
use super::ring::{self, Ring, Slots};
use super::window::{WINDOW, is_after};
use crate::msg::packet::{INLINE_BYTES_MAX, INLINE_WORDS, Offer, Packet};
use crate::msg::shape::MessageShape;
use crate::msg::wire::Returned;
use crate::mutate;

/// Packets that were not taken, and parcels that came before their turn.
#[derive(Debug)]
pub(super) struct Inbox<'t> {
    lines: Ring<'t>,
    slots: Slots<'t>,
    head: u32,
    visible: u32,
    /// The end of the lines that have come, early ones included.
    reach: u32,
    told: u32,
    /// Lines of the packet that was looked at last.
    seen: u32,
    /// Bits of the slots that were given back, as the peer has them.
    freed: u32,
    /// The number of the next expected parcel; a bit for each parcel from there
    /// on that is here; the heads of those parcels, while there are any.
    next: u32,
    marks: u32,
    held: Space<'t>,
    /// The last value of `next` that was acknowledged to the peer.
    acked: u32,
    /// How often the peer has requested more, and the last such number answered.
    asked: u32,
    answered: u32,
    /// A parcel was refused, so its number will never come.
    is_broken: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct EarlyParcel {
    start: u32,
    end: u32,
    asked: u32,
    returned: Returned,
}

/// Counts that became visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    /// The counts that the peer has returned last.
    pub(super) returned: Returned,
    /// Whether the peer has requested more.
    pub(super) asks: bool,
}

impl<'t> Inbox<'t> {
    /// Makes an empty inbox. `held` has places for one chunk.
    pub(super) const fn new(
        lines: Ring<'t>,
        slots: Slots<'t>,
        held: &'t mut [ChunkPlace<'t>],
    ) -> Self {
        Self {
            lines,
            slots,
            head: 0,
            visible: 0,
            reach: 0,
            told: 0,
            seen: 0,
            freed: 0,
            next: 0,
            marks: 0,
            held: Space::new(held),
            acked: 0,
            asked: 0,
            answered: 0,
            is_broken: false,
        }
    }

    /// Checks that a numbered parcel is expected, and that its packets have a
    /// place.
    pub(super) fn check(&self, head: &ParcelHead) -> Result<(), ParcelError> {
        if self.is_broken {
            return Err(ParcelError::Broken);
        }
        let early = head.number.wrapping_sub(self.next);
        if early >= WINDOW || self.marks >> early & 1 == 1 {
            return Err(ParcelError::Number(head.number));
        }
        let size = u64::from(self.lines.lines());
        // Neither over packets that are visible, nor beyond the returned lines.
        let used = u64::from(self.visible.wrapping_sub(self.told));
        let ahead = u64::from(head.start.wrapping_sub(self.visible));
        if used + ahead + u64::from(head.lines) > size {
            return Err(ParcelError::Lines { start: head.start, lines: head.lines });
        }
        Ok(())
    }

    /// Puts in a parcel that was checked. Returns the counts that became visible
    /// with it, if any.
    pub(super) fn put(
        &mut self,
        pool: &mut Pool<'t>,
        head: &ParcelHead,
        records: ParcelRecords<'_>,
    ) -> Option<News> {
        let mut line = head.start;
        for record in records {
            match record {
                ParcelRecord::Packet(packet) => {
                    self.lines.write(pool, line, packet);
                    line = line.wrapping_add(lines_of(packet));
                }
                ParcelRecord::Bytes { slot, offset, bytes } => {
                    self.slots.fill(pool, slot.into(), offset, bytes.len(), |done, into| {
                        into.copy_from_slice(&bytes[done..done + into.len()]);
                    });
                }
            }
        }
        let ParcelHead { start, returned, asked, .. } = *head;
        if is_after(line, self.reach) {
            self.reach = line;
        }
        let held = EarlyParcel { start, end: line, asked, returned };
        if head.number == self.next {
            // The usual case: the parcel is in order and need not be held.
            let news = self.show(held);
            return self.advance(pool, news);
        }
        self.marks |= 1 << head.number.wrapping_sub(self.next);
        self.held.write(pool, EarlyParcel::at(head.number), &held.to_bytes());
        self.advance(pool, None)
    }

    pub(super) fn peek(&mut self) -> Option<Packet> {
        if self.head == self.visible {
            return None;
        }
        let record = self.record();
        let lines = lines_of(&record);
        let Some(packet) = packet_of(&record) else { return self.break_off() };
        if lines > self.visible.wrapping_sub(self.head) {
            // Two parcels have overlapped.
            return self.break_off();
        }
        self.seen = lines;
        Some(packet)
    }

    pub(super) fn pop(&mut self, pool: &mut Pool<'t>) {
        let from = self.head;
        self.head = from.wrapping_add(core::mem::take(&mut self.seen));
        let reach = if self.marks == 0 { self.visible } else { self.reach };
        self.lines.pass(pool, from, self.head, reach);
    }

    pub(super) fn deliver(&self, at: u64, len: u64, buffers: &mut impl Buffers) {
        let record = self.record();
        let len = len.min(INLINE_BYTES_MAX as u64) as usize;
        buffers.write(at, &record[INLINE_HEAD..INLINE_HEAD + len]);
    }

    pub(super) fn keep(&self, into: &mut [u64; INLINE_WORDS]) {
        let record = self.record();
        let count = usize::from(record[1]).min(INLINE_BYTES_MAX);
        for (word, bytes) in into.iter_mut().zip(record[INLINE_HEAD..][..count].chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    }

    pub(super) fn offer(&self) -> Offer {
        offer_of(&self.record())
    }

    /// Copies the bytes of slots out; slots are read once.
    pub(super) fn read_slots(
        &mut self,
        pool: &mut Pool<'t>,
        shape: &MessageShape,
        slots: u32,
        at: u64,
        len: u64,
        buffers: &mut impl Buffers,
    ) {
        for (slot, offset, len) in ring::each_slot(shape, slots, len) {
            self.slots.visit(slot, 0, len, |done, bytes| {
                buffers.write(at + offset + done as u64, bytes);
            });
        }
        self.slots.give_up(pool, slots);
    }

    /// Gives all taken lines back, and slots. Returns how many lines were taken,
    /// ever.
    pub(super) fn give_back(&mut self, pool: &mut Pool<'t>, slots: u32) -> u32 {
        let freed = core::mem::replace(&mut self.freed, slots) ^ slots;
        self.slots.give_up(pool, freed);
        self.told = self.head;
        self.told
    }

    pub(super) const fn untold(&self) -> u32 {
        self.head.wrapping_sub(self.told)
    }

    /// Returns whether the peer has requested more; this call answers the
    /// request.
    pub(super) fn answer(&mut self) -> bool {
        core::mem::replace(&mut self.answered, self.asked) != self.asked
    }

    pub(super) const fn is_starved(&self) -> bool {
        self.answered != self.asked
    }

    /// Returns the number of the next expected parcel.
    pub(super) const fn expected(&self) -> u32 {
        self.next
    }

    /// Returns whether the peer may soon have to wait for an acknowledgement.
    pub(super) fn owes_ack(&self) -> bool {
        mutate!("mail_ack_kept": self.next.wrapping_sub(self.acked) >= WINDOW / 2 => false)
    }

    /// Notes that all parcels before `acked` are being acknowledged to the peer.
    pub(super) fn acknowledge(&mut self, acked: u32) {
        self.acked = acked;
    }

    /// Makes held parcels visible, as far as none is missing before them. `news`
    /// are the counts of the parcel before.
    fn advance(&mut self, pool: &mut Pool<'t>, mut news: Option<News>) -> Option<News> {
        mutate!("mail_gap_ignored": {} => if self.marks != 0 {
            let late = self.marks.trailing_zeros();
            self.marks >>= late;
            self.next = self.next.wrapping_add(late);
            self.visible = self.held().start;
        });
        while self.marks & 1 == 1 {
            let Some(next) = self.show(self.held()) else { break };
            let asks = next.asks || news.is_some_and(|news| news.asks);
            news = Some(News { asks, ..next });
        }
        if self.marks == 0 {
            self.held.give_up_all(pool);
        }
        news
    }

    /// Makes the next parcel visible, if it starts where the visible part ends.
    fn show(&mut self, next: EarlyParcel) -> Option<News> {
        if next.start != self.visible {
            self.break_off();
            return None;
        }
        self.marks >>= 1;
        self.next = self.next.wrapping_add(1);
        self.visible = next.end;
        let asks = core::mem::replace(&mut self.asked, next.asked) != next.asked;
        Some(News { returned: next.returned, asks })
    }

    /// Returns the held head of the next parcel, which is here.
    fn held(&self) -> EarlyParcel {
        let mut bytes = [0; HELD_BYTES];
        self.held.read(EarlyParcel::at(self.next), &mut bytes);
        EarlyParcel::from_bytes(bytes)
    }

    /// Breaks the lane off after an invalid parcel: nothing more is taken.
    #[cold]
    fn break_off(&mut self) -> Option<Packet> {
        self.is_broken = true;
        self.visible = self.head;
        // The packet that was looked at is not taken out.
        self.seen = 0;
        self.marks = 0;
        None
    }

    fn record(&self) -> [u8; RECORD_BYTES_MAX] {
        let mut record = [0; RECORD_BYTES_MAX];
        self.lines.read(self.head, &mut record);
        record
    }
}

impl EarlyParcel {
    /// Returns the offset of the held head of a parcel.
    const fn at(number: u32) -> usize {
        (number % WINDOW) as usize * HELD_BYTES
    }

    fn to_bytes(self) -> [u8; HELD_BYTES] {
        let Returned { lines, taken, matched, slots } = self.returned;
        let words = [self.start, self.end, self.asked, lines, taken, matched, slots];
        core::array::from_fn(|at| words[at / 4].to_ne_bytes()[at % 4])
    }

    fn from_bytes(bytes: [u8; HELD_BYTES]) -> Self {
        let word =
            |at: usize| u32::from_ne_bytes(core::array::from_fn(|byte| bytes[4 * at + byte]));
        let [start, end, asked, lines, taken, matched, slots] = core::array::from_fn(word);
        Self { start, end, asked, returned: Returned { lines, taken, matched, slots } }
    }
}

/// Bytes of a held head.
const HELD_BYTES: usize = 7 * size_of::<u32>();
const _: () = assert!(WINDOW == u32::BITS);
const _: () = assert!(WINDOW as usize * HELD_BYTES <= super::chunk::CHUNK_BYTES);
