//! The parts of an address: the values of its fields.

use tsumugi_core::mem::Rank;

/// The parts of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressParts {
    /// The rank that has the memory.
    pub rank: Rank,
    /// The device of that rank by which the memory is accessed.
    pub color: u8,
    /// The name of the region in that rank's table of that colour.
    pub region: u8,
    /// The life of that name.
    pub life: u8,
    /// Bytes from the region's start.
    pub offset: u64,
}

/// Names of regions: 0 to 254 are given away by registration.
pub const REGIONS: usize = 255;
/// The name of the starter memory, which every rank has from the start.
pub const STARTER: u8 = 255;
