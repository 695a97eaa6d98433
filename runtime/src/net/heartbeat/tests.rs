//! Beats of nodes whose clock and network are the test's.

use super::super::silence::LOOKS;
use super::*;
use std::sync::Arc;
use tsumugi_pvas::SpaceConfig;

/// The ranks of the first of two nodes, which have two ranks each.
fn members() -> Vec<Member> {
    let config =
        SpaceConfig::default().exposed_bytes(16 << 20).heap_bytes(64 << 20).stack_bytes(16 << 20);
    let nodes = Arc::new(Nodes::new([1, 1, 2, 2]));
    let members = Member::threads(2, &config).unwrap();
    let among = |(rank, member): (u32, Member)| member.among(nodes.clone(), Rank(rank));
    (0..).zip(members).map(among).collect()
}

const LIMIT: Duration = Duration::from_secs(5);
const LONG: usize = 4000;

fn heartbeats(member: &Member) -> Heartbeats {
    Heartbeats::new(member, LIMIT, LONG + 3)
}

/// Moves the clock as if `by` milliseconds had passed without a heartbeat.
fn age(heartbeats: &Heartbeats, by: u32) {
    heartbeats.lock().silence.age(by);
}

/// Looks as if the device had been found empty often enough.
fn look(heartbeats: &Heartbeats, member: &Member) {
    (0..LOOKS).for_each(|_| heartbeats.help(member, |_, _| true));
}

fn rule() -> Rule {
    Rule::new(LIMIT)
}

#[test]
fn only_the_first_rank_of_a_node_sends_heartbeats_and_to_first_ranks() {
    let members = members();
    let mut sent = Vec::new();
    for member in &members {
        heartbeats(member).round(member, |to, bytes| {
            sent.push((member.rank(), to, bytes == HeartbeatPacket::Heartbeat(&[])));
            true
        });
    }
    assert_eq!(sent, [(Rank(0), Rank(2), true)]);
}

#[test]
fn a_heartbeat_without_room_is_sent_later_and_once() {
    let member = &members()[0];
    let (heartbeats, mut tries) = (heartbeats(member), 0);
    for _ in 0..5 {
        heartbeats.round(member, |_, _| {
            tries += 1;
            tries == 3
        });
    }
    assert_eq!(tries, 3);
}

#[test]
fn a_heartbeat_without_room_is_sent_by_the_thread_with_the_device() {
    let member = &members()[0];
    let (heartbeats, mut sent) = (heartbeats(member), 0);
    let mut send = |_: Rank, _: HeartbeatPacket<'_>| {
        sent += 1;
        true
    };
    heartbeats.help(member, &mut send);
    heartbeats.round(member, |_, _| false);
    heartbeats.help(member, &mut send);
    heartbeats.help(member, &mut send);
    heartbeats.round(member, &mut send);
    assert_eq!(sent, 1, "the heartbeat is sent once, when it is due");
}

#[test]
fn a_packet_of_its_first_rank_keeps_a_node_alive() {
    let members = members();
    let (heartbeats, Rule { late, given_up, start, .. }) = (heartbeats(&members[0]), rule());
    age(&heartbeats, start - given_up + late);
    heartbeats.round(&members[0], |_, _| true);
    age(&heartbeats, given_up - late);
    heartbeats.saw(&members[0], Rank(2));
    look(&heartbeats, &members[0]);
    heartbeats.round(&members[0], |_, _| true);
    assert!(members[1].is_alive(Rank(2)), "rank 2 has sent a packet");
    age(&heartbeats, late);
    heartbeats.round(&members[0], |_, _| true);
    age(&heartbeats, given_up - late);
    heartbeats.saw(&members[0], Rank(3));
    look(&heartbeats, &members[0]);
    heartbeats.round(&members[0], |_, _| true);
    assert!(!members[1].is_alive(Rank(2)), "only packets of its first rank count");
}

#[test]
fn a_silent_node_is_declared_lost_and_notified() {
    let members = members();
    let (heartbeats, Rule { late, given_up, start, .. }) = (heartbeats(&members[0]), rule());
    age(&heartbeats, start - given_up + late);
    heartbeats.round(&members[0], |_, _| true);
    assert!(members[1].is_alive(Rank(3)), "the node may start late");
    assert_eq!(heartbeats.heard(&members[0], Rank(2), &[]), Some(vec![]));
    age(&heartbeats, late);
    heartbeats.round(&members[0], |_, _| true);
    age(&heartbeats, given_up - late);
    assert_eq!(heartbeats.round(&members[0], |_, _| true), [[Rank(0); 0]; 0], "no poll yet");
    look(&heartbeats, &members[0]);
    let mut told = Vec::new();
    let lost = heartbeats.round(&members[0], |to, word| {
        told.push((to, word == HeartbeatPacket::GivenUp(&given_up.to_le_bytes())));
        true
    });
    assert_eq!((lost, told), (vec![vec![Rank(2), Rank(3)]], vec![(Rank(2), true)]));
    assert!(!members[1].is_alive(Rank(2)) && !members[1].is_alive(Rank(3)));
    assert!(members[1].is_alive(Rank(0)));
}

