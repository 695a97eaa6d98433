//! Ranks of two releases in one job of real processes: a process of this release names the
//! other one, and both releases. The other release is forged: in the header of a partition
//! for the ranks of one node, and in the card of a rank for those that meet over TCP.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use tsumugi::Rank;
use tsumugi::boot::choose::choose_by;
use tsumugi::boot::{RankCard, card::CardHead};
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::release::Release;

const OTHER: Release = Release(2 << 12 | 3 << 6 | 4);

/// The error names both releases.
#[track_caller]
fn assert_refused(output: &Output, who: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in [who, "tsumugi 2.3.4", &format!("tsumugi {}", Release::OWN)] {
        assert!(said.contains(word), "{word} in {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// The launcher has made the partitions, so this is also a program under the command of
/// another release.
#[test]
fn a_node_with_two_releases_is_refused() {
    // The version is the third field of the header.
    let script = "printf '\\304\\040' | \
        dd of=/proc/self/fd/${TSUMUGI_PVAS_FDS%%,*} bs=1 seek=16 conv=notrunc status=none; \
        exec \"$0\" demo --ults 2";
    let own = env!("CARGO_BIN_EXE_tsumugi");
    let output = Command::new(own).args(["run", "-n", "2", "sh", "-c", script, own]).output();
    assert_refused(&output.expect("the command starts"), "the partitions were made by");
}

#[test]
fn a_rank_of_another_release_is_refused_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let master = listener.local_addr().unwrap().to_string();
    drop(listener);
    let variables = |rank: &'static str| {
        [
            ("TSUMUGI_RANK", rank.to_owned()),
            ("TSUMUGI_SIZE", "2".to_owned()),
            ("TSUMUGI_MASTER", master.clone()),
            ("TSUMUGI_SECRET", "the ranks of both releases".to_owned()),
            ("TSUMUGI_NETWORK", "off".to_owned()),
        ]
    };
    let real = Command::new(env!("CARGO_BIN_EXE_tsumugi"))
        .args(["demo", "--ults", "2"])
        .envs(variables("0"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let own = variables("1");
    let lookup =
        |name: &str| own.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let mut boot = choose_by(&lookup).expect("rank 0 answers").expect("the job has 2 ranks");
    let head = CardHead { node: 1, token: 0, network: 0 };
    let card = RankCard { head, host: "there".to_owned(), network: Vec::new() };
    let mut card = card.to_bytes();
    card[2..4].copy_from_slice(&OTHER.0.to_le_bytes());
    boot.bootstrap.publish(&card).unwrap();
    boot.bootstrap.barrier().unwrap();
    // A card of this release is not refused here.
    let mut found = [0; CARD_BYTES_MAX];
    boot.bootstrap.card(Rank(0), &mut found).unwrap();
    assert_eq!(found[2..4], Release::OWN.0.to_le_bytes());
    boot.bootstrap.leave().unwrap();
    drop(boot);
    let output = real.wait_with_output().unwrap();
    assert_refused(&output, "rank 1 cannot be in one job with this rank");
}
