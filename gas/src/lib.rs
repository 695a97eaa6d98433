//! One global memory over any way of communication: the part of tsumugi that
//! a PGAS runtime embeds. `no_std`; nothing on a data path allocates.
//!
//! | first of all | |
//! |---|---|
//! | [`GlobalAddr`](address::GlobalAddr), [`Split`](address::Split) | the address of any byte of any rank in 64 bits |
//! | [`GlobalMachine`](machine::GlobalMachine) | copies, atomics and fences by such addresses, as a state machine |
//! | [`TableCache`](cache::TableCache) | the tables of other ranks, by which an address is translated without a message |
//! | [`Lock`](lock::Lock), [`LockClaim`](lock::LockClaim) | a lock over remote atomics |
//! | [`page`] | pages that move between ranks |
//! | [`container`] | vectors, deques, lists, sets, maps |
//!
//! The protocols are sans-IO: a caller gives events and carries out operations. Programs
//! use them by the package `tsumugi`.
//!
//! ```
//! use tsumugi_core::mem::Rank;
//! use tsumugi_gas::address::{AddressParts, Split};
//!
//! // How the 64 bits of an address are divided for 1,000 ranks and regions of 1 GiB.
//! let split = Split::fit(1000, 1, 1 << 30)?;
//! let parts = AddressParts { rank: Rank(7), color: 0, region: 1, life: 0, offset: 4096 };
//! let addr = split.addr(parts)?;
//! assert_eq!(split.rank(addr), Some(Rank(7)));
//! let next = split.add(addr, 8).expect("the region is longer");
//! assert_eq!(split.distance(addr, next), Some(8));
//! # Ok::<(), tsumugi_gas::address::SplitError>(())
//! ```
//!
//! Bottom-up; a module uses only modules above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | global addresses: 64 bits that name a byte of any rank |
//! | [`control`] | the memory that each rank provides for the protocols of all ranks |
//! | [`table`] | the table of the regions that a rank has registered |
//! | [`cache`] | copies of other ranks' tables |
//! | [`order`] | the order of operations |
//! | [`request`] | copies, atomics, fences |
//! | [`heap`] | remote malloc and free |
//! | `command` | third-party copies: a rank asks another one to do a copy |
//! | [`machine`] | one rank's part in the global memory |
//! | [`channel`] | messages of any length, in order |
//! | [`lock`] | locks over remote atomics |
//! | [`container`] | vectors, deques, lists, sets, maps in the memory of many ranks |
//! | [`steal`] | work that other ranks may take |
//! | [`page`] | pages that move between ranks, and their directory |
//! | [`ledger`] | the memory that all of it takes, at any number of ranks |
//!
//! # Features
//!
//! None is on unless a package asks for it.
//!
//! | feature | what it adds |
//! |---|---|
//! | `mutants` | defects that a test can plant, in builds with debug assertions; it includes that of `tsumugi-core`, and std |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

pub mod address;
pub mod control;
pub mod table;
pub mod cache;
pub mod order;
pub mod request;
pub mod heap;
mod command;
pub mod machine;
pub mod channel;
pub mod lock;
pub mod container;
pub mod steal;
pub mod page;
pub mod ledger;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;
