//! Bootstrap: how the ranks of a job find each other, behind an interface to the
//! launcher.

use crate::mem::Rank;
use core::fmt;
use core::time::Duration;

/// Bytes of the largest card: the endpoint information that one rank publishes.
pub const CARD_BYTES_MAX: usize = 1024;

/// Ranks of the largest job, on all nodes together.
pub const JOB_RANKS_MAX: u32 = 1 << 24;

/// Bytes of the head of a card: the part that every rank receives of every other
/// rank.
pub const HEAD_BYTES: usize = 24;

/// The head of a card; zeros fill the rest if the card is shorter.
pub type EndpointHead = [u8; HEAD_BYTES];

/// How ranks that have no connection yet exchange one card each: through tsumugi's
/// launcher, a site's launcher, a key-value server, or the embedding program.
///
/// A card has two parts. The head, its first [`HEAD_BYTES`], is the part that every
/// rank needs at start; the rest is needed only by the ranks that communicate with
/// the card's owner.
///
/// Calls block the OS thread, and none is on a data path. All calls are collective
/// except `card` and `heads`.
///
/// # Errors of the exchange
///
/// Besides the errors that it names, each call can return:
///
/// - [`BootError::Disconnected`]: the connection of the exchange broke.
/// - [`BootError::PeerLost`]: the rank that serves the exchange has died or ended.
/// - [`BootError::Refused`]: the exchange refuses this rank or its card.
/// - [`BootError::Garbled`]: a message arrived that does not belong to the exchange.
/// - [`BootError::TimedOut`]: a request got no answer within the time limit of the
///   implementation.
/// - [`BootError::System`]: the system, or the launcher's library, returned an error.
pub trait Bootstrap {
    /// This rank.
    fn rank(&self) -> Rank;

    /// The number of ranks.
    fn size(&self) -> u32;

    /// Publishes this rank's card: at most [`CARD_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// [`BootError::CardTooLong`] if the card is longer, and the
    /// [errors of the exchange](Bootstrap#errors-of-the-exchange).
    fn publish(&mut self, card: &[u8]) -> Result<(), BootError>;

    /// Copies `rank`'s card into `card` and returns its length. Valid after all
    /// ranks have called `publish` and then passed the [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// [`BootError::NoSuchRank`] if `rank` is not below [`size`](Self::size),
    /// [`BootError::NoCard`] if it has published no card, and the
    /// [errors of the exchange](Bootstrap#errors-of-the-exchange).
    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError>;

    /// Calls `each` with the head of each rank's card, in the order of the ranks.
    /// Valid when [`card`](Self::card) is. This default fetches each whole card; an
    /// implementation that can transfer the heads alone overrides it.
    ///
    /// # Errors
    ///
    /// [`BootError::NoCard`] for the first rank that has published no card, and the
    /// [errors of the exchange](Bootstrap#errors-of-the-exchange). `each` was called for
    /// the ranks before.
    fn heads(&mut self, each: &mut dyn FnMut(Rank, &EndpointHead)) -> Result<(), BootError> {
        let mut card = [0; CARD_BYTES_MAX];
        for rank in (0..self.size()).map(Rank) {
            let len = self.card(rank, &mut card)?;
            each(rank, &head_of(&card[..len]));
        }
        Ok(())
    }

    /// Tells the implementation that `card` will not be called any more, so that it
    /// may free the cards that it keeps.
    fn forget(&mut self) {}

    /// Waits until all ranks have called `barrier`.
    ///
    /// # Errors
    ///
    /// [`BootError::Missing`] if a rank has not joined the exchange within the time limit,
    /// [`BootError::PeerLost`] if a rank has died or ended before it arrived, and the
    /// [errors of the exchange](Bootstrap#errors-of-the-exchange).
    fn barrier(&mut self) -> Result<(), BootError>;

    /// Announces that this rank ends on its own. A rank that disappears without this
    /// call has failed, and the launcher may then end the others.
    ///
    /// # Errors
    ///
    /// The [errors of the exchange](Bootstrap#errors-of-the-exchange).
    fn leave(&mut self) -> Result<(), BootError> {
        Ok(())
    }
}

/// A bootstrap that stays usable until [`leave`](Bootstrap::leave): any thread may
/// call its [`card`](Bootstrap::card) at any time after the first barrier, also
/// while this rank waits for the others. So the caller does not have to keep the
/// cards.
pub trait OpenBootstrap: Bootstrap + Send {
    /// Announces that this rank has reached a [`barrier`](Bootstrap::barrier),
    /// without waiting.
    ///
    /// # Errors
    ///
    /// The [errors of the exchange](Bootstrap#errors-of-the-exchange).
    fn arrive(&mut self) -> Result<(), BootError>;

