//! What is sent: which way a message goes, and what waits for room.

use super::count::Path;
use super::list::List;
use super::machine::Machine;
use super::mirror::Claim;
use super::outcome::{Begun, Bytes, CallError, Label};
use super::packet::{Kind, Load, Packet};
use super::setup::Design;
use super::tables::{Due, Entry, State};
use super::wire::{Copy, Wire};
use crate::completion::Why;
use crate::mem::{AddrError, Rank};
use crate::sync::mutant;

/// What came of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Launched {
    /// The buffer is not needed any more.
    Done,
    /// It is, by this request.
    Running(usize),
    /// There are no lines.
    NoLines,
    /// Too many messages to the peer are without a receive.
    NoQuota,
    /// The log has no place. Whether a receive is known for the message was not
    /// asked: none behind it may be asked either, which would take the receive
    /// if the log has a place by then.
    NoLog,
    /// There is no free request.
    NoRequest,
}

impl Machine<'_> {
    /// Sends a message. If there is no room for it, it waits in the machine,
    /// and messages to the same rank wait behind it.
    ///
    /// Wait-free: a copy of at most [`COPY_BYTES_MAX`](super::COPY_BYTES_MAX).
    ///
    /// # Errors
    ///
    /// [`CallError`]; nothing has happened.
    pub fn send<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
    ) -> Result<Begun<()>, CallError> {
        if let Some(begun) = self.try_send(wire, to, label, bytes)? {
            return Ok(begun);
        }
        let waiting = Entry { state: State::Waiting, ..of_send(to, label, bytes) };
        let index = self.new_entry(waiting).ok_or(CallError::Busy(Why::NoTag))?;
        self.counts.waited += 1;
        self.tables.peers[to.0 as usize].waiting.push(self.tables.requests, index);
        self.rouse(to.0 as usize);
        Ok(Begun::Pending(self.request(index)))
    }

    /// The same, but `None` if there is no room: nothing has happened.
    ///
    /// # Errors
    ///
    /// [`CallError`]; nothing has happened.
    pub fn try_send<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
    ) -> Result<Option<Begun<()>>, CallError> {
        let peer = self.check(to)?;
        if self.tables.peers[peer].lost {
            return Err(CallError::Addr(AddrError::PeerLost { rank: to }));
        }
        if !self.tables.peers[peer].waiting.is_empty() {
            return Ok(None);
        }
        match self.launch(wire, to, label, bytes, None) {
            Launched::Done => Ok(Some(Begun::Done(()))),
            Launched::Running(index) => Ok(Some(Begun::Pending(self.request(index)))),
            Launched::NoRequest => Err(CallError::Busy(Why::NoTag)),
            Launched::NoLines | Launched::NoQuota | Launched::NoLog => Ok(None),
        }
    }

    /// Sends a message that goes in its packet, to a rank of which no receive
    /// is known and nothing is waited for. Whether it is one: else nothing has
    /// happened, and [`send`](Self::send) is to be called. Wait-free.
    #[inline(always)]
    pub fn send_short<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
    ) -> bool {
        let (quota, log_len) = (self.shape.quota, self.shape.log_len());
        let is_plain = self.tables.peers.get(to.0 as usize).is_some_and(|peer| {
            bytes.len <= u64::from(peer.thresholds.inline_max)
                && peer.mirror_len == 0
                && peer.sent.wrapping_sub(peer.matched_there) < quota
                && peer.sent.wrapping_sub(peer.log_low) < log_len
                && peer.waiting.is_empty()
                && !peer.lost
        });
        let lines = Packet::lines_of(bytes.len) + self.shape.reserve();
        if !is_plain || self.has_board() || !wire.has_room(to, lines) {
            return false;
        }
        self.push_inline(wire, to, label, bytes);
        self.log(to, label, true);
        true
    }

    #[inline(always)]
    fn push_inline<W: Wire>(&mut self, wire: &mut W, to: Rank, label: Label, bytes: Bytes) {
        let packet = Packet {
            count: bytes.len as u8,
            context: label.context,
            tag: label.tag,
            ..Packet::new(Kind::Inline)
        };
        wire.push(to, &packet, Load::Inline(bytes.at));
        self.counts.sent(Path::Inline, bytes.len);
    }

    #[inline]
    pub(super) fn check(&self, rank: Rank) -> Result<usize, CallError> {
        let size = self.shape.peers;
        if rank.0 >= size {
            return Err(CallError::Addr(AddrError::NoSuchRank { rank, size }));
        }
        Ok(rank.0 as usize)
    }

    /// Pushes what waits for room, to all peers.
    #[inline]
    pub(super) fn pump_all<W: Wire>(&mut self, wire: &mut W) -> bool {
        if self.busy.is_empty() { false } else { self.pump_busy(wire) }
    }

    fn pump_busy<W: Wire>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = false;
        let mut at = self.busy.first();
        while let Some(peer) = at {
            has_moved |= self.pump(wire, peer);
            at = List::<0>::after(self.tables.peers, peer);
            let state = &mut self.tables.peers[peer];
            if state.dues.is_empty()
                && state.ripe.is_empty()
                && state.waiting.is_empty()
                && state.acks == 0
                && !state.revisit
            {
                state.busy = false;
                self.busy.remove(self.tables.peers, peer);
            }
        }
        has_moved
    }

    fn pump<W: Wire>(&mut self, wire: &mut W, to: usize) -> bool {
        if self.tables.peers[to].revisit {
            self.revisit(wire, to);
        }
        let mut has_moved = self.push_acks(wire, to);
        has_moved |= self.push_dues(wire, to);
        has_moved |= self.push_offers(wire, to);
        has_moved | self.push_waiting(wire, to)
    }

    /// Messages go in the order in which they were sent; but one for which a
    /// receive is known does not wait until others have met theirs.
    fn push_waiting<W: Wire>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let mut looked = 0;
        let mut at = self.tables.peers[to].waiting.first();
        while let Some(index) = at
            && looked < LOOK
        {
            at = List::<0>::after(self.tables.requests, index);
            let entry = self.tables.requests[index];
            let label = Label { context: entry.context, tag: entry.tag };
            let bytes = Bytes { at: entry.at, len: entry.len, in_reach: entry.in_reach };
            match self.launch(wire, Rank(to as u32), label, bytes, Some(index)) {
                Launched::Done => {
                    has_moved = true;
                    self.end(index, None);
                }
                Launched::Running(_) => has_moved = true,
                // The receiver's board may be another at the next look.
                Launched::NoQuota if self.has_board() => break,
                Launched::NoQuota => looked += 1,
                Launched::NoLines | Launched::NoLog | Launched::NoRequest => break,
            }
        }
        has_moved
    }

    /// Sends a message if there is room; one that waited has `entry`.
    fn launch<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
        entry: Option<usize>,
    ) -> Launched {
        let peer = &self.tables.peers[to.0 as usize];
        let is_short = bytes.len <= u64::from(peer.thresholds.inline_max);
        let unmatched = peer.sent.wrapping_sub(peer.matched_there);
        let mut is_full = unmatched >= self.shape.quota && !mutant("msg_quota_ignored");
        // Others wait: this one may pass them if they are not for its receive.
        let passes = match entry {
            Some(index) if !mutant("msg_quota_raced") => {
                self.tables.peers[to.0 as usize].waiting.first() != Some(index)
            }
            Some(_) => false,
            None => false,
        };
        if is_full || peer.sent.wrapping_sub(peer.log_low) >= self.shape.log_len() {
            match self.look_back(wire, to) {
                Some(full) => is_full = full,
                None => return Launched::NoLog,
            }
        }
        let lines = if is_short { Packet::lines_of(bytes.len) } else { 1 };
        if !self.has_lines(wire, to, lines + self.shape.reserve()) {
            return Launched::NoLines;
        }
        if !is_short && entry.is_none() && self.free.is_empty() {
            return Launched::NoRequest;
        }
        if self.has_board()
            && let Some(launched) = self.launch_claimed(wire, to, label, bytes, entry)
        {
            self.waits_no_more(to, entry);
            self.log(to, label, false);
            return launched;
        }
        let claim = self.claim(to, label);
        if (is_full || passes) && claim.is_none() {
            self.starve(wire, to);
            return Launched::NoQuota;
        }
        self.waits_no_more(to, entry);
        let launched = if is_short {
            self.push_inline(wire, to, label, bytes);
            Launched::Done
        } else {
            self.launch_long(wire, to, label, bytes, entry, claim)
        };
        self.log(to, label, claim.is_none());
        launched
    }

    fn waits_no_more(&mut self, to: Rank, entry: Option<usize>) {
        if let Some(index) = entry {
            self.tables.peers[to.0 as usize].waiting.remove(self.tables.requests, index);
        }
    }

    fn launch_long<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
        entry: Option<usize>,
        claim: Option<Claim>,
    ) -> Launched {
        let thresholds = self.tables.peers[to.0 as usize].thresholds;
        if let Some(Claim { id, at: Some(at), room }) = claim {
            if self.splits(wire, to, &bytes, (id, room)) {
                self.counts.sent(Path::Direct, bytes.len);
                return self.launch_split(wire, to, label, bytes, entry, (id, at, room));
            }
            if let Some(streaming) = self.streams(to, &bytes) {
                return self.launch_direct(
                    wire,
                    to,
                    label,
                    bytes,
                    entry,
                    (id, at, room),
                    streaming,
                );
            }
            if bytes.len >= u64::from(thresholds.pull_from) && bytes.in_reach {
                return self.launch_told(wire, to, label, bytes, entry);
            }
        }
        if bytes.len <= u64::from(thresholds.eager_max)
            && let Some(slots) = self.take_slots(wire, to, bytes.len, self.shape.slots_reserved())
        {
            wire.write_slots(to, slots, bytes.at, bytes.len);
            let offer = self.take_offer(to);
            let packet = Packet {
                count: offer_flag(&offer),
                context: label.context,
                tag: label.tag,
                a: bytes.len,
                b: u64::from(slots),
                ..Packet::new(Kind::Eager)
            };
            wire.push(to, &packet, offer);
            self.counts.sent(Path::Eager, bytes.len);
            return Launched::Done;
        }
        self.launch_told(wire, to, label, bytes, entry)
    }

    /// Whether bytes that go straight into a buffer that is known go past the
    /// cache. `None`: they do not go so.
    #[inline]
    pub(super) fn streams(&self, to: Rank, bytes: &Bytes) -> Option<bool> {
        let thresholds = &self.tables.peers[to.0 as usize].thresholds;
        if bytes.len <= u64::from(thresholds.inline_max) {
            return None;
        }
        if bytes.len >= u64::from(thresholds.nt_from) {
            return Some(true);
        }
        let is_fetched = bytes.len >= u64::from(thresholds.pull_from) && bytes.in_reach;
        let direct = u64::from(thresholds.direct_from)..=u64::from(thresholds.direct_max);
        (!is_fetched && direct.contains(&bytes.len)).then_some(false)
    }

    /// Straight into the buffer of a receive. The packet of a short message
    /// says that it is there. That of a long one keeps its place in the lane
    /// while it is copied, so that nothing waits behind it.
    #[allow(clippy::too_many_arguments)]
    fn launch_direct<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
        entry: Option<usize>,
        (id, at, room): (u32, u64, u64),
        streaming: bool,
    ) -> Launched {
        let len = bytes.len.min(room);
        let is_short = len <= COPY_BYTES_MAX;
        if is_short {
            wire.copy(&Copy { peer: to, from: bytes.at, to: at, len, streaming });
        }
        let is_done = is_short || mutant("msg_done_early");
        let offer = self.take_offer(to);
        let packet = Packet {
            count: offer_flag(&offer) | if is_done { Packet::DONE } else { 0 },
            context: label.context,
            tag: label.tag,
            id,
            a: bytes.len,
            ..Packet::new(Kind::Direct)
        };
        if is_short || !mutant("msg_direct_late") {
            wire.push(to, &packet, offer);
        }
        self.counts.sent(Path::Direct, bytes.len);
        if is_short {
            return Launched::Done;
        }
        let index = self.entry_of_send(to, label, bytes, entry);
        let request = &mut self.tables.requests[index];
        request.state = State::Pushing;
        request.remote = id;
        request.far = Some(at);
        request.size = len;
        self.jobs.push(self.tables.requests, index);
        Launched::Running(index)
    }

    /// The receiver is told where the bytes are.
    fn launch_told<W: Wire>(
        &mut self,
        wire: &mut W,
        to: Rank,
        label: Label,
        bytes: Bytes,
        entry: Option<usize>,
    ) -> Launched {
        let index = self.entry_of_send(to, label, bytes, entry);
        self.tables.requests[index].state = State::Told;
        let offer = self.take_offer(to);
        let packet = Packet {
            count: offer_flag(&offer) | if bytes.in_reach { Packet::IN_REACH } else { 0 },
            context: label.context,
            tag: label.tag,
            id: self.id(index),
            a: bytes.len,
            b: bytes.at,
            ..Packet::new(Kind::Rts)
        };
        wire.push(to, &packet, offer);
        self.counts.sent(Path::Rendezvous, bytes.len);
        Launched::Running(index)
    }

    /// The message has a number now, and whoever offers a receive later will
    /// be told by the log whether it was for this one.
    #[inline(always)]
    fn log(&mut self, to: Rank, label: Label, is_open: bool) {
        let peer = &mut self.tables.peers[to.0 as usize];
        let number = peer.sent;
        peer.sent = number.wrapping_add(1);
        if self.design == Design::Mirror {
            let len = self.shape.log_len();
            let at = to.0 as usize * len as usize + (number & (len - 1)) as usize;
            let logged = &mut self.tables.log[at];
            logged.tag = label.tag;
            logged.context = label.context;
            logged.open = is_open;
        } else {
            peer.log_low = peer.sent;
        }
    }

    /// The entry of a send that goes on: there is one.
    pub(super) fn entry_of_send(
        &mut self,
        to: Rank,
        label: Label,
        bytes: Bytes,
        entry: Option<usize>,
    ) -> usize {
        entry.unwrap_or_else(|| {
            self.new_entry(of_send(to, label, bytes)).expect("a free request was there")
        })
    }
}

/// The flag that an offer rides along, if it does.
#[inline(always)]
pub(super) const fn offer_flag(load: &Load) -> u8 {
    if matches!(load, Load::Offer(_)) { Packet::OFFER } else { 0 }
}

fn of_send(to: Rank, label: Label, bytes: Bytes) -> Entry {
    Entry {
        peer: to.0,
        source: to.0,
        tag: label.tag,
        found_tag: label.tag,
        context: label.context,
        at: bytes.at,
        len: bytes.len,
        size: bytes.len,
        in_reach: bytes.in_reach,
        due: Due::Nothing,
        ..Entry::EMPTY
    }
}

/// Longest copy that is made inside a call.
pub const COPY_BYTES_MAX: u64 = 8 << 10;
/// Messages that are looked at for one whose receive is known.
const LOOK: u32 = 64;
