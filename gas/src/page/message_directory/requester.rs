//! The requester's part in the page protocol by messages.

use super::protocol::{DirectoryMessage, PageAccess};
use crate::page::entry::{DirectoryEntry, is_up_to};
use tsumugi_core::mutate;

/// The state of one page at a rank that uses it: the entry, and the accesses by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requester {
    entry: Option<DirectoryEntry>,
    /// Answers that are on their way: to a query, and to the own `Moved`. Each of
    /// them comes, and the rank must not forget the page before: a late answer must
    /// find which epochs were stopped.
    awaited: u32,
    /// The last epoch that was stopped.
    stopped: Option<u32>,
    /// Accesses by the entry that is known.
    now: AccessCount,
    /// Accesses by the entry that was stopped.
    before: AccessCount,
    owes: Owes,
}

/// Whether an access may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// The access may begin at this place, until it [leaves](Requester::leave).
    Go(DirectoryEntry),
    /// Not yet: the caller must send this message to the home.
    Ask(DirectoryMessage),
    /// Not yet: a query to the home is on its way.
    Wait,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct AccessCount {
    reads: u32,
    writes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Owes {
    #[default]
    Nothing,
    Stopped(u32),
    Ended(u32),
}

impl Requester {
    /// Begins an access, if the entry is known. An access that has to wait must try
    /// again after the next message from the home.
    pub fn enter(&mut self, want: PageAccess) -> Enter {
        match self.entry {
            Some(entry) => {
                let is_counted = mutate!("page_write_uncounted":
                    true => want != PageAccess::Write);
                *self.now.of(want) += u32::from(is_counted);
                Enter::Go(entry)
            }
            None if self.awaited > 0 => Enter::Wait,
            None => {
                self.await_answer();
                Enter::Ask(DirectoryMessage::Query(want))
            }
        }
    }

    /// Ends an access by the entry of that epoch, which has completed at the remote
    /// end or has failed. Returns the message to send to the home.
    pub fn leave(&mut self, want: PageAccess, epoch: u32) -> Option<DirectoryMessage> {
        let is_now = self.entry.is_some_and(|entry| entry.epoch == epoch);
        let count = if is_now { self.now.of(want) } else { self.before.of(want) };
        *count = count.saturating_sub(1);
        self.pays()
    }

    /// Handles a message from the home. Returns the message to send to the home.
    pub fn handle(&mut self, message: DirectoryMessage) -> Option<DirectoryMessage> {
        match message {
            DirectoryMessage::Told(entry) => {
                self.awaited = self.awaited.saturating_sub(1);
                let is_late = self.stopped.is_some_and(|last| is_up_to(entry.epoch, last));
                // A known entry has not been stopped, so the page is there. If it stayed there
                // under a new epoch, the accesses of the known one are still counted in `now`.
                let is_first = mutate!("page_entry_replaced": self.entry.is_none() => true);
                if is_first && mutate!("page_stop_forgotten": !is_late => true) {
                    self.entry = Some(entry);
                }
                None
            }
            DirectoryMessage::Stop(epoch) => {
                // Of a mover that has died since: the home does not wait for the
                // answer.
                let is_old = self.stopped.is_some_and(|last| is_up_to(epoch, last));
                if mutate!("page_late_stop_believed": is_old => false) {
                    return None;
                }
                self.stopped = Some(epoch);
                if self.entry.is_some_and(|entry| is_up_to(entry.epoch, epoch)) {
                    self.entry = None;
                    self.before.reads += self.now.reads;
                    self.before.writes += self.now.writes;
                    self.now = AccessCount::default();
                }
                self.owes = Owes::Stopped(epoch);
                self.pays()
            }
            _ => unreachable!("{message:?}: a requester receives no such message"),
        }
    }

    /// Notes that the new owner's copy has ended. The caller sends
    /// [`DirectoryMessage::Moved`] to the home, which answers as if to a query, and no access
    /// uses the page here before that answer. If this rank dies before the home has
    /// handled the message, the page stays where it was, unchanged.
    pub fn expect(&mut self) {
        self.await_answer();
    }

    /// Counts an answer that is to come. A rank that has long not used the page does not compare
    /// the answer's epoch with the one that was stopped last: it may be any number of moves later.
    fn await_answer(&mut self) {
        if self.is_idle() {
            *self = Self::default();
        }
        self.awaited += 1;
    }

    /// Whether the rank may forget the page, to use the memory for another one. The
    /// rank is still listed then; a later `Stop` is acknowledged by a new
    /// `Requester`.
    pub fn is_idle(&self) -> bool {
        let nobody = self.now == AccessCount::default() && self.before == AccessCount::default();
        nobody && self.awaited == 0 && self.owes == Owes::Nothing
    }

    fn pays(&mut self) -> Option<DirectoryMessage> {
        let AccessCount { reads, writes } = self.before;
        let is_drained = mutate!("page_stopped_early": writes == 0 => true);
        match self.owes {
            Owes::Stopped(epoch) if is_drained => {
                let has_ended = reads == 0;
                self.owes = if has_ended { Owes::Nothing } else { Owes::Ended(epoch) };
                Some(DirectoryMessage::Stopped { epoch, has_ended })
            }
            Owes::Ended(epoch) if reads == 0 => {
                self.owes = Owes::Nothing;
                Some(DirectoryMessage::Ended(epoch))
            }
            _ => None,
        }
    }
}

impl AccessCount {
    fn of(&mut self, want: PageAccess) -> &mut u32 {
        match want {
            PageAccess::Read => &mut self.reads,
            PageAccess::Write => &mut self.writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::FIELD_MAX;
    use tsumugi_core::mem::Rank;

    const AT: DirectoryEntry = DirectoryEntry { owner: Rank(0), frame: 0, epoch: 4 };

    /// A requester that has received the place of the page.
    fn told() -> Requester {
        let mut own = Requester::default();
        assert_eq!(
            own.enter(PageAccess::Read),
            Enter::Ask(DirectoryMessage::Query(PageAccess::Read))
        );
        assert_eq!(own.enter(PageAccess::Write), Enter::Wait);
        assert!(!own.is_idle(), "an answer is under way");
        assert_eq!(own.handle(DirectoryMessage::Told(AT)), None);
        own
    }

    /// A stop is answered once; it may come late, from a mover that has died.
    #[test]
    fn a_stop_is_answered_once() {
        let mut own = told();
        let answer = DirectoryMessage::Stopped { epoch: 4, has_ended: true };
        assert_eq!(own.handle(DirectoryMessage::Stop(4)), Some(answer));
        assert_eq!(own.handle(DirectoryMessage::Stop(4)), None);
        assert_eq!(own.handle(DirectoryMessage::Stop(3)), None);
        let answer = DirectoryMessage::Stopped { epoch: 5, has_ended: true };
        assert_eq!(own.handle(DirectoryMessage::Stop(5)), Some(answer));
    }

    /// The page stayed where it was when its mover died, and the `Stop` of that move is late: the
    /// accesses that have begun by the first entry are waited for when the next move begins.
    #[test]
    fn a_known_entry_is_not_replaced() {
        let reads = [false, true].map(|is_early| (PageAccess::Read, is_early));
        let writes = [false, true].map(|is_early| (PageAccess::Write, is_early));
        for (want, is_early) in reads.into_iter().chain(writes) {
            // The answer to the query comes after that to the own `Moved`.
            let mut own = Requester::default();
            assert!(matches!(own.enter(want), Enter::Ask(_)));
            own.expect();
            let (first, second) = (AT, AT.moved(AT.owner, AT.frame));
            let (known, other) = if is_early { (second, first) } else { (first, second) };
            assert_eq!(own.handle(DirectoryMessage::Told(known)), None);
            assert_eq!(own.enter(want), Enter::Go(known));
            assert_eq!(own.handle(DirectoryMessage::Told(other)), None);
            assert_eq!(own.enter(want), Enter::Go(known));
            let stopped = |has_ended| DirectoryMessage::Stopped { epoch: 5, has_ended };
            let answer = own.handle(DirectoryMessage::Stop(5));
            assert_eq!(answer, (want == PageAccess::Read).then_some(stopped(false)));
            assert_eq!(own.leave(want, known.epoch), None);
            let last = match want {
                PageAccess::Read => DirectoryMessage::Ended(5),
                PageAccess::Write => stopped(true),
            };
            assert_eq!(own.leave(want, known.epoch), Some(last));
            assert!(own.is_idle());
        }
    }

    /// The epoch after the largest one is 0.
    #[test]
    fn an_answer_is_taken_when_the_epochs_begin_again() {
        let last = DirectoryEntry { epoch: FIELD_MAX - 1, ..AT };
        for is_read in [false, true] {
            let mut own = Requester::default();
            assert!(matches!(own.enter(PageAccess::Read), Enter::Ask(_)));
            assert_eq!(own.handle(DirectoryMessage::Told(last)), None);
            if is_read {
                assert_eq!(own.enter(PageAccess::Read), Enter::Go(last));
            }
            let stopped = DirectoryMessage::Stopped { epoch: last.epoch, has_ended: !is_read };
            assert_eq!(own.handle(DirectoryMessage::Stop(last.epoch)), Some(stopped));
            assert!(matches!(own.enter(PageAccess::Read), Enter::Ask(_)));
            let next = last.moved(Rank(1), 0);
            assert_eq!(own.handle(DirectoryMessage::Told(next)), None);
            assert_eq!(own.enter(PageAccess::Read), Enter::Go(next));
            let stopped = DirectoryMessage::Stopped { epoch: 0, has_ended: false };
            assert_eq!(own.handle(DirectoryMessage::Stop(0)), Some(stopped));
        }
    }

    /// Between the stop and the next query the page has moved more often than half the number of
    /// epochs.
    #[test]
    fn an_answer_is_taken_after_many_moves_by_others() {
        for moves in [1, FIELD_MAX / 2, FIELD_MAX - 1] {
            for is_mover in [false, true] {
                let mut own = told();
                assert!(own.handle(DirectoryMessage::Stop(AT.epoch)).is_some());
                if is_mover {
                    own.expect();
                } else {
                    assert!(matches!(own.enter(PageAccess::Read), Enter::Ask(_)));
                }
                let entry = DirectoryEntry { epoch: (AT.epoch + moves) % FIELD_MAX, ..AT };
                assert_eq!(own.handle(DirectoryMessage::Told(entry)), None);
                assert_eq!(own.enter(PageAccess::Read), Enter::Go(entry));
            }
        }
    }

    /// A requester that waits for an answer sends no query.
    #[test]
    fn the_new_owner_waits_for_its_message() {
        let mut own = Requester::default();
        own.expect();
        assert!(!own.is_idle());
        assert_eq!(own.enter(PageAccess::Read), Enter::Wait);
        assert_eq!(own.handle(DirectoryMessage::Told(AT)), None);
        assert_eq!(own.enter(PageAccess::Read), Enter::Go(AT));
    }

    #[test]
    fn a_page_in_use_is_not_forgotten() {
        assert!(Requester::default().is_idle() && told().is_idle());
        for want in [PageAccess::Read, PageAccess::Write] {
            let mut own = told();
            assert_eq!(own.enter(want), Enter::Go(AT));
            assert!(!own.is_idle());
            // A stop does not free the page either.
            let answer = own.handle(DirectoryMessage::Stop(4));
            let stopped = DirectoryMessage::Stopped { epoch: 4, has_ended: false };
            assert_eq!(answer, (want == PageAccess::Read).then_some(stopped));
            assert!(!own.is_idle());
            let last = match want {
                PageAccess::Read => DirectoryMessage::Ended(4),
                PageAccess::Write => DirectoryMessage::Stopped { epoch: 4, has_ended: true },
            };
            assert_eq!(own.leave(want, 4), Some(last));
            assert!(own.is_idle());
        }
    }
}
