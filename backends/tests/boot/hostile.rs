//! Hostile bytes: a stored corpus, and seeded changes of it, through every
//! parser. What does not parse must be an error, at once and without a panic;
//! what parses must come back as the bytes that it was.

use crate::parsers;
use std::fs;
use std::path::Path;
use tsumugi_backends::boot::Card;
use tsumugi_backends::boot::tcp::Inbox;
use tsumugi_conformance::Seeded;

type Parser = fn(&[u8]);

const PARSERS: &[(&str, Parser)] = &[
    ("frame", parsers::frame),
    ("card", parsers::card),
    ("pmi", parsers::pmi),
    ("variables", parsers::variables),
];

fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_corpus_is_refused_or_understood() {
    for (name, parser) in PARSERS {
        let files = corpus(name);
        assert!(files.len() >= 5, "{name}: {} files", files.len());
        for (path, bytes) in files {
            let took = std::panic::catch_unwind(|| parser(&bytes));
            assert!(took.is_ok(), "{path}");
        }
    }
}

#[test]
fn what_must_be_refused_is() {
    for (path, bytes) in corpus("card") {
        let good = path.contains("good");
        assert_eq!(Card::parse(&bytes).is_ok(), good, "{path}");
    }
    for (path, bytes) in corpus("frame") {
        let mut inbox = Inbox::default();
        inbox.push(&bytes);
        let is_whole = matches!(inbox.pop(), Ok(Some(_)));
        assert_eq!(is_whole, path.contains("good"), "{path}");
    }
}

/// Twenty thousand changes of the corpus for each parser, the same every time.
#[test]
fn changes_of_the_corpus_do_no_harm() {
    for (name, parser) in PARSERS {
        let files = corpus(name);
        let mut seeded = Seeded(0x75);
        for round in 0..20_000 {
            let (path, bytes) = &files[seeded.below(files.len() as u64) as usize];
            let (_, other) = &files[seeded.below(files.len() as u64) as usize];
            let changed = change(bytes, other, &mut seeded);
            let took = std::panic::catch_unwind(|| parser(&changed));
            assert!(took.is_ok(), "{name} round {round}, from {path}: {changed:02x?}");
        }
    }
}

fn change(bytes: &[u8], other: &[u8], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=seeded.below(4) {
        let at = seeded.below(bytes.len() as u64 + 1) as usize;
        match seeded.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << seeded.below(8),
            2 if at < bytes.len() => bytes[at] = seeded.next() as u8,
            3 => bytes.insert(at, seeded.next() as u8),
            4 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                let from = seeded.below(other.len() as u64 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}
