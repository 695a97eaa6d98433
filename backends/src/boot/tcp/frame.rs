//! Messages as bytes.
//!
//! ```text
//!  length: u32    kind: u8   fields, little-endian, nothing behind them
//!  ├─ of these ──►├──────────────────────────────────────────────────┤
//! ```
//!
//! A length above [`BODY_BYTES_MAX`] is refused before a byte of the body is kept,
//! and a body is accepted only if it is used up exactly. Only a rank accepts longer
//! bodies, from a server that has proved the secret.

use super::heads::{self, HeadRun, RUNS_BYTES_MAX};
use super::secret::{Nonce, Proof};
use std::fmt;
use tsumugi_core::boot::CARD_BYTES_MAX;

/// The messages of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootMessage {
    /// Server, first: the rank must prove that it knows the secret.
    Challenge {
        /// The number that the proof must cover.
        nonce: Nonce,
    },
    /// Server: the server knows the secret, too.
    Welcome {
        /// The proof of that.
        proof: Proof,
    },
    /// Server: the rank is refused.
    Refuse {
        /// The reason.
        why: Refusal,
    },
    /// Server: the request is done.
    Done {
        /// The round of a barrier; 0 for others.
        round: u32,
    },
    /// Server: the requested card.
    Card {
        /// The rank of the card.
        rank: u32,
        /// The card.
        card: Vec<u8>,
    },
    /// Server: the rank has published no card.
    NoCard {
        /// The rank.
        rank: u32,
    },
    /// Server: the heads of the cards, from a rank on.
    Heads {
        /// The first rank.
        from: u32,
        /// The heads, as runs of equal ones.
        runs: Vec<HeadRun>,
    },
    /// Server: the barrier cannot end, because a rank is gone.
    Lost {
        /// The rank.
        rank: u32,
    },
    /// Server: the barrier cannot end, because a rank never came.
    Missing {
        /// The rank.
        rank: u32,
    },
    /// Rank, first: its identity and its proof.
    Hello {
        /// The rank.
        rank: u32,
        /// The number of ranks of the job, as this rank has it.
        size: u32,
        /// A number that is the same in every connection of one process.
        session: u64,
        /// The number that the server's proof must cover.
        nonce: Nonce,
        /// The proof that the rank knows the secret.
        proof: Proof,
    },
    /// Rank: publishes its card.
    Put {
        /// The card.
        card: Vec<u8>,
    },
    /// Rank: requests a card.
    Get {
        /// The rank of the card.
        rank: u32,
    },
    /// Rank: requests the heads of the cards.
    GetHeads {
        /// The first rank.
        from: u32,
    },
    /// Rank: it has arrived at a barrier.
    Barrier {
        /// The number of the barrier, from 1.
        round: u32,
    },
    /// Rank: it is done; its end is no failure.
    Finish,
    /// Agent of a host: these ranks have ended, at most [`ENDS_MAX`].
    Ended {
        /// The ends, in their order.
        ends: Vec<ProcessEnd>,
    },
}

/// How a rank's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// Its exit code, or [`SIGNAL`] plus the signal; in addition [`HEARD`].
    pub how: u32,
}

impl ProcessEnd {
    /// Whether the process ended with exit code 0, which may be no failure.
    pub(super) fn is_clean(&self) -> bool {
        self.how & !HEARD == 0
    }
}

/// Why a server refuses a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// The rank does not know the secret.
    Secret = 1,
    /// The rank uses another version of the protocol.
    Version = 2,
    /// The rank has another size of the job, or is not below it.
    Size = 3,
    /// Another process has this rank.
    Taken = 4,
    /// The rank was declared lost.
    Lost = 5,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The body is longer than any message, or empty.
    Length {
        /// Its length.
        bytes: u32,
    },
    /// No message has this kind.
    Kind {
        /// The kind.
        kind: u8,
    },
    /// The body ends within a field, goes on behind the last one, or has a field
    /// with a value that is not possible.
    Body {
        /// The kind of the message.
        kind: u8,
        /// Its length.
        bytes: usize,
    },
    /// The other end uses another version of the protocol.
    Version {
        /// That version.
        found: u16,
    },
    /// The other end is no tsumugi program.
    Stranger,
}

impl Refusal {
    /// The reason as text, from the rank's point of view.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Secret => "it does not know the job's secret",
            Self::Version => "it has another version of tsumugi than the server",
            Self::Size => "its rank, or its number of ranks, does not fit the server's job",
            Self::Taken => "another process has this rank already",
            Self::Lost => "it was disconnected for too long and was declared lost",
        }
    }
}

