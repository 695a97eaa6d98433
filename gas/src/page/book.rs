//! Pages of one size, and where all that belongs to them lies.
//!
//! ```text
//!  of each rank, from `at` on, zero at first:
//!
//!    directory  entry, holders     16 B for each page that it is home to
//!    slots      gate, kept,        32 B for each page that it may know
//!               seen, seen entry
//!    crowd      who reads          64 B
//!    bits       frames taken       1 bit a frame
//!    frames     header, bytes      as many as it may own
//! ```
//!
//! All words but the frames' bytes are reached by remote atomics and word
//! stores alone, those of the own rank, too, so that one agent does them.
//! [`Shape::bytes`] is what it takes; nothing in it depends on the number of
//! ranks but the pages that fall to each.
//!
//! The directory may lie in a region of its own ([`Book::apart`]), whose agent
//! is another: a device's, which needs no processor at the home. Its words are
//! then changed and looked at by atomics and by nothing else.

use super::{Entry, FIELD_MAX, Homes, PAGES_MAX, PageId, Word};
use core::fmt;
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::sync::mutant;

/// How many, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Who is home to which.
    pub homes: Homes,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages that a rank knows the place of at a time.
    pub slots: u32,
    /// Pages that a rank can own at a time, and one for each that leaves it
    /// while somebody may still read it.
    pub frames: u32,
}

/// A shape that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// More pages, ranks or frames than a word can name, or none.
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u64,
        /// How many there may be.
        most: u64,
    },
}

/// The pages of one array, as everybody sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Book {
    shape: Shape,
    directory: RegionKey,
    directory_at: u64,
    key: RegionKey,
    slots_at: u64,
    crowd_at: u64,
    bits_at: u64,
    frames_at: u64,
    stride: u64,
}

impl Shape {
    /// Bytes that each rank gives.
    pub const fn bytes(&self) -> u64 {
        self.frames_at() + self.frames as u64 * self.stride() - HEADER_BYTES
    }

    /// Bytes of them that are the directory's.
    pub const fn directory_bytes(&self) -> u64 {
        self.slots_at()
    }

    /// Bytes of them that are no frames: what a rank needs to be a home, to know
    /// where pages are, and to tell which frames are free.
    pub const fn books_bytes(&self) -> u64 {
        self.frames_at() - HEADER_BYTES
    }

    /// Whether there can be such a book.
    ///
    /// # Errors
    ///
    /// [`ShapeError`].
    pub const fn check(&self) -> Result<(), ShapeError> {
        let Self { homes, page_bytes, slots, frames } = *self;
        let counts = [
            ("ranks", homes.ranks() as u64, FIELD_MAX as u64),
            ("pages", homes.pages(), PAGES_MAX),
            ("bytes of a page", page_bytes, 1 << 40),
            ("slots", slots as u64, 1 << 31),
            ("frames", frames as u64, FIELD_MAX as u64),
        ];
        let mut index = 0;
        while index < counts.len() {
            let (what, count, most) = counts[index];
            if count == 0 || count > most {
                return Err(ShapeError::Count { what, count, most });
            }
            index += 1;
        }
        Ok(())
    }

    const fn slots_at(&self) -> u64 {
        (self.homes.each() * HOME_BYTES).next_multiple_of(LINE)
    }

    const fn crowd_at(&self) -> u64 {
        (self.slots_at() + self.slots as u64 * SLOT_BYTES).next_multiple_of(LINE)
    }

    const fn bits_at(&self) -> u64 {
        self.crowd_at() + LINE
    }

    /// A header ends where a line does, so that a page begins with one.
    const fn frames_at(&self) -> u64 {
        let bits = self.frames.div_ceil(64) as u64 * 8;
        (self.bits_at() + bits + HEADER_BYTES).next_multiple_of(LINE)
    }

    const fn stride(&self) -> u64 {
        let bytes = self.page_bytes + HEADER_BYTES;
        bytes.next_multiple_of(if self.page_bytes < LINE { 16 } else { LINE })
    }
}

