//! How sends and receives begin.

use super::Received;
use super::drive::{Messages, StateGuard, Under};
use super::label::SendMode;
use super::route::on_wire;
use super::state::{MessageState, WireRefusal};
use super::wait::received_of;
use crate::error::MessageError;
use std::ptr::NonNull;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::mem::Rank;
use tsumugi_core::msg::{self, Begun, INLINE_BYTES_MAX, Label, MessageBytes, Pattern, RequestId};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

impl Messages {
    /// Sends a message, and waits until its buffer may be changed.
    ///
    /// # Safety
    ///
    /// The `bytes` bytes at `at` are readable, and do not change until then.
    #[inline]
    pub unsafe fn send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<(), MessageError> {
        // SAFETY: the caller's promise.
        if unsafe { self.send_short(to, label, at, bytes) } {
            return Ok(());
        }
        // Before the machine has the buffer, which the caller would take back by a
        // panic.
        tsumugi_ult::assert_may_block("message");
        // SAFETY: the caller's promise.
        match unsafe { self.send_any(SendMode::Standard, to, label, at, bytes) }? {
            Begun::Done(()) => Ok(()),
            Begun::Pending(request) => self.end_of(request, usize::MAX).map(|_| ()),
        }
    }

    /// Receives a message, and waits for it.
    ///
    /// # Safety
    ///
    /// The buffer is writable, and is not otherwise used until then.
    #[inline]
    pub unsafe fn receive(
        &self,
        pattern: Pattern<Rank>,
        at: *mut u8,
        room: usize,
    ) -> Result<Received, MessageError> {
        if room <= INLINE_BYTES_MAX
            && let Some(received) = self.look_for(pattern, small(at, room))
        {
            return received_of(received, room);
        }
        // Before the machine has the buffer, as in `send`.
        tsumugi_ult::assert_may_block("message");
        // SAFETY: the caller's promise.
        match unsafe { self.post_any(pattern, at, room) }? {
            Begun::Done(received) => received_of(received, room),
            Begun::Pending(request) => self.end_of(request, room),
        }
    }

