//! Collectives of groups on a network of the test's own: each algorithm against a
//! serial reference, with deaths, and with up to 100,000 ranks.
#![cfg(not(tsumugi_loom))]

mod case;
mod conformance;
mod deaths;
mod network;
mod rows;
