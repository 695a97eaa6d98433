//! How the messages begin fetches, and offer memory to those of other ranks.

use super::fetch::{Fetch, FetchHandler};
use super::fetch_window;
use super::layer::NetLayer;
use tsumugi_core::mem::{Rank, RemoteAddr};

impl NetLayer {
    /// The word by which ranks of other nodes can [fetch](Self::fetch) these bytes
    /// of this rank, or `None` if they cannot.
    pub(crate) fn place(&self, at: usize, bytes: usize) -> Option<u64> {
        let shared = self.shared();
        shared.windows.as_ref()?.place(shared.registrar(), at, bytes)
    }

    /// Begins to fetch bytes from the place that a rank has sent, which is checked
    /// by that rank's table of regions. The [handler](Self::on_fetched) is called
    /// with `id` when the fetch has ended. False: this device does not fetch.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes until then.
    pub(crate) unsafe fn fetch(
        &self,
        from: Rank,
        place: u64,
        to: *mut u8,
        bytes: u64,
        id: u64,
    ) -> bool {
        let (key, offset) = fetch_window::parts(place);
        let from = RemoteAddr { rank: from, key, offset };
        let does = self.shared().windows.is_some();
        if does {
            self.fetches().begin(Fetch { id, from, to: to.expose_provenance(), bytes });
            self.poll();
        }
        does
    }

    /// Sets the handler of fetches that have ended. The thread that polls calls it;
    /// it must be short and must not block. Once, before the start.
    pub(crate) fn on_fetched(&self, handle: FetchHandler) {
        self.fetches().on_fetched(handle);
    }
}