impl Book {
    /// A book of that shape, in the region that every rank calls `key`, from
    /// its byte `at` on, a multiple of 64.
    ///
    /// # Errors
    ///
    /// [`ShapeError`].
    pub const fn new(shape: Shape, key: RegionKey, at: u64) -> Result<Self, ShapeError> {
        Self::of(shape, (key, at), (key, at + shape.directory_bytes()))
    }

    /// The same whose [directory](Shape::directory_bytes) is a region of its
    /// own, that every rank calls `directory`; all else is `key`'s.
    ///
    /// # Errors
    ///
    /// [`ShapeError`].
    pub const fn apart(
        shape: Shape,
        directory: RegionKey,
        key: RegionKey,
    ) -> Result<Self, ShapeError> {
        Self::of(shape, (directory, 0), (key, 0))
    }

    const fn of(
        shape: Shape,
        (directory, directory_at): (RegionKey, u64),
        (key, at): (RegionKey, u64),
    ) -> Result<Self, ShapeError> {
        if let Err(error) = shape.check() {
            return Err(error);
        }
        let before = shape.directory_bytes();
        Ok(Self {
            shape,
            directory,
            directory_at,
            key,
            slots_at: at + shape.slots_at() - before,
            crowd_at: at + shape.crowd_at() - before,
            bits_at: at + shape.bits_at() - before,
            frames_at: at + shape.frames_at() - before,
            stride: shape.stride(),
        })
    }

    /// How many, and how large.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The home of a page.
    pub const fn home(&self, page: PageId) -> Rank {
        self.shape.homes.home(page).0
    }

    /// The word at its home that says where a page is.
    #[inline]
    pub const fn entry(&self, page: PageId) -> RemoteAddr {
        let (rank, index) = self.shape.homes.home(page);
        let offset = self.directory_at + index * HOME_BYTES;
        RemoteAddr { offset, rank, key: self.directory }
    }

    /// What tells the [entry](Self::entry) of a page.
    ///
    /// Of a directory that lies apart it is an atomic that changes nothing: its
    /// agent may be a device, whose plain reads are not atomic with its atomics,
    /// nor whole (Soft-RoCE copies them by bytes), and an owner of before the
    /// move with a frame of after it is a place where another page is.
    #[inline]
    pub fn look(&self, page: PageId) -> Op {
        let at = self.entry(page);
        match self.is_apart() && !mutant("page_entry_read_plainly") {
            true => Word::add(at, 0),
            false => Word::load(at),
        }
    }

    /// What enters a rank into the list of who may write to a page, which is
    /// believed to be `seen`. Where the directory lies apart, by what a device
    /// has: it adds, compares and swaps, and no more.
    #[inline]
    pub(super) fn enlist(&self, page: PageId, rank: Rank, seen: u64) -> Op {
        let (at, bit) = (self.holders(page), bit_of(rank));
        if self.is_apart() { Word::exchange(at, seen, seen | bit) } else { Word::or(at, bit) }
    }

    /// Whether that has entered it, or found that it is there.
    #[inline]
    pub(super) fn is_enlisted(&self, rank: Rank, seen: u64, found: u64) -> bool {
        !self.is_apart() || found == seen || found & bit_of(rank) != 0
    }

    /// What empties the list, which is believed to be `seen`. A mark stays.
    pub(super) fn disown(&self, page: PageId, seen: u64) -> Op {
        let at = self.holders(page);
        match self.is_apart() {
            true => Word::exchange(at, seen, seen & INCOMPLETE),
            false => Word::and(at, INCOMPLETE),
        }
    }

    /// What marks the list for ever as one that not all holders are on: a mover that
    /// has died may empty it at any time.
    pub(super) fn distrust(&self, page: PageId, seen: u64) -> Op {
        let at = self.holders(page);
        match self.is_apart() {
            true => Word::exchange(at, seen, seen | INCOMPLETE),
            false => Word::or(at, INCOMPLETE),
        }
    }

