//! What a domain reports about its device and about the work of its endpoints.

use super::device::Facts;
use core::fmt;

/// The properties that a device reports.
#[derive(Debug)]
pub struct VerbsDescription {
    pub(super) facts: Facts,
}

/// The counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpCounters {
    /// How often requests were given to the device.
    pub doorbells: u64,
    /// How many pairs that reach peers were made.
    pub pairs_made: u64,
    /// How many of them were ended.
    pub pairs_closed: u64,
    /// How many of them were ended by an error.
    pub pairs_broken: u64,
    /// How many messages about pairs were received.
    pub cm_messages: u64,
    /// How many completions and messages were not for this endpoint.
    pub strays: u64,
}

impl fmt::Display for VerbsDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.facts.device, self.facts.port)
    }
}
