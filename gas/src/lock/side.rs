//! The sides of a group lock.

/// The two sides of a group lock. Members of one side hold the lock together, and
/// never together with members of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupSide {
    /// Accesses that hold all targets, shared.
    All = 0,
    /// Accesses that hold some target exclusively.
    Exclusive = 1,
}

impl GroupSide {
    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::All => Self::Exclusive,
            Self::Exclusive => Self::All,
        }
    }

    pub(super) const fn from_bit(word: u64) -> Self {
        if word & 1 == 0 { Self::All } else { Self::Exclusive }
    }

    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// This side, if it is in the set `wants`.
    pub(super) fn of(self, wants: u8) -> Option<Self> {
        (wants & self.bit() != 0).then_some(self)
    }
}
