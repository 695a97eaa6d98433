//! How accesses of one rank enter and leave its group lock together.

use super::*;
use crate::lock::{Lock, LockKind, NodeTable, Tree};
use tsumugi_core::mem::RegionKey;

fn plan() -> LockPlan {
    let key = RegionKey::new(0, 1);
    let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
    let lock = Lock { home, nodes: NodeTable { key, offset: 64 }, kind: LockKind::Readers };
    let tree = Tree::new(2, 2, 2, key, 128).unwrap();
    LockPlan { design: LockDesign::Tree, lock, tree }
}

/// A rank begins to leave with the end of its last access.
#[test]
fn a_membership_is_left_by_the_last_access() {
    let plan = plan();
    let mut membership = RankMembership::new(&plan, Rank(1));
    let mut accesses = [WindowAccess::new(plan), WindowAccess::new(plan)];
    let finds = |access: &mut WindowAccess, membership: &mut RankMembership, old| {
        let (id, _) = access.poll_op(membership).expect("the access has an operation");
        access.handle_completed(membership, id, Ok(old));
    };
    for access in &mut accesses {
        access.begin(&mut membership, Want::All, NodeId::NONE).unwrap();
    }
    // The side is open.
    finds(&mut accesses[0], &mut membership, 1);
    accesses[1].poll_op(&mut membership);
    assert!(accesses.iter().all(WindowAccess::is_held));
    for (index, holds) in [(1, 1), (0, 0)] {
        assert!(!membership.is_leaving());
        accesses[index].release(&mut membership);
        assert_eq!(membership.holds(), holds);
    }
    assert!(membership.is_leaving());
    finds(&mut accesses[0], &mut membership, 0);
    assert!(!membership.is_leaving() && accesses.iter().all(|one| one.poll_done().is_some()));
}

/// The caller need not ask for an operation to learn that it waits no more.
#[test]
fn an_access_that_is_let_in_is_held_at_once() {
    let plan = plan();
    let mut membership = RankMembership::new(&plan, Rank(1));
    let [mut first, mut second] = [WindowAccess::new(plan), WindowAccess::new(plan)];
    first.begin(&mut membership, Want::All, NodeId::NONE).unwrap();
    // The side is shut: the access asks, and waits.
    while let Some((id, _)) = first.poll_op(&mut membership) {
        first.handle_completed(&mut membership, id, Ok(0));
    }
    let Some(AccessWait::Word(_, Until::Equal(granted))) = first.waits_for(&membership) else {
        panic!("{first:?} does not wait");
    };
    first.handle_wake(&mut membership, granted + 1);
    assert!(!first.is_held(), "the word has another value");
    first.handle_wake(&mut membership, granted);
    assert!(first.is_held());
    second.begin(&mut membership, Want::All, NodeId::NONE).unwrap();
    assert!(second.is_held(), "the rank is inside");
}
