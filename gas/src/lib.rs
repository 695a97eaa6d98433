//! One global memory over any way of communication: the part of tsumugi that
//! a PGAS runtime embeds. `no_std`; nothing on a data path allocates.
//!
//! Bottom-up; a module uses only modules above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | 64 bits that name a byte of any rank |
//! | [`lock`] | locks over remote atomics |
#![no_std]

pub mod address;
pub mod lock;
