//! A page that comes to the rank that asks for it, or to another that takes no
//! part, by remote atomics alone.
//!
//! ```text
//!  the paper's step                   here
//!   1  request                        entry: read; own frame: take
//!   2  lock, invalidate               entry: At → Moving, by us
//!   3  stop, to all that may write    holders: emptied; of each: its gate,
//!   4  invalidate, wait for writes      Pending → Revoked, Valid → Stopped
//!   5  stopped                        ... and wait until nobody is in
//!   6  permission                     (nobody's to give)
//!   7  copy                           bytes: get; header there: gone
//!   8  done    9  new metadata        entry: Moving → At us
//!  10  cached                         (by whoever comes next)
//! ```
//!
//! Who only reads is neither asked nor waited for, however many they are; the
//! frame that the page has left is free after a [`Sweep`](super::Sweep).
//!
//! The bytes are complete before the new header is written, that before the old
//! one is marked, and that before the entry says where the page is: so of all
//! headers that a reader can come to at most one is live with the epoch that
//! the reader was told, and while it is, its bytes are the page's.
//!
//! A mover may die. Whoever asks for the page then takes over from it: any
//! rank may have been left with a valid gate, so all are stopped; and by each mover
//! from then on, for what the dead one had sent to empty the list may come at any
//! time, and take from it who was entered since. If the heir
//! fails, the page stays where it is, but as if it had moved there: the dead one may
//! have marked its header, or may do so yet.

use super::entry::{epoch_of, gone, is_of};
use super::gate::{Gate, GateState};
use super::{Act, Book, Entry, PageId, State, Word};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::mutant;

/// One page on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relocation {
    book: Book,
    /// Whose memory it is to come to, and who sees to it.
    rank: Rank,
    by: Rank,
    page: PageId,
    at: At,
    /// Where it was. The epoch may be wrong after a take-over, until its header
    /// was read.
    from: Entry,
    /// Taken for it, where it is to come to.
    frame: Option<u32>,
    /// Bits of ranks that may hold it, and the one that is being asked.
    holders: u64,
    holder: u32,
    /// A mover that is known to be dead.
    dead: Option<Rank>,
    has_taken_over: bool,
    /// One died while it was in.
    is_tainted: bool,
}

/// A frame that a page has left, and which nobody will be led to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retired {
    /// Whose memory.
    pub owner: Rank,
    /// Which of its frames.
    pub frame: u32,
}

/// Why a page does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// All frames of the rank are taken.
    NoFrame,
    /// A rank died that is needed for it.
    Addr(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Ask,
    /// That one moves it.
    Wait(Rank),
    FindFrame(u32),
    TakeFrame(u32, u64, u32),
    Lock,
    TakeOver(Rank),
    /// The list of holders is believed to be this.
    Disown(u64),
    /// Believed to say this, the gate of a holder is to say that.
    Stop(u64, GateState),
    /// What it says, once more.
    Probe,
    /// Somebody is in.
    Drain,
    ReadHeader,
    Copy,
    Mark,
    MarkOld,
    Commit,
    /// The page stays, in another life, and then this fails.
    Renew(AddrError),
    /// Puts the entry back as it was, and then fails.
    Restore(AddrError),
    /// Whoever takes the own frame next must not find it live.
    Unmark(Refusal),
    /// Gives the own frame back, and then ends so.
    GiveBack(Option<Refusal>),
    Over,
    Refused(Refusal),
}

impl Relocation {
    /// A page that is to come to `rank`, which sees to it.
    pub const fn new(book: Book, rank: Rank, page: PageId) -> Self {
        Self::to(book, rank, rank, page)
    }

    /// A page that is to come to `rank`, seen to by `by`; `rank` takes no part.
    pub const fn to(book: Book, rank: Rank, by: Rank, page: PageId) -> Self {
        let from = Entry { owner: rank, frame: 0, epoch: 0 };
        Self {
            book,
            rank,
            by,
            page,
            at: At::Ask,
            from,
            frame: None,
            holders: 0,
            holder: 0,
            dead: None,
            has_taken_over: false,
            is_tainted: false,
        }
    }

