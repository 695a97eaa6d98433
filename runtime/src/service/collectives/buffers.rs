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

/// Memory of one collective that its group keeps for the next one.
#[derive(Debug, Default)]
pub struct CollScratch {
    words: Vec<u128>,
    /// The blocks of the input and of the output, if their lengths differ.
    pub blocks: [Vec<Block>; 2],
}

impl CollScratch {
    /// Whether it has memory.
    pub fn has_memory(&self) -> bool {
        self.words.capacity() > 0 || self.blocks.iter().any(|blocks| blocks.capacity() > 0)
    }

    /// A scratch buffer of so many bytes, whose content is undefined.
    pub(super) fn bytes(&mut self, bytes: usize) -> *mut u8 {
        self.words.clear();
        self.words.reserve_exact(bytes.div_ceil(size_of::<u128>()));
        self.words.as_mut_ptr().cast()
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
