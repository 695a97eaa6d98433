//! What a program learns of its network: its kind, and how much it has done.

/// The network between nodes, as a job on several of them would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkFacts {
    /// The library, with the provider and its layers for libfabric, or else the kind
    /// of the network.
    pub provider: String,
    /// The device.
    pub device: String,
    /// The capabilities that were tried and did not work, with the result of each.
    pub lacks: Vec<String>,
    /// The operations that the target's processor carries out, on request by a
    /// parcel.
    pub emulated: Vec<&'static str>,
}

/// How much a rank's network has done so far, as
/// `Runtime::network_counts` of the facade returns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkCounts {
    /// Operations that were posted to it: puts, gets, atomics.
    pub operations: u64,
    /// Batches in which they were posted: one doorbell for each.
    pub doorbells: u64,
    /// Cards of other ranks that were requested, each at the first operation on its
    /// rank. 0 where all came at start.
    pub cards: u64,
    /// Bytes of puts and gets that were copied through bounce buffers, because their
    /// memory was not registered.
    pub bounced: u64,
    /// Pieces of such memory that were registered instead.
    pub shown: u64,
    /// Operations of other nodes' ranks that processors of this rank have carried
    /// out, because the device does not do them.
    pub served: u64,
}
