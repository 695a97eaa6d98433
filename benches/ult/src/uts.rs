//! The tree of the unbalanced tree search benchmark: geometric, fixed shape.
//!
//! A node is twenty bytes. The bytes of a child are the SHA-1 of the node's bytes
//! and the child's number, and the number of children follows from the node's
//! bytes. So the tree is the same on every machine, and the size of a subtree is
//! unknown until it is walked.
//!
//! # References
//!
//! - Olivier et al.: UTS: An Unbalanced Tree Search Benchmark. LCPC 2006. The
//!   tree T1 (depth 10, branching 4, root 19) has 4,130,071 nodes.

use sha1::{Digest, Sha1};

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    state: [u8; 20],
    depth: u32,
    depth_max: u32,
}

/// The depth of the tree T1.
pub const T1_DEPTH: u32 = 10;
/// The number of nodes of the tree T1.
pub const T1_NODES: u64 = 4_130_071;

impl Node {
    /// Returns the root of the tree of T1's seed, cut at `depth_max`.
    pub fn root(depth_max: u32) -> Self {
        let mut seed = [0; 20];
        seed[16..].copy_from_slice(&19u32.to_be_bytes());
        Self { state: Sha1::digest(seed).into(), depth: 0, depth_max }
    }

    /// Returns the node as plain words, so that it can be sent to another rank.
    pub fn to_words(self) -> [u64; 4] {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            let len = (self.state.len() - at).min(8);
            bytes[..len].copy_from_slice(&self.state[at..at + len]);
            u64::from_le_bytes(bytes)
        };
        let depths = u64::from(self.depth) << 32 | u64::from(self.depth_max);
        [word(0), word(8), word(16), depths]
    }

    /// Makes a node from the words of [`to_words`](Self::to_words).
    pub fn from_words(words: [u64; 4]) -> Self {
        let mut state = [0; 20];
        for (into, word) in state.chunks_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes()[..into.len()]);
        }
        Self { state, depth: (words[3] >> 32) as u32, depth_max: words[3] as u32 }
    }

    /// Returns how many levels there may be below the node.
    pub fn below(&self) -> u32 {
        self.depth_max - self.depth
    }

    /// Returns how many children the node has.
    pub fn children(&self) -> u32 {
        if self.depth >= self.depth_max {
            return 0;
        }
        let last = [self.state[16], self.state[17], self.state[18], self.state[19]];
        let random = u32::from_be_bytes(last) & 0x7fff_ffff;
        let uniform = f64::from(random) / 2_147_483_648.0;
        let stop = 1.0 / (1.0 + BRANCHING);
        (((1.0 - uniform).ln() / (1.0 - stop).ln()).floor() as u32).min(CHILDREN_MAX)
    }

    /// Returns the node's `number`th child.
    pub fn child(&self, number: u32) -> Self {
        let mut bytes = [0; 24];
        bytes[..20].copy_from_slice(&self.state);
        bytes[20..].copy_from_slice(&number.to_be_bytes());
        Self { state: Sha1::digest(bytes).into(), depth: self.depth + 1, depth_max: self.depth_max }
    }
}

/// Returns how many nodes a subtree has, by a walk of one thread.
pub fn count(node: &Node) -> u64 {
    1 + (0..node.children()).map(|number| count(&node.child(number))).sum::<u64>()
}

const BRANCHING: f64 = 4.0;
const CHILDREN_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_the_same_everywhere() {
        let sizes: Vec<u64> = (0..6).map(|depth| count(&Node::root(depth))).collect();
        assert_eq!(sizes, [1, 6, 65, 254, 944, 3987]);
    }

    #[test]
    fn a_node_is_the_same_after_encoding() {
        let node = Node::root(5).child(3);
        assert_eq!((Node::from_words(node.to_words()), node.below()), (node, 4));
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "four million nodes: with --release")]
    fn t1_has_the_published_size() {
        assert_eq!(count(&Node::root(T1_DEPTH)), T1_NODES);
    }
}
