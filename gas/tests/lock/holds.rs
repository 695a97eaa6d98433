//! The words of the locks after each operation of one rank's accesses, and the equality of
//! accesses.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::Kind as OpKind;
use tsumugi_gas::lock::{
    AccessRefused, AccessWait, LOCK_BYTES, Lock, LockDesign, LockKind, LockPlan, NODE_BYTES,
    NodeId, NodePool, NodeSlot, NodeTable, RankMembership, Tree, Want, WindowAccess,
};

/// One of several ranks, its membership, and all words that are not 0.
struct Alone {
    plan: LockPlan,
    membership: RankMembership,
    words: BTreeMap<(Rank, u64), u64>,
    slots: [NodeSlot; NODES],
}

impl Alone {
    fn new(design: LockDesign) -> Self {
        let key = RegionKey::new(0, 1);
        let tree = Tree::new(RANKS, 2, 2, key, LOCK_BYTES + NODES as u64 * NODE_BYTES).unwrap();
        let home = RemoteAddr { rank: Rank(0), key, offset: 0 };
        let nodes = NodeTable { key, offset: LOCK_BYTES };
        let plan = LockPlan { design, lock: Lock { home, nodes, kind: LockKind::Readers }, tree };
        let membership = RankMembership::new(&plan, Rank(0));
        Self { plan, membership, words: BTreeMap::new(), slots: Default::default() }
    }

    fn node(&mut self) -> NodeId {
        NodePool::new(Rank(0), &mut self.slots).try_take(|_| 0).expect("a free node")
    }

    /// An access that has been requested and has run as far as it could.
    fn asks(&mut self, want: Want) -> Result<WindowAccess, AccessRefused> {
        let (node, mut access) = (self.node(), WindowAccess::new(self.plan));
        access.begin(&mut self.membership, want, node)?;
        self.run(&mut access);
        Ok(access)
    }

    fn holds(&mut self, want: Want) -> WindowAccess {
        let access = self.asks(want).expect("the access is on the same side");
        assert!(access.is_held(), "{access:?}");
        access
    }

    fn releases(&mut self, mut access: WindowAccess) {
        access.release(&mut self.membership);
        assert!(!access.is_held());
        self.run(&mut access);
        assert_eq!(access.poll_done(), Some(Ok(())), "{access:?}");
    }

    fn run(&mut self, access: &mut WindowAccess) {
        while let Some((id, op)) = access.poll_op(&mut self.membership) {
            assert_eq!(access.poll_done(), None, "the access is under way");
            assert_eq!(access.under_way(&self.membership), Some(id));
            let at = (op.remote.rank, op.remote.offset);
            let old = self.words.remove(&at).unwrap_or(0);
            let new = match op.kind {
                OpKind::GetWord => old,
                OpKind::FetchAdd => old.wrapping_add(op.operand()),
                OpKind::CompareSwap if old != op.compare() => old,
                _ => op.operand(),
            };
            if new != 0 {
                self.words.insert(at, new);
            }
            access.handle_completed(&mut self.membership, id, Ok(old));
        }
    }

    fn word(&self, rank: u32, offset: u64) -> u64 {
        self.words.get(&(Rank(rank), offset)).copied().unwrap_or(0)
    }
}

/// With two levels, a rank that holds targets exclusively is counted in the window's word once,
/// from its first hold until its last; a rank that holds all targets, once for each hold.
#[test]
fn a_rank_is_counted_in_the_window_until_its_last_hold() {
    let mut rank = Alone::new(LockDesign::TwoLevel);
    let [first, second] = [0, 1].map(|target| rank.holds(Want::Exclusive(Rank(target))));
    let seen = |rank: &Alone| [rank.word(0, WINDOW), rank.word(0, 0), rank.word(1, 0)];
    assert_eq!((seen(&rank), rank.membership.holds()), ([1, 1, 1], 2));
    rank.releases(first);
    assert_eq!((seen(&rank), rank.membership.holds()), ([1, 0, 1], 1));
    let third = rank.holds(Want::Exclusive(Rank(0)));
    assert_eq!((seen(&rank), rank.membership.holds()), ([1, 1, 1], 2));
    rank.releases(second);
    assert_eq!((seen(&rank), rank.membership.holds()), ([1, 1, 0], 1));
    rank.releases(third);
    assert_eq!((seen(&rank), rank.membership.holds()), ([0; 3], 0));

    let [first, second] = [(); 2].map(|()| rank.holds(Want::All));
    assert_eq!((seen(&rank), rank.membership.holds()), ([2 << 32, 0, 0], 2));
    rank.releases(first);
    assert_eq!((seen(&rank), rank.membership.holds()), ([1 << 32, 0, 0], 1));
    rank.releases(second);
    let shared = rank.holds(Want::Shared(Rank(1)));
    assert_eq!((seen(&rank), rank.membership.holds()), ([0, 0, 2], 0));
    rank.releases(shared);
    assert!(rank.words.is_empty(), "{:?}", rank.words);
}

