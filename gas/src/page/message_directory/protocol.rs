//! The messages between a home and the ranks that use its pages.

use crate::page::entry::DirectoryEntry;

/// From the home to a requester or back, about one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DirectoryMessage {
    /// Requester to home: where is the page?
    Query(PageAccess),
    /// Home to requester: the page is there.
    Told(DirectoryEntry),
    /// Home to requester: the page moves, and this is its last epoch there.
    Stop(u32),
    /// Requester to home: no write is under way any more.
    Stopped {
        /// The epoch of the page that was stopped.
        epoch: u32,
        /// No read is under way either.
        has_ended: bool,
    },
    /// Requester to home: no read of this epoch is under way any more.
    Ended(u32),
    /// Requester to home: the requester wants to own the page.
    Own,
    /// Home to requester: the requester owns the page already.
    Yours,
    /// Home to mover: copy the page from there; all ranks are stopped.
    Permit(DirectoryEntry),
    /// Mover to home: the page is at the mover, in this frame.
    Moved(u32),
    /// Mover to home: the page could not be copied.
    Abort,
    /// Home to old owner: no rank reads this frame of yours any more.
    Free(u32),
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageAccess {
    /// The access reads.
    Read,
    /// The access writes.
    Write,
}