#[test]
fn a_rank_that_ends_does_not_wait_for_a_rank_that_was_given_up() {
    let members = members();
    let (heartbeats, Rule { start, .. }) = (heartbeats(&members[0]), rule());
    age(&heartbeats, start);
    heartbeats.round(&members[0], |_, _| false);
    look(&heartbeats, &members[0]);
    let lost = heartbeats.round(&members[0], |_, _| false);
    assert_eq!(lost, [[Rank(2), Rank(3)]]);
    heartbeats.round(&members[0], |_, _| false);
    assert!(!heartbeats.is_due());
}

#[test]
fn a_rank_ends_if_a_first_rank_has_given_it_up() {
    let members = members();
    let heartbeats = heartbeats(&members[0]);
    let after = 7500_u32.to_le_bytes();
    assert_eq!(heartbeats.told(&members[0], Rank(2), &after), Some(SilenceVerdict::Ends));
    assert_eq!(heartbeats.told(&members[0], Rank(3), &after), None, "rank 3 is not a first rank");
    assert_eq!(heartbeats.told(&members[0], Rank(1), &after), None, "rank 1 is on the own node");
    assert_eq!(heartbeats.told(&members[0], Rank(2), &after[1..]), None);
    members[0].declare_lost(Rank(2));
    heartbeats.lock().silence.leaves(1);
    assert_eq!(heartbeats.told(&members[0], Rank(2), &after), Some(SilenceVerdict::Stays));
}

#[test]
fn deaths_on_the_own_node_are_sent_at_once() {
    let members = members();
    // No heartbeat is long.
    let heartbeats = Heartbeats::new(&members[0], LIMIT, 0);
    let mut told = Vec::new();
    for _ in 0..3 {
        heartbeats.round(&members[0], |_, word| {
            told.push(format!("{word:?}"));
            true
        });
        members[0].declare_lost(Rank(1));
    }
    assert_eq!(
        told,
        ["Heartbeat([])", "Heartbeat([1, 0, 0, 0])"],
        "the next heartbeat is not due yet"
    );
}

#[test]
fn each_second_heartbeat_is_long_and_has_the_same_content() {
    let members = members();
    let ours = heartbeats(&members[0]);
    members[0].declare_lost(Rank(1));
    let mut lengths = Vec::new();
    for _ in 0..4 {
        let now = ours.now();
        ours.lock().silence.hurry(now);
        ours.round(&members[0], |_, word| {
            let HeartbeatPacket::Heartbeat(bytes) = word else { panic!("{word:?}") };
            lengths.push(bytes.len());
            let nodes = members[0].nodes();
            let (node, mut dead) = parse(nodes, 1, Rank(0), bytes).expect("a valid heartbeat");
            assert_eq!((node, dead.next(), dead.next()), (0, Some(Rank(1)), None));
            true
        });
    }
    assert_eq!(lengths, [4, LONG, 4, LONG]);
}

#[test]
fn the_next_rank_sends_the_death_of_the_first_rank_of_its_node() {
    let members = members();
    let heartbeats = heartbeats(&members[1]);
    members[1].declare_lost(Rank(0));
    let mut told = Vec::new();
    heartbeats.round(&members[1], |to, word| {
        told.push((to, format!("{word:?}")));
        true
    });
    assert_eq!(told, [(Rank(2), "Heartbeat([0, 0, 0, 0])".to_owned())]);
}

#[test]
fn deaths_of_another_node_are_marked() {
    let members = members();
    let heartbeats = heartbeats(&members[0]);
    let news = heartbeats.heard(&members[0], Rank(2), &3_u32.to_le_bytes());
    assert_eq!(news, Some(vec![Rank(3)]));
    assert!(!members[1].is_alive(Rank(3)) && members[1].is_alive(Rank(2)));
    let filled_in_front = [[FILL; 4], 3_u32.to_le_bytes()].concat();
    for bad in
        [&filled_in_front[..], &[0, 0, 0], &0_u32.to_le_bytes(), &9_u32.to_le_bytes(), &[3; 4 * 65]]
    {
        assert_eq!(heartbeats.heard(&members[0], Rank(2), bad), None, "{bad:?}");
    }
    assert_eq!(heartbeats.heard(&members[0], Rank(1), &[]), None, "rank 1 is on the own node");
}

#[test]
fn a_heartbeat_that_names_no_rank_loses_none() {
    let members = members();
    members[0].declare_lost(Rank(2));
    assert_eq!(heartbeats(&members[0]).heard(&members[0], Rank(2), &[]), Some(vec![]));
    assert!(members[0].is_alive(Rank(3)), "the heartbeat was sent before its rank died");
}

#[test]
fn a_node_whose_first_rank_has_died_is_lost_and_the_first_rank_is_named_first() {
    let members = members();
    let news = heartbeats(&members[0]).heard(&members[0], Rank(3), &2_u32.to_le_bytes());
    assert_eq!(news, Some(vec![Rank(2), Rank(3)]));
    assert!(!members[1].is_alive(Rank(3)));
}
