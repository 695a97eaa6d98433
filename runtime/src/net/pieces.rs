//! Puts and gets of memory that is not registered. Long ones in the rank's heap and
//! in adopted memory go without a copy, through the registration cache, where the
//! device releases memory when a peer is lost. All others go in pieces, through
//! bounce chunks, a few of them under way at a time.

use super::bounce;
use super::layer::NetLayer;
use super::registration::RegistrationCache;
use crate::engine_call::hint;
use tsumugi_core::engine::Retry;
use tsumugi_core::mem::AddrError;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::Ordering;
use tsumugi_ult::Here;

impl NetLayer {
    /// Gets bytes into memory that is not registered. Blocking.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes, and is not otherwise used, until
    /// this returns; and for ever if this does not return because its ULT is cut
    /// off.
    pub(crate) unsafe fn load(
        &self,
        from: RemoteAddr,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        // SAFETY: the caller's.
        unsafe { self.move_bytes(Kind::Get, from, to, bytes) }
    }

    /// Puts bytes of memory that is not registered. Blocking.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `bytes` bytes until this returns; and for ever if
    /// this does not return because its ULT is cut off.
    pub(crate) unsafe fn store(
        &self,
        to: RemoteAddr,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        // SAFETY: a put only reads `from`; the caller's.
        unsafe { self.move_bytes(Kind::Put, to, from.cast_mut(), bytes) }
    }

    /// Puts or gets, without a copy as far as possible.
    ///
    /// # Safety
    ///
    /// That of [`move_pieces`](Self::move_pieces).
    #[inline]
    unsafe fn move_bytes(
        &self,
        kind: Kind,
        remote: RemoteAddr,
        local: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        // Before the device has any of the memory.
        tsumugi_ult::assert_may_block("bytes of another node");
        let pins = self.shared().pins.as_ref().filter(|_| bytes >= PINNED_BYTES);
        let done = match pins {
            // SAFETY: the caller's promise.
            Some(pins) => unsafe { self.move_pinned(pins, kind, remote, local, bytes)? },
            None => 0,
        };
        if done > 0 && done == bytes {
            return Ok(());
        }
        // SAFETY: the caller's promise, for the rest of the bytes.
        unsafe {
            self.move_pieces(kind, remote.add(done as u64), local.wrapping_add(done), bytes - done)
        }
    }

    /// Puts or gets without a copy, and returns how many bytes: up to the first byte
    /// that cannot be registered.
    ///
    /// # Safety
    ///
    /// That of [`move_pieces`](Self::move_pieces).
    unsafe fn move_pinned(
        &self,
        pins: &RegistrationCache,
        kind: Kind,
        remote: RemoteAddr,
        local: *mut u8,
        bytes: usize,
    ) -> Result<usize, AddrError> {
        let mut done = 0;
        while done < bytes
            && let Some(pin) =
                pins.take(self.shared().registrar(), local.wrapping_add(done), bytes - done)
        {
            let (place, count) = (remote.add(done as u64), pin.bytes() as u64);
            let op = match kind {
                Kind::Put => Op::put(pin.local(), place, count),
                _ => Op::get(place, pin.local(), count),
            };
            match self.run(&op) {
                Ok(_) => done += pin.bytes(),
                Err(error @ AddrError::PeerLost { .. }) => {
                    pin.park();
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Puts or gets through bounce chunks.
    ///
    /// # Safety
    ///
    /// `local` is valid for reads of `bytes` bytes, or, for a get, for writes, for
    /// as long as [`load`](Self::load) requires.
    unsafe fn move_pieces(
        &self,
        kind: Kind,
        remote: RemoteAddr,
        local: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        // Relaxed: a count.
        self.shared().bounced.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut pieces = (0..bytes.div_ceil(bounce::CHUNK_BYTES).max(1)).map(|piece| {
            let start = piece * bounce::CHUNK_BYTES;
            (start, (bytes - start).min(bounce::CHUNK_BYTES))
        });
        let (mut next, mut result) = (pieces.next(), Ok(()));
        let mut under_way = heapless::Deque::<_, PIECES>::new();
        loop {
            while let Some((start, piece)) = next
                && !under_way.is_full()
                && result.is_ok()
                && let Some(chunk) = self.bounce.try_take()
            {
                let (place, count) = (remote.add(start as u64), piece as u64);
                let op = if kind == Kind::Put {
                    // SAFETY: the caller's promise; the piece is inside of the
                    // bytes.
                    unsafe { chunk.fill(local.wrapping_add(start), piece) };
                    Op::put(chunk.local(), place, count)
                } else {
                    Op::get(place, chunk.local(), count)
                };
                match self.engine.post(hint(), op, ()) {
                    Ok(ticket) => {
                        let pushed = under_way.push_back((ticket, chunk, start, piece));
                        debug_assert!(pushed.is_ok(), "the queue had room");
                        next = pieces.next();
                    }
                    Err(_) => {
                        chunk.give_back();
                        break;
                    }
                }
            }
            self.hurry();
            let Some((ticket, chunk, start, piece)) = under_way.pop_front() else {
                match next {
                    Some(_) if result.is_ok() && self.bounce.is_used_up() => {
                        return Err(AddrError::Unsupported { addr: remote });
                    }
                    Some(_) if result.is_ok() => self.engine.retry(Retry::Yield, &Here),
                    _ => return result,
                }
                continue;
            };
            // SAFETY: `leave` is called only if this caller is cut off and never
            // goes on.
            self.look_for(|| ticket.is_done(), || unsafe { ticket.leave() });
            let outcome = ticket.wait(&Here).result;
            let into = (kind == Kind::Get).then_some(local.wrapping_add(start));
            // SAFETY: `local` is the caller's promise; the result is that of the
            // operation on this chunk.
            let finished = unsafe { chunk.finish(outcome, into, piece) };
            result = result.and(finished);
        }
    }
}

/// Fewer bytes are copied sooner than their memory is registered.
const PINNED_BYTES: usize = 128 << 10;
/// Pieces of one put or get that may be under way.
const PIECES: usize = 4;
