//! The exchange over TCP among threads, and what it does with whoever is no
//! part of the job or goes half-way; every parser with hostile bytes.

mod exchange;
mod hostile;
mod parsers;
