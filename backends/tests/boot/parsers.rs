//! The properties that every parser of the start has for any bytes: it does not panic,
//! and a parsed value that is written again is parsed as the same. `fuzz/` has a target
//! for each.

use tsumugi_backends::boot::pmi::PmiLine;
use tsumugi_backends::boot::tcp::{BootMessage, Inbox};
use tsumugi_backends::boot::{RankCard, card::CardHead, env};
use tsumugi_core::boot::head_of;

/// A stream of the exchange over TCP.
pub fn frame(bytes: &[u8]) {
    let mut inbox = Inbox::default();
    // In two pieces, as TCP may deliver it.
    let (first, second) = bytes.split_at(bytes.len() / 3);
    for piece in [first, second] {
        inbox.push(piece);
        loop {
            match inbox.pop() {
                Ok(Some(message)) => {
                    let frame = message.to_frame();
                    assert_eq!(BootMessage::parse(&frame[4..]), Ok(message));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// The heads of all cards, as the server sends them.
pub fn heads(bytes: &[u8]) {
    let body = [&[HEADS], bytes].concat();
    if let Ok(message) = BootMessage::parse(&body) {
        let BootMessage::Heads { runs, .. } = &message else { panic!("{message:?}") };
        assert!(runs.iter().map(|run| u64::from(run.count)).sum::<u64>() <= u32::MAX.into());
        assert!(runs.iter().all(|run| run.count > 0));
        assert_eq!(BootMessage::parse(&message.to_frame()[4..]), Ok(message));
    }
}

/// A rank's card.
pub fn card(bytes: &[u8]) {
    if let Ok(card) = RankCard::parse(bytes) {
        assert_eq!(CardHead::parse(&head_of(bytes)), Ok(card.head));
        assert_eq!(RankCard::parse(&card.to_bytes()), Ok(card));
    }
}

/// Lines of a PMI-1 server.
pub fn pmi(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for line in text.lines() {
        if let Ok(line) = PmiLine::parse(line) {
            assert!(line.field("cmd").is_some());
            line.is_ok();
        }
    }
}

/// An environment, one variable a line.
pub fn variables(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let pairs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let lookup = |name: &str| {
        pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    if let Ok(env::BootEnv::Tcp { rank, size, addresses, .. }) = env::find(&lookup) {
        assert!(rank < size);
        assert!(size == 1 || !addresses.is_empty());
        assert!(addresses.iter().all(|address| address.contains(':')));
    }
    let _ = env::limit(&lookup);
}

/// The kind of the message `Heads`.
const HEADS: u8 = 9;
