//! Tests of a rank's rails over a scripted wire.

mod arrivals;
mod domains;
mod early;
mod endings;
mod fixture;
mod lookups;
mod losses;
mod packets;
mod posts;
mod regions;
mod script;
