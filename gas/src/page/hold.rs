//! A hold: it pins a page, so that the page stays in its place during a write. A
//! hold is one stay in the rank's gate of the page, from entering to leaving.
//!
//! ```text
//!  known     gate: compare-swap  ───────────────────► in ─► the access ─► gate: -1
//!  not known gate: Pending ─► holders: or own bit ─► entry: read ─► kept: write
//!                                                      └─► gate: Pending → Valid, in
//! ```
//!
//! The rank's bit in the list of holders is set before the entry is read (hazard
//! O3). If a mover has locked the entry by then, the hold is repeated; a mover that
//! locks the entry later finds the bit. The gate is `Pending` before the bit is set,
//! and the place is installed by a compare-and-swap from exactly that state: a mover
//! that came in between has made the gate `Revoked` (O2).

use super::gate::{Gate, GateState};
use super::{Act, Book, Entry, PageId, State, Word};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::mutant;

/// One stay in a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    book: Book,
    rank: Rank,
    page: PageId,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Look,
    Enter(u64),
    ReadKept,
    Seize(u64),
    /// The list of holders is expected to have this value.
    Enlist(Option<Entry>, u64),
    Ask,
    Keep(Entry),
    Install(Entry),
    /// Frees the slot, and goes on with this step.
    Withdraw(Next),
    Pause(Option<Rank>),
    Held(Entry),
    Leave,
    Over,
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Again(Option<Rank>),
    Fail(AddrError),
}

impl Hold {
    /// A stay of `rank` that is to begin.
    pub const fn new(book: Book, rank: Rank, page: PageId) -> Self {
        Self { book, rank, page, at: At::Look }
    }

    /// The next step: [`Act::Ready`] is the access, [`Act::Over`] the end.
    #[inline]
    pub fn act(&self) -> Act {
        let Self { book, rank, page, .. } = self;
        let gate = book.gate(*rank, *page);
        let own = |state, count| Gate::new(*page, state, count).to_bits();
        match self.at {
            At::Look => Act::Do(Word::load(gate)),
            At::Enter(_) if mutant("page_count_apart") => Act::Do(Word::add(gate, 1)),
            At::Enter(seen) => Act::Do(Word::exchange(gate, seen, seen + 1)),
            At::ReadKept => Act::Do(Word::load(book.kept(*rank, *page))),
            At::Seize(seen) => Act::Do(Word::exchange(gate, seen, own(GateState::Pending, 0))),
            At::Enlist(_, seen) => Act::Do(book.enlist(*page, *rank, seen)),
            At::Ask => Act::Do(book.look(*page)),
            At::Keep(entry) => Act::Do(Word::store(book.kept(*rank, *page), entry.to_bits())),
            At::Install(_) if mutant("page_install_blind") => {
                Act::Do(Word::store(gate, own(GateState::Valid, 1)))
            }
            At::Install(_) => {
                let (pending, valid) = (own(GateState::Pending, 0), own(GateState::Valid, 1));
                Act::Do(Word::exchange(gate, pending, valid))
            }
            At::Withdraw(_) => Act::Do(Word::store(gate, 0)),
            At::Pause(by) => Act::Pause(by),
            At::Held(entry) => Act::Ready(entry),
            At::Leave => Act::Do(Word::add(gate, u64::MAX)),
            At::Over => Act::Over,
            At::Failed(error) => Act::Failed(error),
        }
    }

    /// Takes the result of the last step. A pause for a rank that has died ends with
    /// [`AddrError::PeerLost`].
    #[inline]
    pub fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match result {
            Ok(old) => self.goes_on(old),
            Err(error) => match self.at {
                At::Enlist(..) | At::Ask | At::Keep(_) => At::Withdraw(Next::Fail(error)),
                _ => At::Failed(error),
            },
        };
    }

    /// Ends the access, which has completed at the remote end or has failed.
    ///
    /// # Panics
    ///
    /// If the last step was not [`Act::Ready`].
    #[inline]
    pub fn release(&mut self) {
        assert!(matches!(self.at, At::Held(_)), "release by a hold that holds nothing: {self:?}");
        self.at = At::Leave;
    }

    #[inline]
    fn goes_on(&self, old: u64) -> At {
        let late = mutant("page_listed_late");
        match self.at {
            At::Look => self.finds(old),
            At::Enter(seen) if old == seen || mutant("page_count_apart") => At::ReadKept,
            At::Enter(_) => self.finds(old),
            At::ReadKept => match State::from_bits(old) {
                State::At(entry) => At::Held(entry),
                State::Moving { .. } => unreachable!("the kept entry {old:#x} moves: {self:?}"),
            },
            At::Seize(seen) if old == seen => {
                if late {
                    At::Ask
                } else {
                    At::Enlist(None, 0)
                }
            }
            At::Seize(_) => self.finds(old),
            At::Enlist(entry, seen) if !self.book.is_enlisted(self.rank, seen, old) => {
                At::Enlist(entry, old)
            }
            At::Enlist(Some(entry), _) => At::Keep(entry),
            At::Enlist(None, _) => At::Ask,
            At::Ask => match State::from_bits(old) {
                State::At(entry) if late => At::Enlist(Some(entry), 0),
                State::At(entry) => At::Keep(entry),
                State::Moving { by, .. } => At::Withdraw(Next::Again(Some(by))),
            },
            At::Keep(entry) => At::Install(entry),
            At::Install(entry) => match Gate::from_bits(old).state {
                GateState::Pending => At::Held(entry),
                _ if mutant("page_install_blind") => At::Held(entry),
                _ => At::Withdraw(Next::Again(None)),
            },
            At::Withdraw(Next::Again(by)) => At::Pause(by),
            At::Withdraw(Next::Fail(error)) => At::Failed(error),
            At::Pause(_) => At::Look,
            At::Leave => At::Over,
            At::Held(_) | At::Over | At::Failed(_) => unreachable!("no answer is due: {self:?}"),
        }
    }

    #[inline]
    fn finds(&self, bits: u64) -> At {
        let gate = Gate::from_bits(bits);
        match gate.state {
            GateState::Valid if gate.page == self.page => At::Enter(bits),
            _ if gate.is_free() => At::Seize(bits),
            // The slot is in use for another page. Or it is of this page, and
            // another hold of this rank reads the entry, or a mover waits for the
            // last hold to leave.
            _ => At::Pause(None),
        }
    }
}
