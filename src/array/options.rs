//! How an array is cut into pages and distributed.

use tsumugi_gas::page::{Distribution, Homes, PageShape};

/// The options of an array: how it is cut into pages, distributed and found.
///
/// ```
/// use tsumugi::array::{ArrayOptions, Distribution};
///
/// tsumugi::run_ranks(2, |rt| {
///     let options = ArrayOptions::new().page_len(8).distribution(Distribution::Cyclic);
///     let array = options.create::<u64>(rt, 100)?;
///     assert_eq!((array.page_len(), array.len()), (8, 100));
///     Ok::<(), tsumugi::Error>(())
/// })
/// # .map(drop)
/// # .unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "the options make no array by themselves"]
pub struct ArrayOptions {
    pub(super) distribution: Distribution,
    page_len: Option<usize>,
    known: Option<u32>,
    room: Option<u32>,
    cached_bytes: Option<usize>,
    pub(super) directory: Directory,
}

/// How ranks find pages, and agree on which rank moves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directory {
    /// By remote reads, writes and atomics alone: no rank's processors work for the
    /// accesses of another rank. When a page moves, ranks that have only read it
    /// are neither notified nor waited for. A rank that has written to the page, or
    /// has read more than 4 KiB of it at once from another node, is stopped by one
    /// atomic, and the mover waits for its access in progress. Such a long read
    /// goes directly to its destination without a copy, so there is no room for the
    /// header by which a shorter read detects that the page has moved.
    #[default]
    Atomics,
    /// The same, but the network device carries out all accesses to the words of
    /// the directory ([`Agent::Device`](crate::Agent)): the device alone looks up
    /// pages and stores where they have gone, also for ranks of the home's node and
    /// for the home itself. This uses none of the home's processors. `Atomics`,
    /// over a network that has no atomics or where reads may tear, uses the thread
    /// of the home by which the runtime serves other nodes.
    ///
    /// An access to a page that is in the location cache costs the same. A lookup,
    /// from any node, takes one atomic of the device for a read, or two for a
    /// write; moving a page takes four or five. From another node, each of these
    /// replaces a request and a reply that wait for a thread of the home to run.
    /// From the home's own node, each takes microseconds in place of tens of
    /// nanoseconds. So this directory suits pages that are looked up from other
    /// nodes, by ranks with a small location cache, or at homes that compute or
    /// sleep.
    ///
    /// The accesses in progress are not a part of the directory: processors change
    /// the words by which a mover stops writers and waits for readers, each the
    /// words of its own rank. So an own returns when every rank, the home among
    /// them, has answered whether it reads, once for up to 64 pages; the pages have
    /// moved before that.
    ///
    /// If no device can do this (in a job of one node, over libfabric, over a
    /// device without atomics), processors do it:
    /// [`GlobalArray::agent`](super::GlobalArray::agent) returns which of the two
    /// it is.
    Device,
    /// As in paper 5 of `docs/papers.md`: the home answers requests, and before a
    /// page moves it stops all ranks that have looked it up. It exists for
    /// comparison. It has at most 64 ranks; when a rank dies, each call that waits
    /// for an answer, for any page, ends with [`AddrError::PeerLost`].
    ///
    /// [`AddrError::PeerLost`]: crate::AddrError::PeerLost
    Messages,
}

impl ArrayOptions {
    /// The defaults, with which [`Runtime::array`](crate::Runtime::array) makes an array.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which rank has which page at first; by default [`Distribution::Block`].
    pub fn distribution(self, distribution: Distribution) -> Self {
        Self { distribution, ..self }
    }

    /// Sets the number of elements in a page, at least 1; by default as many as fit in 4 KiB.
    pub fn page_len(self, page_len: usize) -> Self {
        Self { page_len: Some(page_len), ..self }
    }

    /// Sets the number of pages in the location cache of a rank, at least 1; by default
    /// 1,024, or all pages if there are fewer.
    pub fn known(self, known: u32) -> Self {
        Self { known: Some(known), ..self }
    }

    /// Sets the number of pages that a rank can own at a time, at least 1; by default all
    /// of them, if necessary. Memory is allocated on first use.
    pub fn room(self, room: u32) -> Self {
        Self { room: Some(room), ..self }
    }

    /// Sets the bytes of the pages of which a rank keeps copies for
    /// [`checkout`](super::GlobalArray::checkout); by default 16 MiB. With 0 each checkout
    /// of an element that lies elsewhere is refused.
    pub fn cached_bytes(self, cached_bytes: usize) -> Self {
        Self { cached_bytes: Some(cached_bytes), ..self }
    }

    /// Sets how ranks find pages; by default [`Directory::Atomics`].
    pub fn directory(self, directory: Directory) -> Self {
        Self { directory, ..self }
    }

    /// The number of elements in a page, and the shape of an array of `len`
    /// elements of `bytes` each.
    pub(super) fn shape(&self, ranks: u32, len: usize, bytes: usize) -> (usize, PageShape) {
        let page_len = self.page_len.unwrap_or((PAGE_BYTES / bytes).max(1));
        // The shape's check refuses a page without elements.
        let pages = len.div_ceil(page_len.max(1)) as u64;
        // The product saturates, so that a page that is too large is refused by the
        // shape's check.
        let page_bytes = (page_len as u64).saturating_mul(bytes as u64);
        let all = u32::try_from(pages).unwrap_or(u32::MAX);
        let slots = self.known.unwrap_or(all.min(KNOWN));
        // A page may come back to a rank before the rank's former frame for it is
        // free again.
        let frames = self.room.unwrap_or(all.saturating_add(SPARE));
        let homes = Homes::new(ranks, pages, self.distribution);
        (page_len, PageShape { homes, page_bytes, slots, frames })
    }

    pub(super) fn copies_bytes(&self) -> usize {
        self.cached_bytes.unwrap_or(CACHED_BYTES)
    }
}

/// The default size of a page, in bytes.
const PAGE_BYTES: usize = 4096;
/// The default size of the location cache, in pages.
const KNOWN: u32 = 1024;
/// Additional frames, for pages that have left and may still be read.
const SPARE: u32 = 64;
/// The default size of the cache for checkouts, in bytes.
const CACHED_BYTES: usize = 16 << 20;
