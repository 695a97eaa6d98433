//! An optimistic read of a page. The mover of the page does not wait for the read; the
//! header that is read with the bytes tells whether the bytes are the page's.
//!
//! ```text
//!  reader counts: come ─► seen ─► read header and bytes ─► header is as the entry says
//!                  │              ▲        │ no            │ yes
//!                  └─► entry: read ◄───────┘               ▼
//!                      (seen: write)                  reader counts: go ─► over
//! ```
//!
//! An entry in the location cache needs no invalidation: an entry that is no longer
//! true leads to a header that does not match it. The order in which one read
//! fetches the header and the page's bytes does not matter, see the
//! [invariants](super#invariants). The reader counts ensure that the frame is given to no
//! other page before the read has ended ([`GracePeriod`](super::GracePeriod)).

use super::entry::{LIVE, is_of, names};
use super::gate::ReaderEpochs;
use super::protocol::{PageAction, PageProtocol};
use super::{DirectoryEntry, PageId, PageLayout, PageState, WordOp};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mutate;

/// One read. Its [access](PageAction::Access) reads the page's header, the eight bytes
/// before the page's own, and the bytes of the page that the caller needs, by one
/// operation or by several in any order; the answer is the header. It may be requested
/// more than once, and the bytes of the last time are good at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OptimisticRead {
    layout: PageLayout,
    rank: Rank,
    page: PageId,
    phase: u8,
    at: ReadStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReadStep {
    Look,
    Come(u64),
    Seen,
    /// With the word beside the cached entry, as it was read.
    SeenEntry(u64),
    /// Reads by this entry: a cached one (`false`), or one that the home has just
    /// returned (`true`).
    Read(DirectoryEntry, bool),
    Ask,
    Keep(DirectoryEntry),
    KeepPage(DirectoryEntry),
    Go(ReadExit),
    Pause(Rank),
    Over,
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReadExit {
    Over,
    Again(Rank),
    Fail(AddrError),
}

impl OptimisticRead {
    /// A read by `rank` that is to begin.
    pub const fn new(layout: PageLayout, rank: Rank, page: PageId) -> Self {
        Self { layout, rank, page, phase: 0, at: ReadStep::Look }
    }

    #[inline]
    fn goes_on(&mut self, old: u64) -> ReadStep {
        match self.at {
            ReadStep::Look => ReadStep::Come(old),
            ReadStep::Come(seen) if seen == old => {
                self.phase = ReaderEpochs(old).phase();
                ReadStep::Seen
            }
            ReadStep::Come(_) => ReadStep::Come(old),
            ReadStep::Seen if names(old, self.page) => ReadStep::SeenEntry(old),
            ReadStep::Seen => ReadStep::Ask,
            ReadStep::SeenEntry(seen) => match PageState::from_bits(old) {
                // Of two reads that have written the two words at the same time,
                // each may have left one word. The page may come to the place in
                // such an entry during this read: the read would find its header
                // there, but not its bytes.
                PageState::At(entry) if seen != entry.seen_of(self.page) => {
                    mutate!("page_seen_unchecked":
                        ReadStep::Ask => ReadStep::Read(entry, false))
                }
                PageState::At(entry) => ReadStep::Read(entry, false),
                PageState::Moving { .. } => unreachable!("the seen entry {old:#x} moves: {self:?}"),
            },
            ReadStep::Read(entry, _) => {
                let header = entry.header(self.page);
                let is_it = mutate!("page_live_in_one_byte":
                    old == header => old & 1 == 1 && old | LIVE == header);
                let is_it = mutate!("page_epoch_unread":
                    is_it => old & 1 == 1 && is_of(old, self.page));
                let is_it = mutate!("page_header_unread": is_it => true);
                if is_it { ReadStep::Go(ReadExit::Over) } else { ReadStep::Ask }
            }
            ReadStep::Ask => match PageState::from_bits(old) {
                PageState::At(entry) => ReadStep::Keep(entry),
                PageState::Moving { by, .. } => ReadStep::Go(ReadExit::Again(by)),
            },
            ReadStep::Keep(entry) => ReadStep::KeepPage(entry),
            ReadStep::KeepPage(entry) => ReadStep::Read(entry, true),
            ReadStep::Go(ReadExit::Over) => ReadStep::Over,
            ReadStep::Go(ReadExit::Again(by)) => ReadStep::Pause(by),
            ReadStep::Go(ReadExit::Fail(error)) => ReadStep::Failed(error),
            ReadStep::Pause(_) => ReadStep::Look,
            ReadStep::Over | ReadStep::Failed(_) => unreachable!("no answer is due: {self:?}"),
        }
    }
}

impl PageProtocol for OptimisticRead {
    type Access = DirectoryEntry;
    type Outcome = ();

    #[inline]
    fn act(&self) -> PageAction<Self::Access, Self::Outcome> {
        let Self { layout, rank, page, phase, .. } = self;
        let epochs = layout.reader_epochs(*rank);
        match self.at {
            ReadStep::Look => PageAction::Do(WordOp::load(epochs)),
            ReadStep::Come(seen) => {
                PageAction::Do(WordOp::exchange(epochs, seen, ReaderEpochs(seen).come().0))
            }
            ReadStep::Seen => PageAction::Do(WordOp::load(layout.seen(*rank, *page))),
            ReadStep::SeenEntry(_) => PageAction::Do(WordOp::load(layout.seen_entry(*rank, *page))),
            ReadStep::Read(entry, _) => PageAction::Access(entry),
            ReadStep::Ask => PageAction::Do(layout.look(*page)),
            ReadStep::Keep(entry) => {
                PageAction::Do(WordOp::store(layout.seen_entry(*rank, *page), entry.to_bits()))
            }
            ReadStep::KeepPage(entry) => {
                PageAction::Do(WordOp::store(layout.seen(*rank, *page), entry.seen_of(*page)))
            }
            ReadStep::Go(_) => {
                PageAction::Do(WordOp::add(epochs, ReaderEpochs::one(*phase).wrapping_neg()))
            }
            ReadStep::Pause(by) => PageAction::Pause(Some(by)),
            ReadStep::Over => PageAction::Over(()),
            ReadStep::Failed(error) => PageAction::Failed(error),
        }
    }

    #[inline]
    fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match (result, self.at) {
            (Ok(old), _) => self.goes_on(old),
            // The page may be somewhere else by now.
            (Err(_), ReadStep::Read(_, false)) => ReadStep::Ask,
            (
                Err(error),
                ReadStep::Look | ReadStep::Come(_) | ReadStep::Go(_) | ReadStep::Pause(_),
            ) => ReadStep::Failed(error),
            (Err(error), _) => ReadStep::Go(ReadExit::Fail(error)),
        };
    }
}
