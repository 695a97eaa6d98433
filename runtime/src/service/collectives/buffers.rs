//! The memory of one collective, and the operation that combines elements.

use tsumugi_core::coll::schedule::{Block, BufferSpan, CollBuffer, CombineOrder};

/// The buffers of one rank's part in a collective.
#[derive(Clone, Copy, Debug)]
pub struct CollBuffers {
    /// What this rank contributes. May be the output: then it is read before it is
    /// written there.
    pub input: *const u8,
    /// The result.
    pub output: *mut u8,
    /// The scratch buffer of the plan.
    pub scratch: *mut u8,
}

/// Combines elements of `bytes` bytes in total: `into = from ∘ into` or
/// `into = into ∘ from`. It gets whole elements, which may lie at any address that is
/// aligned for them if all buffers are.
pub type CombineFn<'a> = dyn Fn(*const u8, *mut u8, usize, CombineOrder) + Send + Sync + 'a;

/// The operation of a collective, for those that have one.
pub type Combine<'a> = Option<&'a CombineFn<'a>>;

/// The scratch buffer and the tables of one collective. Its group keeps them for later ones.
#[derive(Debug, Default)]
pub struct CollScratch {
    pub(super) words: Vec<u128>,
    /// The blocks of the input and of the output, if their lengths differ.
    pub blocks: [Vec<Block>; 2],
}

impl CollScratch {
    /// No scratch buffer yet, and these tables.
    pub const fn of_blocks(blocks: [Vec<Block>; 2]) -> Self {
        Self { words: Vec::new(), blocks }
    }
}

/// The memory of collectives that have ended, for later ones.
#[derive(Debug, Default)]
pub(super) struct SpareScratch {
    words: Vec<Vec<u128>>,
    blocks: Vec<[Vec<Block>; 2]>,
}

impl SpareScratch {
    /// Empty tables, with memory if there is any.
    pub(super) fn take_blocks(&mut self) -> [Vec<Block>; 2] {
        self.blocks.pop().unwrap_or_default()
    }

    /// Memory for `count` words: the largest there is, unless one has room for all.
    pub(super) fn take_words(&mut self, count: usize) -> Vec<u128> {
        let fits = self.words.iter().position(|words| words.capacity() >= count);
        let largest = || {
            let of_each = self.words.iter().enumerate();
            of_each.max_by_key(|(_, words)| words.capacity()).map(|(index, _)| index)
        };
        let mut words = match fits.or_else(largest) {
            Some(index) => self.words.swap_remove(index),
            None => Vec::new(),
        };
        words.clear();
        words.reserve_exact(count);
        words
    }

    /// Keeps what has memory.
    pub(super) fn keep(&mut self, CollScratch { words, blocks }: CollScratch) {
        if words.capacity() > 0 {
            self.words.push(words);
        }
        if blocks.iter().any(|blocks| blocks.capacity() > 0) {
            self.blocks.push(blocks);
        }
    }
}

impl CollBuffers {
    /// No bytes.
    pub const NONE: Self = Self {
        input: std::ptr::null(),
        output: std::ptr::null_mut(),
        scratch: std::ptr::null_mut(),
    };

    pub(super) fn source(&self, span: BufferSpan) -> *const u8 {
        match span.buffer {
            CollBuffer::Input => self.input.wrapping_add(span.at),
            CollBuffer::Output => self.output.wrapping_add(span.at),
            CollBuffer::Scratch => self.scratch.wrapping_add(span.at),
        }
    }

    /// # Panics
    ///
    /// If the span is of the input, which no plan writes.
    pub(super) fn target(&self, span: BufferSpan) -> *mut u8 {
        match span.buffer {
            CollBuffer::Input => panic!("a plan writes to the input"),
            CollBuffer::Output => self.output.wrapping_add(span.at),
            CollBuffer::Scratch => self.scratch.wrapping_add(span.at),
        }
    }
}