    /// Waits until the other ranks have reached the barrier, but at most for
    /// `within`. Returns false if some have not; the caller then calls again.
    ///
    /// # Errors
    ///
    /// Those of [`barrier`](Bootstrap::barrier).
    fn has_met(&mut self, within: Duration) -> Result<bool, BootError>;
}

/// The head of a card.
pub fn head_of(card: &[u8]) -> EndpointHead {
    let mut head = [0; HEAD_BYTES];
    let bytes = card.len().min(HEAD_BYTES);
    head[..bytes].copy_from_slice(&card[..bytes]);
    head
}

/// Why the bootstrap failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootError {
    /// The card is longer than [`CARD_BYTES_MAX`].
    CardTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The job has no such rank.
    NoSuchRank {
        /// The rank that the caller named.
        rank: Rank,
        /// Ranks of the job.
        size: u32,
    },
    /// A job does not have so many ranks.
    TooManyRanks {
        /// The number of ranks that the caller named.
        size: u32,
    },
    /// The rank has not published its card.
    NoCard {
        /// The rank without a card.
        rank: Rank,
    },
    /// A rank died or ended before the exchange was complete.
    PeerLost {
        /// The rank that died or ended.
        rank: Rank,
    },
    /// A rank did not arrive within the time limit.
    Missing {
        /// The first of the missing ranks.
        rank: Rank,
    },
    /// The connection of the exchange broke.
    Disconnected,
    /// The exchange refuses this rank.
    Refused {
        /// The reason.
        why: &'static str,
    },
    /// A message arrived that does not belong to this exchange.
    Garbled {
        /// The message that was expected.
        what: &'static str,
    },
    /// No answer arrived within the time limit.
    TimedOut {
        /// The request that got no answer.
        what: &'static str,
    },
    /// The system, or the launcher's library, returned an error.
    System {
        /// The call that failed.
        what: &'static str,
        /// Its error number.
        errno: i32,
    },
}

impl BootError {
    /// Refuses a card that is too long: the first check of every exchange.
    ///
    /// # Errors
    ///
    /// [`CardTooLong`](Self::CardTooLong) if the card has more than [`CARD_BYTES_MAX`]
    /// bytes.
    pub const fn check_card(card: &[u8]) -> Result<(), Self> {
        match card.len() {
            0..=CARD_BYTES_MAX => Ok(()),
            bytes => Err(Self::CardTooLong { bytes }),
        }
    }

    /// Refuses a number of ranks for which no job has tables.
    ///
    /// # Errors
    ///
    /// [`TooManyRanks`](Self::TooManyRanks) if `size` is above [`JOB_RANKS_MAX`].
    pub const fn check_size(size: u32) -> Result<(), Self> {
        if size <= JOB_RANKS_MAX { Ok(()) } else { Err(Self::TooManyRanks { size }) }
    }

    /// Refuses a rank that a job of `size` does not have.
    ///
    /// # Errors
    ///
    /// [`NoSuchRank`](Self::NoSuchRank) if `rank` is not below `size`.
    pub const fn check_rank(rank: Rank, size: u32) -> Result<(), Self> {
        if rank.0 < size { Ok(()) } else { Err(Self::NoSuchRank { rank, size }) }
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CardTooLong { bytes } => {
                write!(
                    f,
                    "a card of {bytes} bytes is too long: the limit is {CARD_BYTES_MAX} bytes"
                )
            }
            Self::NoSuchRank { rank, size } => {
                write!(f, "{rank} does not exist: the job has {size} ranks")
            }
            Self::TooManyRanks { size } => {
                write!(
                    f,
                    "a job has at most {JOB_RANKS_MAX} ranks, on all nodes together, not {size}"
                )
            }
            Self::NoCard { rank } => write!(f, "{rank} has published no card"),
            Self::PeerLost { rank } => {
                write!(f, "{rank} died or ended before the bootstrap was complete")
            }
            Self::Missing { rank } => write!(f, "{rank} did not arrive within the time limit"),
            Self::Disconnected => write!(f, "the bootstrap connection of this rank is lost"),
            Self::Refused { why } => write!(f, "this rank is refused: {why}"),
            Self::Garbled { what } => write!(f, "{what} is malformed"),
            Self::TimedOut { what } => write!(f, "{what}: no answer within the time limit"),
            Self::System { what, errno } => write!(f, "{what}: error {errno}"),
        }
    }
}

impl core::error::Error for BootError {}
