//! The network port of the active messages: it takes operations on ranks of other
//! nodes, and later, on any thread, calls back with the result of each.

use crate::net::{self, Parcel, ParcelError};
use tsumugi_core::completion::Busy;
use tsumugi_core::completion::Callback;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mem::{LocalAddr, Region, RegisterError};
use tsumugi_core::op::Op;

/// Carries operations to the ranks of other nodes.
pub trait Carrier: Send + Sync {
    /// Whether `rank` is of this node: operations on it are carried out at once, and
    /// its doorbell is in the node's memory.
    fn is_near(&self, rank: Rank) -> bool;

    /// Whether a rank of another node lives, as far as this node knows. When this
    /// changes, the death is declared in the lots (waiter tables) of this node.
    fn is_alive(&self, rank: Rank) -> bool;

    /// Begins an operation on a rank of another node. `done` is called exactly once,
    /// on any thread, possibly before this returns. A put that has succeeded has
    /// landed in the target's memory. After an operation that notifies,
    /// [`rang`](crate::service::Service::rang) is called at the target. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room now, and nothing has happened.
    fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>>;

    /// Begins a put of at most `JOINED_BYTES` bytes and a
    /// second operation, on the same rank, which is carried out after the put, as
    /// one operation: its result is that of the second. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room now, and nothing has happened.
    fn post_joined(&self, put: &Op, then: &Op, done: Callback) -> Result<(), Busy<()>>;

    /// Lends a buffer of this rank for a copy between two other ranks, of as many
    /// bytes as are carried at most, if a buffer is
    /// free now.
    fn lend(&self) -> Option<LocalAddr>;

    /// Whether no buffer will ever be free again: all are lost with lost peers.
    fn has_lent_all(&self) -> bool;

    /// Gives a buffer back, when the last operation on it has ended with `result`.
    fn give_back(&self, chunk: LocalAddr, result: Result<u64, AddrError>);

    /// Registers a region of this rank with the device, for the other nodes.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]: the device has no room for it.
    fn show(&self, region: &Region) -> Result<(), RegisterError>;

    /// Sends a greeting, which arrives once, or never if the rank is lost. Never
    /// waits. False: there is no room now.
    fn greet(&self, to: Rank, greeting: &[u8]) -> bool;

    /// Sets the handler of greetings that arrive; once, before the first one.
    fn on_greeting(&self, take: net::ParcelHandler);
}

impl Carrier for net::NetLayer {
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

    fn on_greeting(&self, take: net::ParcelHandler) {
        self.on_parcel(Parcel::Greeting, take);
    }
}
