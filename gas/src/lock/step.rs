//! Numbers of operations, so that a late or second completion is recognized.

/// The number of an operation of a claim, until the operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(u32);

impl StepId {
    /// The number as a word, which a tag may contain.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The number in such a word.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}
