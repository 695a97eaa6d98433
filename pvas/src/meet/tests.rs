use super::*;
use crate::config::{Peers, Policy};
use std::io::Write;

fn config() -> Config {
    let policy = Policy { peers: Peers::ReadHeap, ..Policy::default() };
    Config {
        exposed_bytes: 16 << 20,
        heap_bytes: 64 << 20,
        stack_bytes: 16 << 20,
        policy,
        ..Config::default()
    }
}

fn meeting(job: &str, rank: u32, size: u32) -> Meeting<'_> {
    let limit = Duration::from_secs(20);
    Meeting { job, node: NodeId::here(), rank: Rank(rank), size, limit }
}

/// A name that no other run of these tests uses.
fn job(name: &str) -> String {
    format!("{name} {}", std::process::id())
}

#[test]
fn everybody_gets_the_same_files_in_any_order() {
    let job = job("order");
    let all: Vec<Files> = thread::scope(|scope| {
        let job = &job;
        // The leader is the last one to come.
        let ranks: Vec<_> = (0..5)
            .rev()
            .map(|rank| {
                scope.spawn(move || Files::meet(&meeting(job, rank, 5), &config()).unwrap())
            })
            .collect();
        ranks.into_iter().rev().map(|rank| rank.join().unwrap()).collect()
    });
    let inode = |files: &Files, rank: usize| {
        let file = std::fs::File::from(files.files[rank].try_clone().unwrap());
        std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap())
    };
    for files in &all {
        assert_eq!((files.shape, files.policy), (all[0].shape, all[0].policy));
        assert_eq!((files.files.len(), files.huge.len()), (5, 0));
        assert_eq!((inode(files, 4), inode(files, 1)), (inode(&all[0], 4), inode(&all[0], 1)));
    }
    assert_eq!(all[1].policy.peers, Peers::ReadHeap, "the leader's policy is everybody's");
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    let name = format!("{:016x}", hello::digest(&job));
    assert!(!sockets.contains(&name), "the socket is gone");
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let (alone, lost) = (job("alone"), job("lost"));
    let limit = Duration::from_millis(50);
    let short = |job, rank| Meeting { limit, ..meeting(job, rank, 3) };
    let error = Files::meet(&short(&alone, 0), &config()).unwrap_err();
    assert_eq!(error, MeetError::Missing { rank: Rank(1), limit });
    let error = Files::meet(&short(&lost, 2), &config()).unwrap_err();
    assert_eq!(error, MeetError::NoLeader { limit });
    let error = Files::meet(&meeting(&lost, 3, 3), &config()).unwrap_err();
    assert_eq!(error, MeetError::Size { rank: 3, size: 3 });
}

#[test]
fn strangers_and_doubles_are_refused_and_the_others_meet() {
    let job = job("strangers");
    let name = name(&meeting(&job, 0, 2)).unwrap();
    thread::scope(|scope| {
        let leader = scope.spawn(|| Files::meet(&meeting(&job, 0, 2), &config()));
        let deadline = Instant::now() + Duration::from_secs(20);
        let connect = || until(deadline, || UnixStream::connect_addr(&name).ok()).unwrap();
        // Noise, silence, half a hello.
        connect().write_all(&[0xff; 100]).unwrap();
        drop(connect());
        connect().write_all(b"tsumugi\x02").unwrap();
        let said = |hello: Hello| {
            let stream = connect();
            hello.send(&stream).unwrap();
            Answer::receive(&stream).unwrap().verdict
        };
        let other_job = Meeting { job: "another", ..meeting(&job, 1, 2) };
        assert_eq!(said(Hello::of(&other_job)), Verdict::Job);
        assert_eq!(said(Hello::of(&meeting(&job, 1, 3))), Verdict::Size);
        assert_eq!(said(Hello::of(&meeting(&job, 7, 2))), Verdict::Size);
        assert_eq!(said(Hello::of(&meeting(&job, 0, 2))), Verdict::Taken);
        let files = Files::meet(&meeting(&job, 1, 2), &config()).unwrap();
        assert_eq!(files.files.len(), 2);
        leader.join().unwrap().unwrap();
    });
}
