//! Tests of a rank's NIC endpoints over a scripted wire.

mod arrivals;
mod domains;
mod first_contact;
mod endings;
mod fixture;
mod lookups;
mod losses;
mod packets;
mod posts;
mod regions;
mod script;
