//! Fast paths of page accesses, for a thread that can load and store both the own
//! rank's words and the memory of the page's owner. [`ReadFast`] is a
//! [`OptimisticRead`](super::OptimisticRead) that finds the page at its cached place, [`PinFast`] is a
//! [`PagePin`](super::PagePin) that finds its gate valid. Each takes about a dozen
//! instructions.
//!
//! ```text
//!  read   seen ─► is it in reach? ─► header ─► bytes ─► header, once more
//!  pin    gate: +1 ─► kept: is it in reach? ─► the access ─► gate: -1
//! ```
//!
//! A pin reads where the page is only after it has entered the gate, and leaves the
//! gate again if that place is not in reach. A read writes nothing and is counted
//! nowhere: the cached entry may be of any age, and the frame may become another
//! page's at any moment. While that happens, the frame's header is not the header of
//! the page: the header is marked before the frame can be taken, and the next page's
//! header is written after that page's bytes. So bytes that are read between two
//! looks at the header, which both find the page's header, are the page's, as in a
//! seqlock. The frame itself stays memory of the array.
//!
//! Paper: H.-J. Boehm, Can seqlocks get along with programming language memory
//! models?, MSPC 2012.

use super::entry::names;
use super::gate::{Gate, GateState};
use super::{DirectoryEntry, PageId, PageLayout, PageState};
use tsumugi_core::mem::{Rank, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU64, Ordering, fence};

/// Words of the own rank's location cache, for one page.
#[derive(Clone, Copy, Debug)]
pub struct ReadFast<'w> {
    seen: &'w AtomicU64,
    seen_entry: &'w AtomicU64,
}

impl<'w> ReadFast<'w> {
    /// The words of `rank` that a read of the page uses; `word` returns the word at
    /// an address.
    #[inline(always)]
    pub fn of(
        layout: &PageLayout,
        rank: Rank,
        page: PageId,
        word: impl Fn(RemoteAddr) -> &'w AtomicU64,
    ) -> Self {
        let (seen, seen_entry) = (layout.seen(rank, page), layout.seen_entry(rank, page));
        Self { seen: word(seen), seen_entry: word(seen_entry) }
    }

    /// Reads the page. `find` returns the place of a frame, if the frame can be read
    /// at once: its header, and the value by which `read` finds the bytes. `None`:
    /// no good bytes were read, and the caller must use an [`OptimisticRead`](super::OptimisticRead).
    /// Wait-free, except for the time of `read`.
    ///
    /// A thread that fills a frame that another page has left must execute a release
    /// fence before it writes the first of the bytes.
    #[inline(always)]
    pub fn hit<'h, P, R>(
        self,
        page: PageId,
        find: impl FnOnce(DirectoryEntry) -> Option<(&'h AtomicU64, P)>,
        read: impl FnOnce(P) -> R,
    ) -> Option<R> {
        // Acquire: like a load that is an operation. Nothing depends on it: two
        // words of different times lead to a header that does not match.
        if !names(self.seen.load(Ordering::Acquire), page) {
            return None;
        }
        let PageState::At(entry) = PageState::from_bits(self.seen_entry.load(Ordering::Acquire))
        else {
            return None;
        };
        let (header, place) = find(entry)?;
        // Acquire: pairs with the store of the header by the rank that brought the
        // page, which had stored the bytes before. Bytes that are read after it are
        // at least as new.
        let first = header.load(mutate!("page_hit_unordered":
            Ordering::Acquire => Ordering::Relaxed));
        if mutate!("page_hit_no_first_look": first != entry.header(page) => false) {
            return None;
        }
        let found = read(place);
        // Acquire: pairs with the release fence of the rank that filled the frame
        // anew: a reader of one of those bytes sees that the header was marked.
        mutate!("page_hit_unfenced": fence(Ordering::Acquire) => ());
        // Relaxed: ordered by the fence.
        let is_still = header.load(Ordering::Relaxed) == entry.header(page);
        mutate!("page_hit_no_second_look": is_still => true).then_some(found)
    }
}

/// Words of the own rank that an access uses to write to a page.
#[derive(Clone, Copy, Debug)]
pub struct PinFast<'w> {
    gate: &'w AtomicU64,
    kept: &'w AtomicU64,
}

impl<'w> PinFast<'w> {
    /// The words of `rank` for the page; `word` returns the word at an address.
    #[inline(always)]
    pub fn of(
        layout: &PageLayout,
        rank: Rank,
        page: PageId,
        word: impl Fn(RemoteAddr) -> &'w AtomicU64,
    ) -> Self {
        Self { gate: word(layout.gate(rank, page)), kept: word(layout.kept(rank, page)) }
    }

    /// Uses the page, which stays in its place meanwhile. `find` returns the place
    /// of a frame, if the frame is in reach. `None`: nothing was done, and the
    /// caller must use a [`PagePin`](super::PagePin). Wait-free, except for the time of
    /// `access`.
    #[inline(always)]
    pub fn hit<P, R>(
        self,
        page: PageId,
        find: impl FnOnce(DirectoryEntry) -> Option<P>,
        access: impl FnOnce(P) -> R,
    ) -> Option<R> {
        // Relaxed: the exchange fails if the gate has changed.
        let seen = self.gate.load(Ordering::Relaxed);
        let gate = Gate::from_bits(seen);
        if gate.page != page || gate.state != GateState::Valid {
            return None;
        }
        // SeqCst: like all atomics of operations. Pairs with the stop of a mover on
        // the same word: either the stop comes later, and the mover waits, or it
        // comes earlier, and this exchange fails. Pairs also with the exchange that
        // made the gate valid, before which `kept` was written. Relaxed on failure:
        // no value is used then.
        let swap = (Ordering::SeqCst, Ordering::Relaxed);
        let come = mutate!("page_door_unchecked":
            self.gate.compare_exchange(seen, seen + 1, swap.0, swap.1)
            => Ok(self.gate.fetch_add(1, Ordering::SeqCst))
        );
        come.ok()?;
        // Relaxed: `kept` is written only while the gate is not valid, see above.
        let kept = PageState::from_bits(self.kept.load(Ordering::Relaxed));
        let place = match kept {
            PageState::At(entry) => find(entry),
            PageState::Moving { .. } => None,
        };
        let done = place.map(access);
        let go = mutate!("page_door_unordered": Ordering::SeqCst => Ordering::Relaxed);
        // SeqCst: as above. Pairs with the load of a mover that waits until the
        // count is 0: the mover copies bytes that were written before.
        self.gate.fetch_sub(1, go);
        done
    }
}
