//! Room at a peer: how many messages it may be sent, and its free slots and
//! lines.
//!
//! The counts that the peer has returned are read only when the known ones do not
//! suffice, because reading its return line takes the line from the peer's cache.
//! A sender that then still finds too little requests more, once, in a way that
//! the peer cannot miss (see `line`), and looks again. It repeats the request
//! only when the peer has returned something that was not enough.

use super::machine::MessageMachine;
use super::wire::LaneTransport;
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Reads the returned counts again, because too much seems to be under way.
    /// Returns whether the quota is really used up, or `None` if the log is full.
    #[cold]
    pub(super) fn look_back<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
    ) -> Option<bool> {
        for is_last in [false, true] {
            self.refresh(wire, to);
            let taken = self.tables.peers[to.0 as usize].taken_there;
            if wire.peek(to).is_none() {
                self.drop_log(to.0 as usize, taken);
            }
            let peer = &self.tables.peers[to.0 as usize];
            let is_full = peer.sent.wrapping_sub(peer.matched_there) >= self.shape.quota;
            let fits = peer.sent.wrapping_sub(peer.log_low) < self.shape.log_len();
            if fits && (!is_full || is_last) {
                return Some(is_full);
            }
            self.starve(wire, to);
        }
        None
    }

    /// Reads the counts that the peer has returned.
    pub(super) fn refresh<W: LaneTransport>(&mut self, wire: &mut W, to: PeerIndex) {
        let returned = wire.returned(to);
        let peer = &mut self.tables.peers[to.0 as usize];
        // Only possible counts are trusted.
        let sent = peer.sent;
        let newer = |new: u32, old: u32| {
            if new.wrapping_sub(old) <= sent.wrapping_sub(old) { new } else { old }
        };
        let matched = newer(returned.matched, peer.matched_there);
        let taken = newer(returned.taken, peer.taken_there);
        let was = (peer.lines_there, peer.matched_there, peer.taken_there, peer.slots_there);
        if was != (returned.lines, matched, taken, returned.slots) {
            // The peer has answered, if there was a request.
            peer.starving = false;
            self.has_learned = true;
        }
        (peer.lines_there, peer.slots_there) = (returned.lines, returned.slots);
        (peer.matched_there, peer.taken_there) = (matched, taken);
        mutate!("msg_log_by_return_line": {} => peer.log_low = taken);
    }

    /// Requests, once, that the peer return what it can.
    pub(super) fn starve<W: LaneTransport>(&mut self, wire: &mut W, to: PeerIndex) {
        let peer = &mut self.tables.peers[to.0 as usize];
        if !peer.starving {
            peer.starving = true;
            wire.set_starved(to);
        }
    }

    /// Takes the slots that `len` bytes need, if there are `more` free slots
    /// beside them.
    pub(super) fn take_slots<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        len: u64,
        more: u32,
    ) -> Option<u32> {
        let needed = len.div_ceil(u64::from(self.shape.slot_bytes)) as u32;
        let mut free = self.free_slots(to);
        if free.count_ones() < needed + more {
            self.refresh(wire, to);
            free = self.free_slots(to);
            if free.count_ones() < needed + more {
                return None;
            }
        }
        let mut rest = free;
        for _ in 0..needed {
            rest &= rest - 1;
        }
        let taken = free & !rest;
        self.tables.peers[to.0 as usize].slots ^= taken;
        Some(taken)
    }

    fn free_slots(&self, to: PeerIndex) -> u32 {
        let peer = &self.tables.peers[to.0 as usize];
        !(peer.slots ^ peer.slots_there) & self.shape.slot_mask()
    }

    /// Returns whether there is room for `lines` lines; if not, requests more.
    #[inline]
    pub(super) fn has_lines<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        lines: u32,
    ) -> bool {
        if wire.has_room(to, lines) {
            return true;
        }
        // The last answer was enough until now, so the next one must be
        // requested.
        self.refresh(wire, to);
        self.starve(wire, to);
        wire.has_room(to, lines)
    }
}
