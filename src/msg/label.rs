//! What a message is told apart by, and what a receiver asks for.

use crate::Rank;
use tsumugi_core::msg::Pattern;

/// Whom a receive takes a message of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Whoever sent it.
    Any,
    /// This rank.
    Rank(Rank),
}

/// Which tags a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// All.
    Any,
    /// This one.
    Is(u32),
}

/// A message that has come: whose it was, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Who sent it.
    pub source: Rank,
    /// Its tag.
    pub tag: u32,
    /// Its length.
    pub bytes: usize,
}

pub(crate) fn pattern(context: u16, source: Source, tags: Tags) -> Pattern {
    let source = match source {
        Source::Any => None,
        Source::Rank(rank) => Some(rank),
    };
    let tag = match tags {
        Tags::Any => None,
        Tags::Is(tag) => Some(tag),
    };
    Pattern { context, source, tag }
}

impl Received {
    /// How many `T` that is; `None` if it is no whole number.
    pub fn values<T>(&self) -> Option<usize> {
        match size_of::<T>() {
            0 => (self.bytes == 0).then_some(0),
            size if self.bytes.is_multiple_of(size) => Some(self.bytes / size),
            _ => None,
        }
    }
}

impl From<Rank> for Source {
    fn from(rank: Rank) -> Self {
        Self::Rank(rank)
    }
}

impl From<u32> for Tags {
    fn from(tag: u32) -> Self {
        Self::Is(tag)
    }
}
