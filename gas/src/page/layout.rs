//! The layout of an array: pages of one size, and the layout of the memory that holds
//! them and their metadata.
//!
//! ```text
//!  of each rank, from `at` on, zero at first:
//!
//!    directory  entry, holders     16 B for each page that it is home of
//!    slots      gate, kept,        32 B for each page that it may know
//!               seen, seen entry
//!    reader counts      read counts        64 B
//!    bits       frames taken       1 bit a frame
//!    frames     header, bytes      as many as it may own
//! ```
//!
//! All words but the frames' bytes are reached by remote atomics and word stores
//! alone, also the words of the own rank, so that one agent carries out all of them.
//! [`PageShape::bytes`] is the memory that each rank needs for this; only the number of
//! pages per home depends on the number of ranks.
//!
//! The directory may lie in a region of its own ([`PageLayout::apart`]), which another
//! agent serves: a device, which needs no processor at the home. The words of such a
//! directory are changed and read by atomics and by nothing else.

use super::{DirectoryEntry, FIELD_MAX, Homes, PAGES_MAX, PageId, WordOp};
use core::fmt;
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::op::Op;

/// Number and size of the pages, and of the tables that each rank has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageShape {
    /// The rule that gives each page its home.
    pub homes: Homes,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of which a rank can have the place at a time.
    pub slots: u32,
    /// Frames of a rank: one for each page that it can own at a time, and one for
    /// each page that has left and may still be read there.
    pub frames: u32,
}

/// Why a shape is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// A count is 0, or more than a word can name.
    Count {
        /// The things that were counted.
        what: &'static str,
        /// Their number.
        count: u64,
        /// The largest possible number.
        most: u64,
    },
}

/// The pages of one array. All ranks have equal values of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageLayout {
    shape: PageShape,
    directory: RegionKey,
    directory_at: u64,
    key: RegionKey,
    slots_at: u64,
    epochs_at: u64,
    bits_at: u64,
    frames_at: u64,
    stride: u64,
}

impl PageShape {
    /// The number of bytes that each rank must give.
    pub const fn bytes(&self) -> u64 {
        self.frames_at() + self.frames as u64 * self.stride() - HEADER_BYTES
    }

    /// How many of these bytes are the directory's.
    pub const fn directory_bytes(&self) -> u64 {
        self.slots_at()
    }

    /// How many of these bytes are not frames: the directory, the slots of the
    /// location cache, the reader counts and the bits of free frames.
    pub const fn metadata_bytes(&self) -> u64 {
        self.frames_at() - HEADER_BYTES
    }

    /// Whether a layout of this shape is possible.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] if the number of ranks, pages, slots or frames, or the
    /// size of a page, is 0 or larger than the words can name. The error names the
    /// number and the limit.
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

    const fn epochs_at(&self) -> u64 {
        (self.slots_at() + self.slots as u64 * SLOT_BYTES).next_multiple_of(LINE)
    }

    const fn bits_at(&self) -> u64 {
        self.epochs_at() + LINE
    }

    /// The offset of the first frame's bytes. A header ends at the end of a line, so
    /// that a page begins with a line.
    const fn frames_at(&self) -> u64 {
        let bits = self.frames.div_ceil(64) as u64 * 8;
        (self.bits_at() + bits + HEADER_BYTES).next_multiple_of(LINE)
    }

    const fn stride(&self) -> u64 {
        let bytes = self.page_bytes + HEADER_BYTES;
        bytes.next_multiple_of(if self.page_bytes < LINE { 16 } else { LINE })
    }
}

impl PageLayout {
    /// A layout of that shape, in the region that has the key `key` on every rank,
    /// from byte `at` on, which must be a multiple of 64.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] if a number of the shape is 0 or too large, as from
    /// [`PageShape::check`].
    pub const fn new(shape: PageShape, key: RegionKey, at: u64) -> Result<Self, ShapeError> {
        Self::of(shape, (key, at), (key, at + shape.directory_bytes()))
    }

    /// A layout with its [directory](PageShape::directory_bytes) in a region of its own,
    /// which has the key `directory` on every rank; all other parts lie in the
    /// region `key`.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] if a number of the shape is 0 or too large, as from
    /// [`PageShape::check`].
    pub const fn apart(
        shape: PageShape,
        directory: RegionKey,
        key: RegionKey,
    ) -> Result<Self, ShapeError> {
        Self::of(shape, (directory, 0), (key, 0))
    }

