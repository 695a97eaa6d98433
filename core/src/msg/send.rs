//! Sending, and the messages that wait for room.

use super::count::MessagePath;
use super::list::IndexList;
use super::machine::MessageMachine;
use super::outcome::{Begun, CallError, Label, MessageBytes};
use super::outgoing::{Launched, OutgoingMessage};
use super::packet::{Packet, PacketKind, PacketLoad};
use super::tables::RequestState;
use super::wire::LaneTransport;
use crate::completion::Why;
use crate::mem::PeerIndex;

impl MessageMachine<'_> {
    /// Sends a message. If there is no room for it, it waits in the machine, and
    /// later messages to the same rank wait behind it.
    ///
    /// Wait-free: it copies at most [`COPY_BYTES_MAX`](super::COPY_BYTES_MAX)
    /// bytes.
    ///
    /// # Errors
    ///
    /// Nothing has happened then.
    ///
    /// - [`CallError::NoSuchPeer`]: `to` does not exist.
    /// - [`CallError::PeerLost`]: it is lost.
    /// - [`CallError::Busy`] with [`Why::NoTag`]: all requests are under way, and the
    ///   message needs one.
    pub fn send<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        label: Label,
        bytes: MessageBytes,
    ) -> Result<Begun<()>, CallError> {
        let out = OutgoingMessage { to, label, bytes, synchronous: false, entry: None };
        self.send_out(wire, &out)
    }

    /// Sends a message as [`send`](Self::send) does, but the send ends only when the message
    /// has met its receive (MPI's synchronous mode).
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub fn send_synchronous<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        label: Label,
        bytes: MessageBytes,
    ) -> Result<Begun<()>, CallError> {
        let out = OutgoingMessage { to, label, bytes, synchronous: true, entry: None };
        self.send_out(wire, &out)
    }

    fn send_out<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
    ) -> Result<Begun<()>, CallError> {
        if let Some(begun) = self.try_send_out(wire, out)? {
            return Ok(begun);
        }
        let (to, waiting) = (out.to, out.request(RequestState::Waiting));
        let index = self.new_entry(waiting).ok_or(CallError::Busy(Why::NoTag))?;
        self.counts.waited += 1;
        self.tables.peers[to.0 as usize].waiting.push(self.tables.requests, index);
        self.schedule_pump(to.0 as usize);
        Ok(Begun::Pending(self.request(index)))
    }

    /// Sends a message as [`send`](Self::send) does, but returns `None` if there
    /// is no room: then nothing has happened.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub fn try_send<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        label: Label,
        bytes: MessageBytes,
    ) -> Result<Option<Begun<()>>, CallError> {
        let out = OutgoingMessage { to, label, bytes, synchronous: false, entry: None };
        self.try_send_out(wire, &out)
    }

    #[inline]
    fn try_send_out<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
    ) -> Result<Option<Begun<()>>, CallError> {
        let to = out.to;
        let peer = self.check(to)?;
        if self.tables.peers[peer].lost {
            return Err(CallError::PeerLost { peer: to });
        }
        if !self.tables.peers[peer].waiting.is_empty() {
            return Ok(None);
        }
        match self.launch(wire, out) {
            Launched::Done => Ok(Some(Begun::Done(()))),
            Launched::Running(index) => Ok(Some(Begun::Pending(self.request(index)))),
            Launched::NoRequest => Err(CallError::Busy(Why::NoTag)),
            Launched::NoLines | Launched::NoQuota | Launched::NoLog => Ok(None),
        }
    }

    /// Sends a message inline in its packet, to a rank with no known receive and
    /// no waiting message. Returns whether the message was sent; if not, nothing
    /// has happened, and the caller must call [`send`](Self::send). Wait-free.
    #[inline(always)]
    pub fn send_short<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        label: Label,
        bytes: MessageBytes,
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
    pub(super) fn push_inline<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        to: PeerIndex,
        label: Label,
        bytes: MessageBytes,
    ) {
        let packet = Packet {
            count: bytes.len as u8,
            context: label.context,
            tag: label.tag,
            ..Packet::new(PacketKind::Inline)
        };
        wire.push(to, &packet, PacketLoad::Inline(bytes.at));
        self.counts.sent(MessagePath::Inline, bytes.len);
    }

    #[inline]
    pub(super) fn check(&self, peer: PeerIndex) -> Result<usize, CallError> {
        let peers = self.shape.peers;
        if peer.0 >= peers {
            return Err(CallError::NoSuchPeer { peer, peers });
        }
        Ok(peer.0 as usize)
    }

    /// Pushes the packets that wait for room, to all peers.
    #[inline]
    pub(super) fn pump_all<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        if self.busy.is_empty() { false } else { self.pump_busy(wire) }
    }

    fn pump_busy<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = false;
        let mut at = self.busy.first();
        while let Some(peer) = at {
            has_moved |= self.pump(wire, peer);
            at = IndexList::<0>::after(self.tables.peers, peer);
            let state = &mut self.tables.peers[peer];
            if state.dues.is_empty()
                && !state.has_urgent()
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

    fn pump<W: LaneTransport>(&mut self, wire: &mut W, to: usize) -> bool {
        if self.tables.peers[to].revisit {
            self.revisit(wire, to);
        }
        let mut has_moved = self.push_acks(wire, to);
        has_moved |= self.push_dues(wire, to);
        has_moved |= self.push_offers(wire, to);
        has_moved | self.push_waiting(wire, to)
    }

    /// Sends waiting messages in the order in which the caller sent them; but a
    /// message with a known receive does not wait until earlier ones have met
    /// theirs.
    fn push_waiting<W: LaneTransport>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let mut looked = 0;
        let mut at = self.tables.peers[to].waiting.first();
        while let Some(index) = at
            && looked < LOOK
        {
            at = IndexList::<0>::after(self.tables.requests, index);
            let waiting = OutgoingMessage::of(&self.tables.requests[index], index);
            match self.launch(wire, &waiting) {
                Launched::Done => {
                    has_moved = true;
                    self.end(index, None);
                }
                Launched::Running(_) => has_moved = true,
                // The receiver's board may have changed at the next look.
                Launched::NoQuota if self.has_board() => break,
                Launched::NoQuota => looked += 1,
                Launched::NoLines | Launched::NoLog | Launched::NoRequest => break,
            }
        }
        has_moved
    }
}

/// Waiting messages that are looked at to find one with a known receive.
const LOOK: u32 = 64;
