//! The card of a rank: where the rank is and how to reach it.
//!
//! ```text
//!  'T' 'C' release 2 | network 4 | node 8 | token 8 | kind len len bytes... | ...
//!  ├───────── head: all ranks get it at start ──────┤ ├── on request ─────────┤
//! ```
//!
//! The heads of a node's ranks are equal, except for rank 0's, so that a bootstrap
//! can send them as runs. Fields come in any order; a field of an unknown kind is
//! passed over, so that a later version may add fields. Numbers are little-endian.

use std::fmt;
use tsumugi_core::boot::{CARD_BYTES_MAX, HEAD_BYTES};
use tsumugi_core::release::Release;

/// A rank's card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankCard {
    /// The head, which all ranks get at start.
    pub head: CardHead,
    /// The name of the rank's machine, for messages to people.
    pub host: String,
    /// The address of its network endpoint; empty if it has none.
    pub network: Vec<u8>,
}

/// The part of a card that all ranks get at start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardHead {
    /// Its node, as a number that only ranks of the same node share.
    pub node: u64,
    /// A number that cannot be guessed: rank 0's is the name of the job, the other
    /// ranks have 0.
    pub token: u64,
    /// A digest of the network and of the way in which the rank uses it: ranks with
    /// different numbers cannot communicate. 0: the rank has no network.
    pub network: u32,
}

/// Why bytes are no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CardError {
    /// The bytes do not begin as a card.
    NotACard,
    /// The rank was built with another release.
    Release {
        /// That release.
        found: Release,
    },
    /// The card ends within a field.
    Truncated {
        /// The length of the card.
        bytes: usize,
    },
    /// A field has a length that its kind cannot have, or is not valid text.
    Field {
        /// The kind of the field.
        kind: u8,
        /// The length of the field.
        bytes: usize,
    },
    /// A field that every card has is missing, or is there twice.
    Count {
        /// The kind of the field.
        kind: u8,
    },
}

impl CardHead {
    /// The head as bytes.
    pub fn to_bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..4].copy_from_slice(&Release::OWN.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.network.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.node.to_le_bytes());
        bytes[16..].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }

    /// Parses a head.
    ///
    /// # Errors
    ///
    /// [`CardError::NotACard`] if the bytes do not begin as a card;
    /// [`CardError::Release`] if the rank was built with another release.
    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> Result<Self, CardError> {
        if bytes[..2] != MAGIC {
            return Err(CardError::NotACard);
        }
        let found = Release(u16::from_le_bytes([bytes[2], bytes[3]]));
        if found != Release::OWN {
            return Err(CardError::Release { found });
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Ok(Self { node: word(8), token: word(16), network: (word(0) >> 32) as u32 })
    }
}

impl RankCard {
    /// The card as bytes; a host's name that is too long is cut off.
    ///
    /// # Panics
    ///
    /// If the network address is longer than [`NETWORK_BYTES_MAX`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.network.len();
        assert!(
            bytes <= NETWORK_BYTES_MAX,
            "a network address of {bytes} bytes: a card has room for {NETWORK_BYTES_MAX}"
        );
        let host = &self.host[..self.host.floor_char_boundary(HOST_BYTES_MAX)];
        let mut bytes = self.head.to_bytes().to_vec();
        let mut field = |kind: u8, field: &[u8]| {
            bytes.push(kind);
            bytes.extend((field.len() as u16).to_le_bytes());
            bytes.extend(field);
        };
        field(HOST, host.as_bytes());
        field(NETWORK, &self.network);
        bytes
    }

    /// Parses a card.
    ///
    /// # Errors
    ///
    /// A [`CardError`] if the bytes are not a whole card of this release:
    ///
    /// - [`CardError::NotACard`]: the bytes do not begin as a card.
    /// - [`CardError::Release`]: the rank was built with another release.
    /// - [`CardError::Truncated`]: the card ends within its head or a field.
    /// - [`CardError::Field`]: the name of the host or the network address is too long,
    ///   or the name is not valid UTF-8.
    /// - [`CardError::Count`]: one of these two fields is missing, or there twice.
    pub fn parse(bytes: &[u8]) -> Result<Self, CardError> {
        let truncated = CardError::Truncated { bytes: bytes.len() };
        let Some((head, mut rest)) = bytes.split_first_chunk() else {
            // A short text that is no card is reported as such, not as too short.
            let is_one = matches!(bytes, [a, b, ..] if [*a, *b] == MAGIC);
            return Err(if is_one { truncated } else { CardError::NotACard });
        };
        let head = CardHead::parse(head)?;
        let (mut host, mut network) = (None, None);
        while let [kind, rest_of @ ..] = rest {
            let (len, after) = rest_of.split_first_chunk().ok_or(truncated)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (field, after) = after.split_at_checked(len).ok_or(truncated)?;
            let bad = CardError::Field { kind: *kind, bytes: len };
            let twice = match *kind {
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
            head,
            host: host.ok_or(missing(HOST))?.to_owned(),
            network: network.ok_or(missing(NETWORK))?.to_owned(),
        })
    }
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACard => f.write_str("bytes that are not a card of tsumugi"),
            Self::Release { found } => write!(
                f,
                "it was built with tsumugi {found}, this rank with tsumugi {}: all ranks need \
                 the same release",
                Release::OWN
            ),
            Self::Truncated { bytes } => {
                write!(f, "a card of {bytes} bytes that ends within a field")
            }
            Self::Field { kind, bytes } => {
                write!(
                    f,
                    "a card whose field {kind} of {bytes} bytes is too long or not valid text"
                )
            }
            Self::Count { kind } => {
                write!(f, "a card in which the field {kind} is missing or there twice")
            }
        }
    }
}

