//! The card that a rank publishes at start: the addresses of its endpoints, and
//! where the directory of its regions is.
//!
//! ```text
//!  magic 4 | version 2 | endpoints 2 | job 8 | kind of address 8
//!  name bytes 2 | name of the network
//!  for each endpoint:
//!    address bytes 2 | address | origin 8 | key bytes 2 | key
//! ```
//!
//! All numbers are little-endian. A card comes from the network: its parser
//! takes any bytes and never reads outside them.

use super::wire::{ADDRESS_BYTES_MAX, KEY_WORDS, WireKey};
use core::fmt;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::excerpt::Excerpt;

/// The card of a rank; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndpointCard {
    pub job: u64,
    /// A number of the provider and the address format; ranks must have the same.
    pub kind: u64,
    /// The name of the network, for the error message of a rank that has another.
    pub name: Excerpt,
    pub endpoints: Vec<CardEndpoint>,
}

/// One endpoint of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CardEndpoint {
    pub address: Vec<u8>,
    /// Where the endpoint's directory starts, and the key for it.
    pub origin: u64,
    pub key: WireKey,
}

/// Why a card was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CardError {
    /// The card ends within a field, has bytes after the last field, or is longer
    /// than any card.
    Length {
        /// The length of the card.
        bytes: usize,
    },
    /// The bytes are no card, or one of another version.
    Form {
        /// The first six bytes.
        start: u64,
    },
    /// The card belongs to another job.
    Job {
        /// That job.
        job: u64,
    },
    /// The rank is on another network, uses another provider, or another form of
    /// addresses.
    Kind {
        /// The peer's network.
        theirs: Excerpt,
        /// This rank's network.
        own: Excerpt,
    },
    /// A number in the card is out of its range.
    Number {
        /// The name of the number.
        name: &'static str,
        /// Its value.
        value: usize,
    },
    /// The card could not be obtained.
    Untold {
        /// The error of the bootstrap.
        why: BootError,
    },
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { bytes } => {
                write!(f, "its card of {bytes} bytes is cut off, or too long for its fields")
            }
            Self::Form { start } if start as u32 == START as u32 => {
                let (theirs, own) = (start >> 32, START >> 32);
                write!(
                    f,
                    "it uses version {theirs} of the network protocol, this rank version {own}: \
                     all ranks need the same version of tsumugi"
                )
            }
            Self::Form { start } => {
                write!(f, "its card begins with {start:#x}, which is not a card of tsumugi")
            }
            Self::Job { job } => write!(f, "its card belongs to another job ({job:#x})"),
            Self::Kind { theirs, own } => {
                let (theirs, own) = (theirs.as_str(), own.as_str());
                write!(f, "its network is {theirs}, this rank's is {own}: they must be the same")
            }
            Self::Number { name, value } => write!(f, "its card has a wrong {name}: {value}"),
            Self::Untold { why } => write!(f, "its card could not be obtained: {why}"),
        }
    }
}

impl std::error::Error for CardError {}

impl EndpointCard {
    /// A number that differs if ranks cannot communicate, as far as this is visible
    /// without their addresses; never 0.
    pub(super) fn mark(&self) -> u32 {
        let bytes = self.endpoints.first().map_or(0, |place| place.address.len());
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in [START, self.kind, bytes as u64].into_iter().flat_map(u64::to_le_bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        ((hash >> 32) as u32 ^ hash as u32).max(1)
    }

    /// The card as bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = START.to_le_bytes()[..6].to_vec();
        bytes.extend((self.endpoints.len() as u16).to_le_bytes());
        bytes.extend(self.job.to_le_bytes());
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend((self.name.as_str().len() as u16).to_le_bytes());
        bytes.extend(self.name.as_str().as_bytes());
        for place in &self.endpoints {
            bytes.extend((place.address.len() as u16).to_le_bytes());
            bytes.extend(&place.address);
            bytes.extend(place.origin.to_le_bytes());
            bytes.extend((place.key.bytes as u16).to_le_bytes());
            let words = place.key.words.iter().flat_map(|word| word.to_le_bytes());
            bytes.extend(words.take(place.key.bytes as usize));
        }
        bytes
    }

