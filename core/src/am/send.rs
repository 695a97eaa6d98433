//! Sending: requests and replies from staging cells, credits by notices.
//!
//! ```text
//!  staging cell: free ─► Put ─► AwaitPut ─► Bell ─► AwaitBell ─► free
//!                         └── bell with the cell ──►┘   both have completed
//!  notice:       Idle ─► CountDue ─► Counting ─► BellDue ─► Ringing ─► Idle
//! ```

use super::cell::{CELL_BYTES, CELL_WORDS, CellKind, Defect, INLINE_BYTES_MAX, Inline, LaneCell};
use super::lanes::AmLane;
use super::machine::AmMachine;
use super::memory::DoorbellOrder;
use super::op_tag::{BELL, FETCH, INDEX_BITS, INDEX_MASK, NOTICE, PUT, tag};
use super::outcome::{CallPayload, SendError};
use super::tables::{Notice, StagingCell, StagingStep};
use crate::mem::{AddrError, LocalAddr, PeerIndex};
use crate::mutate;
use crate::op::Op;
use crate::tag::Tag;

impl AmMachine<'_> {
    pub(super) fn body_of(
        &self,
        payload: CallPayload<'_>,
    ) -> Result<(CellKind, Inline), SendError> {
        match payload {
            CallPayload::Inline(bytes) => {
                let (len, bytes_max) = (bytes.len() as u64, INLINE_BYTES_MAX as u64);
                let body = Inline::new(bytes);
                body.map(|body| (CellKind::Call, body))
                    .ok_or(SendError::TooLong { bytes: len, bytes_max })
            }
            CallPayload::Long { from, bytes } => {
                let bytes_max =
                    if self.tables.landings.is_empty() { 0 } else { self.memory.landing_bytes };
                if bytes > bytes_max {
                    return Err(SendError::TooLong { bytes, bytes_max });
                }
                let mut body = [0; 24];
                body[..8].copy_from_slice(&u64::from(from.key.to_bits()).to_le_bytes());
                body[8..16].copy_from_slice(&from.offset.to_le_bytes());
                body[16..].copy_from_slice(&bytes.to_le_bytes());
                Ok((CellKind::LongCall, Inline::new(&body).expect("24 bytes fit")))
            }
        }
    }

    /// Fills a free staging cell and queues it. The caller has checked that there
    /// is one.
    pub(super) fn stage(&mut self, lane: AmLane, to: PeerIndex, cell: LaneCell) {
        let defect = Defect::planted();
        let peer = &mut self.tables.peers[to.0 as usize];
        let count = match lane {
            AmLane::Request => &mut peer.sent,
            AmLane::Reply => &mut peer.replied,
        };
        let number = *count;
        *count = number.wrapping_add(1);
        let taken = peer.requests_taken;
        let ack = mutate!("am_early_credit": taken => taken.wrapping_add(peer.due));
        peer.reported = peer.requests_taken;
        let index = self.free_slots.pop(self.tables.slots).expect("a staging cell is free");
        let words = &self.memory.staging[index * CELL_WORDS..][..CELL_WORDS];
        let bytes = LaneCell { ack, ..cell }.write(words, number, defect);
        let slot = &mut self.tables.slots[index];
        *slot = StagingCell {
            to,
            lane,
            number,
            bytes,
            step: StagingStep::Put,
            put_done: false,
            bell_done: false,
            ..*slot
        };
        self.outgoing.push(self.tables.slots, index);
    }

    /// Returns the next operation of a staging cell.
    pub(super) fn advance(&mut self, index: usize) -> Option<Op> {
        let to = self.tables.slots[index].to.0 as usize;
        let place = self.place_at(to).expect("the peer of a cell is connected");
        let slot = &mut self.tables.slots[index];
        if self.tables.peers[to].lost {
            match slot.step {
                StagingStep::Put => (slot.put_done, slot.bell_done) = (true, true),
                _ => slot.bell_done = true,
            }
            slot.step = StagingStep::AwaitBell;
            self.settle(index);
            // No completion will come that makes waiting peers go on.
            self.wake_later();
            return None;
        }
        match slot.step {
            StagingStep::Put => {
                let local = LocalAddr {
                    offset: self.memory.staging_at.offset + (index * CELL_BYTES) as u64,
                    ..self.memory.staging_at
                };
                let op = Op::put(local, place.cell(slot.lane, slot.number), slot.bytes);
                let tag = tag(PUT, index, slot.generation);
                if self.bell == DoorbellOrder::WithCell {
                    slot.step = StagingStep::Bell;
                    self.outgoing.push(self.tables.slots, index);
                } else {
                    slot.step = StagingStep::AwaitPut;
                }
                Some(op.tagged(tag))
            }
            StagingStep::Bell => {
                slot.step = StagingStep::AwaitBell;
                let tag = tag(BELL, index, slot.generation);
                Some(place.ring().tagged(tag))
            }
            StagingStep::AwaitPut | StagingStep::AwaitBell => None,
        }
    }

    /// Returns the next operation of a notice.
    pub(super) fn return_credit(&mut self, index: usize) -> Option<Op> {
        let place = self.place_at(index)?;
        let peer = &mut self.tables.peers[index];
        if peer.lost {
            return None;
        }
        let tag = tag(NOTICE, index, peer.notices);
        let op = match peer.notice {
            Notice::CountDue => {
                peer.notice = Notice::Counting;
                peer.reported = peer.requests_taken;
                place.return_credit(peer.requests_taken)
            }
            Notice::BellDue => {
                peer.notice = Notice::Ringing;
                place.ring_notice()
            }
            Notice::Idle | Notice::Counting | Notice::Ringing => return None,
        };
        Some(op.tagged(tag))
    }

    /// Begins to return credits when half of the lane was taken.
    pub(super) fn check_notice(&mut self, index: usize) {
        let cells = self.shape_of(index).cells;
        let peer = &mut self.tables.peers[index];
        let unreported = peer.requests_taken.wrapping_sub(peer.reported);
        if peer.notice == Notice::Idle && unreported >= cells.div_ceil(2) {
            peer.notice = Notice::CountDue;
            self.notices.push(self.tables.peers, index);
        }
    }

    /// Takes a completion; late and doubled completions are dropped.
    pub(super) fn complete(&mut self, tag: Tag, result: Result<u64, AddrError>) {
        let (index, generation) = (tag.index() & INDEX_MASK, tag.generation() as u32);
        let kind = tag.index() >> INDEX_BITS;
        match kind {
            PUT | BELL => {
                let Some(slot) = self.tables.slots.get_mut(index) else { return };
                let is_late =
                    mutate!("am_late_completion_believed": slot.generation != generation => false);
                if is_late {
                    return;
                }
                let to = slot.to;
                if kind == PUT {
                    slot.put_done = true;
                    if slot.step == StagingStep::AwaitPut {
                        slot.step = StagingStep::Bell;
                        self.outgoing.push(self.tables.slots, index);
                    }
                } else {
                    slot.bell_done = true;
                }
                if result.is_err() {
                    self.lose(to);
                }
                self.settle(index);
            }
            FETCH => self.fetched(index, generation, result.is_err()),
            _ => self.noticed(index, generation, result.is_err()),
        }
    }

    /// Frees a staging cell when both of its operations have completed.
    pub(super) fn settle(&mut self, index: usize) {
        let slot = &mut self.tables.slots[index];
        if slot.put_done && slot.bell_done && slot.step == StagingStep::AwaitBell {
            slot.generation = slot.generation.wrapping_add(1);
            slot.put_done = false;
            self.free_slots.push(self.tables.slots, index);
            self.has_room = true;
        }
    }

    pub(super) fn noticed(&mut self, index: usize, generation: u32, has_failed: bool) {
        let Some(peer) = self.tables.peers.get_mut(index) else { return };
        if peer.notices != generation {
            return;
        }
        peer.notices = generation.wrapping_add(1);
        self.notices_open -= 1;
        match peer.notice {
            Notice::Counting if !has_failed => {
                peer.notice = Notice::BellDue;
                self.notices.push(self.tables.peers, index);
            }
            _ => {
                peer.notice = Notice::Idle;
                self.check_notice(index);
            }
        }
        if has_failed {
            self.lose(PeerIndex(index as u32));
        }
    }
}
