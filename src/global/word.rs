//! Changes of one word of any rank.

use super::at_hand::UNKNOWN;
use super::{Change, Global, GlobalAddr, GlobalPtr};
use crate::AddrError;
use tsumugi_core::mem::Need;

impl Global {
    /// Carries out a change of a word of this node that is at hand, and returns the old
    /// value; `None` if nothing was changed. Never waits, so the caller may be a ULT
    /// that must not be suspended.
    #[inline(always)]
    #[doc(hidden)]
    pub fn try_change(&self, word: Change) -> Option<u64> {
        let op = word.at(UNKNOWN);
        if op.notify {
            return None;
        }
        let at = word.target();
        let done = self.try_word(at, &op).or_else(|| self.try_word_fenced(at, &op))?;
        if done.must_tick {
            self.tick();
        }
        Some(done.old)
    }

    /// Carries out a change of a word and returns the old value. Blocking, as
    /// [`fetch_add`](Self::fetch_add), which is one kind of change.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    pub fn change(&self, word: Change) -> Result<u64, AddrError<GlobalAddr>> {
        let op = word.at(UNKNOWN);
        let at = GlobalPtr::<u8>::new(word.target());
        if !op.notify {
            return self.carry(at, op);
        }
        // The ranks that wait for the word are found by its real address.
        let need = if word.writes() { Need::Write } else { Need::Read };
        self.with(at, op.bytes() as usize, need, |at| {
            self.runtime.handle().carry(&word.at(at.addr()))
        })
    }
}