impl BootMessage {
    /// The message as a whole frame.
    ///
    /// # Panics
    ///
    /// If a card is longer than [`CARD_BYTES_MAX`], or heads or ends are too many.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut frame = vec![0; 4];
        let mut put = |kind: u8, parts: &[&[u8]]| {
            frame.push(kind);
            parts.iter().for_each(|part| frame.extend_from_slice(part));
        };
        let version = VERSION.to_le_bytes();
        match self {
            Self::Challenge { nonce } => put(CHALLENGE, &[MAGIC, &version, nonce]),
            Self::Welcome { proof } => put(WELCOME, &[proof]),
            Self::Refuse { why } => put(REFUSE, &[&[*why as u8]]),
            Self::Done { round } => put(DONE, &[&round.to_le_bytes()]),
            Self::Card { rank, card } => put(CARD, &[&rank.to_le_bytes(), card]),
            Self::NoCard { rank } => put(NO_CARD, &[&rank.to_le_bytes()]),
            Self::Heads { from, runs } => {
                put(HEADS, &[&from.to_le_bytes(), &heads::to_bytes(runs)]);
            }
            Self::Lost { rank } => put(LOST, &[&rank.to_le_bytes()]),
            Self::Missing { rank } => put(MISSING, &[&rank.to_le_bytes()]),
            Self::Hello { rank, size, session, nonce, proof } => {
                let numbers = [rank.to_le_bytes(), size.to_le_bytes()].concat();
                let session = session.to_le_bytes();
                put(HELLO, &[MAGIC, &version, &numbers, &session, nonce, proof]);
            }
            Self::Put { card } => put(PUT, &[card]),
            Self::Get { rank } => put(GET, &[&rank.to_le_bytes()]),
            Self::GetHeads { from } => put(GET_HEADS, &[&from.to_le_bytes()]),
            Self::Barrier { round } => put(BARRIER, &[&round.to_le_bytes()]),
            Self::Finish => put(FINISH, &[]),
            Self::Ended { ends } => {
                let words = ends.iter().flat_map(|end| [end.rank, end.pid, end.how]);
                put(ENDED, &[&words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()]);
            }
        }
        let body = frame.len() - 4;
        let max = if frame[4] == HEADS { WIDE_BYTES_MAX } else { BODY_BYTES_MAX };
        assert!(body <= max, "a message of {body} bytes: at most {max} are possible");
        frame[..4].copy_from_slice(&(body as u32).to_le_bytes());
        frame
    }

    /// Parses a body.
    ///
    /// # Errors
    ///
    /// A [`FrameError`] if the bytes are not a message:
    ///
    /// - [`FrameError::Length`]: there are no bytes.
    /// - [`FrameError::Kind`]: no message has this kind.
    /// - [`FrameError::Body`]: the fields do not fill the body exactly, or a field has
    ///   a value that is not possible.
    /// - [`FrameError::Stranger`]: the other end is not a tsumugi program.
    /// - [`FrameError::Version`]: the other end uses another version of the protocol.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let (kind, fields) = body.split_first().ok_or(FrameError::Length { bytes: 0 })?;
        let mut fields = Fields { rest: fields, kind: *kind, bytes: body.len() };
        let message = match *kind {
            CHALLENGE => {
                fields.magic()?;
                Self::Challenge { nonce: fields.array()? }
            }
            WELCOME => Self::Welcome { proof: fields.array()? },
            REFUSE => Self::Refuse { why: fields.refusal()? },
            DONE => Self::Done { round: fields.number()? },
            CARD => Self::Card { rank: fields.number()?, card: fields.card()? },
            NO_CARD => Self::NoCard { rank: fields.number()? },
            HEADS => Self::Heads { from: fields.number()?, runs: fields.runs()? },
            LOST => Self::Lost { rank: fields.number()? },
            MISSING => Self::Missing { rank: fields.number()? },
            HELLO => {
                fields.magic()?;
                Self::Hello {
                    rank: fields.number()?,
                    size: fields.number()?,
                    session: u64::from_le_bytes(fields.array()?),
                    nonce: fields.array()?,
                    proof: fields.array()?,
                }
            }
            PUT => Self::Put { card: fields.card()? },
            GET => Self::Get { rank: fields.number()? },
            GET_HEADS => Self::GetHeads { from: fields.number()? },
            BARRIER => Self::Barrier { round: fields.number()? },
            FINISH => Self::Finish,
            ENDED => Self::Ended { ends: fields.ends()? },
            kind => return Err(FrameError::Kind { kind }),
        };
        if fields.rest.is_empty() { Ok(message) } else { Err(fields.bad()) }
    }
}

/// The rest of a body that is being parsed.
struct Fields<'a> {
    rest: &'a [u8],
    kind: u8,
    bytes: usize,
}

