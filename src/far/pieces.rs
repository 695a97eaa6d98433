//! Puts and gets of memory that nobody has registered: in pieces, through
//! bounce chunks, a few under way at a time.

use super::{Far, bounce};
use crate::AddrError;
use crate::queue::hint;
use tsumugi_core::engine::Retry;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind, Op};
use tsumugi_ult::Here;

impl Far {
    /// Fills memory that nobody has registered. Blocking.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes.
    pub(crate) unsafe fn load(
        &self,
        from: RemoteAddr,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
        // SAFETY: the caller's.
        unsafe { self.move_pieces(Kind::Get, from, to, bytes) }
    }

    /// Writes memory that nobody has registered. Blocking.
    pub(crate) fn store(&self, to: RemoteAddr, from: &[u8]) -> Result<(), AddrError> {
        // SAFETY: a put only reads.
        unsafe { self.move_pieces(Kind::Put, to, from.as_ptr().cast_mut(), from.len()) }
    }

    /// Puts or gets by way of the bounce chunks.
    ///
    /// # Safety
    ///
    /// `local` is valid for reads of `bytes` bytes, or, for a get, for writes.
    unsafe fn move_pieces(
        &self,
        kind: Kind,
        remote: RemoteAddr,
        local: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError> {
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
                    // SAFETY: the caller's.
                    unsafe { chunk.fill(local.wrapping_add(start), piece) };
                    Op::put(chunk.local(), place, count)
                } else {
                    Op::get(place, chunk.local(), count)
                };
                match self.engine.post(hint(), op, ()) {
                    Ok(ticket) => {
                        let pushed = under_way.push_back((ticket, chunk, start, piece));
                        debug_assert!(pushed.is_ok(), "there was room");
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
            self.look_for(|| ticket.is_done());
            let outcome = ticket.wait(&Here).result;
            let into = (kind == Kind::Get).then_some(local.wrapping_add(start));
            // SAFETY: the caller's; it is the outcome of that chunk's operation.
            let finished = unsafe { chunk.finish(outcome, into, piece) };
            result = result.and(finished);
        }
    }
}

/// Of one get, under way at once.
const PIECES: usize = 4;
