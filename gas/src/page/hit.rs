//! An access by whoever has all of it at hand: the own rank's words, and the
//! memory of the page's owner. What a [`Glance`](super::Glance) does that finds
//! the page where it was last seen, and a [`Hold`](super::Hold) whose gate is
//! valid, as a dozen instructions.
//!
//! ```text
//!  read   seen ─► is it in reach? ─► header ─► bytes ─► header, once more
//!  hold   gate: +1 ─► kept: is it in reach? ─► the access ─► gate: -1
//! ```
//!
//! A hold knows where the page is only when it is in, and goes out again if
//! that is not in reach. A read writes nothing and is counted nowhere: what was
//! seen may be of any age, and the frame may become another page's at any
//! moment. While it does, its header is not the page's: it is marked before the
//! frame can be taken, and the next page's comes when that one's bytes are
//! there. So bytes between two looks at the header that both find the page's
//! are the page's, as in a sequence lock. The frame itself stays memory of the
//! array.
//!
//! Paper: H.-J. Boehm, Can seqlocks get along with programming language memory
//! models?, MSPC 2012.

use super::entry::names;
use super::gate::{Gate, GateState};
use super::{Book, Entry, PageId, State};
use tsumugi_core::mem::{Rank, RemoteAddr};
use tsumugi_core::sync::{AtomicU64, Ordering, fence, mutant};

/// Words of the own rank.
#[derive(Clone, Copy, Debug)]
pub struct Own<'w> {
    seen: &'w AtomicU64,
    seen_entry: &'w AtomicU64,
}

impl<'w> Own<'w> {
    /// Those of `rank`'s that a read of the page goes by, each of which `word`
    /// finds.
    #[inline(always)]
    pub fn of(
        book: &Book,
        rank: Rank,
        page: PageId,
        word: impl Fn(RemoteAddr) -> &'w AtomicU64,
    ) -> Self {
        let (seen, seen_entry) = (book.seen(rank, page), book.seen_entry(rank, page));
        Self { seen: word(seen), seen_entry: word(seen_entry) }
    }

    /// Reads of the page. `find` says where a frame is, if it can be read at
    /// once: its header, and what `read` knows its bytes by. `None`: nothing
    /// good was read, and it takes a [`Glance`](super::Glance). Wait-free, but
    /// for what `read` takes.
    ///
    /// Whoever fills a frame that another page has left has a release fence
    /// before the first of its bytes.
    #[inline(always)]
    pub fn hit<'h, P, R>(
        self,
        page: PageId,
        find: impl FnOnce(Entry) -> Option<(&'h AtomicU64, P)>,
        read: impl FnOnce(P) -> R,
    ) -> Option<R> {
        // Acquire: as a load that is an operation. Nothing depends on it: two
        // words that are not of one time lead to a header that says so.
        if !names(self.seen.load(Ordering::Acquire), page) {
            return None;
        }
        let State::At(entry) = State::from_bits(self.seen_entry.load(Ordering::Acquire)) else {
            return None;
        };
        let (header, place) = find(entry)?;
        // Acquire: pairs with the store of whoever brought the page, whose
        // bytes were there before. What is read after it is at least as new.
        let first = match mutant("page_hit_unordered") {
            true => Ordering::Relaxed,
            false => Ordering::Acquire,
        };
        let first = header.load(first);
        if first != entry.header(page) && !mutant("page_hit_no_first_look") {
            return None;
        }
        let found = read(place);
        if !mutant("page_hit_unfenced") {
            // Pairs with the release fence of whoever filled the frame anew:
            // who has read one of those bytes sees that the header was marked.
            fence(Ordering::Acquire);
        }
        // Relaxed: ordered by the fence.
        let is_still = header.load(Ordering::Relaxed) == entry.header(page);
        (is_still || mutant("page_hit_no_second_look")).then_some(found)
    }
}

/// Words of the own rank by which it writes to a page.
#[derive(Clone, Copy, Debug)]
pub struct Door<'w> {
    gate: &'w AtomicU64,
    kept: &'w AtomicU64,
}

impl<'w> Door<'w> {
    /// Those of `rank`'s for the page, each of which `word` finds.
    #[inline(always)]
    pub fn of(
        book: &Book,
        rank: Rank,
        page: PageId,
        word: impl Fn(RemoteAddr) -> &'w AtomicU64,
    ) -> Self {
        Self { gate: word(book.gate(rank, page)), kept: word(book.kept(rank, page)) }
    }

    /// Uses the page, which stays where it is meanwhile. `find` says where a
    /// frame is, if it is in reach. `None`: nothing was done, and it takes a
    /// [`Hold`](super::Hold). Wait-free, but for what `access` takes.
    #[inline(always)]
    pub fn hit<P, R>(
        self,
        page: PageId,
        find: impl FnOnce(Entry) -> Option<P>,
        access: impl FnOnce(P) -> R,
    ) -> Option<R> {
        // Relaxed: the exchange says whether it is still so.
        let seen = self.gate.load(Ordering::Relaxed);
        let gate = Gate::from_bits(seen);
        if gate.page != page || gate.state != GateState::Valid {
            return None;
        }
        if mutant("page_door_unchecked") {
            self.gate.fetch_add(1, Ordering::SeqCst);
        } else {
            // SeqCst: as all atomics of operations. Pairs with the stop of a
            // mover, on this very word: it comes after, and waits, or before,
            // and this fails; and with the exchange that made the gate valid,
            // before which `kept` was written. Relaxed where it fails: nothing
            // was learnt.
            let come =
                self.gate.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::Relaxed);
            come.ok()?;
        }
        // Relaxed: who writes it has the gate not valid, see above.
        let kept = State::from_bits(self.kept.load(Ordering::Relaxed));
        let place = match kept {
            State::At(entry) => find(entry),
            State::Moving { .. } => None,
        };
        let done = place.map(access);
        let go = if mutant("page_door_unordered") { Ordering::Relaxed } else { Ordering::SeqCst };
        // SeqCst: as above. Pairs with the look of a mover that waits until
        // nobody is in: it copies what was written before.
        self.gate.fetch_sub(1, go);
        done
    }
}