    /// What comes next. At [`Act::Over`] the page is, or was after this began,
    /// there.
    pub fn act(&self) -> Act {
        let Self { book, rank, page, from, .. } = self;
        let moving = self.moving().to_bits();
        let here = self.frame.map(|frame| from.moved(*rank, frame));
        let new = || here.expect("a frame was taken first");
        match self.at {
            At::Ask => Act::Do(book.look(*page)),
            At::Wait(by) => Act::Pause(Some(by)),
            At::Drain => Act::Pause(None),
            At::FindFrame(word) => Act::Do(Word::load(book.bits(*rank, word))),
            At::TakeFrame(word, seen, bit) => {
                Act::Do(Word::exchange(book.bits(*rank, word), seen, seen | 1 << bit))
            }
            At::Lock => Act::Do(Word::exchange(book.entry(*page), from.to_bits(), moving)),
            At::TakeOver(by) => {
                let dead = State::Moving { owner: from.owner, frame: from.frame, by };
                Act::Do(Word::exchange(book.entry(*page), dead.to_bits(), moving))
            }
            At::Disown(seen) if self.has_taken_over => Act::Do(book.distrust(*page, seen)),
            At::Disown(seen) => Act::Do(book.disown(*page, seen)),
            At::Probe => Act::Do(Word::load(book.gate(Rank(self.holder), *page))),
            At::Stop(seen, state) => {
                let gate = Gate { state, ..Gate::from_bits(seen) };
                let at = book.gate(Rank(self.holder), *page);
                Act::Do(Word::exchange(at, seen, gate.to_bits()))
            }
            At::ReadHeader => Act::Do(Word::load(book.header(from.owner, from.frame))),
            At::Copy => Act::Copy { from: book.bytes(*from), to: book.bytes(new()) },
            At::Mark => {
                let at = book.header(*rank, new().frame);
                Act::Do(Word::store(at, new().header(*page)))
            }
            At::MarkOld => {
                let (at, header) = (book.header(from.owner, from.frame), from.header(*page));
                // One that is late does no harm: no other header is the same.
                Act::Do(Word::exchange(at, header, gone(header)))
            }
            At::Commit => Act::Do(Word::exchange(book.entry(*page), moving, new().to_bits())),
            At::Renew(_) => {
                let at = book.header(from.owner, from.frame);
                Act::Do(Word::store(at, from.header(*page)))
            }
            At::Restore(_) => Act::Do(Word::exchange(book.entry(*page), moving, from.to_bits())),
            At::Unmark(_) => {
                let at = book.header(*rank, new().frame);
                Act::Do(Word::store(at, gone(new().header(*page))))
            }
            At::GiveBack(_) => {
                let (at, bit) = book.bit(*rank, new().frame);
                Act::Do(Word::and(at, !bit))
            }
            At::Over => Act::Over,
            At::Refused(Refusal::Addr(error)) => Act::Failed(error),
            At::Refused(Refusal::NoFrame) => Act::Full,
        }
    }