    const fn of(
        shape: PageShape,
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
            epochs_at: at + shape.epochs_at() - before,
            bits_at: at + shape.bits_at() - before,
            frames_at: at + shape.frames_at() - before,
            stride: shape.stride(),
        })
    }

    /// The number and size of the pages.
    pub const fn shape(&self) -> PageShape {
        self.shape
    }

    /// The home of a page.
    pub const fn home(&self, page: PageId) -> Rank {
        self.shape.homes.home(page).0
    }

    /// The address of the entry of a page: the word at its home that says where the
    /// page is.
    #[inline]
    pub const fn entry(&self, page: PageId) -> RemoteAddr {
        let (rank, index) = self.shape.homes.home(page);
        let offset = self.directory_at + index * HOME_BYTES;
        RemoteAddr { offset, rank, key: self.directory }
    }

    /// The operation that reads the [entry](Self::entry) of a page.
    ///
    /// For a directory that lies apart this is an atomic that changes nothing: its
    /// agent may be a device, and the plain reads of a device are neither atomic
    /// with its atomics nor whole (Soft-RoCE copies them by bytes). A torn read
    /// could return the owner of before a move with the frame of after it, which is
    /// a place of another page.
    #[inline]
    pub fn look(&self, page: PageId) -> Op {
        let at = self.entry(page);
        match mutate!("page_entry_read_plainly": self.is_apart() => false) {
            true => WordOp::add(at, 0),
            false => WordOp::load(at),
        }
    }

    /// The operation that enters a rank into the list of ranks that may write to a
    /// page. The list is expected to be `seen`. For a directory that lies apart it
    /// is a compare-and-swap, because a device has add and compare-and-swap only.
    #[inline]
    pub(super) fn enlist(&self, page: PageId, rank: Rank, seen: u64) -> Op {
        let (at, bit) = (self.holders(page), bit_of(rank));
        if self.is_apart() { WordOp::exchange(at, seen, seen | bit) } else { WordOp::or(at, bit) }
    }

    /// Whether the operation of [`enlist`](Self::enlist) has entered the rank, or
    /// has found that the rank is listed.
    #[inline]
    pub(super) fn is_enlisted(&self, rank: Rank, seen: u64, found: u64) -> bool {
        !self.is_apart() || found == seen || found & bit_of(rank) != 0
    }

    /// The operation that empties the list of holders, which is expected to be
    /// `seen`. An `INCOMPLETE` mark stays.
    pub(super) fn disown(&self, page: PageId, seen: u64) -> Op {
        let at = self.holders(page);
        match self.is_apart() {
            true => WordOp::exchange(at, seen, seen & INCOMPLETE),
            false => WordOp::and(at, INCOMPLETE),
        }
    }

    /// The operation that marks the list for ever as incomplete: an operation of a
    /// mover that has died may empty the list at any time.
    pub(super) fn distrust(&self, page: PageId, seen: u64) -> Op {
        let at = self.holders(page);
        match self.is_apart() {
            true => WordOp::exchange(at, seen, seen | INCOMPLETE),
            false => WordOp::or(at, INCOMPLETE),
        }
    }

    /// Whether a rank may hold the page, by the list that was read.
    pub(super) fn may_hold(list: u64, rank: Rank) -> bool {
        let is_marked = mutate!("page_list_believed_again": list & INCOMPLETE != 0 => false);
        is_marked || list & bit_of(rank) != 0
    }

    /// Whether the operation of [`disown`](Self::disown) or
    /// [`distrust`](Self::distrust) has changed the list.
    pub(super) fn is_disowned(&self, seen: u64, found: u64) -> bool {
        !self.is_apart() || found == seen
    }

    /// The operation that stores the first entry of a page.
    pub fn deal(&self, page: PageId, entry: DirectoryEntry) -> Op {
        match self.is_apart() {
            true => WordOp::exchange(self.entry(page), 0, entry.to_bits()),
            false => WordOp::store(self.entry(page), entry.to_bits()),
        }
    }

    /// The key of the directory's region, if the directory has a region of its own.
    #[inline]
    pub fn directory(&self) -> Option<RegionKey> {
        self.is_apart().then_some(self.directory)
    }

    fn is_apart(&self) -> bool {
        self.directory != self.key
    }

    /// The address of the list of holders, at the page's home: the ranks that may
    /// write to the page, one bit for each rank modulo 63, and a mark.
    #[inline]
    pub const fn holders(&self, page: PageId) -> RemoteAddr {
        self.entry(page).add(8)
    }

    /// The address of the header before the bytes of a frame.
    #[inline]
    pub const fn header(&self, owner: Rank, frame: u32) -> RemoteAddr {
        self.word(owner, self.frames_at - HEADER_BYTES + frame as u64 * self.stride)
    }

    /// The address of the bytes of a page.
    #[inline]
    pub const fn bytes(&self, entry: DirectoryEntry) -> RemoteAddr {
        self.header(entry.owner, entry.frame).add(HEADER_BYTES)
    }

    /// The address of the word with the bit of a frame, and the bit.
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
    pub(super) const fn reader_epochs(&self, rank: Rank) -> RemoteAddr {
        self.word(rank, self.epochs_at)
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
        write!(f, "{count} {what}: there must be 1 to {most}")
    }
}

impl core::error::Error for ShapeError {}

/// The bit of a rank in a list of holders.
const fn bit_of(rank: Rank) -> u64 {
    1 << (rank.0 % LISTED)
}

/// Bits of a list of holders that stand for ranks.
const LISTED: u32 = 63;
/// The last bit of a list of holders: any rank may hold the page.
const INCOMPLETE: u64 = 1 << LISTED;

/// Bytes of the header before a page's own bytes.
pub const HEADER_BYTES: u64 = 8;
/// Bytes of the directory that a page takes at its home.
pub const HOME_BYTES: u64 = 16;
/// Bytes that a slot of a rank's location cache takes.
pub const SLOT_BYTES: u64 = 32;

const LINE: u64 = 64;
