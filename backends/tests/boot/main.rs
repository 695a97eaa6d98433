//! The exchange over TCP among threads, its behaviour with connections that are not of
//! the job or that end half-way, and every parser with hostile bytes.

mod exchange;
mod hostile;
mod parsers;
