//! Words of any rank as a whole, and sleeping for one's own.

use super::{AccessError, Change, Global, GlobalAddr, GlobalPtr};
use crate::Remote;
use tsumugi_core::mem::{Need, Width};
use tsumugi_core::signal::Until;

impl Global {
    /// Carries out a change of a word; what was there. Blocking.
    pub(crate) fn change(&self, word: Change) -> Result<u64, AccessError> {
        let need = if word.writes() { Need::Write } else { Need::Read };
        let carry = |at: Remote<u64>| self.runtime.carry(&word.at(at.addr()));
        match word.width() {
            Width::W4 => {
                let at = GlobalPtr::<u32>::new(word.target());
                self.with(at, 1, need, |at| carry(Remote::new(at.addr())))
            }
            _ => self.with(GlobalPtr::<u64>::new(word.target()), 1, need, carry),
        }
    }

    /// Sleeps until a word of this rank's own memory is as wanted.
    pub(super) fn wait_word(&self, at: GlobalAddr, until: Until) -> Result<u64, AccessError> {
        let remote = self.translate(at, 8, Need::Read)?.remote;
        let word = self.runtime.wait_until(Remote::new(remote), until);
        word.map_err(|error| AccessError::of(error, at))
    }
}
