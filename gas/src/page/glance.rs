//! A glance: an optimistic read of a page. The mover of the page does not wait for
//! the read; the header that is read with the bytes tells whether the bytes are the
//! page's.
//!
//! ```text
//!  crowd: come ─► seen ─► read header and bytes ─► header is as the entry says
//!                  │              ▲        │ no            │ yes
//!                  └─► entry: read ◄───────┘               ▼
//!                      (seen: write)                  crowd: go ─► over
//! ```
//!
//! An entry in the location cache needs no invalidation: an entry that is no longer
//! true leads to a header that does not match it. The order in which one read
//! fetches the header and the page's bytes does not matter, see the
//! [invariants](super#invariants). The crowd ensures that the frame is given to no
//! other page before the read has ended ([`Sweep`](super::Sweep)).

use super::entry::{LIVE, is_of, names};
use super::gate::Crowd;
use super::{Act, Book, Entry, PageId, State, Word};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::mutant;

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glance {
    book: Book,
    rank: Rank,
    page: PageId,
    phase: u8,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Look,
    Come(u64),
    Seen,
    /// With the word beside the cached entry, as it was read.
    SeenEntry(u64),
    /// Reads by this entry: a cached one (`false`), or one that the home has just
    /// returned (`true`).
    Read(Entry, bool),
    Ask,
    Keep(Entry),
    KeepPage(Entry),
    Go(Next),
    Pause(Rank),
    Over,
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Over,
    Again(Rank),
    Fail(AddrError),
}

impl Glance {
    /// A read by `rank` that is to begin.
    pub const fn new(book: Book, rank: Rank, page: PageId) -> Self {
        Self { book, rank, page, phase: 0, at: At::Look }
    }

    /// The next step. [`Act::Read`] is the access, which may be requested more than
    /// once; the bytes of the last one are good at [`Act::Over`].
    #[inline]
    pub fn act(&self) -> Act {
        let Self { book, rank, page, phase, .. } = self;
        let crowd = book.crowd(*rank);
        match self.at {
            At::Look => Act::Do(Word::load(crowd)),
            At::Come(seen) => Act::Do(Word::exchange(crowd, seen, Crowd(seen).come().0)),
            At::Seen => Act::Do(Word::load(book.seen(*rank, *page))),
            At::SeenEntry(_) => Act::Do(Word::load(book.seen_entry(*rank, *page))),
            At::Read(entry, _) => Act::Read(entry),
            At::Ask => Act::Do(book.look(*page)),
            At::Keep(entry) => Act::Do(Word::store(book.seen_entry(*rank, *page), entry.to_bits())),
            At::KeepPage(entry) => {
                Act::Do(Word::store(book.seen(*rank, *page), entry.seen_of(*page)))
            }
            At::Go(_) => Act::Do(Word::add(crowd, Crowd::one(*phase).wrapping_neg())),
            At::Pause(by) => Act::Pause(Some(by)),
            At::Over => Act::Over,
            At::Failed(error) => Act::Failed(error),
        }
    }

    /// Takes the result of the last step; the result of an [`Act::Read`] is the
    /// header that was read.
    #[inline]
    pub fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match (result, self.at) {
            (Ok(old), _) => self.goes_on(old),
            // The page may be somewhere else by now.
            (Err(_), At::Read(_, false)) => At::Ask,
            (Err(error), At::Look | At::Come(_) | At::Go(_) | At::Pause(_)) => At::Failed(error),
            (Err(error), _) => At::Go(Next::Fail(error)),
        };
    }

    #[inline]
    fn goes_on(&mut self, old: u64) -> At {
        match self.at {
            At::Look => At::Come(old),
            At::Come(seen) if seen == old => {
                self.phase = Crowd(old).phase();
                At::Seen
            }
            At::Come(_) => At::Come(old),
            At::Seen if names(old, self.page) => At::SeenEntry(old),
            At::Seen => At::Ask,
            At::SeenEntry(seen) => match State::from_bits(old) {
                // Of two reads that have written the two words at the same time,
                // each may have left one word. The page may come to the place in
                // such an entry during this read: the read would find its header
                // there, but not its bytes.
                State::At(entry)
                    if seen != entry.seen_of(self.page) && !mutant("page_seen_unchecked") =>
                {
                    At::Ask
                }
                State::At(entry) => At::Read(entry, false),
                State::Moving { .. } => unreachable!("the seen entry {old:#x} moves: {self:?}"),
            },
            At::Read(entry, _) => {
                let header = entry.header(self.page);
                let is_it = match () {
                    () if mutant("page_header_unread") => true,
                    () if mutant("page_epoch_unread") => old & 1 == 1 && is_of(old, self.page),
                    () if mutant("page_live_in_one_byte") => old & 1 == 1 && old | LIVE == header,
                    () => old == header,
                };
                if is_it { At::Go(Next::Over) } else { At::Ask }
            }
            At::Ask => match State::from_bits(old) {
                State::At(entry) => At::Keep(entry),
                State::Moving { by, .. } => At::Go(Next::Again(by)),
            },
            At::Keep(entry) => At::KeepPage(entry),
            At::KeepPage(entry) => At::Read(entry, true),
            At::Go(Next::Over) => At::Over,
            At::Go(Next::Again(by)) => At::Pause(by),
            At::Go(Next::Fail(error)) => At::Failed(error),
            At::Pause(_) => At::Look,
            At::Over | At::Failed(_) => unreachable!("no answer is due: {self:?}"),
        }
    }
}
