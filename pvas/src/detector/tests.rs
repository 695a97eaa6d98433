//! Detectors of processes that a test ends.

use super::*;
use crate::config::SpaceConfig;
use std::process::{Child, Command, Stdio};
use std::thread;
use tsumugi_core::sync::Ordering;

fn members(size: u32) -> Vec<Member> {
    let config = SpaceConfig {
        exposed_bytes: 16 << 20,
        heap_bytes: 64 << 20,
        stack_bytes: 16 << 20,
        ..SpaceConfig::default()
    };
    Member::threads(size, &config).unwrap()
}

/// Ranks that are processes; the processes only wait.
fn with_processes(size: u32) -> (Vec<Member>, Vec<Child>) {
    let members = members(size);
    let cat = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let children: Vec<Child> = members.iter().map(|_| cat()).collect();
    for (member, child) in members.iter().zip(&children) {
        member.control().pid_word().store(child.id(), Ordering::SeqCst);
    }
    (members, children)
}

const AT_ONCE: Rest = Rest::End { grace: Duration::ZERO };

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn until_lost(member: &Member) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while member.control().is_alive() {
        assert!(Instant::now() < deadline, "{} is not declared lost", member.rank());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn deaths_are_declared_and_the_others_are_ended() {
    let (members, mut children) = with_processes(4);
    let _detector = Detector::start(&members[0], AT_ONCE, None).unwrap();
    // The second neighbour first: the detector finds its death when the first neighbour is
    // gone.
    kill(&mut children[2]);
    kill(&mut children[1]);
    until_lost(&members[1]);
    until_lost(&members[2]);
    // SIGTERM goes also to the process that has noticed the death.
    for child in [3, 0] {
        // `wait` would close the input, and then the child would exit with code 0.
        let _input = children[child].stdin.take();
        assert!(!children[child].wait().unwrap().success());
    }
    until_lost(&members[3]);
    assert!(members[0].control().is_alive(), "no rank watches rank 0 here");
}

#[test]
fn a_detector_that_leaves_others_alone_ends_no_rank() {
    let (members, mut children) = with_processes(3);
    let _detector = Detector::start(&members[0], Rest::Leave, None).unwrap();
    kill(&mut children[1]);
    until_lost(&members[1]);
    // The test can only wait for a while and see that nothing happens.
    thread::sleep(2 * LOOK_AGAIN);
    assert!(children[2].try_wait().unwrap().is_none());
    kill(&mut children[2]);
    until_lost(&members[2]);
    kill(&mut children[0]);
}

#[test]
fn a_rank_that_has_finished_may_exit() {
    let (members, mut children) = with_processes(3);
    members[1].finish();
    let _detector = Detector::start(&members[0], AT_ONCE, None).unwrap();
    kill(&mut children[1]);
    kill(&mut children[2]);
    until_lost(&members[2]);
    assert!(members[1].control().is_alive());
    assert_eq!(members[1].control().state(), RankState::Finished);
    kill(&mut children[0]);
}

#[test]
fn a_detector_skips_processes_of_other_namespaces_and_can_be_stopped() {
    let members = members(2);
    members[1].control().set_pid_space(1);
    members[1].control().pid_word().store(u32::MAX >> 2, Ordering::SeqCst);
    drop(Detector::start(&members[0], AT_ONCE, None).unwrap());
    let (alive, mut children) = with_processes(2);
    drop(Detector::start(&alive[0], AT_ONCE, None).unwrap());
    assert!(members[1].control().is_alive() && alive[1].control().is_alive());
    children.iter_mut().for_each(kill);
}

#[test]
fn the_report_of_the_launcher_reaches_all_ranks() {
    let (members, mut children) = with_processes(2);
    let (deaths, mut launcher) = io::pipe().unwrap();
    let (mut told, losses) = io::pipe().unwrap();
    let from = Launcher { deaths, losses: Some(losses) };
    let detector = Detector::start(&members[0], Rest::Leave, Some(from)).unwrap();
    // The first number is not a rank; the second report is the first valid one.
    for rank in [7_u32, 1, 0] {
        io::Write::write_all(&mut launcher, &rank.to_le_bytes()).unwrap();
    }
    assert_eq!(members[0].first_failure().wait(), Some(Rank(1)));
    until_lost(&members[1]);
    let mut word = [0; 4];
    told.read_exact(&mut word).unwrap();
    assert_eq!(word, 1_u32.to_le_bytes(), "the report comes before the rank is declared lost");
    // The drop returns only if all waits are interrupted.
    drop(detector);
    assert_eq!(members[0].control().parking_lot().lost(), Some(Rank(1)));
    children.iter_mut().for_each(kill);
}
