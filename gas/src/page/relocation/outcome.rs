//! What a relocation copies, and how it ends.

use tsumugi_core::mem::{AddrError, Rank, RemoteAddr};

/// A frame that a page has left, and to which no entry leads any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetiredFrame {
    /// The rank of the frame.
    pub owner: Rank,
    /// The index of the frame at that rank.
    pub frame: u32,
}

/// The access of a relocation: copy all bytes of the page to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCopy {
    /// Address of the page's bytes.
    pub from: RemoteAddr,
    /// Address of the frame's bytes.
    pub to: RemoteAddr,
}

/// The end of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The page is at its new owner, or was there at some time since the begin.
    Done {
        /// The page is in another frame than before.
        has_moved: bool,
        /// The frame that the page has left, if that frame may be freed.
        retired: Option<RetiredFrame>,
    },
    /// No frame is left at the new owner.
    NoFrame,
}

/// Why a page was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// All frames of the new owner are taken.
    NoFrame,
    /// A rank has died that is needed for the move.
    Addr(AddrError),
}
