//! Sends and receives begin.

use super::Received;
use super::drive::{Guard, Messages, Under};
use super::route::on_wire;
use super::state::{REQUESTS_MAX, State};
use super::wait::received_of;
use crate::{MessageError, Rank};
use std::ptr::NonNull;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::AddrError;
use tsumugi_core::msg::{self, Begun, Bytes, CallError, INLINE_BYTES_MAX, Label, Pattern, Request};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

impl Messages {
    /// Sends, and waits until the bytes may be changed.
    ///
    /// # Safety
    ///
    /// They are readable, and stay as they are until then.
    #[inline]
    pub(crate) unsafe fn send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<(), MessageError> {
        if self.send_short(to, label, at, bytes) {
            return Ok(());
        }
        // Before the machine has bytes that the caller would take back by a panic.
        tsumugi_ult::assert_may_block("message");
        // SAFETY: the caller's.
        match unsafe { self.send_any(to, label, at, bytes) }? {
            Begun::Done(()) => Ok(()),
            Begun::Pending(request) => self.end_of(request, usize::MAX).map(|_| ()),
        }
    }

    /// Receives, and waits for it.
    ///
    /// # Safety
    ///
    /// The room is writable, and nobody else uses it until then.
    #[inline]
    pub(crate) unsafe fn receive(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Received, MessageError> {
        if room <= INLINE_BYTES_MAX
            && let Some(received) = self.look_for(pattern, small(at, room))
        {
            return received_of(received, room);
        }
        // As in `send`.
        tsumugi_ult::assert_may_block("message");
        // SAFETY: the caller's.
        match unsafe { self.post_any(pattern, at, room) }? {
            Begun::Done(received) => received_of(received, room),
            Begun::Pending(request) => self.end_of(request, room),
        }
    }

    /// Begins to send; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The bytes are readable, and stay as they are until it was finished.
    #[inline(always)]
    pub(crate) unsafe fn begin_send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Under, MessageError> {
        if self.send_short(to, label, at, bytes) {
            return Ok(Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })));
        }
        // SAFETY: the caller's.
        unsafe { self.begin_any_send(to, label, at, bytes) }
    }

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
        // SAFETY: the caller's.
        Ok(match unsafe { self.send_any(to, label, at, bytes) }? {
            Begun::Done(()) => Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })),
            Begun::Pending(request) => Under::Way(request, usize::MAX),
        })
    }

    /// Begins to receive; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The room is writable, and nobody else uses it until it was finished.
    #[inline(always)]
    pub(crate) unsafe fn begin_receive(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Under, MessageError> {
        if let Some(source) = pattern.source {
            let label = Label { context: pattern.context, tag: pattern.tag.unwrap_or(0) };
            match self.post_short(source, label, pattern.tag.is_none(), at, room) {
                Short::Posted(request) => return Ok(Under::Way(request, room)),
                Short::Received { tag, bytes } => {
                    let (len, truncated) = (u64::from(bytes), bytes as usize > room);
                    let received = msg::Received { source, tag, len, truncated };
                    return Ok(Under::Ended(received_of(received, room)));
                }
                Short::Other => {}
            }
        }
        // SAFETY: the caller's.
        unsafe { self.begin_any_receive(pattern, at, room) }
    }

    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    #[inline(never)]
    unsafe fn begin_any_receive(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Under, MessageError> {
        // SAFETY: the caller's.
        Ok(match unsafe { self.post_any(pattern, at, room) }? {
            Begun::Done(received) => Under::Ended(received_of(received, room)),
            Begun::Pending(request) => Under::Way(request, room),
        })
    }

    /// Sends what goes in its packet, if there is room and nothing waits, in a
    /// job of one node. It answers in a register: a caller that copied an
    /// answer in memory would wait for all stores before it, and with them for
    /// the line of the lane to come over.
    #[inline(never)]
    fn send_short(&self, to: Rank, label: Label, at: *const u8, bytes: usize) -> bool {
        // Where such a buffer lies is not asked.
        let from = Bytes { at: at as u64, len: bytes as u64, in_reach: false };
        if bytes > INLINE_BYTES_MAX {
            return false;
        }
        let mut state = self.lock();
        let State { machine, near, post: None, .. } = &mut *state else { return false };
        machine.send_short(near, to, label, from)
    }

    /// # Safety
    ///
    /// As for [`begin_send`](Self::begin_send).
    unsafe fn send_any(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Begun<()>, MessageError> {
        let from = self.outgoing(at, bytes);
        self.begin(|state| {
            let to = state.seat(to)?;
            on_wire!(state, |machine, wire| {
                if bytes > INLINE_BYTES_MAX {
                    // The receive that it is for may be known by now.
                    machine.look(wire, to);
                }
                machine.send(wire, to, label, from)
            })
        })
    }

    /// Receives what is next, or posts a receive of which nobody is told, in a
    /// job of one node.
    #[inline(never)]
    fn post_short(
        &self,
        source: Rank,
        label: Label,
        is_any_tag: bool,
        at: *mut u8,
        room: usize,
    ) -> Short {
        let tag = (!is_any_tag).then_some(label.tag);
        let pattern = Pattern { context: label.context, source: Some(source), tag };
        let into = small(at, room);
        let mut state = self.lock();
        if room >= state.offered_from as usize {
            return Short::Other;
        }
        let State { machine, near, post: None, .. } = &mut *state else { return Short::Other };
        let short = match machine.receive_next(near, &pattern, into) {
            Some(msg::Received { tag, len, .. }) => Short::Received { tag, bytes: len as u32 },
            None => {
                let post = machine.post_short(near, &pattern, into);
                post.map_or(Short::Other, Short::Posted)
            }
        };
        self.begun(state);
        short
    }

    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    unsafe fn post_any(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Begun<msg::Received>, MessageError> {
        self.begin(|state| {
            // Nobody is told of a smaller one.
            let is_offered = room >= state.offered_from as usize;
            let into = if is_offered { self.incoming(at, room) } else { small(at, room) };
            let pattern = state.seated(pattern)?;
            let begun = on_wire!(state, |machine, wire| {
                match machine.receive_next(wire, &pattern, into) {
                    Some(received) => Ok(Begun::Done(received)),
                    None => machine.receive(wire, pattern, into),
                }
            });
            Ok(match begun? {
                Begun::Done(received) => Begun::Done(state.named(received)),
                pending @ Begun::Pending(_) => pending,
            })
        })
    }

    /// Waits for a message that fits, gives it room, and receives it.
    ///
    /// # Safety
    ///
    /// `room_for` answers where there is room for so many bytes, which is
    /// nobody else's until this returns.
    pub(crate) unsafe fn receive_whole(
        &self,
        pattern: Pattern,
        mut room_for: impl FnMut(usize) -> *mut u8,
    ) -> Result<Received, MessageError> {
        // As in `send`.
        tsumugi_ult::assert_may_block("message");
        let (mut at, mut room) = (room_for(0), 0);
        loop {
            let found = self.probe(pattern)?;
            if found.bytes > room {
                (at, room) = (room_for(found.bytes), found.bytes);
            }
            let into = self.incoming(at, room);
            let begun = self.begin(|state| {
                // Another thread may have taken it, and the next be longer.
                let pattern = state.seated(pattern)?;
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
                return self.finish(under);
            }
        }
    }

    /// Begins something, as soon as there is room in the tables.
    #[inline(always)]
    fn begin<T>(
        &self,
        mut begin: impl FnMut(&mut State) -> Result<T, CallError>,
    ) -> Result<T, MessageError> {
        loop {
            let mut state = self.lock();
            let begun = begin(&mut state);
            self.begun(state);
            match begun {
                Ok(begun) => return Ok(begun),
                Err(error) => self.refused(error)?,
            }
        }
    }

    /// Something was begun: gives the lock back, and tells those who wait for
    /// what came with it.
    #[inline(always)]
    fn begun(&self, mut state: Guard<'_>) {
        if state.machine.has_news() || !state.probers.is_empty() {
            // What came may be what a prober waits for.
            state.has_moved = true;
            self.work_on(state, false);
        }
    }

    /// Nothing has begun: waits for a while if it may later.
    #[cold]
    fn refused(&self, error: CallError) -> Result<(), MessageError> {
        Err(match error {
            CallError::Busy(Why::NoTag) => MessageError::TooMany { limit: REQUESTS_MAX },
            CallError::Busy(_) => {
                self.work();
                Here.yield_now();
                return Ok(());
            }
            CallError::Addr(AddrError::NoSuchRank { rank, size }) => {
                MessageError::NoSuchRank { rank, size }
            }
            CallError::Addr(AddrError::PeerLost { rank: seat }) => {
                MessageError::PeerLost { rank: self.lock().rank_of(seat) }
            }
            CallError::Addr(error) => {
                unreachable!("{error}: a message has no other address than a rank")
            }
        })
    }

    /// A buffer that peers may read if they can reach it.
    #[inline]
    fn outgoing(&self, at: *const u8, bytes: usize) -> Bytes {
        let (place, len) = (NonNull::new(at.cast_mut()), bytes as u64);
        let space = self.member.space();
        // It is not asked of what travels in its packet.
        let in_reach = bytes > INLINE_BYTES_MAX
            && place.is_some_and(|place| space.place_of(place, len).is_some());
        Bytes { at: at as u64, len, in_reach }
    }

    /// A buffer that they may write.
    #[inline]
    fn incoming(&self, at: *mut u8, room: usize) -> Bytes {
        let (place, len) = (NonNull::new(at), room as u64);
        let space = self.member.space();
        let in_reach = place.is_some_and(|place| space.is_offered(place, len));
        Bytes { at: at as u64, len, in_reach }
    }
}

/// What came of a receive for a short message from one source, in two words.
enum Short {
    Posted(Request),
    /// A message so long; what fits is there.
    Received {
        tag: u32,
        bytes: u32,
    },
    /// Nothing: it is not that simple.
    Other,
}

/// A buffer that they need not.
#[inline(always)]
fn small(at: *mut u8, room: usize) -> Bytes {
    Bytes { at: at as u64, len: room as u64, in_reach: false }
}
