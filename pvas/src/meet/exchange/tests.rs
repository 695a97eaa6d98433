use super::*;
use crate::config::{Peers, Policy};
use crate::meet::NodeId;
use std::io::Write;

fn config() -> SpaceConfig {
    let policy = Policy { peers: Peers::ReadHeap, ..Policy::default() };
    SpaceConfig {
        exposed_bytes: 16 << 20,
        heap_bytes: 64 << 20,
        stack_bytes: 16 << 20,
        policy,
        ..SpaceConfig::default()
    }
}

fn meeting(job: &str, rank: u32, size: u32) -> Meeting<'_> {
    let limit = Duration::from_secs(20);
    Meeting { job, node: NodeId::here(), local: LocalRank(rank), size, limit }
}

/// A name that no other run of these tests uses.
fn job(name: &str) -> String {
    format!("{name} {}", std::process::id())
}

#[test]
fn all_ranks_get_the_same_files_in_any_order() {
    let job = job("order");
    let all: Vec<Files> = thread::scope(|scope| {
        let job = &job;
        // The leader is the last rank to arrive.
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
    assert_eq!(all[1].policy.peers, Peers::ReadHeap, "all ranks have the leader's policy");
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    let name = format!("{:016x}", digest(&job));
    assert!(!sockets.contains(&name), "the socket is gone");
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let (alone, lost) = (job("alone"), job("lost"));
    let limit = Duration::from_millis(50);
    let short = |job, rank| Meeting { limit, ..meeting(job, rank, 3) };
    let error = Files::meet(&short(&alone, 0), &config()).unwrap_err();
    assert_eq!(error, MeetError::Missing { rank: LocalRank(1), limit });
    let error = Files::meet(&short(&lost, 2), &config()).unwrap_err();
    assert_eq!(error, MeetError::NoLeader { limit });
    let error = Files::meet(&meeting(&lost, 3, 3), &config()).unwrap_err();
    assert_eq!(error, MeetError::Size { rank: 3, size: 3 });
}

#[test]
fn unknown_and_duplicate_ranks_are_refused_and_the_others_meet() {
    let job = job("strangers");
    let name = name(&meeting(&job, 0, 2)).unwrap();
    thread::scope(|scope| {
        let leader = scope.spawn(|| Files::meet(&meeting(&job, 0, 2), &config()));
        let deadline = Instant::now() + Duration::from_secs(20);
        let connect = || until(deadline, || UnixStream::connect_addr(&name).ok()).unwrap();
        // Random bytes, a silent connection, half a hello.
        connect().write_all(&[0xff; 100]).unwrap();
        drop(connect());
        connect().write_all(b"tsumugi\x02").unwrap();
        let said = |hello: Hello| {
            let stream = connect();
            hello.send(&stream).unwrap();
            LeaderReply::receive(&stream).unwrap().verdict
        };
        let other_job = Meeting { job: "another", ..meeting(&job, 1, 2) };
        assert_eq!(said(Hello::of(&other_job)), JoinVerdict::Job);
        assert_eq!(said(Hello::of(&meeting(&job, 1, 3))), JoinVerdict::Size);
        assert_eq!(said(Hello::of(&meeting(&job, 7, 2))), JoinVerdict::Size);
        assert_eq!(said(Hello::of(&meeting(&job, 0, 2))), JoinVerdict::Taken);
        let files = Files::meet(&meeting(&job, 1, 2), &config()).unwrap();
        assert_eq!(files.files.len(), 2);
        leader.join().unwrap().unwrap();
    });
}

/// Runs `listens` on a thread that sockets see as another user's; does nothing if
/// this process may not change its user.
fn as_another_user(listens: impl FnOnce() -> UnixListener + Send) -> Option<UnixListener> {
    thread::scope(|scope| {
        let listens = scope.spawn(|| {
            let (keep, other) = (-1, 65_534);
            // SAFETY: plain calls, which change the calling thread alone.
            match unsafe { libc::syscall(libc::SYS_setresuid, keep, other, keep) } {
                0 => {
                    // A process that changes its user becomes not dumpable: this is
                    // set back.
                    // SAFETY: a plain call.
                    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
                    Some(listens())
                }
                _ => None,
            }
        });
        listens.join().unwrap()
    })
}

#[test]
fn a_name_taken_by_another_user_is_an_error_at_once() {
    let job = job("squatted");
    let name = name(&meeting(&job, 0, 2)).unwrap();
    let Some(held) = as_another_user(|| UnixListener::bind_addr(&name).unwrap()) else {
        tsumugi_conformance::left_out(
            "a name that another user has",
            "this is not root",
            "cargo test as root",
        );
        return;
    };
    for rank in 0..2 {
        let error = Files::meet(&meeting(&job, rank, 2), &config()).unwrap_err();
        assert_eq!(error, MeetError::Stranger { user: 65_534 });
        let said = error.to_string();
        assert!(said.contains("user 65534") && said.contains("TSUMUGI_JOB"), "{said}");
    }
    drop(held);
    thread::scope(|scope| {
        let leader = scope.spawn(|| Files::meet(&meeting(&job, 0, 2), &config()));
        Files::meet(&meeting(&job, 1, 2), &config()).unwrap();
        leader.join().unwrap().unwrap();
    });
}

/// The limit also holds if a process listens there and does not answer.
#[test]
fn a_taken_name_is_awaited_within_the_limit() {
    let job = job("taken");
    let limit = Duration::from_millis(50);
    let short = |rank| Meeting { limit, ..meeting(&job, rank, 2) };
    let name = name(&short(0)).unwrap();
    let held = UnixListener::bind_addr(&name).unwrap();
    // SAFETY: a plain call on an open socket: from here on one caller has room.
    assert_eq!(unsafe { libc::listen(held.as_raw_fd(), 0) }, 0);
    let mut callers = Vec::new();
    let full = loop {
        match sys::connect(&name) {
            Ok(caller) => callers.push(caller),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(Files::meet(&short(0), &config()).unwrap_err(), MeetError::NameTaken { limit });
    assert_eq!(Files::meet(&short(1), &config()).unwrap_err(), MeetError::NoLeader { limit });
}
