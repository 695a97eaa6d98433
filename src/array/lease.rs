//! The lease of an array that a rank has made alone or opened.

use super::room::ArrayRoom;
use super::table::ArrayHandle;
use std::sync::Arc;

/// Keeps alive an array that this rank has made or opened.
pub(super) struct Lease {
    pub(super) room: Arc<ArrayRoom>,
    pub(super) handle: ArrayHandle,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If the table cannot be reached, the array stays, as after the death of a
        // rank.
        let _ = self.room.leave(self.handle);
    }
}

impl Lease {
    pub(super) fn handle(&self) -> ArrayHandle {
        self.handle
    }
}
