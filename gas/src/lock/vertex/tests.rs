//! Which vertices are equal.

use super::*;
use tsumugi_core::mem::RegionKey;

/// A search that took two of them for one would not see what one of them does.
#[test]
fn vertices_are_equal_if_they_will_do_the_same() {
    let tree = Tree::new(8, 2, 2, RegionKey::new(0, 1), 0).unwrap();
    for (level, is_root) in [(0, false), (2, true)] {
        let id = VertexId { level, index: 0 };
        assert_eq!(tree.is_root(id), is_root);
        let one = Vertex::new(tree, id);
        let mut other = one.clone();
        assert!(one == other);
        // Whose turn it was only the root asks.
        other.turn = Side::All;
        assert_eq!(one == other, !is_root);
        other = Vertex { step: 7, ..one.clone() };
        assert!(one == other, "a step has a number, and no meaning");
        other = Vertex { seen: 1, ..one.clone() };
        assert!(one != other);
    }
}
