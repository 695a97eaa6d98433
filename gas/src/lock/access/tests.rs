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
fn a_door_is_left_by_the_last_access() {
    let plan = plan();
    let mut door = RankMembership::new(&plan, Rank(1));
    let mut accesses = [WindowAccess::new(plan), WindowAccess::new(plan)];
    let finds = |access: &mut WindowAccess, door: &mut RankMembership, old| {
        let (id, _) = access.poll_op(door).expect("the access has an operation");
        access.handle_completed(door, id, Ok(old));
    };
    for access in &mut accesses {
        access.begin(&mut door, Want::All, NodeId::NONE).unwrap();
    }
    // The side is open.
    finds(&mut accesses[0], &mut door, 1);
    accesses[1].poll_op(&mut door);
    assert!(accesses.iter().all(WindowAccess::is_held));
    for (index, holds) in [(1, 1), (0, 0)] {
        assert!(!door.is_leaving());
        accesses[index].release(&mut door);
        assert_eq!(door.holds(), holds);
    }
    assert!(door.is_leaving());
    finds(&mut accesses[0], &mut door, 0);
    assert!(!door.is_leaving() && accesses.iter().all(|one| one.poll_done().is_some()));
}

/// The caller need not ask for an operation to learn that it waits no more.
#[test]
fn an_access_that_is_let_in_is_held_at_once() {
    let plan = plan();
    let mut door = RankMembership::new(&plan, Rank(1));
    let [mut first, mut second] = [WindowAccess::new(plan), WindowAccess::new(plan)];
    first.begin(&mut door, Want::All, NodeId::NONE).unwrap();
    // The side is shut: the access asks, and waits.
    while let Some((id, _)) = first.poll_op(&mut door) {
        first.handle_completed(&mut door, id, Ok(0));
    }
    let Some(AccessWait::Word(_, Until::Equal(granted))) = first.waits_for(&door) else {
        panic!("{first:?} does not wait");
    };
    first.handle_wake(&mut door, granted + 1);
    assert!(!first.is_held(), "the word has another value");
    first.handle_wake(&mut door, granted);
    assert!(first.is_held());
    second.begin(&mut door, Want::All, NodeId::NONE).unwrap();
    assert!(second.is_held(), "the rank is inside");
}
