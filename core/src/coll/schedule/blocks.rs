//! How a buffer is divided into one block for each member of the group.

use core::ops::Range;

/// The tables of a collective, which its driver keeps: they are as long as the group,
/// and a rank has them at most once.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollTables<'a> {
    /// The blocks of the input, if their lengths differ.
    pub sent: &'a [Block],
    /// The blocks of the output, if their lengths differ.
    pub received: &'a [Block],
    /// The members of the group that are on the node of this rank, in their order.
    pub neighbours: &'a [u32],
    /// One member of each node, in the order of the nodes.
    pub leaders: &'a [u32],
}

/// One block of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub at: usize,
    /// Its length.
    pub len: usize,
    /// The sum of the lengths of the blocks before it.
    pub before: usize,
}

/// The blocks of a buffer, one for each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// All have this length, and follow each other.
    Even {
        /// Bytes of a block.
        bytes: usize,
    },
    /// `units` elements are divided as evenly as it can be.
    Split {
        /// Elements of the buffer.
        units: usize,
        /// Bytes of an element.
        unit_bytes: usize,
        /// The number of blocks.
        parts: u32,
    },
    /// Those of the members of a node are one block, with the number of the node; the
    /// members of a node follow each other.
    Nodes {
        /// Bytes of the block of a member.
        bytes: usize,
        /// The number of members.
        size: u32,
    },
    /// [`CollTables::sent`] has them.
    Sent,
    /// [`CollTables::received`] has them.
    Received,
}

impl Block {
    /// Fills a table from lengths and, unless the blocks follow each other, places.
    ///
    /// The tables of lengths and places are as long as `into`.
    pub fn fill(into: &mut [Self], lens: impl Iterator<Item = usize>, places: Option<&[usize]>) {
        let mut before = 0;
        for (index, (block, len)) in into.iter_mut().zip(lens).enumerate() {
            let at = places.map_or(before, |places| places[index]);
            *block = Self { at, len, before };
            // Lengths that exceed all memory do not wrap: they fit no buffer.
            before = before.saturating_add(len);
        }
    }
}

impl Blocks {
    /// The bytes of a block.
    pub fn range(&self, tables: &CollTables<'_>, index: u32) -> Range<usize> {
        match *self {
            Self::Even { bytes } => {
                let at = index as usize * bytes;
                at..at + bytes
            }
            Self::Nodes { bytes, size } => {
                let first = |node: u32| tables.leaders.get(node as usize).map_or(size, |at| *at);
                first(index) as usize * bytes..first(index + 1) as usize * bytes
            }
            Self::Split { units, unit_bytes, parts } => {
                let start = |index: u32| {
                    let unit = units as u64 * u64::from(index) / u64::from(parts);
                    unit as usize * unit_bytes
                };
                start(index)..start(index + 1)
            }
            Self::Sent => of_table(tables.sent, index),
            Self::Received => of_table(tables.received, index),
        }
    }

    /// The bytes of the blocks `from..to`, which follow each other in the buffer.
    pub(super) fn run(&self, tables: &CollTables<'_>, from: u32, to: u32) -> Range<usize> {
        if from == to {
            return 0..0;
        }
        self.range(tables, from).start..self.range(tables, to - 1).end
    }

    /// The sum of the lengths of the blocks before `index`, which may be the number of
    /// blocks.
    pub(super) fn before(&self, tables: &CollTables<'_>, index: u32) -> usize {
        let table = match *self {
            Self::Even { .. } | Self::Split { .. } | Self::Nodes { .. } => {
                return index.checked_sub(1).map_or(0, |last| self.range(tables, last).end);
            }
            Self::Sent => tables.sent,
            Self::Received => tables.received,
        };
        index.checked_sub(1).map_or(0, |last| {
            let block = table[last as usize];
            block.before + block.len
        })
    }
}

fn of_table(table: &[Block], index: u32) -> Range<usize> {
    let block = table[index as usize];
    block.at..block.at + block.len
}
