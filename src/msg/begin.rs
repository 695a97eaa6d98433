//! Sends and receives begin.

use super::Received;
use super::drive::{Messages, Under};
use super::route::on_wire;
use super::state::{REQUESTS_MAX, State};
use super::wait::received_of;
use crate::{MessageError, Rank};
use std::ptr::NonNull;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::AddrError;
use tsumugi_core::msg::{self, Begun, Bytes, CallError, INLINE_BYTES_MAX, Label, Pattern};
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
        match unsafe { self.launch(to, label, at, bytes) }? {
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
        // SAFETY: the caller's.
        match unsafe { self.post(pattern, at, room) }? {
            Begun::Done(received) => received_of(received, room),
            Begun::Pending(request) => self.end_of(request, room),
        }
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
        // SAFETY: the caller's.
        Ok(match unsafe { self.launch(to, label, at, bytes) }? {
            Begun::Done(()) => Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })),
            Begun::Pending(request) => Under::Way(request, usize::MAX),
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
        // SAFETY: the caller's.
        Ok(match unsafe { self.post(pattern, at, room) }? {
            Begun::Done(received) => Under::Ended(received_of(received, room)),
            Begun::Pending(request) => Under::Way(request, room),
        })
    }

    /// # Safety
    ///
    /// As for [`begin_send`](Self::begin_send).
    #[inline]
    unsafe fn launch(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Begun<()>, MessageError> {
        let from = self.outgoing(at, bytes);
        let mut state = self.lock();
        if on_wire!(state, |machine, wire| machine.send_short(wire, to, label, from)) {
            return Ok(Begun::Done(()));
        }
        drop(state);
        self.begin(|state| {
            on_wire!(state, |machine, wire| {
                if bytes > INLINE_BYTES_MAX {
                    // The receive that it is for may be known by now.
                    machine.look(wire, to);
                }
                machine.send(wire, to, label, from)
            })
        })
    }

    /// # Safety
    ///
    /// As for [`begin_receive`](Self::begin_receive).
    #[inline]
    unsafe fn post(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Begun<msg::Received>, MessageError> {
        self.begin(|state| {
            // Nobody is told of a smaller one.
            let is_offered = room >= state.offered_from as usize;
            let into = if is_offered { self.incoming(at, room) } else { small(at, room) };
            on_wire!(state, |machine, wire| match machine.receive_next(wire, &pattern, into) {
                Some(received) => Ok(Begun::Done(received)),
                None => machine.receive(wire, pattern, into),
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
            let begun = self.begin(|state| {
                // Another thread may have taken it, and the next be longer.
                let Some(first) = state.machine.probe(&pattern) else { return Ok(None) };
                if first.len > room as u64 {
                    return Ok(None);
                }
                let (source, tag) = (Some(first.source), Some(first.tag));
                let exactly = Pattern { source, tag, ..pattern };
                let begun = on_wire!(state, |machine, wire| machine.receive(wire, exactly, into));
                Ok(Some(match begun? {
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
    #[inline(always)]
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
                Err(error) => self.refused(error)?,
            }
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
            CallError::Addr(AddrError::PeerLost { rank }) => MessageError::PeerLost { rank },
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

/// A buffer that they need not.
#[inline(always)]
fn small(at: *mut u8, room: usize) -> Bytes {
    Bytes { at: at as u64, len: room as u64, in_reach: false }
}
