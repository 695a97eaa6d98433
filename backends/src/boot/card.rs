//! What a rank tells all others at start: where it is and how to reach it.
//!
//! ```text
//!  'T' 'C' version   kind len len bytes...   kind len len bytes...   ...
//! ```
//!
//! Fields come in any order; one of a kind that is not known is passed over,
//! so that a later program may say more. Numbers are little-endian.

use std::fmt;
use tsumugi_core::boot::CARD_BYTES_MAX;

/// A rank's card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Its node, as a number that only ranks of the same node share.
    pub node: u64,
    /// A number that nobody can guess; rank 0's is the name of the job.
    pub token: u64,
    /// What its machine is called, for messages to people.
    pub host: String,
    /// The address of its network endpoint; empty if it has none.
    pub network: Vec<u8>,
}

/// Why bytes are no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardError {
    /// It does not begin as one.
    NotACard,
    /// It is of another version of this program.
    Version {
        /// Which.
        found: u8,
    },
    /// It ends within a field.
    Truncated {
        /// After so many bytes.
        bytes: usize,
    },
    /// A field has a length that its kind cannot have, or is no text.
    Field {
        /// Its kind.
        kind: u8,
        /// Its length.
        bytes: usize,
    },
    /// A field that every card has is missing, or is there twice.
    Count {
        /// Its kind.
        kind: u8,
    },
}

impl Card {
    /// As bytes; a host's name is cut off where it is too long.
    ///
    /// # Panics
    ///
    /// If the network address is longer than [`NETWORK_BYTES_MAX`].
    pub fn to_bytes(&self) -> Vec<u8> {
        assert!(self.network.len() <= NETWORK_BYTES_MAX, "{} bytes", self.network.len());
        let host = &self.host[..self.host.floor_char_boundary(HOST_BYTES_MAX)];
        let mut bytes = vec![MAGIC[0], MAGIC[1], VERSION];
        let mut field = |kind: u8, field: &[u8]| {
            bytes.push(kind);
            bytes.extend((field.len() as u16).to_le_bytes());
            bytes.extend(field);
        };
        field(NODE, &self.node.to_le_bytes());
        field(TOKEN, &self.token.to_le_bytes());
        field(HOST, host.as_bytes());
        field(NETWORK, &self.network);
        bytes
    }

    /// What the bytes say.
    ///
    /// # Errors
    ///
    /// [`CardError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, CardError> {
        let truncated = CardError::Truncated { bytes: bytes.len() };
        let mut rest = match bytes {
            [a, b, VERSION, rest @ ..] if [*a, *b] == MAGIC => rest,
            [a, b, found, ..] if [*a, *b] == MAGIC => {
                return Err(CardError::Version { found: *found });
            }
            _ => return Err(CardError::NotACard),
        };
        let (mut node, mut token, mut host, mut network) = (None, None, None, None);
        while let [kind, rest_of @ ..] = rest {
            let (len, after) = rest_of.split_first_chunk().ok_or(truncated)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (field, after) = after.split_at_checked(len).ok_or(truncated)?;
            let bad = CardError::Field { kind: *kind, bytes: len };
            let number = || field.try_into().map(u64::from_le_bytes).map_err(|_| bad);
            let twice = match *kind {
                NODE => node.replace(number()?).is_some(),
                TOKEN => token.replace(number()?).is_some(),
                HOST if len > HOST_BYTES_MAX => return Err(bad),
                HOST => host.replace(std::str::from_utf8(field).map_err(|_| bad)?).is_some(),
                NETWORK if len > NETWORK_BYTES_MAX => return Err(bad),
                NETWORK => network.replace(field).is_some(),
                _ => false,
            };
            if twice {
                return Err(CardError::Count { kind: *kind });
            }
            rest = after;
        }
        let missing = |kind| CardError::Count { kind };
        Ok(Self {
            node: node.ok_or(missing(NODE))?,
            token: token.ok_or(missing(TOKEN))?,
            host: host.ok_or(missing(HOST))?.to_owned(),
            network: network.ok_or(missing(NETWORK))?.to_owned(),
        })
    }
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACard => f.write_str("not a card"),
            Self::Version { found } => {
                write!(f, "a card of version {found}, this program has {VERSION}")
            }
            Self::Truncated { bytes } => write!(f, "a card that breaks off after {bytes} bytes"),
            Self::Field { kind, bytes } => {
                write!(f, "a card whose field {kind} of {bytes} bytes is wrong")
            }
            Self::Count { kind } => write!(f, "a card whose field {kind} is not there once"),
        }
    }
}

impl std::error::Error for CardError {}

/// Longest address of a network endpoint.
pub const NETWORK_BYTES_MAX: usize = 896;
const HOST_BYTES_MAX: usize = 64;
const MAGIC: [u8; 2] = *b"TC";
const VERSION: u8 = 1;
const NODE: u8 = 1;
const TOKEN: u8 = 2;
const HOST: u8 = 3;
const NETWORK: u8 = 4;

const _: () = assert!(3 + 4 * 3 + 8 + 8 + HOST_BYTES_MAX + NETWORK_BYTES_MAX <= CARD_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        Card { node: 7, token: u64::MAX, host: "node01".into(), network: vec![1, 2, 3] }
    }

    #[test]
    fn what_was_said_is_understood() {
        assert_eq!(Card::parse(&card().to_bytes()), Ok(card()));
        let most = Card { host: "h".repeat(99), network: vec![0; NETWORK_BYTES_MAX], ..card() };
        assert!(most.to_bytes().len() <= CARD_BYTES_MAX);
        assert_eq!(Card::parse(&most.to_bytes()).unwrap().host.len(), HOST_BYTES_MAX);
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        let mut bytes = card().to_bytes();
        bytes.extend([200, 2, 0, 9, 9]);
        assert_eq!(Card::parse(&bytes), Ok(card()));
    }

    #[test]
    fn every_shorter_card_is_refused() {
        let bytes = card().to_bytes();
        for len in 0..bytes.len() {
            assert!(Card::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut bytes = card().to_bytes();
        bytes[2] = 9;
        assert_eq!(Card::parse(&bytes), Err(CardError::Version { found: 9 }));
        let mut twice = card().to_bytes();
        twice.extend([NODE, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Card::parse(&twice), Err(CardError::Count { kind: NODE }));
        let short = [b'T', b'C', VERSION, NODE, 7, 0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(Card::parse(&short), Err(CardError::Field { kind: NODE, bytes: 7 }));
    }
}