    /// Begins a send; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The buffer is readable, and does not change until the send has finished.
    #[inline(always)]
    pub unsafe fn begin_send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Under, MessageError> {
        // SAFETY: the caller's promise.
        if unsafe { self.send_short(to, label, at, bytes) } {
            return Ok(Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })));
        }
        // SAFETY: the caller's promise.
        unsafe { self.begin_any_send(to, label, at, bytes) }
    }

    /// Begins a send that is not short.
    ///
    /// # Safety
    ///
    /// As for [`begin_send`](Self::begin_send).
    #[inline(never)]
    unsafe fn begin_any_send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Under, MessageError> {
        // SAFETY: the caller's promise.
        unsafe { self.begin_send_as(SendMode::Standard, to, label, at, bytes) }
    }

    /// Begins a send of a mode; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// As for [`begin_send`](Self::begin_send).
    pub unsafe fn begin_send_as(
        &self,
        mode: SendMode,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Under, MessageError> {
        // SAFETY: the caller's promise.
        Ok(match unsafe { self.send_any(mode, to, label, at, bytes) }? {
            Begun::Done(()) => Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })),
            Begun::Pending(request) => Under::Way(request, usize::MAX),
        })
    }

    /// Begins a receive; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The buffer is writable, and is not otherwise used until the receive has
    /// finished.
    #[inline(always)]
    pub unsafe fn begin_receive(
        &self,
        pattern: Pattern<Rank>,
        at: *mut u8,
        room: usize,
    ) -> Result<Under, MessageError> {
        if let Some(source) = pattern.source {
            let label = Label { context: pattern.context, tag: pattern.tag.unwrap_or(0) };
            // SAFETY: the caller's promise.
            let short = unsafe { self.post_short(source, label, pattern.tag.is_none(), at, room) };
            if let Some(under) = short.under(source, room) {
                return Ok(under);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.begin_any_receive(pattern, at, room) }
    }

    /// Begins a receive that is not short.
    ///
    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    #[inline(never)]
    unsafe fn begin_any_receive(
        &self,
        pattern: Pattern<Rank>,
        at: *mut u8,
        room: usize,
    ) -> Result<Under, MessageError> {
        // SAFETY: the caller's promise.
        Ok(match unsafe { self.post_any(pattern, at, room) }? {
            Begun::Done(received) => Under::Ended(received_of(received, room)),
            Begun::Pending(request) => Under::Way(request, room),
        })
    }

    /// Sends a message with its bytes in the packet, if there is room and nothing
    /// waits, in a job of one node. Returns whether it is sent; if not, nothing has happened.
    /// The result is in a register: a caller that copies a result in memory would wait for all
    /// stores before it, and so for the cache line of the lane.
    ///
    /// # Safety
    ///
    /// The `bytes` bytes at `at` are readable.
    #[inline(never)]
    pub unsafe fn send_short(&self, to: Rank, label: Label, at: *const u8, bytes: usize) -> bool {
        // It does not matter where such a buffer lies.
        let from = MessageBytes { at: at as u64, len: bytes as u64, in_reach: false };
        if bytes > INLINE_BYTES_MAX {
            return false;
        }
        let mut state = self.lock();
        let MessageState { machine, near, post: None, .. } = &mut *state else { return false };
        // In a job of one node the index of each peer is its rank.
        machine.send_short(near, PeerIndex(to.0), label, from)
    }

    /// Sends any message.
    ///
    /// # Safety
    ///
    /// As for [`begin_send`](Self::begin_send).
    unsafe fn send_any(
        &self,
        mode: SendMode,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Begun<()>, MessageError> {
        let from = self.outgoing(at, bytes);
        self.begin(|state| state.send(to, label, from, mode))
    }

    /// Begins to send any message. Never waits.
    ///
    /// # Errors
    ///
    /// There is no room, and nothing happened. Other errors are in the result.
    ///
    /// # Safety
    ///
    /// As for [`begin_send`](Self::begin_send).
    pub(super) unsafe fn try_send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Result<Under, MessageError>, Why> {
        let whole = Received { source: to, tag: label.tag, bytes };
        // SAFETY: the caller's promise.
        if unsafe { self.send_short(to, label, at, bytes) } {
            return Ok(Ok(Under::Ended(Ok(whole))));
        }
        let from = self.outgoing(at, bytes);
        self.try_begin(|state| {
            Ok(match state.send(to, label, from, SendMode::Standard)? {
                Begun::Done(()) => Under::Ended(Ok(whole)),
                Begun::Pending(request) => Under::Way(request, usize::MAX),
            })
        })
    }

    /// Begins any receive. Never waits.
    ///
    /// # Errors
    ///
    /// There is no room, and nothing happened. Other errors are in the result.
    ///
    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    pub(super) unsafe fn try_receive(
        &self,
        pattern: Pattern<Rank>,
        at: *mut u8,
        room: usize,
    ) -> Result<Result<Under, MessageError>, Why> {
        self.try_begin(|state| {
            Ok(match self.receive_in(state, pattern, at, room)? {
                Begun::Done(received) => Under::Ended(received_of(received, room)),
                Begun::Pending(request) => Under::Way(request, room),
            })
        })
    }

    /// Receives the next message, or posts a receive that is not announced to any
    /// peer, in a job of one node. As for [`send_short`](Self::send_short) the result is in
    /// registers.
    ///
    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    #[inline(never)]
    pub unsafe fn post_short(
        &self,
        source: Rank,
        label: Label,
        is_any_tag: bool,
        at: *mut u8,
        room: usize,
    ) -> ShortReceive {
        let tag = (!is_any_tag).then_some(label.tag);
        let source = Some(PeerIndex(source.0));
        let pattern = Pattern { context: label.context, source, tag };
        let into = small(at, room);
        let mut state = self.lock();
        if room >= state.offered_from as usize {
            return ShortReceive::Other;
        }
        let MessageState { machine, near, post: None, .. } = &mut *state else {
            return ShortReceive::Other;
        };
        let short = match machine.receive_next(near, &pattern, into) {
            Some(msg::ReceivedMessage { tag, len, .. }) => {
                ShortReceive::Received { tag, bytes: len as u32 }
            }
            None => {
                let post = machine.post_short(near, &pattern, into);
                post.map_or(ShortReceive::Other, ShortReceive::Posted)
            }
        };
        self.begun(state);
        short
    }

    /// Posts any receive, or receives a message that is there.
    ///
    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    unsafe fn post_any(
        &self,
        pattern: Pattern<Rank>,
        at: *mut u8,
        room: usize,
    ) -> Result<Begun<msg::ReceivedMessage<Rank>>, MessageError> {
        self.begin(|state| self.receive_in(state, pattern, at, room))
    }

    #[inline(always)]
    fn receive_in(
        &self,
        state: &mut MessageState,
        pattern: Pattern<Rank>,
        at: *mut u8,
        room: usize,
    ) -> Result<Begun<msg::ReceivedMessage<Rank>>, WireRefusal> {
        // Receives of smaller buffers are not announced to peers.
        let is_offered = room >= state.offered_from as usize;
        let into = if is_offered { self.incoming(at, room) } else { small(at, room) };
        let pattern = state.by_index(pattern)?;
        let begun = on_wire!(state, |machine, wire| {
            match machine.receive_next(wire, &pattern, into) {
                Some(received) => Ok(Begun::Done(received)),
                None => machine.receive(wire, pattern, into),
            }
        });
        Ok(match begun? {
            Begun::Done(received) => Begun::Done(state.named(received)),
            Begun::Pending(request) => Begun::Pending(request),
        })
    }

    /// Waits for a message that matches, gets a buffer for it, and receives it. If there
    /// is no buffer, the message stays.
    ///
    /// # Safety
    ///
    /// `room_for` returns a buffer of at least as many bytes, which is not otherwise
    /// used until this returns.
    pub unsafe fn receive_whole<E: From<MessageError>>(
        &self,
        pattern: Pattern<Rank>,
        mut room_for: impl FnMut(usize) -> Result<*mut u8, E>,
    ) -> Result<Received, E> {
        // Before the machine has the buffer, as in `send`.
        tsumugi_ult::assert_may_block("message");
        let (mut at, mut room) = (room_for(0)?, 0);
        loop {
            let found = self.probe(pattern)?;
            if found.bytes > room {
                (at, room) = (room_for(found.bytes)?, found.bytes);
            }
            let into = self.incoming(at, room);
            let begun = self.begin(|state| {
                // Another thread may have taken the message, and the next may be
                // longer.
                let pattern = state.by_index(pattern)?;
                let Some(first) = state.machine.probe(&pattern) else { return Ok(None) };
                if first.len > room as u64 {
                    return Ok(None);
                }
                let (source, tag) = (Some(first.source), Some(first.tag));
                let exactly = Pattern { source, tag, ..pattern };
                let begun = on_wire!(state, |machine, wire| machine.receive(wire, exactly, into));
                Ok(Some(match begun? {
                    Begun::Done(received) => Under::Ended(received_of(state.named(received), room)),
                    Begun::Pending(request) => Under::Way(request, room),
                }))
            })?;
            if let Some(under) = begun {
                return Ok(self.finish(under)?);
            }
        }
    }

    /// Begins an operation, as soon as there is room in the tables.
    #[inline(always)]
    fn begin<T>(
        &self,
        mut begin: impl FnMut(&mut MessageState) -> Result<T, WireRefusal>,
    ) -> Result<T, MessageError> {
        loop {
            let mut state = self.lock();
            let begun = if state.has_ended { Err(WireRefusal::Ended) } else { begin(&mut state) };
            self.begun(state);
            match begun {
                Ok(begun) => return Ok(begun),
                Err(error) => self.refused(error)?,
            }
        }
    }

    /// Begins an operation, if there is room in the tables. Never waits.
    fn try_begin<T>(
        &self,
        mut begin: impl FnMut(&mut MessageState) -> Result<T, WireRefusal>,
    ) -> Result<Result<T, MessageError>, Why> {
        loop {
            let mut state = self.lock();
            let begun = if state.has_ended { Err(WireRefusal::Ended) } else { begin(&mut state) };
            self.begun(state);
            match begun {
                Ok(begun) => return Ok(Ok(begun)),
                Err(WireRefusal::Busy(Why::NoTag)) if self.lock().grow_requests() => {}
                Err(WireRefusal::Busy(why)) => return Err(why),
                Err(why) => return Ok(Err(self.error_of(why))),
            }
        }
    }

    /// Gives the lock back after a begin, and wakes threads that wait for messages
    /// that came with it.
    #[inline(always)]
    fn begun(&self, mut state: StateGuard<'_>) {
        if state.machine.has_news() || !state.probers.is_empty() {
            // A prober may wait for a message that came.
            state.has_moved = true;
            self.work_on(state, false);
        }
    }

    /// Handles a begin that was refused: makes the tables longer, or waits for a while if it
    /// may succeed later.
    #[cold]
    fn refused(&self, why: WireRefusal) -> Result<(), MessageError> {
        match why {
            WireRefusal::Busy(Why::NoTag) if self.lock().grow_requests() => Ok(()),
            WireRefusal::Busy(why) if why != Why::NoTag => {
                self.work();
                Here.yield_now();
                Ok(())
            }
            why => Err(self.error_of(why)),
        }
    }

    fn error_of(&self, why: WireRefusal) -> MessageError {
        match why {
            WireRefusal::Busy(_) => MessageError::TooMany { limit: self.lock().requests_max() },
            WireRefusal::NoSuchRank { rank } => {
                MessageError::NoSuchRank { rank, size: self.member.size() }
            }
            WireRefusal::Ended => MessageError::Ended,
            WireRefusal::PeerLost { peer } => {
                MessageError::PeerLost { rank: self.lock().rank_of(peer) }
            }
        }
    }

    /// A buffer that peers may read, if it is in their reach.
    #[inline]
    fn outgoing(&self, at: *const u8, bytes: usize) -> MessageBytes {
        let (place, len) = (NonNull::new(at.cast_mut()), bytes as u64);
        let space = self.member.space();
        // For a message in its packet the place does not matter.
        let in_reach = bytes > INLINE_BYTES_MAX
            && place.is_some_and(|place| space.place_of(place, len).is_some());
        MessageBytes { at: at as u64, len, in_reach }
    }

    /// A buffer that peers may write, if it is in their reach.
    #[inline]
    fn incoming(&self, at: *mut u8, room: usize) -> MessageBytes {
        let (place, len) = (NonNull::new(at), room as u64);
        let space = self.member.space();
        let in_reach = place.is_some_and(|place| space.is_offered(place, len));
        MessageBytes { at: at as u64, len, in_reach }
    }
}

/// The result of a receive for a short message from one source, in two words.
#[derive(Clone, Copy, Debug)]
pub enum ShortReceive {
    /// The receive is posted.
    Posted(RequestId),
    /// A message has come; the part that fits is in the buffer.
    Received {
        /// The message's tag.
        tag: u32,
        /// The message's length, which may exceed the buffer's.
        bytes: u32,
    },
    /// Nothing was done, because the case is not that simple.
    Other,
}

impl ShortReceive {
    /// The receive from `source` into a buffer of `room` bytes. `None`: nothing was done.
    #[inline(always)]
    pub fn under(self, source: Rank, room: usize) -> Option<Under> {
        match self {
            Self::Posted(request) => Some(Under::Way(request, room)),
            Self::Received { tag, bytes } => {
                let (len, truncated) = (u64::from(bytes), bytes as usize > room);
                let received = msg::ReceivedMessage { source, tag, len, truncated };
                Some(Under::Ended(received_of(received, room)))
            }
            Self::Other => None,
        }
    }
}

/// A buffer that peers never access.
#[inline(always)]
fn small(at: *mut u8, room: usize) -> MessageBytes {
    MessageBytes { at: at as u64, len: room as u64, in_reach: false }
}