    /// Parses a peer's card and compares it with `own`, the card of this rank.
    pub(super) fn parse(bytes: &[u8], own: &Self) -> Result<Self, CardError> {
        let mut reader = Reader { rest: bytes, bytes: bytes.len() };
        if bytes.len() > CARD_BYTES_MAX {
            return Err(CardError::Length { bytes: bytes.len() });
        }
        let start = reader.number(6)?;
        if start != START {
            return Err(CardError::Form { start });
        }
        let count = reader.count("number of endpoints", 1, ENDPOINTS_MAX)?;
        let job = reader.number(8)?;
        if job != own.job {
            return Err(CardError::Job { job });
        }
        let kind = reader.number(8)?;
        let length = reader.count("length of its network's name", 0, NAME_BYTES_MAX)?;
        let name = Excerpt::new(core::str::from_utf8(reader.take(length)?).unwrap_or("?"));
        if kind != own.kind {
            return Err(CardError::Kind { theirs: name, own: own.name });
        }
        // A provider reads as many bytes of an address as its own addresses have.
        let wanted = own.endpoints.first().map_or(0, |place| place.address.len());
        let mut endpoints = Vec::new();
        for _ in 0..count {
            let length = reader.count("address length", wanted, wanted.min(ADDRESS_BYTES_MAX))?;
            let address = reader.take(length)?.to_vec();
            let origin = reader.number(8)?;
            let key_bytes = reader.count("key length", 1, KEY_WORDS * 8)?;
            let mut key = [0u8; KEY_WORDS * 8];
            key[..key_bytes].copy_from_slice(reader.take(key_bytes)?);
            let (words, _) = key.as_chunks::<8>();
            let words = core::array::from_fn(|at| u64::from_le_bytes(words[at]));
            endpoints.push(CardEndpoint {
                address,
                origin,
                key: WireKey { bytes: key_bytes as u32, words },
            });
        }
        if !reader.rest.is_empty() {
            return Err(CardError::Length { bytes: bytes.len() });
        }
        Ok(Self { job, kind, name, endpoints })
    }
}

/// Bytes that have not been read yet.
struct Reader<'b> {
    rest: &'b [u8],
    bytes: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], CardError> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or(CardError::Length { bytes: self.bytes })?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, CardError> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(word))
    }

    fn count(&mut self, name: &'static str, min: usize, max: usize) -> Result<usize, CardError> {
        let value = self.number(2)? as usize;
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(CardError::Number { name, value })
        }
    }
}

/// The largest number of endpoints in a card.
pub const ENDPOINTS_MAX: usize = 16;

/// "TsOf" and the version.
const START: u64 = u32::from_le_bytes(*b"TsOf") as u64 | 2 << 32;

