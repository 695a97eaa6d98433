//! The owner's side of a board, under the lock that its senders try.

use super::layout::{ANY_TAG, FREE, NONE, OUT_OF_REACH, POSTED, PostList};
use super::post::{BoardPost, PostState};
use super::view::Board;
use crate::mem::LocalRank;
use crate::mutate;
use crate::sync::{Ordering, spin_loop};

impl Board<'_> {
    /// Takes the lock, as the owner: waits for a sender that has the lock, and
    /// takes it from a sender that is [lost](Self::lost). Blocking.
    #[inline]
    pub fn lock(&self, owner: LocalRank) {
        while !self.try_lock(owner) {
            spin_loop();
        }
    }

    /// Does the same without waiting. Returns whether the owner has the lock now.
    /// Wait-free.
    #[inline]
    pub fn try_lock(&self, owner: LocalRank) -> bool {
        let Err(holder) = self.exchange(0, owner) else { return true };
        let is_lost = holder != 0 && self.is_lost(holder - 1);
        mutate!("board_dead_keeps_lock": is_lost => false) && self.exchange(holder, owner).is_ok()
    }

    #[inline(always)]
    fn exchange(&self, holder: u32, owner: LocalRank) -> Result<u32, u32> {
        // Acquire: pairs with the Release in `unlock`. A dead rank has released
        // nothing: it wrote the state of one post, which is one word, and its own
        // expected number, which is not read any more.
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        self.head.lock.compare_exchange(holder, owner.0 + 1, acquire, relaxed)
    }

    /// Marks a sender as dead, so that it does not keep the lock. Any thread of
    /// the owner may call this, also while another thread waits for the lock.
    /// Wait-free.
    pub fn lost(&self, rank: LocalRank) {
        if let Some(source) = self.sources.get(rank.0 as usize) {
            // Release: pairs with the Acquire in `is_lost`; orders all that the
            // caller knows of the death before the mark.
            source.lost.store(1, Ordering::Release);
        }
    }

    fn is_lost(&self, rank: u32) -> bool {
        // Acquire: pairs with the Release in `lost`.
        self.sources
            .get(rank as usize)
            .is_none_or(|source| source.lost.load(Ordering::Acquire) != 0)
    }

    /// Gives the lock back.
    #[inline(always)]
    pub fn unlock(&self) {
        // Release: pairs with the Acquire of the thread that takes the lock next.
        let order = mutate!("board_unlock_relaxed": Ordering::Release => Ordering::Relaxed);
        self.head.lock.store(0, order);
    }

    /// Counts the next message of `source`, which was taken from the lane. The
    /// owner must match the message before it gives the lock back.
    #[inline]
    pub fn expect_next(&self, source: LocalRank) {
        let expected = &self.sources[source.0 as usize].expected;
        // Relaxed: under the lock.
        let next = expected.load(Ordering::Relaxed).wrapping_add(1);
        expected.store(next, Ordering::Relaxed);
    }

    /// Puts a receive on the board. The owner has looked at its unexpected
    /// messages in the same hold.
    ///
    /// # Panics
    ///
    /// If the place is in use, or there is none.
    #[inline]
    pub fn post(&self, index: u32, post: &BoardPost) {
        let entry = &self.entries[index as usize];
        // Relaxed, here and below: under the lock.
        let state = entry.state.load(Ordering::Relaxed);
        assert_eq!(state, FREE, "post {index} is in use");
        let any_tag = if post.pattern.tag.is_none() { ANY_TAG } else { 0 };
        entry.tag.store(post.pattern.tag.unwrap_or(0), Ordering::Relaxed);
        entry.context.store(u32::from(post.pattern.context) | any_tag, Ordering::Relaxed);
        entry.number.store(post.number, Ordering::Relaxed);
        entry.at.store(post.at, Ordering::Relaxed);
        let room = if post.in_reach { post.room } else { OUT_OF_REACH };
        entry.room.store(room, Ordering::Relaxed);
        entry.state.store(POSTED, Ordering::Relaxed);
        let list = self.list(post.pattern.source);
        let last = list.last.load(Ordering::Relaxed);
        entry.prev.store(last, Ordering::Relaxed);
        entry.next.store(NONE, Ordering::Relaxed);
        let from = self.entries.get(last as usize).map_or(&list.first, |last| &last.next);
        from.store(index, Ordering::Relaxed);
        list.last.store(index, Ordering::Relaxed);
    }

    /// Removes a receive that no sender has claimed: it is cancelled, or a
    /// message by lane takes it.
    ///
    /// # Errors
    ///
    /// The state of the post: a sender has claimed it before, and its message is
    /// on the way or there.
    #[inline]
    pub fn withdraw(&self, index: u32, source: Option<LocalRank>) -> Result<(), PostState> {
        let standing = self.standing(index);
        if mutate!("board_withdraws_claimed": standing != PostState::Posted => false) {
            return Err(standing);
        }
        self.remove(index, source);
        Ok(())
    }

    /// Removes a receive that has its message, or that a dead sender had claimed.
    #[inline]
    pub fn remove(&self, index: u32, source: Option<LocalRank>) {
        let entry = &self.entries[index as usize];
        let list = self.list(source);
        // Relaxed: under the lock.
        let prev = entry.prev.load(Ordering::Relaxed);
        let next = entry.next.load(Ordering::Relaxed);
        let before = self.entries.get(prev as usize).map_or(&list.first, |prev| &prev.next);
        before.store(next, Ordering::Relaxed);
        let after = self.entries.get(next as usize).map_or(&list.last, |next| &next.prev);
        after.store(prev, Ordering::Relaxed);
        entry.state.store(FREE, Ordering::Relaxed);
    }

    #[inline(always)]
    fn list(&self, source: Option<LocalRank>) -> &PostList {
        match source {
            Some(source) => &self.sources[source.0 as usize].list,
            None => &self.head.any,
        }
    }
}
