//! Size classes of stacks.

use crate::area::STACK_BYTES_MIN;
use crate::host::page_bytes;

/// A size class: how many times the ordinary size is doubled, or halved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class(pub(super) u8);

impl Class {
    /// The smallest class with at least `bytes`; `None` if there is none so large.
    pub(crate) fn of(bytes: usize, ordinary_bytes: usize) -> Option<Self> {
        let halved = CLASSES - HALVINGS..CLASSES;
        halved
            .chain(0..CLASSES - HALVINGS)
            .map(|class| Self(class as u8))
            .find(|class| class.bytes(ordinary_bytes).is_some_and(|has| has >= bytes))
    }

    /// The number of the class; 0 for the ordinary size.
    #[inline]
    pub(crate) fn index(self) -> u8 {
        self.0
    }

    /// The class that has this number.
    #[inline]
    pub(crate) fn from_index(index: u8) -> Self {
        Self(index)
    }

    #[inline]
    pub(super) fn is_ordinary(self) -> bool {
        self.0 == 0
    }

    /// The usable bytes of a stack of this class, if such a stack is possible.
    pub(super) fn bytes(self, ordinary_bytes: usize) -> Option<usize> {
        let class = usize::from(self.0);
        let bytes = if class < CLASSES - HALVINGS {
            ordinary_bytes.checked_mul(1 << class)?
        } else {
            ordinary_bytes >> (CLASSES - class)
        };
        (bytes >= STACK_BYTES_MIN && bytes % page_bytes() == 0).then_some(bytes)
    }
}

/// The ordinary size, doubled once to eleven times, halved four times to once.
pub(super) const CLASSES: usize = 16;
const HALVINGS: usize = 4;