/// The length of an excerpt.
const NAME_BYTES_MAX: usize = 31;

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_conformance::Seeded;

    fn place(address: u8) -> CardEndpoint {
        CardEndpoint { address: vec![address; 16], origin: 0x7000, key: WireKey::of(77) }
    }

    fn card(endpoints: u8) -> EndpointCard {
        let name = Excerpt::new("a network");
        EndpointCard { job: 9, kind: 3, name, endpoints: (0..endpoints).map(place).collect() }
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let mut long = card(4);
        long.endpoints[2].key = WireKey { bytes: 80, words: [5; KEY_WORDS] };
        for card in [card(1), long, card(16)] {
            assert_eq!(EndpointCard::parse(&card.to_bytes(), &self::card(1)), Ok(card));
        }
    }

    #[test]
    fn other_jobs_and_providers_are_refused() {
        let own = card(1);
        let parse = |card: EndpointCard| EndpointCard::parse(&card.to_bytes(), &own);
        assert_eq!(parse(EndpointCard { job: 8, ..card(1) }), Err(CardError::Job { job: 8 }));
        let theirs = Excerpt::new("another network");
        let other = parse(EndpointCard { kind: 4, name: theirs, ..card(1) }).unwrap_err();
        assert_eq!(other, CardError::Kind { theirs, own: own.name });
        let networks = "its network is another network, this rank's is a network: ";
        assert!(other.to_string().starts_with(networks), "{other}");
        let mut short = card(1);
        short.endpoints[0].address.pop();
        let length = CardError::Number { name: "address length", value: 15 };
        assert_eq!(parse(short), Err(length));
        let mut bytes = own.to_bytes();
        bytes[4] = 9;
        let older = EndpointCard::parse(&bytes, &own).unwrap_err().to_string();
        let versions = "it uses version 9 of the network protocol, this rank version 2: ";
        assert!(older.starts_with(versions), "{older}");
        bytes[0] = b'?';
        assert!(matches!(EndpointCard::parse(&bytes, &own), Err(CardError::Form { .. })));
        let none = CardError::Number { name: "number of endpoints", value: 0 };
        assert_eq!(parse(card(0)), Err(none));
    }

    #[test]
    fn a_mark_depends_on_the_network_and_not_on_the_rank() {
        let other = EndpointCard { job: 1, endpoints: vec![place(9)], ..card(3) };
        assert_eq!(card(1).mark(), other.mark());
        assert_ne!(card(1).mark(), EndpointCard { kind: 4, ..card(1) }.mark());
        let mut longer = card(1);
        longer.endpoints[0].address.push(0);
        assert_ne!(card(1).mark(), longer.mark());
    }

    #[test]
    fn cut_and_longer_cards_are_refused() {
        let (own, bytes) = (card(1), card(3).to_bytes());
        for end in 0..bytes.len() {
            assert!(EndpointCard::parse(&bytes[..end], &own).is_err(), "cut at {end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(
            EndpointCard::parse(&longer, &own),
            Err(CardError::Length { bytes: longer.len() })
        );
        assert!(EndpointCard::parse(&vec![0; 1 << 16], &own).is_err());
    }

    #[test]
    fn numbers_are_accepted_up_to_their_limits() {
        let own = card(1);
        let parse = |card: &EndpointCard| EndpointCard::parse(&card.to_bytes(), &own);
        let number = |name, value| CardError::Number { name, value };
        assert!(parse(&card(ENDPOINTS_MAX as u8)).is_ok());
        assert_eq!(parse(&card(17)), Err(number("number of endpoints", 17)));
        let key = |bytes| {
            let mut card = card(2);
            card.endpoints[1].key = WireKey { bytes, words: [0; KEY_WORDS] };
            parse(&card).map(|card| card.endpoints[1].key.bytes)
        };
        assert_eq!((key(1), key(80)), (Ok(1), Ok(80)));
        assert_eq!(key(0), Err(number("key length", 0)));
        let mut bytes = own.to_bytes();
        let at = bytes.len() - 10;
        bytes[at..at + 2].copy_from_slice(&81u16.to_le_bytes());
        assert_eq!(EndpointCard::parse(&bytes, &own), Err(number("key length", 81)));
        let longest = EndpointCard { name: Excerpt::new(&"n".repeat(31)), ..card(1) };
        assert_eq!(parse(&longest).map(|card| card.name.as_str().len()), Ok(31));
        let mut bytes = longest.to_bytes();
        bytes[24..26].copy_from_slice(&32u16.to_le_bytes());
        let name = "length of its network's name";
        assert_eq!(EndpointCard::parse(&bytes, &own), Err(number(name, 32)));
        assert!(parse(&EndpointCard { name: Excerpt::new(""), ..card(1) }).is_ok());
    }

    #[test]
    fn a_card_beyond_the_longest_length_is_refused() {
        let long = |name: usize| {
            let address = vec![1; 111];
            let place = CardEndpoint {
                address,
                origin: 1,
                key: WireKey { bytes: 1, words: [0; KEY_WORDS] },
            };
            let name = Excerpt::new(&"n".repeat(name));
            EndpointCard { name, endpoints: vec![place; 8], ..card(1) }
        };
        let rest = CARD_BYTES_MAX - long(0).to_bytes().len();
        assert!(rest < NAME_BYTES_MAX);
        assert!(EndpointCard::parse(&long(rest).to_bytes(), &long(0)).is_ok());
        let bytes = CARD_BYTES_MAX + 1;
        let error = CardError::Length { bytes };
        assert_eq!(EndpointCard::parse(&long(rest + 1).to_bytes(), &long(0)), Err(error));
    }

    #[test]
    fn the_parser_accepts_or_refuses_any_bytes() {
        let (own, mut seeded) = (card(1), Seeded(11));
        for _ in 0..20_000 {
            // Mostly valid bytes, so that the parser gets far.
            let mut bytes = card(1 + seeded.below(16) as u8).to_bytes();
            for _ in 0..=seeded.below(3) {
                let at = seeded.below(bytes.len() as u64) as usize;
                bytes[at] = seeded.next() as u8;
            }
            bytes.truncate(seeded.below(bytes.len() as u64 + 40) as usize);
            if let Ok(card) = EndpointCard::parse(&bytes, &own) {
                assert!(card.endpoints.iter().all(|place| place.address.len() == 16));
            }
        }
    }
}
