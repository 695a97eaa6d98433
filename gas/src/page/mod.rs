//! Pages that move. Each page has a static home rank, which stores where the page is
//! (the page directory). Ranks that use a page cache its place (the location cache),
//! and a cached place is checked before it is trusted.
//!
//! | module | what it is |
//! |---|---|
//! | `entry` | where a page is, in a word; the header before its bytes |
//! | [`home`](Homes) | the static rule, and how pages are dealt at first |
//! | `gate` | the words in which accesses and movers of pages are synchronized |
//! | [`layout`](PageLayout) | pages of one size, and the layout of the memory for them |
//! | `word` | operations on words |
//! | [`protocol`](PageProtocol) | what the protocols below have in common, and their driver |
//! | [`pin`](PagePin) | a pin: the page stays in its place during a write |
//! | [`optimistic_read`](OptimisticRead) | a read for which the mover of the page does not wait |
//! | [`fast_path`](ReadFast) | fast paths of both, when all memory that they need is in reach |
//! | [`relocation`](Relocation) | the move of one page to a rank |
//! | [`grace_period`](GracePeriod) | waiting until no rank reads frames that pages have left |
//! | [`message_directory`] | a directory by messages, which is a paper's and not the default |
//!
//! # Invariants
//!
//! 1. **No put is lost.** Each access that writes to a page (puts, and atomics on
//!    its elements) is counted in its own rank's gate of the page. The count lasts
//!    from before the rank reads where the page is until the write has completed at
//!    the remote end. A mover copies a page after it has locked the entry, has
//!    stopped every gate that may be valid, and has seen each of them empty; and no
//!    requester receives an entry while the entry is locked.
//! 2. **No get returns bytes of another page, or of a place that the page had left
//!    before the get began.** A get's bytes are good if the header that is read with
//!    them is live and has the page and the epoch of the entry that the get used. A
//!    header is live only while the bytes after it are the page's, or are frozen
//!    because the page is about to leave; so at the moment when the header was read,
//!    which is within the get, the bytes were the page's. Bytes that were read after
//!    that moment are the page's as it was when it left, and it left after that
//!    moment; no frame is given to another page before all reads that are under way
//!    then have ended. A hit is not counted, so no mover waits for it: it reads the
//!    header before the bytes and again after them.
//! 3. **No stale owner is used.** A stale gate cannot be used for a write (1). A get
//!    that uses a stale entry finds a header that does not match the entry (2), and
//!    then reads the entry at the home.
//! 4. **No frame is lost or given away twice**: a frame is retired by the commit of
//!    the one relocation that emptied it, and freed once, after a grace period that began
//!    later. Only the death of a rank may leave a frame taken for ever.
//!
//! # The home's part
//!
//! The home's processor does nothing: the words at the home are changed by the
//! requesters and by the movers. If the words belong to a network device
//! ([`PageLayout::apart`]), each of them is changed by that device alone, for operations
//! of any rank, and read by the device's atomics.
//!
//! # What a ULT sees
//!
//! Each access to one element (a naturally aligned word within a page) is
//! linearizable, whatever moves meanwhile: puts and atomics at the moment when
//! they land, gets at one between their begin and their end; [`Relocation`]s change
//! no value. So a ULT sees its own puts in its program order, before and after any
//! `own`, of its own rank or of another one, because every call here returns when
//! its effect is there (hazard O16 concerns a caller that begins accesses and does
//! not wait for them: such accesses have no order). Accesses to more than one
//! element, and copies of more than a word, are not atomic: they may be torn between
//! elements, as on memory that does not move. An `own` of a range is atomic for each
//! page by itself, in ascending order, and holds nothing while it waits for the next
//! page.
//!
//! # When a rank dies
//!
//! The dead rank's pages are lost. The directory entries of which it was the home
//! are lost, too: only a rank that has such an entry in its location cache can still
//! use it, all other accesses end with [`AddrError::PeerLost`]. A mover does not
//! wait for pins of the dead rank; a frame to which the dead rank was writing is not
//! given to another page, because a write that it had begun may still land. A page
//! that the dead rank was moving, and had not committed, stays where it was. The next
//! [`Relocation`] of the page takes over. Until then accesses that read the entry end
//! with [`AddrError::PeerLost`] of the mover; pins and optimistic reads never take over.
//!
//! A rank that was [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up)
//! and lives keeps the pages that it has, and the ranks that have not given it up
//! use them there; no page has two places.
//!
//! Progress: a hit costs no operation on another rank but the access itself, and
//! does not wait. A get is lock-free: it is repeated only if the page has moved. A
//! pin waits for one mover. A relocation waits for the writers that are in the
//! page's gates and for other movers of the page. There is no fairness among several
//! movers.
//!
//! # References
//!
//! W. Endo and K. Taura: a PGAS with relocation and a cache of metadata
//! (MassiveThreads/GAS). S. Kaxiras et al.: Turning centralized coherence and
//! distributed critical-section execution on their head, HPDC 2015 (directories
//! by RDMA alone). A. Dragojević et al.: FaRM, NSDI 2014 (reads that are checked
//! by what is read with them). T. E. Hart et al., J. Parallel Distrib. Comput. 67
//! (2007): grace periods, in which readers are counted by phases.

mod layout;
mod entry;
mod gate;
mod optimistic_read;
mod fast_path;
mod pin;
mod home;
pub mod message_directory;
mod protocol;
mod relocation;
mod grace_period;
mod word;

pub use entry::{DirectoryEntry, FIELD_MAX, PAGES_MAX, PageId, PageState};
pub use fast_path::{PinFast, ReadFast};
pub use grace_period::GracePeriod;
pub use home::{Distribution, Homes};
pub use layout::{HEADER_BYTES, HOME_BYTES, PageLayout, PageShape, SLOT_BYTES, ShapeError};
pub use optimistic_read::OptimisticRead;
pub use pin::PagePin;
pub use protocol::{PageAction, PageDriver, PageProtocol, drive};
pub use relocation::{MoveOutcome, PageCopy, Refusal, Relocation, RetiredFrame};

use word::WordOp;

#[cfg(doc)]
use tsumugi_core::mem::AddrError;

#[cfg(test)]
mod tests;