/// A rank that finds a target taken tries again after longer and longer pauses, and not before a
/// pause has ended.
#[test]
fn a_rank_that_finds_a_target_taken_pauses() {
    let mut rank = Alone::new(LockDesign::TwoLevel);
    rank.words.insert((Rank(1), 0), 1);
    let mut access = rank.asks(Want::Exclusive(Rank(1))).unwrap();
    let mut last = 0;
    for _ in 0..5 {
        let Some(AccessWait::Pause(ns)) = access.waits_for(&rank.membership) else {
            panic!("{access:?}")
        };
        assert!(ns > last && !access.is_held(), "{ns} after {last}");
        last = ns;
        access.handle_wake(&mut rank.membership, 0);
        rank.run(&mut access);
    }
    let mut lost = access.clone();
    lost.handle_lost(&mut rank.membership, Rank(1));
    assert_eq!(lost.poll_done(), Some(Err(AddrError::PeerLost { rank: Rank(1) })));
    rank.words.remove(&(Rank(1), 0));
    access.handle_wake(&mut rank.membership, 0);
    rank.run(&mut access);
    assert!(access.is_held(), "{access:?}");
}

/// One lock for all targets: a rank that has released its shared hold may have it exclusively.
#[test]
fn a_lock_is_free_after_its_last_hold() {
    let mut rank = Alone::new(LockDesign::Global);
    let held = [Want::All, Want::Shared(Rank(1)), Want::All].map(|want| rank.holds(want));
    assert_eq!(rank.membership.holds(), 3);
    assert_eq!(rank.asks(Want::Exclusive(Rank(1))).err(), Some(AccessRefused::OneLock));
    let mut left = 3;
    for access in held {
        rank.releases(access);
        left -= 1;
        assert_eq!(rank.membership.holds(), left);
    }
    let alone = rank.holds(Want::Exclusive(Rank(1)));
    assert_eq!(rank.asks(Want::All).err(), Some(AccessRefused::OneLock));
    rank.releases(alone);
    assert_eq!((rank.membership.holds(), rank.word(0, 0)), (0, 0));
}

/// A failed operation ends an access with its error, in any state, and the access posts nothing
/// more.
#[test]
fn a_failed_operation_ends_its_access() {
    let lost = AddrError::PeerLost { rank: Rank(2) };
    for design in [LockDesign::Global, LockDesign::TwoLevel, LockDesign::Tree] {
        for want in [Want::All, Want::Shared(Rank(2)), Want::Exclusive(Rank(2))] {
            let mut rank = Alone::new(design);
            let mut access = WindowAccess::new(rank.plan);
            let node = rank.node();
            access.begin(&mut rank.membership, want, node).unwrap();
            let (id, _) =
                access.poll_op(&mut rank.membership).expect("the access posts its request");
            access.handle_completed(&mut rank.membership, id, Err(lost));
            assert_eq!(access.poll_done(), Some(Err(lost)), "{design:?} {want:?}");
            assert!(access.poll_op(&mut rank.membership).is_none());
            assert!(!access.is_held());
        }
    }
    let mut rank = Alone::new(LockDesign::TwoLevel);
    let mut access = rank.holds(Want::Exclusive(Rank(2)));
    access.release(&mut rank.membership);
    let (id, _) = access.poll_op(&mut rank.membership).expect("the access posts its release");
    access.handle_completed(&mut rank.membership, id, Err(lost));
    assert_eq!(access.poll_done(), Some(Err(lost)));
    assert!(access.poll_op(&mut rank.membership).is_none());
}

/// Two accesses are equal if their next steps are equal, whatever led to them; then they also
/// have equal hashes.
#[test]
fn accesses_are_equal_if_their_next_steps_are() {
    let hash = |access: &WindowAccess| {
        let mut hasher = DefaultHasher::new();
        access.hash(&mut hasher);
        hasher.finish()
    };
    for design in [LockDesign::Global, LockDesign::TwoLevel] {
        let mut rank = Alone::new(design);
        let fresh = WindowAccess::new(rank.plan);
        let mut again = rank.holds(Want::Shared(Rank(1)));
        assert_ne!(again, fresh);
        again.release(&mut rank.membership);
        assert_ne!(again, fresh, "the access is under way");
        rank.run(&mut again);
        let [one, other] = [1, 2].map(|target| rank.holds(Want::Shared(Rank(target))));
        assert_ne!(one, other, "the targets differ");
        assert_eq!((one.clone(), hash(&one.clone())), (one.clone(), hash(&one)));
        let (mut one, mut same) = (one.clone(), one);
        one.release(&mut rank.membership);
        assert_ne!(one, same, "one access releases");
        // The same stage, but another step of it.
        same = one.clone();
        let posted = one.poll_op(&mut rank.membership);
        assert!(posted.is_some());
        assert_ne!(one, same, "{design:?}: one has begun");
    }
}

const RANKS: u32 = 4;
const NODES: usize = 16;
/// The offset of the window's own word.
const WINDOW: u64 = 40;
