//! The home's part in the page protocol by messages.

use super::protocol::{DirectoryMessage, PageAccess};
use crate::page::entry::DirectoryEntry;
use tsumugi_core::mem::Rank;
use tsumugi_core::mutate;

/// The state of one page at its home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    entry: DirectoryEntry,
    /// The ranks that were told the entry, or an earlier one.
    listed: Ranks,
    moving: Option<Rank>,
    has_permitted: bool,
    /// The ranks from which a `Stopped` is to come, and those from which an `Ended`
    /// is to come.
    stopping: Ranks,
    ending: Ranks,
    /// The epoch of the reads that are to end.
    ending_epoch: u32,
    /// The ranks from which an `Ended` has overtaken the `Stopped`.
    ended: Ranks,
    /// A rank was lost that may use the page's place at any time.
    is_tainted: bool,
    /// The place that the page has left, until the reads there have ended.
    left: Option<DirectoryEntry>,
    /// The ranks that wait to be told the entry, and those that wait to own the
    /// page.
    asking: Ranks,
    owning: Ranks,
    /// The next rank to own the page is the first of `owning` from this number on.
    turn: u32,
    /// The ranks to which a `Told` is to be sent.
    told: Ranks,
    /// The new owner, after its `Moved` was handled.
    heard: Option<Rank>,
    stopped: Ranks,
    permitted: bool,
    yours: Ranks,
    freed: Option<DirectoryEntry>,
}

/// A set of ranks, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Ranks(u64);

impl Home {
    /// The home of a page that is at `entry`, and that no rank knows of.
    pub const fn new(entry: DirectoryEntry) -> Self {
        let none = Ranks(0);
        Self {
            entry,
            listed: none,
            moving: None,
            has_permitted: false,
            stopping: none,
            ending: none,
            ending_epoch: 0,
            ended: none,
            is_tainted: false,
            left: None,
            asking: none,
            owning: none,
            turn: 0,
            told: none,
            heard: None,
            stopped: none,
            permitted: false,
            yours: none,
            freed: None,
        }
    }

    /// Where the page is, or is until it has moved.
    pub const fn entry(&self) -> DirectoryEntry {
        self.entry
    }

    /// Whether the page is on its way, so that queries wait.
    pub const fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// Handles a message from a requester or a mover. Never blocks: a request that
    /// has to wait is noted.
    pub fn handle(&mut self, from: Rank, message: DirectoryMessage) {
        let is_moving = mutate!("page_told_while_moving": self.moving.is_some() => false);
        match message {
            DirectoryMessage::Query(_) if is_moving => self.asking.add(from),
            DirectoryMessage::Query(want) => {
                self.told.add(from);
                let is_listed = mutate!("page_readers_unlisted":
                    true => want != PageAccess::Read);
                if mutate!("page_told_unlisted": is_listed => false) {
                    self.listed.add(from);
                }
            }
            DirectoryMessage::Own => self.owning.add(from),
            DirectoryMessage::Stopped { epoch, has_ended } => {
                let is_asked = epoch == self.entry.epoch && self.stopping.take(from);
                if is_asked && !has_ended && !self.ended.take(from) {
                    self.ending.add(from);
                    self.ending_epoch = epoch;
                }
            }
            // The page may have moved by now, or not. If it stayed where it was, the
            // reads of the epoch before may end as late as during the next move.
            DirectoryMessage::Ended(epoch) => {
                let is_awaited = mutate!("page_end_of_another_epoch":
                    epoch == self.ending_epoch => true);
                let was_awaited = is_awaited && self.ending.take(from);
                if !was_awaited && epoch == self.entry.epoch {
                    self.ended.add(from);
                }
            }
            DirectoryMessage::Moved(frame) if self.moving == Some(from) => {
                let may_be_used = core::mem::take(&mut self.is_tainted);
                let is_free = mutate!("page_taint_forgotten": !may_be_used => true);
                self.left = is_free.then_some(self.entry);
                self.entry = self.entry.moved(from, frame);
                // The new owner does not use the page before it receives the `Told`
                // that answers this message: if it dies first, no write there is
                // lost.
                self.listed = Ranks::default();
                self.listed.add(from);
                self.heard = Some(from);
                self.unlock();
            }
            DirectoryMessage::Abort if self.moving == Some(from) => self.stay(),
            // Of a mover that was taken for dead.
            DirectoryMessage::Moved(_) | DirectoryMessage::Abort => {}
            _ => unreachable!("{message:?}: a home receives no such message"),
        }
        self.go_on();
    }

