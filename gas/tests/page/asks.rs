//! The accesses of all page protocols as one type, for a ULT that runs any of them.

use tsumugi_gas::page::{DirectoryEntry, PageAction, PageCopy, PageProtocol};

/// The access that a protocol asks for.
pub enum Asks {
    Read(DirectoryEntry),
    Pinned(DirectoryEntry),
    Copy(PageCopy),
}

/// The next step of a protocol.
pub fn next<P: PageProtocol>(protocol: &P, asks: fn(P::Access) -> Asks) -> PageAction<Asks> {
    match protocol.act() {
        PageAction::Do(op) => PageAction::Do(op),
        PageAction::Pause(by) => PageAction::Pause(by),
        PageAction::Access(access) => PageAction::Access(asks(access)),
        PageAction::Over(_) => PageAction::Over(()),
        PageAction::Failed(error) => PageAction::Failed(error),
    }
}
