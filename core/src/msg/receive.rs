//! Receiving: posted receives, unexpected messages, and how the two meet.
//!
//! A message takes the first posted receive that matches it, whether that receive
//! is for the message's source alone or for any source; a receive takes the first
//! message that it matches. Looking at the messages that are here and posting the
//! receive are one step, so no message slips through in between.

use super::list::IndexList;
use super::machine::MessageMachine;
use super::outcome::{Begun, CallError, Label, MessageBytes, Pattern, ReceivedMessage, RequestId};
use super::packet::PacketKind;
use super::tables::{ANY, RequestEntry, RequestState, UnexpectedMessage};
use super::wire::LaneTransport;
use crate::completion::Why;
use crate::mem::PeerIndex;
use crate::mutate;

impl MessageMachine<'_> {
    /// Receives a message into a buffer.
    ///
    /// Wait-free, except for the length of the lists that the call looks through.
    ///
    /// # Errors
    ///
    /// Nothing has happened then.
    ///
    /// - [`CallError::NoSuchPeer`]: the source of the pattern does not exist.
    /// - [`CallError::PeerLost`]: it is lost, and no message of it that matches is here.
    /// - [`CallError::Busy`] with [`Why::NoTag`]: all requests are under way, and the
    ///   receive needs one.
    #[inline]
    pub fn receive<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        pattern: Pattern,
        into: MessageBytes,
    ) -> Result<Begun<ReceivedMessage>, CallError> {
        let peer = match pattern.source {
            Some(source) => self.check(source)? as u32,
            None => ANY,
        };
        if let Some(index) = self.find_message(&pattern) {
            return self.receive_found(wire, index, into);
        }
        if let Some(rank) = pattern.source
            && self.tables.peers[peer as usize].lost
        {
            return Err(CallError::PeerLost { peer: rank });
        }
        let post = self.new_post(&pattern, peer, into).ok_or(CallError::Busy(Why::NoTag))?;
        let list = match peer {
            ANY => &mut self.any_posted,
            source => &mut self.tables.peers[source as usize].posted,
        };
        list.push(self.tables.requests, post);
        self.publish(wire, post);
        Ok(Begun::Pending(self.request(post)))
    }

    /// Receives the next message in the lane from the pattern's source, if the
    /// message is inline in its packet, fits the pattern, and no other receive
    /// matches it. It goes straight into the buffer, and no request is needed.
    /// Otherwise the call takes what has come and returns `None`: then the caller
    /// must call [`receive`](Self::receive), as for receives from any source.
    ///
    /// Wait-free.
    #[inline]
    pub fn receive_next<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        pattern: &Pattern,
        into: MessageBytes,
    ) -> Option<ReceivedMessage> {
        let rank = pattern.source?;
        let from = rank.0 as usize;
        if self.tables.peers.get(from)?.lost || self.has_board() {
            return None;
        }
        let mut packet = wire.peek(rank)?;
        // First take the messages for earlier receives.
        if !self.tables.peers[from].posted.is_empty() {
            if self.take_run(wire, from, self.shape.lines) > 0 {
                self.settle(wire, from);
            }
            packet = wire.peek(rank)?;
        }
        let label = Label { context: packet.context, tag: packet.tag };
        let is_it = packet.kind == PacketKind::Inline
            && pattern.takes(rank, label)
            && self.tables.peers[from].unexpected.is_empty()
            && self.find_post(from, label).is_none();
        if !is_it {
            self.drain(wire, from);
            return None;
        }
        let len = packet.inline_len();
        wire.deliver(rank, into.at, len.min(into.len));
        let peer = &mut self.tables.peers[from];
        peer.here.taken = peer.here.taken.wrapping_add(1);
        self.count_matched(from, false);
        wire.pop(rank);
        self.settle(wire, from);
        Some(ReceivedMessage { source: rank, tag: packet.tag, len, truncated: len > into.len })
    }

    /// Posts a receive for one source, if no message in the tables can match it,
    /// and without an offer to the source. `None`: the case is another, or there
    /// is no room, and nothing has happened; then the caller must call
    /// [`receive`](Self::receive). Wait-free.
    #[inline(always)]
    pub fn post_short<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        pattern: &Pattern,
        into: MessageBytes,
    ) -> Option<RequestId> {
        let rank = pattern.source?;
        let peer = self.tables.peers.get(rank.0 as usize)?;
        let is_plain = peer.unexpected.is_empty()
            && !peer.lost
            && !into.in_reach
            && !self.has_board()
            && !wire.is_starved(rank);
        if !is_plain {
            return None;
        }
        let post = self.new_post(pattern, rank.0, into)?;
        let peer = &mut self.tables.peers[rank.0 as usize];
        peer.unoffered += 1;
        peer.posted.push(self.tables.requests, post);
        Some(self.request(post))
    }

    #[inline(always)]
    fn new_post(&mut self, pattern: &Pattern, peer: u32, into: MessageBytes) -> Option<usize> {
        self.posts += 1;
        self.new_entry(RequestEntry {
            number: self.posts,
            peer,
            tag: pattern.tag.unwrap_or(0),
            any_tag: pattern.tag.is_none(),
            state: RequestState::Posted,
            source: peer,
            ..of_receive(pattern.context, into)
        })
    }

    /// Returns whether no message of that rank waits here for a receive, and none
    /// waits at that rank for room: then all that comes next is in the lane.
    #[inline]
    pub fn is_quiet<W: LaneTransport>(&self, wire: &mut W, from: PeerIndex) -> bool {
        let peer = &self.tables.peers[from.0 as usize];
        let is_quiet = peer.unexpected.is_empty() && !peer.lost && !wire.is_starved(from);
        is_quiet && !self.has_board()
    }

    /// Returns the first message here that matches the pattern, if there is one;
    /// the message stays. A message that still lies in a lane is not here:
    /// advance the machine before.
    pub fn probe(&mut self, pattern: &Pattern) -> Option<ReceivedMessage> {
        let found = self.find_message(pattern);
        self.is_probed = found.is_none();
        found.map(|index| self.described(index))
    }

    /// Finds the posted receive that a message takes.
    #[inline(always)]
    pub(super) fn find_post(&self, from: usize, label: Label) -> Option<usize> {
        let exact = self.first_post(&self.tables.peers[from].posted, label);
        if self.any_posted.is_empty() {
            return exact;
        }
        let any = self.first_post(&self.any_posted, label);
        let (Some(one), Some(other)) = (exact, any) else { return exact.or(any) };
        let number = |post: usize| self.tables.requests[post].number;
        let first = mutate!("msg_exact_first": number(one) < number(other) => true);
        Some(if first { one } else { other })
    }

    /// Removes a posted receive from the table.
    #[inline(always)]
    pub(super) fn unpost(&mut self, post: usize) {
        self.unoffer(post);
        match self.tables.requests[post].peer {
            ANY => self.any_posted.remove(self.tables.requests, post),
            source => {
                self.tables.peers[source as usize].posted.remove(self.tables.requests, post);
            }
        }
    }

    /// Stores a message that no receive takes. `None`: the peer has sent more
    /// messages than it may.
    pub(super) fn new_unexpected(&mut self, with: UnexpectedMessage) -> Option<usize> {
        let index = self.room.pop(self.tables.unexpected)?;
        let from = with.source as usize;
        let entry = &mut self.tables.unexpected[index];
        // The bytes are not copied: they are long, and not there yet.
        let UnexpectedMessage {
            source, tag, context, kind, in_reach, by_kernel, id, len, b, ..
        } = with;
        entry.source = source;
        entry.tag = tag;
        entry.context = context;
        entry.kind = kind;
        entry.in_reach = in_reach;
        entry.by_kernel = by_kernel;
        entry.id = id;
        entry.len = len;
        entry.b = b;
        self.tables.peers[from].unexpected.push(self.tables.unexpected, index);
        self.arrived.push(self.tables.unexpected, index);
        Some(index)
    }

    #[inline(always)]
    fn first_post(&self, list: &IndexList<0>, label: Label) -> Option<usize> {
        let mut at = list.first();
        while let Some(post) = at
            && (!self.tables.requests[post].takes(label) || self.is_claimed(post))
        {
            at = IndexList::<0>::after(self.tables.requests, post);
        }
        at
    }

    #[inline(always)]
    fn find_message(&self, pattern: &Pattern) -> Option<usize> {
        let messages = &self.tables.unexpected;
        let Some(source) = pattern.source else {
            let mut at = self.arrived.first();
            while let Some(index) = at
                && !pattern.takes(messages[index].source(), messages[index].label())
            {
                at = IndexList::<1>::after(messages, index);
            }
            return at;
        };
        let mut at = self.tables.peers.get(source.0 as usize)?.unexpected.first();
        while let Some(index) = at
            && !pattern.takes(source, messages[index].label())
        {
            at = IndexList::<0>::after(messages, index);
        }
        at
    }

    fn described(&self, index: usize) -> ReceivedMessage {
        let UnexpectedMessage { source, tag, len, .. } = self.tables.unexpected[index];
        ReceivedMessage { source: PeerIndex(source), tag, len, truncated: false }
    }

    fn unlink(&mut self, index: usize) {
        let source = self.tables.unexpected[index].source as usize;
        self.tables.peers[source].unexpected.remove(self.tables.unexpected, index);
        self.arrived.remove(self.tables.unexpected, index);
    }

    /// Lets a receive meet a message that was here before it.
    fn receive_found<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        index: usize,
        into: MessageBytes,
    ) -> Result<Begun<ReceivedMessage>, CallError> {
        let found = &self.tables.unexpected[index];
        let UnexpectedMessage { source, tag, context, kind, id, len, b, .. } = *found;
        let (from, flags) = (PeerIndex(source), [found.in_reach, found.by_kernel]);
        if kind == PacketKind::Rts && self.free.is_empty() {
            return Err(CallError::Busy(Why::NoTag));
        }
        let received = ReceivedMessage { source: from, tag, len, truncated: len > into.len };
        let fitting = len.min(into.len);
        match kind {
            PacketKind::Inline => wire.deliver_kept(&found.bytes, into.at, fitting),
            PacketKind::Eager => {
                wire.read_slots(from, b as u32, into.at, fitting);
                let freed = mutate!("msg_slot_early": b as u32 => 0);
                self.tables.peers[source as usize].here.slots ^= freed;
            }
            _ => {}
        }
        self.unlink(index);
        self.room.push(self.tables.unexpected, index);
        self.count_matched(source as usize, true);
        let begun = if kind == PacketKind::Rts {
            let entry = RequestEntry {
                peer: source,
                source,
                found_tag: tag,
                size: len,
                remote: id,
                state: RequestState::Fetching,
                ..of_receive(context, into)
            };
            let post = self.new_entry(entry).expect("a request is free");
            self.find_bytes(post, b, flags);
            self.fetch(wire, post);
            let request = self.request(post);
            let ended = &self.tables.requests[post];
            if ended.state == RequestState::Ended && ended.error.is_none() {
                self.release(post);
                Begun::Done(received)
            } else {
                Begun::Pending(request)
            }
        } else {
            Begun::Done(received)
        };
        self.settle(wire, source as usize);
        Ok(begun)
    }
}

fn of_receive(context: u16, into: MessageBytes) -> RequestEntry {
    RequestEntry {
        context,
        at: into.at,
        len: into.len,
        in_reach: into.in_reach,
        ..RequestEntry::EMPTY
    }
}
