//! What tests see and change of the active messages.

use super::lanes::STAGING_CELLS;
use super::state::Am;
use std::sync::Weak;
use tsumugi_core::am::HandlerId;
use tsumugi_core::mem::Rank;

impl Am {
    /// The table of the operations on other nodes, for a test whether it was freed.
    ///
    /// # Panics
    ///
    /// If there is no transport.
    pub fn operations(&self) -> Weak<impl Sized + use<>> {
        self.remote.get().expect("the rank has a transport").downgrade()
    }

    /// Casts messages to `handler` of these ranks, with which there were calls before,
    /// until there is no room.
    ///
    /// # Panics
    ///
    /// If a staging cell is free after that.
    pub fn fill_staging(&self, ranks: &[Rank], handler: HandlerId) {
        let mut state = self.lock();
        for rank in ranks {
            let peer = state.peers.find(*rank).expect("a rank that was called");
            while state.machine.cast(peer, handler, b"").is_ok() {}
        }
        assert_eq!(state.machine.staged(), STAGING_CELLS);
    }
}