impl Fields<'_> {
    fn bad(&self) -> FrameError {
        FrameError::Body { kind: self.kind, bytes: self.bytes }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(self.bad())?;
        self.rest = rest;
        Ok(*field)
    }

    fn number(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    fn magic(&mut self) -> Result<(), FrameError> {
        let magic: [u8; MAGIC.len()] = self.array()?;
        if magic != *MAGIC {
            return Err(FrameError::Stranger);
        }
        match u16::from_le_bytes(self.array()?) {
            VERSION => Ok(()),
            found => Err(FrameError::Version { found }),
        }
    }

    fn refusal(&mut self) -> Result<Refusal, FrameError> {
        let [why] = self.array()?;
        let all = [Refusal::Secret, Refusal::Version, Refusal::Size, Refusal::Taken, Refusal::Lost];
        all.into_iter().find(|refusal| *refusal as u8 == why).ok_or(self.bad())
    }

    fn card(&mut self) -> Result<Vec<u8>, FrameError> {
        let card = std::mem::take(&mut self.rest);
        if card.len() > CARD_BYTES_MAX { Err(self.bad()) } else { Ok(card.to_vec()) }
    }

    fn ends(&mut self) -> Result<Vec<ProcessEnd>, FrameError> {
        let mut ends = Vec::new();
        while !self.rest.is_empty() && ends.len() < ENDS_MAX {
            let (rank, pid, how) = (self.number()?, self.number()?, self.number()?);
            ends.push(ProcessEnd { rank, pid, how });
        }
        Ok(ends)
    }

    fn runs(&mut self) -> Result<Vec<HeadRun>, FrameError> {
        heads::parse(std::mem::take(&mut self.rest)).ok_or(self.bad())
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => write!(f, "a message of {bytes} bytes: empty or too long"),
            Self::Kind { kind } => write!(f, "a message of the unknown kind {kind}"),
            Self::Body { kind, bytes } => {
                write!(f, "a message of kind {kind} whose fields do not fill its {bytes} bytes")
            }
            Self::Version { found } => write!(
                f,
                "the other end uses version {found} of the protocol, this end version {VERSION}"
            ),
            Self::Stranger => f.write_str("the other end is not a tsumugi program"),
        }
    }
}

impl std::error::Error for FrameError {}

/// In [`ProcessEnd::how`], together with the number of a signal.
pub const SIGNAL: u32 = 1 << 8;
/// In [`ProcessEnd::how`], in addition: another rank had been declared lost before, so
/// that this rank may have ended because it learned of that loss.
pub const HEARD: u32 = 1 << 9;
/// The largest number of ends in one message.
pub const ENDS_MAX: usize = 64;
/// The longest body: a card and the fields before it.
pub const BODY_BYTES_MAX: usize = CARD_BYTES_MAX + 8;
/// The longest body from a server that has proved the secret.
pub(super) const WIDE_BYTES_MAX: usize = RUNS_BYTES_MAX + 8;
const MAGIC: &[u8; 8] = b"tsumugi\n";
const VERSION: u16 = 2;
const CHALLENGE: u8 = 1;
const WELCOME: u8 = 2;
const REFUSE: u8 = 3;
const DONE: u8 = 4;
const CARD: u8 = 5;
const NO_CARD: u8 = 6;
const LOST: u8 = 7;
const MISSING: u8 = 8;
const HEADS: u8 = 9;
const HELLO: u8 = 16;
const PUT: u8 = 17;
const GET: u8 = 18;
const BARRIER: u8 = 19;
const FINISH: u8 = 20;
const GET_HEADS: u8 = 21;
const ENDED: u8 = 22;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn all() -> Vec<BootMessage> {
        let (nonce, proof) = ([3; 16], [4; 32]);
        let card = vec![9; CARD_BYTES_MAX];
        vec![
            BootMessage::Challenge { nonce },
            BootMessage::Welcome { proof },
            BootMessage::Refuse { why: Refusal::Taken },
            BootMessage::Done { round: 7 },
            BootMessage::Card { rank: 2, card: card.clone() },
            BootMessage::NoCard { rank: 2 },
            BootMessage::Heads { from: 2, runs: vec![HeadRun { count: 3, head: [5; 24] }; 2] },
            BootMessage::Lost { rank: 2 },
            BootMessage::Missing { rank: 2 },
            BootMessage::Hello { rank: 1, size: 2, session: u64::MAX, nonce, proof },
            BootMessage::Put { card },
            BootMessage::Get { rank: 1 },
            BootMessage::GetHeads { from: 1 },
            BootMessage::Barrier { round: 1 },
            BootMessage::Finish,
            BootMessage::Ended {
                ends: vec![ProcessEnd { rank: 1, pid: 2, how: SIGNAL | 9 }; ENDS_MAX],
            },
        ]
    }

    #[test]
    fn a_body_of_another_length_is_refused() {
        for message in all() {
            let frame = message.to_frame();
            let is_open = matches!(
                message,
                BootMessage::Card { .. }
                    | BootMessage::Put { .. }
                    | BootMessage::Heads { .. }
                    | BootMessage::Ended { .. }
            );
            for len in 5..frame.len() {
                let shorter = BootMessage::parse(&frame[4..len]);
                assert!(shorter.is_err() || is_open, "{len} bytes of {message:?}");
            }
            let longer = [&frame[4..], &[0]].concat();
            assert!(BootMessage::parse(&longer).is_err(), "{message:?}");
        }
    }

    #[test]
    fn another_version_and_another_protocol_are_different_errors() {
        let mut frame = all()[0].to_frame();
        frame[13] = 200;
        assert_eq!(BootMessage::parse(&frame[4..]), Err(FrameError::Version { found: 200 }));
        frame[5] = b'T';
        assert_eq!(BootMessage::parse(&frame[4..]), Err(FrameError::Stranger));
        assert_eq!(BootMessage::parse(&[99]), Err(FrameError::Kind { kind: 99 }));
    }
}
