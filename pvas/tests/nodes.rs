//! A job of several nodes, from the point of view of one node's ranks.

use std::sync::Arc;
use tsumugi_core::backend::{LoadStore, execute};
use tsumugi_core::mem::{AddrError, LocalRank, Need, Rank, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::signal::Until;
use tsumugi_pvas::partition::{Gone, RankState, STARTER_KEY};
use tsumugi_pvas::{Member, Nodes, SpaceConfig};

/// The three ranks of node 0 among the five of a job, with a gap between them.
fn members() -> Vec<Member> {
    let config =
        SpaceConfig::default().exposed_bytes(16 << 20).heap_bytes(64 << 20).stack_bytes(16 << 20);
    let nodes = Arc::new(Nodes::new([7, 3, 7, 7, 3]));
    let members = Member::threads(3, &config).unwrap();
    members.into_iter().zip(OWN).map(|(member, rank)| member.among(nodes.clone(), rank)).collect()
}

fn starter(rank: u32) -> RemoteAddr {
    RemoteAddr { offset: 8, rank: Rank(rank), key: STARTER_KEY }
}

#[test]
fn ranks_are_numbers_of_the_job() {
    for (local, (member, rank)) in (0..).zip(members().iter().zip(OWN)) {
        assert_eq!((member.rank(), member.size(), member.local()), (rank, 5, LocalRank(local)));
        assert_eq!((member.node(), member.nodes().count()), (0, 2));
        assert_eq!(member.neighbours().collect::<Vec<_>>(), OWN);
        assert!(member.is_near(Rank(3)) && !member.is_near(Rank(1)) && !member.is_near(Rank(5)));
        assert_eq!(std::ptr::from_ref(member.control()), member.control_of(rank));
    }
}

#[test]
fn every_rank_of_the_node_is_reached_across_the_gap() {
    let members = members();
    for (from, to) in members.iter().flat_map(|from| OWN.map(|to| (from, to))) {
        let add = Op::atomic(Kind::FetchAdd, starter(to.0), 1u64).notifying();
        assert!(execute(&from.direct(), &add).is_ok(), "{to}");
    }
    for member in &members {
        let own = member.direct().resolve(starter(member.rank().0), 8, Need::Write).unwrap();
        assert_eq!(own.as_ptr() as usize, member.starter().base.as_ptr() as usize + 8);
        // SAFETY: a word of starter memory.
        assert!(Until::Equal(3).holds(unsafe { own.cast::<u64>().read() }));
    }
}

#[test]
fn ranks_of_other_nodes_and_missing_ranks_are_errors() {
    for member in members() {
        let resolve = |rank| member.direct().resolve(starter(rank), 8, Need::Read);
        assert_eq!(resolve(1), Err(AddrError::OtherNode { rank: Rank(1) }));
        assert_eq!(resolve(4), Err(AddrError::OtherNode { rank: Rank(4) }));
        assert_eq!(resolve(5), Err(AddrError::NoSuchRank { rank: Rank(5), size: 5 }));
        assert!(resolve(u32::MAX).is_err());
    }
}

#[test]
fn deaths_are_recorded_by_rank() {
    let members = members();
    assert!(members[0].declare_lost(Rank(2)) && !members[2].declare_lost(Rank(2)));
    let lost = Err(AddrError::PeerLost { rank: Rank(2) });
    assert_eq!(members[2].direct().resolve(starter(2), 8, Need::Read), lost);
    assert_eq!(members[1].control().state(), RankState::Failed);
    assert!(members.iter().all(|member| !member.is_alive(Rank(2))));
    assert_eq!(members[2].control().parking_lot().lost(), Some(Rank(2)));
    assert!(members[0].is_alive(Rank(4)));
    assert!(members[0].declare_lost(Rank(4)) && !members[0].declare_lost(Rank(4)));
    assert_eq!(members[1].gone().collect::<Vec<_>>(), [Gone::Rank(Rank(4))]);
    assert!(members.iter().all(|member| !member.is_alive(Rank(4)) && member.is_alive(Rank(1))));
    let parking_lot = members[2].control().parking_lot();
    assert_eq!(
        (parking_lot.lost(), parking_lot.latest_lost()),
        (Some(Rank(2)), Some(Rank(4))),
        "the first lost rank is named"
    );
    assert!(members[1].declare_node_lost(1) && !members[0].declare_node_lost(1));
    assert!(!members[0].declare_node_lost(0) && !members[0].declare_node_lost(2));
    assert!(members.iter().all(|member| !member.is_alive(Rank(1)) && member.is_alive(Rank(3))));
}

/// The ranks of the first node.
const OWN: [Rank; 3] = [Rank(0), Rank(2), Rank(3)];
