//! Hostile bytes: a stored corpus, and seeded changes of it, through every
//! parser. What does not parse must be an error, at once and without a panic;
//! what parses must come back as the bytes that it was.

use crate::parsers;
use tsumugi_backends::boot::RankCard;
use tsumugi_backends::boot::tcp::Inbox;
use tsumugi_conformance::corpus::Corpus;

type Parser = fn(&[u8]);

const PARSERS: &[(&str, Parser)] = &[
    ("frame", parsers::frame),
    ("heads", parsers::heads),
    ("card", parsers::card),
    ("pmi", parsers::pmi),
    ("variables", parsers::variables),
];

fn stored(name: &str) -> Corpus {
    Corpus::open(env!("CARGO_MANIFEST_DIR"), name, 5)
}

#[test]
fn the_corpus_is_refused_or_parsed() {
    for (name, parser) in PARSERS {
        stored(name).replay(|path, _, bytes| {
            let took = std::panic::catch_unwind(|| parser(bytes));
            assert!(took.is_ok(), "{path}");
        });
    }
}

/// A card has the release of its program in bytes 2 and 3: a new release needs new files.
#[test]
fn every_input_of_the_corpus_is_accepted_or_refused_as_marked() {
    stored("card").replay(|path, is_good, bytes| {
        assert_eq!(RankCard::parse(bytes).is_ok(), is_good, "{path}");
    });
    stored("frame").replay(|path, is_good, bytes| {
        let mut inbox = Inbox::default();
        inbox.push(bytes);
        let is_whole = matches!(inbox.pop(), Ok(Some(_)));
        assert_eq!(is_whole, is_good, "{path}");
    });
}

/// Twenty thousand changes for each parser.
#[test]
fn changes_of_the_corpus_do_no_harm() {
    for (name, parser) in PARSERS {
        stored(name).change(20_000, |bytes| {
            parser(bytes);
            0
        });
    }
}
