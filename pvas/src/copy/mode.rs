//! The ways to store.

/// How bytes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyMode {
    /// With the C library's copy.
    #[default]
    Plain,
    /// By the processor's instruction for strings, in short pieces; plain where
    /// it has none.
    Pieces,
    /// Past the caches, by the widest stores that the processor has; plain
    /// where it has none.
    Streaming,
}
