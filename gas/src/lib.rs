//! One global memory over any way of communication: the part of tsumugi that
//! a PGAS runtime embeds. `no_std`; nothing on a data path allocates.
//!
//! Bottom-up; a module uses only modules above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | global addresses: 64 bits that name a byte of any rank |
//! | `error_code` | the 32-bit codes of address errors |
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
#![no_std]

pub mod address;
mod error_code;
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
