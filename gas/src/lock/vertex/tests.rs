//! Equality and steps of vertices.

extern crate std;
use super::*;
use tsumugi_core::mem::{Rank, RegionKey};

/// A search that took two different vertices for equal would not see the steps of
/// one of them.
#[test]
fn vertices_are_equal_if_their_next_steps_are() {
    let tree = Tree::new(8, 2, 2, RegionKey::new(0, 1), 0).unwrap();
    for (level, is_root) in [(0, false), (2, true)] {
        let id = VertexId { level, index: 0 };
        assert_eq!(tree.is_root(id), is_root);
        let one = Vertex::new(tree, id);
        let mut other = one.clone();
        assert!(one == other);
        // Only the root uses the side that was open last.
        other.turn = GroupSide::All;
        assert_eq!(one == other, !is_root);
        other = Vertex { step: 7, ..one.clone() };
        assert!(one == other, "the step number has no meaning");
        other = Vertex { seen: 1, ..one.clone() };
        assert!(one != other);
    }
}

/// A vertex and the words of its rank.
struct Run {
    vertex: Vertex,
    words: [(RemoteAddr, u64); 4],
}

const LEAF: VertexId = VertexId { level: 0, index: 1 };
const ROOT: VertexId = VertexId { level: 1, index: 0 };

impl Run {
    /// A vertex of a tree of two leaves of two ranks each.
    fn new(id: VertexId) -> Self {
        let tree = Tree::new(4, 2, 2, RegionKey::new(0, 1), 0).unwrap();
        let at = |word, index| (tree.word(id, word, index), 0);
        let words = [
            at(BlockWord::Below, 0),
            at(BlockWord::Below, 1),
            at(BlockWord::Down, 0),
            at(BlockWord::Quiet, 0),
        ];
        Self { vertex: Vertex::new(tree, id), words }
    }

    /// Hands in the words, and returns the next operation.
    fn looks(&mut self) -> Option<(VertexStep, Op)> {
        let words = self.words;
        let load = |addr| {
            let found = words.iter().find(|(at, _)| *at == addr);
            Ok::<u64, AddrError>(found.map_or(0, |(_, value)| *value))
        };
        self.vertex.handle_words(load).unwrap();
        self.vertex.poll_op()
    }

    /// Carries out the only operation, which finds `old`; returns its address and
    /// operand.
    fn carries(&mut self, old: u64) -> (RemoteAddr, u64) {
        let (step, op) = self.looks().expect("the vertex has an operation");
        assert!(self.vertex.poll_op().is_none(), "{:?}", self.vertex);
        self.vertex.handle_completed(step, Ok(old));
        (op.remote, op.operand())
    }

    fn is_quiet(&mut self) -> bool {
        self.looks().is_none()
    }
}

/// An operation ends once, however often its end is handed in; an error is kept.
#[test]
fn an_operation_of_a_vertex_ends_once() {
    let lost = AddrError::PeerLost { rank: Rank(1) };
    for is_second in [false, true] {
        let mut run = Run::new(LEAF);
        run.words[0].1 = 2;
        let (step, op) = run.looks().expect("the vertex reports the wanted side");
        assert_eq!(op.operand(), 1);
        if is_second {
            run.vertex.handle_completed(step, Ok(0));
        }
        run.vertex.handle_completed(step, Err(lost));
        assert_eq!(run.vertex.failed(), (!is_second).then_some(lost));
    }
}

/// A leaf reports each side that is wanted to the vertex above, also one after the
/// other, and keeps a grant until it is revoked.
#[test]
fn a_grant_stays_until_it_is_revoked() {
    let mut run = Run::new(LEAF);
    let tree = run.vertex.tree;
    let (above, index) = tree.above(LEAF);
    let up = tree.word(above, BlockWord::Below, index);
    let all = 1 << COME_SHIFT;
    run.words[0].1 = all;
    assert_eq!(run.carries(0), (up, 1));
    assert!(run.is_quiet());
    // The other rank of the leaf wants the other side.
    run.words[1].1 = 1 << COME_SHIFT | 1;
    assert_eq!(run.carries(0), (up, 3));
    assert!(run.is_quiet());
    run.words[2].1 = 1 << NUMBER_SHIFT;
    let come = |side: GroupSide| tree.word(LEAF, BlockWord::Come, side as u32 * SIDE_WORDS);
    assert_eq!(run.carries(all), (come(GroupSide::All), OPEN));
    // The side is open: the rank is informed, and the other wanted side is reported
    // above.
    let mut told = std::vec::Vec::new();
    while let Some((step, op)) = run.looks() {
        run.vertex.handle_completed(step, Ok(0));
        told.push((op.remote, op.operand()));
    }
    assert!(told.contains(&(tree.granted(tree.rank_of(LEAF, 0)), all)), "{told:?}");
    assert!(
        told.iter().all(|(at, _)| *at != come(GroupSide::All)),
        "the side is still open: {told:?}"
    );
    assert!(run.is_quiet(), "the grant is kept");
    run.words[2].1 |= REVOKED;
    assert_eq!(run.carries(all | OPEN), (come(GroupSide::All), OPEN.wrapping_neg()));
}

/// Other bits in a word from below do not mean that a side is wanted.
#[test]
fn the_root_keeps_a_side_open_while_the_other_is_not_wanted() {
    let mut run = Run::new(ROOT);
    let tree = run.vertex.tree;
    run.words[0].1 = 1;
    let down = tree.word(tree.child(ROOT, 0), BlockWord::Down, 0);
    assert_eq!(run.carries(0), (down, 1 << NUMBER_SHIFT));
    assert!(run.is_quiet());
    // The child has given back one grant, and wants the side again.
    run.words[0].1 = 1 << NUMBER_SHIFT | 1;
    assert_eq!(run.carries(0), (down, 2 << NUMBER_SHIFT));
    assert!(run.is_quiet());
    run.words[0].1 |= 2;
    assert_eq!(run.carries(0), (down, 2 << NUMBER_SHIFT | REVOKED));
}
