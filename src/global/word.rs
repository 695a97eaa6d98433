//! Changes of one word of any rank.

use super::{Change, Global, GlobalAddr, GlobalPtr};
use crate::{AddrError, Remote};
use tsumugi_core::mem::{Need, Width};

impl Global {
    /// Carries out a change of a word and returns the old value. Blocking, as
    /// [`fetch_add`](Self::fetch_add), which is one kind of change.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    pub fn change(&self, word: Change) -> Result<u64, AddrError<GlobalAddr>> {
        let need = if word.writes() { Need::Write } else { Need::Read };
        let carry = |at: Remote<u64>| self.runtime.handle().carry(&word.at(at.addr()));
        match word.width() {
            Width::W4 => {
                let at = GlobalPtr::<u32>::new(word.target());
                self.with(at, 1, need, |at| carry(Remote::new(at.addr())))
            }
            _ => self.with(GlobalPtr::<u64>::new(word.target()), 1, need, carry),
        }
    }
}