impl std::error::Error for CardError {}

/// The longest address of a network endpoint.
pub const NETWORK_BYTES_MAX: usize = 896;
const HOST_BYTES_MAX: usize = 64;
const MAGIC: [u8; 2] = *b"TC";
const HOST: u8 = 3;
const NETWORK: u8 = 4;

const _: () = assert!(HEAD_BYTES + 2 * 3 + HOST_BYTES_MAX + NETWORK_BYTES_MAX <= CARD_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::boot::head_of;

    fn card() -> RankCard {
        let head = CardHead { node: 7, token: u64::MAX, network: 0xabcd_1234 };
        RankCard { head, host: "node01".into(), network: vec![1, 2, 3] }
    }

    #[test]
    fn a_card_is_parsed_as_it_was_written() {
        assert_eq!(RankCard::parse(&card().to_bytes()), Ok(card()));
        let most = RankCard { host: "h".repeat(99), network: vec![0; NETWORK_BYTES_MAX], ..card() };
        assert!(most.to_bytes().len() <= CARD_BYTES_MAX);
        assert_eq!(RankCard::parse(&most.to_bytes()).unwrap().host.len(), HOST_BYTES_MAX);
    }

    #[test]
    fn a_head_is_parsed_without_the_rest_of_its_card() {
        let bytes = card().to_bytes();
        assert_eq!(CardHead::parse(&head_of(&bytes)), Ok(card().head));
        assert_eq!(CardHead::parse(&head_of(&[])), Err(CardError::NotACard));
        let mut other = head_of(&bytes);
        other[1] = b'D';
        assert_eq!(CardHead::parse(&other), Err(CardError::NotACard));
    }

    #[test]
    fn an_unknown_field_is_skipped() {
        let mut bytes = card().to_bytes();
        bytes.extend([200, 2, 0, 9, 9]);
        assert_eq!(RankCard::parse(&bytes), Ok(card()));
    }

    #[test]
    fn every_shorter_card_is_refused() {
        let bytes = card().to_bytes();
        for len in 0..bytes.len() {
            assert!(RankCard::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn an_error_of_the_parser_names_the_wrong_value() {
        let mut bytes = card().to_bytes();
        bytes[2..4].copy_from_slice(&(2_u16 << 12 | 3).to_le_bytes());
        let error = RankCard::parse(&bytes).unwrap_err();
        assert_eq!(error, CardError::Release { found: Release(2 << 12 | 3) });
        assert!(error.to_string().starts_with("it was built with tsumugi 2.0.3, this rank with"));
        let mut twice = card().to_bytes();
        twice.extend([HOST, 1, 0, b'h']);
        assert_eq!(RankCard::parse(&twice), Err(CardError::Count { kind: HOST }));
        let mut long = card().head.to_bytes().to_vec();
        long.extend([HOST, 65, 0]);
        long.extend([b'h'; 65]);
        assert_eq!(RankCard::parse(&long), Err(CardError::Field { kind: HOST, bytes: 65 }));
    }
}
