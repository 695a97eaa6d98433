//! What takes operations to ranks of other nodes, and says later, from whatever
//! thread, how each ended.

use crate::far::{self, Parcel, ParcelError};
use crate::{AddrError, Busy, Rank};
use tsumugi_core::completion::Callback;
use tsumugi_core::mem::{LocalAddr, Region, RegisterError};
use tsumugi_core::op::Op;

/// What carries operations to the ranks of other nodes.
pub(crate) trait Carrier: Send + Sync {
    /// Whether `rank` is of this node: operations on it are carried out at
    /// once, and it is rung over the node's memory.
    fn is_near(&self, rank: Rank) -> bool;

    /// Whether a rank of another node lives, as far as is known here. When
    /// that changes, the death is declared in the lots of this node.
    fn is_alive(&self, rank: Rank) -> bool;

    /// Begins an operation on a rank that is not near; `done` is called exactly
    /// once, on any thread, in here too. A put that has ended well has landed.
    /// After an operation that notifies, [`Am::rang`](super::Am::rang) is
    /// called at the target. Never waits.
    ///
    /// # Errors
    ///
    /// There is no room: nothing has happened.
    fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>>;

    /// Begins a put of at most [`JOINED_BYTES`](far::JOINED_BYTES) bytes and what
    /// comes to pass behind it, at the same rank, as one operation: its result is
    /// that of the second. Never waits.
    ///
    /// # Errors
    ///
    /// There is no room: nothing has happened.
    fn post_joined(&self, put: &Op, then: &Op, done: Callback) -> Result<(), Busy<()>>;

    /// Lends memory of this rank's through which as many bytes pass as it
    /// [carries](far::Far::carried_bytes_max), if there is some now.
    fn lend(&self) -> Option<LocalAddr>;

    /// Whether there will never be any again: all of it went with lost peers.
    fn has_lent_all(&self) -> bool;

    /// Gives it back, when the last operation on it has ended like that.
    fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>);

    /// Shows a region of this rank's to the other nodes.
    ///
    /// # Errors
    ///
    /// The device has no room for it.
    fn show(&self, region: &Region) -> Result<(), RegisterError>;

    /// Sends a greeting, which arrives once or never, if the rank is lost.
    /// Never waits. False: there is no room now.
    fn greet(&self, to: Rank, greeting: &[u8]) -> bool;

    /// Who takes the greetings that come; set once, before the first one.
    fn on_greeting(&self, take: far::Handler);
}

impl Carrier for far::Far {
    fn is_near(&self, rank: Rank) -> bool {
        !self.leads_to(rank)
    }

    fn is_alive(&self, rank: Rank) -> bool {
        self.member().is_alive(rank)
    }

    fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>> {
        Self::post(self, op, done)
    }

    fn post_joined(&self, put: &Op, then: &Op, done: Callback) -> Result<(), Busy<()>> {
        Self::post_joined(self, put, then, done)
    }

    fn lend(&self) -> Option<LocalAddr> {
        Self::lend(self)
    }

    fn has_lent_all(&self) -> bool {
        Self::has_lent_all(self)
    }

    fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>) {
        Self::give_back(self, chunk, result);
    }

    fn show(&self, region: &Region) -> Result<(), RegisterError> {
        self.register(region)
    }

    fn greet(&self, to: Rank, greeting: &[u8]) -> bool {
        let sent = self.try_send(to, Parcel::Greeting, greeting);
        sent != Err(ParcelError::Full)
    }

    fn on_greeting(&self, take: far::Handler) {
        self.on_parcel(Parcel::Greeting, take);
    }
}
