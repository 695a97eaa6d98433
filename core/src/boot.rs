//! Finding each other: the seam to whoever started the ranks.

use crate::mem::Rank;
use core::fmt;
use core::time::Duration;

/// Bytes that one rank may tell the others.
pub const CARD_BYTES_MAX: usize = 1024;

/// Bytes of the start of a card: what everybody is told of everybody.
pub const HEAD_BYTES: usize = 24;

/// The start of a card; zeros stand for what a shorter one has not.
pub type Head = [u8; HEAD_BYTES];

/// How ranks that do not know each other yet exchange one card each. A
/// launcher of ours, a site's, a key-value server, or the embedding program.
///
/// A card has two parts. Its head, the first [`HEAD_BYTES`], is what everybody
/// has to know at start; the rest is for those who speak to that rank.
///
/// Calls block an OS thread; none is on a data path. All but `card` and `heads`
/// are collective.
pub trait Bootstrap {
    /// Which rank this is.
    fn rank(&self) -> Rank;

    /// How many there are.
    fn size(&self) -> u32;

    /// Publishes this rank's card: at most [`CARD_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn publish(&mut self, card: &[u8]) -> Result<(), BootError>;

    /// Copies `rank`'s card into `card` and returns its length. Valid after
    /// the [`barrier`](Self::barrier) that followed everybody's `publish`.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError>;

    /// Hands over the head of everybody's card, in the order of the ranks.
    /// Valid like [`card`](Self::card), which each is asked for unless the way
    /// has a shorter one.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn heads(&mut self, each: &mut dyn FnMut(Rank, &Head)) -> Result<(), BootError> {
        let mut card = [0; CARD_BYTES_MAX];
        for rank in (0..self.size()).map(Rank) {
            let len = self.card(rank, &mut card)?;
            each(rank, &head_of(&card[..len]));
        }
        Ok(())
    }

    /// Nobody will ask for a card any more: what is kept of them may go.
    fn forget(&mut self) {}

    /// Waits for all ranks.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn barrier(&mut self) -> Result<(), BootError>;

    /// Says that this rank ends by itself. One that is gone without a word has
    /// failed, and whoever started it may end the others.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn leave(&mut self) -> Result<(), BootError> {
        Ok(())
    }
}

/// One that is there until [`leave`](Bootstrap::leave): its
/// [`card`](Bootstrap::card) may be called at any time after the first barrier,
/// by whatever thread, also while this rank waits for the others. Cards need
/// then not be kept.
pub trait OpenBootstrap: Bootstrap + Send {
    /// Says that this rank has come to a [`barrier`](Bootstrap::barrier).
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn arrive(&mut self) -> Result<(), BootError>;

    /// Waits for the others to come, but not for longer than that. False: they
    /// have not; the caller asks again.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    fn has_met(&mut self, within: Duration) -> Result<bool, BootError>;
}

/// The head of a card.
pub fn head_of(card: &[u8]) -> Head {
    let mut head = [0; HEAD_BYTES];
    let bytes = card.len().min(HEAD_BYTES);
    head[..bytes].copy_from_slice(&card[..bytes]);
    head
}

/// Why ranks did not find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The card is longer than [`CARD_BYTES_MAX`].
    CardTooLong {
        /// Its length.
        bytes: usize,
    },
    /// No such rank.
    NoSuchRank {
        /// What was asked for.
        rank: Rank,
        /// Ranks of the job.
        size: u32,
    },
    /// The rank has not published its card.
    NoCard {
        /// Whose.
        rank: Rank,
    },
    /// A rank died before it was found.
    PeerLost {
        /// Which.
        rank: Rank,
    },
    /// A rank did not come within the time limit.
    Missing {
        /// Which, the first of them.
        rank: Rank,
    },
    /// The exchange itself broke off.
    Disconnected,
    /// The exchange does not take this rank.
    Refused {
        /// Why.
        why: &'static str,
    },
    /// Something came that is not of this exchange.
    Garbled {
        /// What it should have been.
        what: &'static str,
    },
    /// Nobody answered within the time limit.
    TimedOut {
        /// What was asked for.
        what: &'static str,
    },
    /// The system, or the launcher's library, refused something.
    System {
        /// What.
        what: &'static str,
        /// Its error number.
        errno: i32,
    },
}

impl BootError {
    /// Refuses a card that is too long: what every exchange looks at first.
    ///
    /// # Errors
    ///
    /// [`CardTooLong`](Self::CardTooLong).
    pub const fn check_card(card: &[u8]) -> Result<(), Self> {
        match card.len() {
            0..=CARD_BYTES_MAX => Ok(()),
            bytes => Err(Self::CardTooLong { bytes }),
        }
    }

    /// Refuses a rank that a job of `size` does not have.
    ///
    /// # Errors
    ///
    /// [`NoSuchRank`](Self::NoSuchRank).
    pub const fn check_rank(rank: Rank, size: u32) -> Result<(), Self> {
        if rank.0 < size { Ok(()) } else { Err(Self::NoSuchRank { rank, size }) }
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CardTooLong { bytes } => {
                write!(f, "a card of {bytes} bytes is longer than {CARD_BYTES_MAX}")
            }
            Self::NoSuchRank { rank, size } => {
                write!(f, "{rank} does not exist: the job has {size} ranks")
            }
            Self::NoCard { rank } => write!(f, "{rank} has published no card"),
            Self::PeerLost { rank } => write!(f, "{rank} died during start"),
            Self::Missing { rank } => write!(f, "{rank} did not come in time"),
            Self::Disconnected => write!(f, "the launcher has gone away"),
            Self::Refused { why } => write!(f, "this rank is refused: {why}"),
            Self::Garbled { what } => write!(f, "{what} is not understood"),
            Self::TimedOut { what } => write!(f, "{what}: no answer in time"),
            Self::System { what, errno } => write!(f, "{what}: error {errno}"),
        }
    }
}

impl core::error::Error for BootError {}
