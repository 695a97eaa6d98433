//! Sizes of packets.

/// Bytes of a packet, without its header.
pub(super) const PACKET_BYTES: usize = 4096 - HEADER_BYTES;
/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 16;
/// Buffers for packets at an endpoint, and so the maximum of arrivals that are taken at
/// once.
pub(super) const ARRIVALS: usize = 64;
