//! Moving pages to a rank, with any kind of directory.

use super::{NAP, PageEngine};
use crate::array::ArrayError;
use crate::lock::Words;
use crate::{AddrError, Rank};
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_gas::page::{
    GracePeriod, MoveOutcome, PageCopy, PageId, Relocation, RetiredFrame, drive,
};

impl PageEngine {
    /// Brings pages to this rank. Returns how many have moved.
    pub(in crate::array) fn own(
        &self,
        pages: impl IntoIterator<Item = PageId>,
    ) -> Result<usize, ArrayError> {
        let mut retired = Vec::new();
        let mut result = Ok(0);
        for page in pages {
            if let Some(post) = &self.post {
                let moved = post.own(&self.runtime, page, |from, to| self.copy(from, to));
                result = moved.and_then(|moved| Ok(result? + usize::from(moved)));
                if result.is_err() {
                    break;
                }
                continue;
            }
            match self.bring(page, self.runtime.rank()) {
                Ok((moved, left)) => {
                    retired.extend(left);
                    result = result.map(|count| count + usize::from(moved));
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            if retired.len() == SWEPT {
                self.free(&mut retired)?;
            }
        }
        self.free(&mut retired)?;
        result
    }

    /// Brings a page to a rank. Returns whether it was elsewhere.
    pub(in crate::array) fn relocate(&self, page: PageId, to: Rank) -> Result<bool, ArrayError> {
        let size = self.runtime.size();
        if to.0 >= size {
            return Err(AddrError::NoSuchRank { rank: to, size }.into());
        }
        if self.post.is_some() {
            return Err(ArrayError::NotByMessages);
        }
        let (moved, left) = self.bring(page, to)?;
        self.free(&mut left.into_iter().collect())?;
        Ok(moved)
    }

    /// Brings a page to a rank. Returns whether the page was elsewhere, and the frame
    /// that it has left, if that may be freed.
    fn bring(&self, page: PageId, to: Rank) -> Result<(bool, Option<RetiredFrame>), ArrayError> {
        let mut tries = 0;
        loop {
            let own = Relocation::to(self.layout, to, self.runtime.rank(), page);
            let copy = |PageCopy { from, to }| self.copy(from, to).map(|()| 0);
            match drive(own, &mut self.driver(), copy)? {
                MoveOutcome::Done { has_moved, retired } => return Ok((has_moved, retired)),
                MoveOutcome::NoFrame => {}
            }
            // Other movers free frames that pages have left, when no rank reads
            // them any more.
            if tries == FULL_TRIES {
                return Err(ArrayError::Full { room: self.layout.shape().frames });
            }
            tries += 1;
            tsumugi_ult::sleep(NAP);
        }
    }

    /// Frees the `retired` frames, after a grace period over all ranks.
    fn free(&self, retired: &mut Vec<RetiredFrame>) -> Result<(), AddrError> {
        if retired.is_empty() {
            return Ok(());
        }
        drive(GracePeriod::new(self.layout), &mut self.driver(), |never| match never {})?;
        for RetiredFrame { owner, frame } in retired.drain(..) {
            let (bits, bit) = self.layout.bit(owner, frame);
            match self.carry(&Op::atomic(Kind::FetchAnd, bits, !bit)) {
                // The frames of a dead rank are gone with it.
                Ok(_) | Err(AddrError::PeerLost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Copies all bytes of a page into a frame.
    fn copy(&self, from: RemoteAddr, to: RemoteAddr) -> Result<(), AddrError> {
        let (from, to) = (self.words.real(from), self.words.real(to));
        let bytes = self.layout.shape().page_bytes;
        // Release: pairs with the acquire fence of a hit that reads the frame for
        // its former page. A reader that sees any byte of this copy also sees that
        // the header was marked.
        fence(Ordering::Release);
        if let Some(to) = self.runtime.handle().bytes_at_hand(to, bytes) {
            // SAFETY: `bytes` bytes were resolved, and stay mapped. The frame was
            // allocated for this page, and a reader that still reads it for its
            // former page discards the bytes, because of the header.
            return unsafe { self.runtime.handle().load(from, to.as_ptr(), bytes as usize) };
        }
        let mut part = vec![0u8; PART.min(bytes as usize)];
        let mut at = 0;
        while at < bytes {
            let part = &mut part[..PART.min((bytes - at) as usize)];
            self.runtime.get_slice(Words::remote(from.add(at)), part)?;
            self.runtime.put_slice(Words::remote(to.add(at)), part)?;
            at += part.len() as u64;
        }
        Ok(())
    }
}

/// The number of pages for one grace period.
const SWEPT: usize = 64;
/// The bytes that go through this rank's memory at a time, between two other ranks.
const PART: usize = 1 << 16;
/// How often a rank without a free frame tries again.
const FULL_TRIES: u32 = 1000;