    /// How it ended. A pause on account of a rank that has died ends with
    /// [`AddrError::PeerLost`].
    pub fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match result {
            Ok(old) => self.goes_on(old),
            Err(error) => self.fails(error),
        };
    }

    /// The frame that the page has left, if it is over and there is one.
    pub fn retired(&self) -> Option<Retired> {
        let moved = self.at == At::Over && self.frame.is_some() && !self.is_tainted;
        moved.then_some(Retired { owner: self.from.owner, frame: self.from.frame })
    }

    fn moving(&self) -> State {
        State::Moving { owner: self.from.owner, frame: self.from.frame, by: self.by }
    }

    fn goes_on(&mut self, old: u64) -> At {
        let late = mutant("page_marked_late");
        match self.at {
            At::Ask => self.finds(old),
            At::Wait(_) => At::Ask,
            At::FindFrame(word) => self.looks_for_frame(word, old),
            At::TakeFrame(word, seen, bit) if old == seen => {
                self.frame = Some(word * 64 + bit);
                if self.dead.is_some() { At::Ask } else { At::Lock }
            }
            At::TakeFrame(word, ..) => self.looks_for_frame(word, old),
            At::Lock if old == self.from.to_bits() => At::Disown(0),
            At::Lock => self.finds(old),
            At::TakeOver(by) => {
                let (owner, frame) = (self.from.owner, self.from.frame);
                if old != (State::Moving { owner, frame, by }).to_bits() {
                    return self.finds(old);
                }
                self.has_taken_over = true;
                At::Disown(0)
            }
            At::Disown(seen) if !self.book.is_disowned(seen, old) => At::Disown(old),
            At::Disown(_) => {
                let any = self.has_taken_over && !mutant("page_heir_believes_list");
                self.holders = if any { u64::MAX } else { old };
                self.holder = 0;
                self.seeks_holder()
            }
            At::Probe => self.meets(old),
            At::Stop(seen, state) if old == seen => {
                let is_in = state == GateState::Stopped && Gate::from_bits(seen).count > 0;
                if is_in && !mutant("page_drain_skipped") {
                    At::Drain
                } else {
                    self.leaves_holder()
                }
            }
            At::Stop(..) => self.meets(old),
            At::Drain => At::Probe,
            At::ReadHeader => {
                if is_of(old, self.page) {
                    self.from.epoch = epoch_of(old);
                }
                At::Copy
            }
            At::Copy => At::Mark,
            At::Mark if late || mutant("page_left_unmarked") => At::Commit,
            At::Mark => At::MarkOld,
            At::MarkOld => {
                if late {
                    At::Over
                } else {
                    At::Commit
                }
            }
            At::Commit if old == self.moving().to_bits() => {
                if late {
                    At::MarkOld
                } else {
                    At::Over
                }
            }
            // Somebody took us for dead.
            At::Commit => {
                let own = AddrError::PeerLost { rank: self.by };
                At::Unmark(Refusal::Addr(own))
            }
            At::Renew(error) => At::Restore(error),
            At::Restore(error) => At::Unmark(Refusal::Addr(error)),
            At::Unmark(refusal) => At::GiveBack(Some(refusal)),
            At::GiveBack(None) => {
                self.frame = None;
                At::Over
            }
            At::GiveBack(Some(refusal)) => At::Refused(refusal),
            At::Over | At::Refused(_) => unreachable!("{self:?} asked for nothing"),
        }
    }

    fn fails(&mut self, error: AddrError) -> At {
        let is_death = matches!(error, AddrError::PeerLost { .. });
        match self.at {
            At::Wait(by) if error == (AddrError::PeerLost { rank: by }) => {
                self.dead = Some(by);
                At::Ask
            }
            // What it had begun may land yet, after we have copied.
            At::Probe | At::Stop(..) if is_death => {
                self.is_tainted = true;
                self.leaves_holder()
            }
            At::MarkOld if is_death => {
                self.is_tainted = true;
                At::Commit
            }
            At::Copy | At::Mark | At::MarkOld
                if self.has_taken_over && !mutant("page_heir_restores_epoch") =>
            {
                self.from = self.from.moved(self.from.owner, self.from.frame);
                At::Renew(error)
            }
            At::Probe | At::Stop(..) | At::ReadHeader | At::Copy | At::Mark | At::MarkOld => {
                At::Restore(error)
            }
            // With its owner the page is gone.
            At::Renew(_) => At::Restore(error),
            At::Restore(_) => At::Unmark(Refusal::Addr(error)),
            At::Ask | At::Wait(_) | At::Lock | At::TakeOver(_) | At::Disown(_)
                if self.frame.is_some() =>
            {
                At::GiveBack(Some(Refusal::Addr(error)))
            }
            _ => At::Refused(Refusal::Addr(error)),
        }
    }

    /// What the entry says.
    fn finds(&mut self, bits: u64) -> At {
        let next = match State::from_bits(bits) {
            State::At(entry) if entry.owner == self.rank => {
                return if self.frame.is_some() { At::GiveBack(None) } else { At::Over };
            }
            State::At(entry) => {
                (self.from, self.dead) = (entry, None);
                At::Lock
            }
            State::Moving { owner, frame, by } if self.dead == Some(by) => {
                self.from = Entry { owner, frame, epoch: 0 };
                At::TakeOver(by)
            }
            State::Moving { by, .. } => return At::Wait(by),
        };
        if self.frame.is_some() { next } else { At::FindFrame(self.first_word()) }
    }

    /// Where frames are looked for first: each page has a place of its own
    /// there, where there is room for all; what the rank was dealt lies in its
    /// own.
    fn first_word(&self) -> u32 {
        let words = self.book.shape().frames.div_ceil(64);
        let place = self.book.shape().homes.place(self.page, self.rank);
        (place / 64 % u64::from(words)) as u32
    }

    /// What the bits of frames say.
    fn looks_for_frame(&self, word: u32, bits: u64) -> At {
        let frames = self.book.shape().frames;
        let bit = bits.trailing_ones();
        match word * 64 + bit {
            frame if bit < 64 && frame < frames => At::TakeFrame(word, bits, bit),
            _ => match (word + 1) % frames.div_ceil(64) {
                next if next == self.first_word() => At::Refused(Refusal::NoFrame),
                next => At::FindFrame(next),
            },
        }
    }

    /// What the gate of the holder says.
    fn meets(&mut self, bits: u64) -> At {
        let gate = Gate::from_bits(bits);
        match gate.state {
            _ if gate.page != self.page => self.leaves_holder(),
            GateState::Pending => At::Stop(bits, GateState::Revoked),
            GateState::Valid => At::Stop(bits, GateState::Stopped),
            GateState::Stopped if gate.count > 0 => At::Drain,
            GateState::Stopped | GateState::Revoked | GateState::Empty => self.leaves_holder(),
        }
    }

    fn leaves_holder(&mut self) -> At {
        self.holder += 1;
        self.seeks_holder()
    }

    fn seeks_holder(&mut self) -> At {
        let ranks = self.book.shape().homes.ranks();
        while self.holder < ranks && !Book::may_hold(self.holders, Rank(self.holder)) {
            self.holder += 1;
        }
        match () {
            // Most know the page, and are not in: one operation each then.
            () if self.holder < ranks => {
                let known = Gate::new(self.page, GateState::Valid, 0);
                At::Stop(known.to_bits(), GateState::Stopped)
            }
            () if self.has_taken_over => At::ReadHeader,
            () => At::Copy,
        }
    }
}

#[cfg(test)]
mod tests;
