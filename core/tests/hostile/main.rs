//! Hostile parcels: a stored corpus, and seeded changes of it. Malformed parcels must be refused
//! or dropped, without a panic; well-formed ones must be taken.

#![cfg(not(tsumugi_loom))]

mod addresses;
mod parcels;

use parcels::parcels;
use tsumugi_conformance::corpus::{self, Corpus};

fn stored() -> Corpus {
    Corpus::open(env!("CARGO_MANIFEST_DIR"), "parcels", 5)
}

#[test]
fn the_corpus_is_refused_or_taken() {
    stored().replay(|path, is_good, bytes| {
        let (taken, count) = (parcels(bytes), corpus::packets(bytes));
        assert_eq!(taken == count, is_good, "{path}: {taken} of {count} were taken");
    });
}

#[test]
fn changes_of_the_corpus_do_no_harm() {
    let taken = stored().change(20_000, parcels);
    assert!(taken > 1000, "{taken}: the changes go deep");
}
