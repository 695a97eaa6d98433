//! The data that all descriptors of a chunk share.

/// The data that all descriptors of a chunk share; they lie before the first
/// descriptor.
#[repr(C, align(64))]
pub(crate) struct Origin {
    /// The scheduler's shared part, as an opaque pointer, because this module must
    /// not depend on `sched`.
    pub(crate) home: *const (),
    /// The number of the chunk's first descriptor.
    pub(crate) first: u32,
}
