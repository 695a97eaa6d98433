//! Tags: who a completion is for.

/// One of a fixed number of operations in flight, and which life of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Tag(u64);

impl Tag {
    /// No operation.
    pub const NONE: Self = Self(u64::MAX);
}
