//! What the page protocols by remote atomics have in common: they are sans-IO state
//! machines, and one function drives all of them.
//!
//! ```text
//!   protocol                          driver
//!   act ──── Do(op) ──────────────►  carries the operation out
//!       ──── Pause(rank) ─────────►  lets other threads and ranks go on
//!       ──── Access(what) ────────►  reads, writes or copies the page
//!       ◄──────────────── answer ──  the old value of the word, or an error
//!       ──── Over(outcome) ───────►  returns
//! ```

use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::Op;

/// The next step of a page protocol.
#[derive(Clone, Copy, Debug)]
pub enum PageAction<A, O = ()> {
    /// Carry out this operation on a word, with remote completion. The answer is the
    /// old value of the word.
    Do(Op),
    /// Wait some time, so that other threads of this rank and of other ranks go on.
    /// If a rank is named and that rank is dead, the answer is
    /// [`AddrError::PeerLost`].
    Pause(Option<Rank>),
    /// Access the page as the protocol says, and answer as it says.
    Access(A),
    /// The protocol has ended.
    Over(O),
    /// The protocol has failed.
    Failed(AddrError),
}

/// A protocol on one page, or on all of them, as a state machine without IO.
pub trait PageProtocol {
    /// The access to the page that the driver carries out.
    type Access;
    /// The result at the end.
    type Outcome;

    /// The next step.
    fn act(&self) -> PageAction<Self::Access, Self::Outcome>;

    /// Takes the result of the last step. A pause for a rank that has died ends with
    /// [`AddrError::PeerLost`].
    fn answer(&mut self, result: Result<u64, AddrError>);
}

/// The operations and pauses of a rank's protocols, each of which returns when it has
/// ended.
pub trait PageDriver {
    /// Carries out an operation on a word, with remote completion, and returns the old
    /// value.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank of the word has died; another [`AddrError`]
    /// if the word is out of reach.
    fn carry(&self, op: &Op) -> Result<u64, AddrError>;

    /// Lets other threads and ranks go on.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if `by` is a rank that has died.
    fn pause(&mut self, by: Option<Rank>) -> Result<u64, AddrError>;
}

/// Runs a protocol to its end; `access` carries out its accesses to the page.
///
/// # Errors
///
/// That of [`PageAction::Failed`].
#[inline]
pub fn drive<P: PageProtocol>(
    mut protocol: P,
    driver: &mut impl PageDriver,
    mut access: impl FnMut(P::Access) -> Result<u64, AddrError>,
) -> Result<P::Outcome, AddrError> {
    loop {
        let answer = match protocol.act() {
            PageAction::Do(op) => driver.carry(&op),
            PageAction::Pause(by) => driver.pause(by),
            PageAction::Access(what) => access(what),
            PageAction::Over(outcome) => return Ok(outcome),
            PageAction::Failed(error) => return Err(error),
        };
        protocol.answer(answer);
    }
}
