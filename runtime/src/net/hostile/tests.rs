use super::packets;
use tsumugi_conformance::corpus::{self, Corpus};

fn stored() -> Corpus {
    Corpus::open(env!("CARGO_MANIFEST_DIR"), "packets", 20)
}

#[test]
fn good_packets_of_the_corpus_are_accepted_and_others_refused() {
    stored().replay(|path, is_good, bytes| {
        let (taken, count) = (packets(bytes), corpus::packets(bytes));
        assert_eq!(taken == count, is_good, "{path}: {taken} of {count} were taken");
    });
}

#[test]
fn changes_of_the_corpus_do_no_harm() {
    let taken = stored().change(10_000, packets);
    assert!(taken > 1000, "{taken} changed packets are accepted");
}
