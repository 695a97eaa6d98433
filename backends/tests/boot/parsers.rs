//! What every parser of the start keeps to, whatever the bytes: no panic, and
//! what is understood is understood again. `fuzz/` has a target for each.

use tsumugi_backends::boot::pmi::Line;
use tsumugi_backends::boot::tcp::{Inbox, Message};
use tsumugi_backends::boot::{Card, env};

/// A stream of the exchange over TCP.
pub fn frame(bytes: &[u8]) {
    let mut inbox = Inbox::default();
    // In two pieces, as it may come.
    let (first, second) = bytes.split_at(bytes.len() / 3);
    for piece in [first, second] {
        inbox.push(piece);
        loop {
            match inbox.pop() {
                Ok(Some(message)) => {
                    let frame = message.to_frame();
                    assert_eq!(Message::parse(&frame[4..]), Ok(message));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// A rank's card.
pub fn card(bytes: &[u8]) {
    if let Ok(card) = Card::parse(bytes) {
        assert_eq!(Card::parse(&card.to_bytes()), Ok(card));
    }
}

/// Lines of a PMI-1 server.
pub fn pmi(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for line in text.lines() {
        if let Ok(line) = Line::parse(line) {
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
    if let Ok(env::Found::Tcp { rank, size, addresses, .. }) = env::find(&lookup) {
        assert!(rank < size);
        assert!(size == 1 || !addresses.is_empty());
        assert!(addresses.iter().all(|address| address.contains(':')));
    }
    let _ = env::limit(&lookup);
}
