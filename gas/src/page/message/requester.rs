//! What a rank knows of a page that is somewhere.

use super::Message;
use crate::page::Entry;
use tsumugi_core::sync::mutant;

/// What a rank knows of a page, and who of it uses that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requester {
    entry: Option<Entry>,
    /// Answers that are on their way: to a query, and to the own `Moved`. Each
    /// comes, and it is not forgotten before: one that is late must find which
    /// epochs were stopped.
    awaited: u32,
    /// The last epoch that was stopped.
    stopped: Option<u32>,
    /// By the entry that is known.
    now: Count,
    /// By the one that was stopped.
    before: Count,
    owes: Owes,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Want {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// Whether an access may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// There, until it [leaves](Requester::leave).
    Go(Entry),
    /// Not yet: this goes to the home.
    Ask(Message),
    /// Not yet: the home was asked.
    Wait,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Count {
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
    /// An access wants to begin. One that has to wait tries again after the
    /// next message from the home.
    pub fn enter(&mut self, want: Want) -> Enter {
        match self.entry {
            Some(entry) => {
                if !(want == Want::Write && mutant("page_write_uncounted")) {
                    *self.now.of(want) += 1;
                }
                Enter::Go(entry)
            }
            None if self.awaited > 0 => Enter::Wait,
            None => {
                self.awaited += 1;
                Enter::Ask(Message::Query(want))
            }
        }
    }

    /// An access by the entry of that epoch has completed at the remote end,
    /// or failed. What goes to the home.
    pub fn leave(&mut self, want: Want, epoch: u32) -> Option<Message> {
        let is_now = self.entry.is_some_and(|entry| entry.epoch == epoch);
        let count = if is_now { self.now.of(want) } else { self.before.of(want) };
        *count = count.saturating_sub(1);
        self.pays()
    }

    /// A message from the home. What goes to the home.
    pub fn handle(&mut self, message: Message) -> Option<Message> {
        match message {
            Message::Told(entry) => {
                self.awaited = self.awaited.saturating_sub(1);
                let is_late = self.stopped.is_some_and(|epoch| entry.epoch <= epoch);
                if !is_late || mutant("page_stop_forgotten") {
                    self.entry = Some(entry);
                }
                None
            }
            // Of a mover that has died since: nobody waits for the answer.
            Message::Stop(epoch)
                if self.stopped.is_some_and(|last| epoch <= last)
                    && !mutant("page_late_stop_believed") =>
            {
                None
            }
            Message::Stop(epoch) => {
                self.stopped = Some(epoch);
                if self.entry.is_some_and(|entry| entry.epoch <= epoch) {
                    self.entry = None;
                    self.before.reads += self.now.reads;
                    self.before.writes += self.now.writes;
                    self.now = Count::default();
                }
                self.owes = Owes::Stopped(epoch);
                self.pays()
            }
            _ => unreachable!("{message:?} is no requester's"),
        }
    }

    /// The new owner's own copy has ended, and the home hears of it by
    /// [`Message::Moved`]: it answers as if it had been asked, and nobody uses the
    /// page here before. If this rank dies before the home has heard of the move,
    /// the page is where it was, as it was.
    pub fn expect(&mut self) {
        self.awaited += 1;
    }

    /// Whether the rank may forget it, to know another page in its place: it is
    /// listed still, and what is told to it then is acknowledged by a new one.
    pub fn is_idle(&self) -> bool {
        let nobody = self.now == Count::default() && self.before == Count::default();
        nobody && self.awaited == 0 && self.owes == Owes::Nothing
    }

    fn pays(&mut self) -> Option<Message> {
        let Count { reads, writes } = self.before;
        match self.owes {
            Owes::Stopped(epoch) if writes == 0 || mutant("page_stopped_early") => {
                let has_ended = reads == 0;
                self.owes = if has_ended { Owes::Nothing } else { Owes::Ended(epoch) };
                Some(Message::Stopped { epoch, has_ended })
            }
            Owes::Ended(epoch) if reads == 0 => {
                self.owes = Owes::Nothing;
                Some(Message::Ended(epoch))
            }
            _ => None,
        }
    }
}

impl Count {
    fn of(&mut self, want: Want) -> &mut u32 {
        match want {
            Want::Read => &mut self.reads,
            Want::Write => &mut self.writes,
        }
    }
}