    /// Whether a rank may hold the page, by the list that was found.
    pub(super) fn may_hold(list: u64, rank: Rank) -> bool {
        let is_marked = list & INCOMPLETE != 0 && !mutant("page_list_believed_again");
        is_marked || list & bit_of(rank) != 0
    }

    /// Whether that has changed it.
    pub(super) fn is_disowned(&self, seen: u64, found: u64) -> bool {
        !self.is_apart() || found == seen
    }

    /// What makes that the entry of a page that has none yet.
    pub fn deal(&self, page: PageId, entry: Entry) -> Op {
        match self.is_apart() {
            true => Word::exchange(self.entry(page), 0, entry.to_bits()),
            false => Word::store(self.entry(page), entry.to_bits()),
        }
    }

    /// The region of the directory, if it has one of its own.
    #[inline]
    pub fn directory(&self) -> Option<RegionKey> {
        self.is_apart().then_some(self.directory)
    }

    fn is_apart(&self) -> bool {
        self.directory != self.key
    }

    /// The word at its home that says who may write to it: a bit for each
    /// rank, modulo 64.
    #[inline]
    pub const fn holders(&self, page: PageId) -> RemoteAddr {
        self.entry(page).add(8)
    }

    /// The header before the bytes of a page.
    #[inline]
    pub const fn header(&self, owner: Rank, frame: u32) -> RemoteAddr {
        self.word(owner, self.frames_at - HEADER_BYTES + frame as u64 * self.stride)
    }

    /// The bytes of a page.
    #[inline]
    pub const fn bytes(&self, entry: Entry) -> RemoteAddr {
        self.header(entry.owner, entry.frame).add(HEADER_BYTES)
    }

    /// The word with the bit of a frame, and the bit.
    pub const fn bit(&self, rank: Rank, frame: u32) -> (RemoteAddr, u64) {
        (self.bits(rank, frame / 64), 1 << (frame % 64))
    }

    #[inline]
    pub(super) const fn gate(&self, rank: Rank, page: PageId) -> RemoteAddr {
        let slots = self.shape.slots as u64;
        // Most arrays have a slot for each page: no division then.
        let slot = if page.0 < slots { page.0 } else { page.0 % slots };
        self.word(rank, self.slots_at + slot * SLOT_BYTES)
    }

    #[inline]
    pub(super) const fn kept(&self, rank: Rank, page: PageId) -> RemoteAddr {
        self.gate(rank, page).add(8)
    }

    #[inline]
    pub(super) const fn seen(&self, rank: Rank, page: PageId) -> RemoteAddr {
        self.gate(rank, page).add(16)
    }

    #[inline]
    pub(super) const fn seen_entry(&self, rank: Rank, page: PageId) -> RemoteAddr {
        self.gate(rank, page).add(24)
    }

    #[inline]
    pub(super) const fn crowd(&self, rank: Rank) -> RemoteAddr {
        self.word(rank, self.crowd_at)
    }

    pub(super) const fn bits(&self, rank: Rank, word: u32) -> RemoteAddr {
        self.word(rank, self.bits_at + word as u64 * 8)
    }

    const fn word(&self, rank: Rank, offset: u64) -> RemoteAddr {
        RemoteAddr { offset, rank, key: self.key }
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Count { what, count, most } = self;
        write!(f, "{count} {what}, where 1 to {most} are possible")
    }
}

impl core::error::Error for ShapeError {}

/// Of a rank, in a list of who may write.
const fn bit_of(rank: Rank) -> u64 {
    1 << (rank.0 % LISTED)
}

/// Bits of a list of holders that stand for ranks.
const LISTED: u32 = 63;
/// The other one: any rank may hold the page.
const INCOMPLETE: u64 = 1 << LISTED;

/// Bytes before a page's own.
pub const HEADER_BYTES: u64 = 8;
/// Bytes of directory that a page takes, at its home.
pub const HOME_BYTES: u64 = 16;
/// Bytes that a rank's knowledge of a page takes.
pub const SLOT_BYTES: u64 = 32;

const LINE: u64 = 64;
