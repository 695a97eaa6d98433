//! Sends and receives begin.

use super::Received;
use super::drive::{Messages, Under};
use super::state::{REQUESTS_MAX, State};
use super::wait::received_of;
use crate::{MessageError, Rank};
use std::ptr::NonNull;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::AddrError;
use tsumugi_core::msg::{Begun, Bytes, CallError, INLINE_BYTES_MAX, Label, Pattern};
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
        // SAFETY: the caller's.
        let under = unsafe { self.begin_send(to, label, at, bytes) }?;
        self.finish(under).map(|_| ())
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
        // SAFETY: the caller's.
        let under = unsafe { self.begin_receive(pattern, at, room) }?;
        self.finish(under)
    }

    /// Begins to send; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The bytes are readable, and stay as they are until it was finished.
    #[inline]
    pub(crate) unsafe fn begin_send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Under, MessageError> {
        self.check(to)?;
        let from = self.outgoing(at, bytes);
        self.begin(|State { machine, wire, .. }| {
            if bytes > INLINE_BYTES_MAX {
                // The receive that it is for may be known by now.
                machine.look(wire, to);
            }
            Ok(match machine.send(wire, to, label, from)? {
                Begun::Done(()) => Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })),
                Begun::Pending(request) => Under::Way(request, usize::MAX),
            })
        })
    }

    /// Begins to receive; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The room is writable, and nobody else uses it until it was finished.
    #[inline]
    pub(crate) unsafe fn begin_receive(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Under, MessageError> {
        if let Some(source) = pattern.source {
            self.check(source)?;
        }
        let into = self.incoming(at, room);
        self.begin(|State { machine, wire, .. }| {
            if let Some(received) = machine.receive_next(wire, &pattern, into) {
                return Ok(Under::Ended(received_of(received, room)));
            }
            Ok(match machine.receive(wire, pattern, into)? {
                Begun::Done(received) => Under::Ended(received_of(received, room)),
                Begun::Pending(request) => Under::Way(request, room),
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
        let (mut at, mut room) = (room_for(0), 0);
        loop {
            let found = self.probe(pattern)?;
            if found.bytes > room {
                (at, room) = (room_for(found.bytes), found.bytes);
            }
            let into = self.incoming(at, room);
            let begun = self.begin(|State { machine, wire, .. }| {
                // Another thread may have taken it, and the next be longer.
                let Some(first) = machine.probe(&pattern) else { return Ok(None) };
                if first.len > room as u64 {
                    return Ok(None);
                }
                let (source, tag) = (Some(first.source), Some(first.tag));
                let exactly = Pattern { source, tag, ..pattern };
                Ok(Some(match machine.receive(wire, exactly, into)? {
                    Begun::Done(received) => Under::Ended(received_of(received, room)),
                    Begun::Pending(request) => Under::Way(request, room),
                }))
            })?;
            if let Some(under) = begun {
                return self.finish(under);
            }
        }
    }

    /// Begins something, as soon as there is room in the tables.
    #[inline]
    fn begin<T>(
        &self,
        mut begin: impl FnMut(&mut State) -> Result<T, CallError>,
    ) -> Result<T, MessageError> {
        loop {
            let mut state = self.lock();
            let begun = begin(&mut state);
            if state.machine.has_news() || !state.probers.is_empty() {
                // What came may be what a prober waits for.
                state.has_moved = true;
                self.work_on(state, false);
            } else {
                drop(state);
            }
            match begun {
                Ok(begun) => return Ok(begun),
                Err(CallError::Busy(Why::NoTag)) => {
                    return Err(MessageError::TooMany { limit: REQUESTS_MAX });
                }
                Err(CallError::Busy(_)) => {
                    self.work();
                    Here.yield_now();
                }
                Err(CallError::Addr(AddrError::NoSuchRank { rank, size })) => {
                    return Err(MessageError::NoSuchRank { rank, size });
                }
                Err(CallError::Addr(error)) => {
                    let AddrError::PeerLost { rank } = error else {
                        unreachable!("{error}: a message has no other address than a rank")
                    };
                    return Err(MessageError::PeerLost { rank });
                }
            }
        }
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
