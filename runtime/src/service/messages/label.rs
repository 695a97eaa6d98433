//! The envelope of a message, and the pattern of a receive.

use tsumugi_core::mem::Rank;
use tsumugi_core::msg::Pattern;

/// The sources from which a receive takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Any rank.
    Any,
    /// This rank.
    Is(Rank),
}

/// The tags that a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tags {
    /// Any tag.
    Any,
    /// This tag.
    Is(u32),
}

/// The source, tag and length of a message that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The rank that sent it.
    pub source: Rank,
    /// Its tag.
    pub tag: u32,
    /// Its length.
    pub bytes: usize,
}

/// When a send ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// When the buffer may be changed.
    Standard,
    /// When the message has met its receive, too.
    Synchronous,
}

/// The pattern of the messages that a receive may match.
#[inline]
pub fn pattern(context: u16, source: Source, tags: Tags) -> Pattern<Rank> {
    let source = match source {
        Source::Any => None,
        Source::Is(rank) => Some(rank),
    };
    let tag = match tags {
        Tags::Any => None,
        Tags::Is(tag) => Some(tag),
    };
    Pattern { context, source, tag }
}

impl Received {
    /// Its length as a number of `T`; `None` if that is no whole number.
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
        Self::Is(rank)
    }
}

impl From<u32> for Tags {
    fn from(tag: u32) -> Self {
        Self::Is(tag)
    }
}
