//! How an array is cut and dealt.

use tsumugi_gas::page::{Distribution, Homes, Shape};

/// How an array is cut and dealt.
#[derive(Clone, Copy, Debug)]
pub struct Dealt {
    /// Who has which page at first.
    pub first: Distribution,
    /// Elements of a page; 0: as many as 4 KiB have room for.
    pub page_len: usize,
    /// Pages whose place a rank remembers at a time; 0: 1,024, or all if there
    /// are fewer.
    pub known: u32,
    /// Pages that a rank can have at a time; 0: all of them, if need be. Memory
    /// is taken where it is used.
    pub room: u32,
    /// Bytes of pages that a rank keeps copies of for
    /// [`checkout`](super::GlobalArray::checkout); 0: 16 MiB.
    pub cached_bytes: usize,
    /// How ranks find pages.
    pub directory: Directory,
}

/// How ranks find pages, and agree on who moves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directory {
    /// By remote reads, writes and atomics alone: no rank's processors work for
    /// another's accesses. When a page moves, who has read it is neither asked
    /// nor waited for; who has written to it, or has read more than 4 KiB of it
    /// from another node, is stopped by one atomic, and waited for while it is
    /// at it. So long a read comes to where it belongs without a copy, and has
    /// no room for the header that tells a shorter one whether the page was
    /// still there.
    #[default]
    Atomics,
    /// The same, and the directory's words are the network device's
    /// ([`Agent::Device`](crate::Agent)): it alone looks pages up and notes where
    /// they have gone, for ranks of the home's node and for the home itself, too.
    /// That takes none of the home's processors, not even the thread by which
    /// the runtime answers other nodes there, as `Atomics` does over a network
    /// that has no atomics or whose reads may tear.
    ///
    /// To who knows the page an access costs what it costs otherwise. Who does
    /// not, of whichever node, asks by one atomic of the device, or two to
    /// write; and a page that comes takes four or five. From another node that
    /// is in place of a request and its answer each, which wait for a thread of
    /// the home's to run; from the home's own it is microseconds, in place of
    /// tens of nanoseconds. So it is for pages that are looked for from other
    /// nodes, by ranks that know few of them, or whose homes compute or sleep.
    ///
    /// Who is in a page is no matter of its directory: the words by which a mover
    /// stops who writes, and waits for who reads, are changed by processors, each
    /// by those of the rank that is asked. So an own is over when every rank has
    /// said whether it reads, once for as many as 64 pages, the home among them;
    /// the pages are there before that.
    ///
    /// Where no device can do it (in a job of one node, over libfabric, over a
    /// device without atomics) processors do:
    /// [`GlobalArray::agent`](super::GlobalArray::agent) says who.
    Device,
    /// As the paper has it: the home answers, and stops all who have asked
    /// before a page moves. For comparison: up to 64 ranks, and when one dies
    /// who waits for an answer is told [`AddrError::PeerLost`], of whichever
    /// page.
    ///
    /// [`AddrError::PeerLost`]: crate::AddrError::PeerLost
    Messages,
}

impl Dealt {
    /// Elements of a page, and the pages of an array of `len` elements of
    /// `bytes` each.
    pub(super) fn shape(&self, ranks: u32, len: usize, bytes: usize) -> (usize, Shape) {
        let page_len = match self.page_len {
            0 => (PAGE_BYTES / bytes).max(1),
            page_len => page_len,
        };
        let pages = len.div_ceil(page_len) as u64;
        // More than a shape allows, if it is more than there is.
        let page_bytes = (page_len as u64).saturating_mul(bytes as u64);
        let all = u32::try_from(pages).unwrap_or(u32::MAX);
        let slots = if self.known == 0 { all.min(KNOWN) } else { self.known };
        // A page may come back before its former frame here is free again.
        let frames = if self.room == 0 { all.saturating_add(SPARE) } else { self.room };
        let homes = Homes::new(ranks, pages, self.first);
        (page_len, Shape { homes, page_bytes, slots, frames })
    }

    pub(super) fn copies_bytes(&self) -> usize {
        if self.cached_bytes == 0 { CACHED_BYTES } else { self.cached_bytes }
    }
}

impl Default for Dealt {
    fn default() -> Self {
        Self {
            first: Distribution::Block,
            page_len: 0,
            known: 0,
            room: 0,
            cached_bytes: 0,
            directory: Directory::Atomics,
        }
    }
}

/// A page, if nothing else is asked for.
const PAGE_BYTES: usize = 4096;
/// Pages whose place is remembered, if nothing else is asked for.
const KNOWN: u32 = 1024;
/// Frames of pages that have left and may still be read.
const SPARE: u32 = 64;
/// Bytes of copies, if nothing else is asked for.
const CACHED_BYTES: usize = 16 << 20;
