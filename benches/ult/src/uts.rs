//! The tree of the unbalanced tree search benchmark, geometric, fixed shape.
//!
//! A node is twenty bytes, its children's are the SHA-1 of its own and their
//! number; how many there are follows from the bytes. So the tree is the same
//! on every machine, and nobody knows a subtree's size before walking it.
//!
//! # References
//!
//! - Olivier et al.: UTS: An Unbalanced Tree Search Benchmark. LCPC 2006. The
//!   tree T1 (depth 10, branching 4, root 19) has 4,130,071 nodes.

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    state: [u8; 20],
    depth: u32,
    depth_max: u32,
}

/// The depth of T1.
pub const T1_DEPTH: u32 = 10;
/// The nodes of T1.
pub const T1_NODES: u64 = 4_130_071;

impl Node {
    /// The root of the tree of T1's seed that is cut at `depth_max`.
    pub fn root(depth_max: u32) -> Self {
        let mut seed = [0; 20];
        seed[16..].copy_from_slice(&19u32.to_be_bytes());
        Self { state: sha1(&seed), depth: 0, depth_max }
    }

    /// How many children it has.
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

    /// Its `number`th child.
    pub fn child(&self, number: u32) -> Self {
        let mut bytes = [0; 24];
        bytes[..20].copy_from_slice(&self.state);
        bytes[20..].copy_from_slice(&number.to_be_bytes());
        Self { state: sha1(&bytes), depth: self.depth + 1, depth_max: self.depth_max }
    }
}

/// The nodes of a subtree, by a walk of one thread.
pub fn count(node: &Node) -> u64 {
    1 + (0..node.children()).map(|number| count(&node.child(number))).sum::<u64>()
}

/// SHA-1 of at most 55 bytes: one block.
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut block = [0u8; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[56..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().expect("four bytes"));
    }
    for at in 16..80 {
        words[at] =
            (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = SHA1_START;
    for (at, word) in words.iter().enumerate() {
        let (mix, constant) = match at / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next = a.rotate_left(5).wrapping_add(mix).wrapping_add(e);
        let next = next.wrapping_add(constant).wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let mut digest = [0; 20];
    let sums = SHA1_START.iter().zip([a, b, c, d, e]);
    for (bytes, (start, end)) in digest.chunks_exact_mut(4).zip(sums) {
        bytes.copy_from_slice(&start.wrapping_add(end).to_be_bytes());
    }
    digest
}

const SHA1_START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
const BRANCHING: f64 = 4.0;
const CHILDREN_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha1_of_abc_is_the_standards() {
        let digest: String = sha1(b"abc").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "a9993e364706816aba3e25717850c26c9cd0d89d");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "four million nodes: with --release")]
    fn t1_has_the_published_size() {
        assert_eq!(count(&Node::root(T1_DEPTH)), T1_NODES);
    }
}
