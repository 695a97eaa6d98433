//! Global addresses: 64 bits that name a byte of any rank.
//!
//! One word, so that a remote compare-and-swap can exchange pointers:
//!
//! ```text
//!  63                                                              0
//!  ┌──────────┬────────┬────────┬──────┬──────────────────────────┐
//!  │ rank + 1 │ colour │ region │ life │          offset          │
//!  └──────────┴────────┴────────┴──────┴──────────────────────────┘
//!      21         1        8       0               34    Split::DEFAULT
//!      10         1        8       8               37    1,000 ranks
//! ```
//!
//! The number of bits of each field is a [`Split`], the same on every rank and
//! chosen at the start for the job's shape. All zeroes is the null address: the rank
//! is stored plus one.
//!
//! In a small job, the bits that the rank does not need go to the *life* of a
//! region's name: a count of how often the name was given away before, modulo its
//! width. So an address that outlived its region does not name the next region of
//! that name. With a life of 0 bits it does, after every rank has given up its copy
//! of the old entry.
//!
//! Arithmetic is done by the split: it stays inside the offset's field or returns an
//! error. An address that stays in the field but leaves the region is refused at the
//! access. Addresses are ordered by rank, then colour, region, life and offset.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::mem::Rank;
//! use tsumugi_gas::address::{AddressParts, Split};
//!
//! let split = Split::DEFAULT;
//! let place = AddressParts { rank: Rank(7), color: 0, region: 3, life: 0, offset: 0x40 };
//! let addr = split.addr(place).unwrap();
//! let next = split.add(addr, 8).unwrap();
//! assert_eq!(split.show(next).to_string(), "rank 7 colour 0 region 3 offset 0x48");
//! assert!(next > addr);
//! assert!(split.add(addr, -0x41).is_err(), "before the region's first byte");
//! ```

mod parts;
mod pointer;
mod split;

pub use parts::{AddressParts, REGIONS, STARTER};
pub use pointer::{GlobalAddr, GlobalPtr};
pub use split::{LeavesRegion, Shown, Split, SplitError};

#[cfg(test)]
mod tests;