    /// Handles that a rank has died, or was given up. The caller must not handle
    /// messages that this rank had sent and that come later.
    pub fn handle_lost(&mut self, rank: Rank) {
        let may_write = if self.moving.is_some() { self.stopping } else { self.listed };
        self.is_tainted |= may_write.has(rank);
        // The rank may live, and read the place that the page has left.
        if self.ending.has(rank) && self.left.take().is_none() {
            self.is_tainted = true;
        }
        let Self { listed, stopping, ending, ended, asking, owning, told, stopped, yours, .. } =
            self;
        for ranks in [listed, stopping, ending, ended, asking, owning, told, stopped, yours] {
            ranks.take(rank);
        }
        self.heard.take_if(|heard| *heard == rank);
        if self.moving == Some(rank) {
            self.stay();
        }
        self.go_on();
    }

    /// The next message to send, and its receiver. The caller must send all of them
    /// before it handles the next message.
    pub fn poll(&mut self) -> Option<(Rank, DirectoryMessage)> {
        if let Some(rank) = self.heard.take().or_else(|| self.told.pop()) {
            return Some((rank, DirectoryMessage::Told(self.entry)));
        }
        if let Some(rank) = self.stopped.pop() {
            return Some((rank, DirectoryMessage::Stop(self.entry.epoch)));
        }
        if let Some(rank) = self.yours.pop() {
            return Some((rank, DirectoryMessage::Yours));
        }
        if core::mem::take(&mut self.permitted)
            && let Some(by) = self.moving
        {
            return Some((by, DirectoryMessage::Permit(self.entry)));
        }
        let left = self.freed.take()?;
        Some((left.owner, DirectoryMessage::Free(left.frame)))
    }

    /// The page stays where it was; ranks that were stopped may send queries again.
    fn stay(&mut self) {
        let DirectoryEntry { owner, frame, .. } = self.entry;
        self.entry = self.entry.moved(owner, frame);
        // A rank that has not been stopped yet stays listed.
        self.listed = self.stopping;
        self.unlock();
    }

    fn unlock(&mut self) {
        (self.moving, self.has_permitted, self.permitted) = (None, false, false);
        (self.stopping, self.ended) = (Ranks::default(), Ranks::default());
        self.told.0 |= self.asking.0;
        self.listed.0 |= self.asking.0;
        self.asking = Ranks::default();
    }

    fn go_on(&mut self) {
        let is_drained = mutate!("page_freed_early": self.ending.is_empty() => true);
        if self.left.is_some() && is_drained {
            self.freed = self.left.take();
        }
        if self.moving.is_none() && self.left.is_none() && self.ending.is_empty() {
            self.begin();
        }
        let may_go = self.moving.is_some() && self.stopping.is_empty();
        if may_go && !self.has_permitted {
            (self.has_permitted, self.permitted) = (true, true);
        }
    }

    /// Begins the move to the next rank that waits to own the page.
    fn begin(&mut self) {
        while let Some(by) = self.owning.pop_from(self.turn) {
            if by == self.entry.owner {
                self.yours.add(by);
                continue;
            }
            self.turn = by.0 + 1;
            self.moving = Some(by);
            (self.stopping, self.stopped) = (self.listed, self.listed);
            return;
        }
    }
}

impl Ranks {
    fn add(&mut self, rank: Rank) {
        assert!(rank.0 < RANKS_MAX, "{rank}: a home can list {RANKS_MAX} ranks");
        self.0 |= 1 << rank.0;
    }

    fn take(&mut self, rank: Rank) -> bool {
        let was = self.0;
        self.0 &= !1u64.checked_shl(rank.0).unwrap_or(0);
        self.0 != was
    }

    fn has(self, rank: Rank) -> bool {
        self.0 & 1u64.checked_shl(rank.0).unwrap_or(0) != 0
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn pop(&mut self) -> Option<Rank> {
        self.pop_from(0)
    }

    /// Takes the first rank from `turn` on, or else the first of all.
    fn pop_from(&mut self, turn: u32) -> Option<Rank> {
        let later = self.0 & u64::MAX.checked_shl(turn).unwrap_or(0);
        let among = if later == 0 { self.0 } else { later };
        let rank = Rank(among.trailing_zeros());
        self.take(rank).then_some(rank)
    }
}

/// Number of ranks that a home can list: one bit each.
pub const RANKS_MAX: u32 = 64;

#[cfg(test)]
mod tests;
