//! Pages that move: who has them is found by a static home, known where they
//! are used, and never believed when it is out of date.
//!
//! | module | what it is |
//! |---|---|
//! | `entry` | where a page is, in a word; the header before its bytes |
//! | [`home`](Homes) | the static rule, and how pages are dealt at first |
//! | `gate` | the words by which accesses and movers meet |
//! | [`book`](Book) | pages of one size, and where all that belongs to them lies |
//! | `word` | what the protocols ask for |
//! | [`hold`](Hold) | a page that stays while somebody writes to it |
//! | [`glance`](Glance) | a read whose mover does not know of it |
//! | [`hit`](Own) | both at once, where all of it is at hand |
//! | [`relocation`](Relocation) | a page that comes here |
//! | [`sweep`](Sweep) | waiting until nobody reads what was left |
//! | [`message`] | the same by messages: the paper's directory, sans-IO |
//!
//! # Invariants
//!
//! 1. **No put is lost.** Whoever writes to a page (puts, and atomics on its
//!    elements) is counted in its own rank's gate of the page from before it
//!    was told where the page is until the write has completed at the remote
//!    end. A mover copies a page after it has locked the entry, has stopped
//!    every gate that may be valid, and has seen each of them empty; and nobody
//!    is told an entry while it is locked.
//! 2. **No get returns bytes of another page, or of a place that the page had
//!    left before the get began.** A get's bytes are good if the header read
//!    with them is live and of the page and the epoch that the get was told.
//!    A header is live only while its bytes are the page's, or frozen and about
//!    to be left; so at the moment when the header was read, which is within
//!    the get, the bytes were the page's. Those that were read after that moment
//!    are the page's as it was when it left, which is after it too, for no
//!    frame is anybody else's before all who read then have ended. A hit is not
//!    waited for: it looks at the header before its bytes and after them.
//! 3. **No stale owner is used.** A stale gate cannot be (1), and a stale entry
//!    that a get goes by leads to a header that says so (2): it then asks the
//!    home.
//! 4. **No frame is lost or given away twice**: it is retired by the commit of
//!    the one relocation that emptied it, and freed once after a sweep that began
//!    later. Only a death may leave one taken.
//!
//! # Who takes part
//!
//! The home does nothing: its words are changed by who asks and by who moves. If
//! they are a network device's ([`Book::apart`]), no processor of the home's has
//! a part in that; each of them is then changed by that device alone, of
//! whichever rank, and read by its atomics.
//!
//! # What a ULT sees
//!
//! Each access to one element (a naturally aligned word within a page) is
//! linearizable, whatever moves meanwhile: puts and atomics at the moment when
//! they land, gets at one between their begin and their end; [`Relocation`]s
//! change no value. So a ULT sees its own puts in its program order, before
//! and after any own, its own or others', as every call here is over when its
//! effect is there (hazard O16 is for whoever begins accesses without waiting
//! for them: those have no order). Accesses to more than one element, and
//! copies of more than a word, are not atomic: they may be torn between
//! elements, as on memory that does not move. An `own` of a range is atomic for
//! each page by itself, in ascending order, and holds nothing while it waits
//! for the next.
//!
//! # When a rank dies
//!
//! Its pages are lost, and so is the way to those that it is home to, unless
//! somebody knows it already: such accesses end with [`AddrError::PeerLost`].
//! What it held is not waited for; a frame that it was writing to when it died
//! is not given to another page, for what it had begun may still land. A page that it was
//! moving is where it was: whoever asks for it next takes over, accesses end
//! with its death meanwhile.
//!
//! A rank that was [given up](tsumugi_core::backend::Domain#a-rank-that-is-given-up)
//! and lives keeps the pages that it has, and those who hold with it use them there;
//! none has two places.
//!
//! Progress: a hit costs no operation on another rank but the access itself,
//! and does not wait. A get is lock-free: it comes back only if the page has
//! moved. A hold waits for one mover, a relocation for those who are in and for
//! other movers of the page. Among several movers nobody is next by right.
//!
//! # References
//!
//! W. Endo and K. Taura: a PGAS with relocation and a cache of metadata
//! (MassiveThreads/GAS). S. Kaxiras et al.: Turning centralized coherence and
//! distributed critical-section execution on their head, HPDC 2015 (directories
//! by RDMA alone). A. Dragojević et al.: FaRM, NSDI 2014 (reads that are checked
//! by what is read with them). T. E. Hart et al., J. Parallel Distrib. Comput. 67
//! (2007): phases by which readers are waited for.

mod book;
mod entry;
mod gate;
mod glance;
mod hit;
mod hold;
mod home;
pub mod message;
mod relocation;
mod sweep;
mod word;

pub use book::{Book, HEADER_BYTES, HOME_BYTES, SLOT_BYTES, Shape, ShapeError};
pub use entry::{Entry, FIELD_MAX, PAGES_MAX, PageId, State};
pub use glance::Glance;
pub use hit::{Door, Own};
pub use hold::Hold;
pub use home::{Distribution, Homes};
pub use relocation::{Refusal, Relocation, Retired};
pub use sweep::Sweep;
pub use word::Act;

use word::Word;

#[cfg(doc)]
use tsumugi_core::mem::AddrError;

#[cfg(test)]
mod tests;
