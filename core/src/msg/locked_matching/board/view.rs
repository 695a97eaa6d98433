//! A view of a board, and the board's place in given memory.

use super::layout::{BoardHeader, NONE, PostEntry, RANK_MASK, SenderEntry};
use crate::sync::Ordering;
use core::fmt;
use core::ptr::NonNull;

/// A view of the board of one rank. All ranks of a job have boards.
#[derive(Clone, Copy)]
pub struct Board<'m> {
    pub(super) head: &'m BoardHeader,
    pub(super) sources: &'m [SenderEntry],
    pub(super) entries: &'m [PostEntry],
}

/// The size of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardShape {
    /// Ranks that may send.
    pub peers: u32,
    /// Posts that can be open.
    pub posts: u32,
}

/// Why a board was not made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoardError {
    /// The memory is not aligned to [`Board::ALIGN`].
    Unaligned {
        /// The address of the memory.
        address: usize,
    },
    /// No ranks, no posts, or more of them than a word can name.
    Shape(BoardShape),
    /// The memory has no board of this shape.
    Missing(BoardShape),
}

impl<'m> Board<'m> {
    /// Alignment of a board's memory.
    pub const ALIGN: usize = align_of::<BoardHeader>();

    /// Bytes that a board needs.
    pub const fn memory_size(shape: BoardShape) -> usize {
        size_of::<BoardHeader>()
            + shape.peers as usize * size_of::<SenderEntry>()
            + shape.posts as usize * size_of::<PostEntry>()
    }

    /// Makes an empty board in given memory.
    ///
    /// # Errors
    ///
    /// [`BoardError::Unaligned`] if `memory` is not aligned to [`ALIGN`](Self::ALIGN);
    /// [`BoardError::Shape`] if there are no ranks or no posts, or more than a word can
    /// name.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](Self::memory_size) bytes that no other
    /// thread accesses before this returns, and that stay valid for `'m`.
    pub unsafe fn init(memory: NonNull<u8>, shape: BoardShape) -> Result<Self, BoardError> {
        let (head, sources, entries) = places(memory, shape)?;
        // SAFETY: inside the caller's memory, to which the caller still has
        // exclusive access.
        unsafe { head.write(BoardHeader::new()) };
        for index in 0..shape.peers as usize {
            // SAFETY: inside the caller's memory, as above.
            unsafe { sources.add(index).write(SenderEntry::new()) };
        }
        for index in 0..shape.posts as usize {
            // SAFETY: inside the caller's memory, as above.
            unsafe { entries.add(index).write(PostEntry::new()) };
        }
        // SAFETY: all places were just written, and the caller promises that they
        // stay valid for `'m`.
        let board = unsafe { Self::from_places(head, sources, entries, shape) };
        // Release: pairs with the Acquire in `attach`.
        board.head.shape.store(shape.to_bits(), Ordering::Release);
        Ok(board)
    }

    /// Finds a board that its owner has made.
    ///
    /// # Errors
    ///
    /// Those of [`init`](Self::init), and [`BoardError::Missing`] if the memory has no board
    /// of this shape: the owner has not made it yet, or has made another.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](Self::memory_size) bytes that stay
    /// valid for `'m`, and are zero or a board of this shape.
    pub unsafe fn attach(memory: NonNull<u8>, shape: BoardShape) -> Result<Self, BoardError> {
        let (head, sources, entries) = places(memory, shape)?;
        // SAFETY: the caller promises valid memory for `'m`; a board consists of
        // atomics only, for which all byte values are valid.
        let board = unsafe { Self::from_places(head, sources, entries, shape) };
        // Acquire: pairs with the Release in `init`.
        if board.head.shape.load(Ordering::Acquire) != shape.to_bits() {
            return Err(BoardError::Missing(shape));
        }
        Ok(board)
    }

    /// Makes the view of a board from its places.
    ///
    /// # Safety
    ///
    /// The places are those of a board in memory that stays valid for `'m`.
    unsafe fn from_places(
        head: NonNull<BoardHeader>,
        sources: NonNull<SenderEntry>,
        entries: NonNull<PostEntry>,
        shape: BoardShape,
    ) -> Self {
        // SAFETY: the caller of `from_places` promises valid places.
        unsafe {
            Self {
                head: head.as_ref(),
                sources: core::slice::from_raw_parts(sources.as_ptr(), shape.peers as usize),
                entries: core::slice::from_raw_parts(entries.as_ptr(), shape.posts as usize),
            }
        }
    }
}

impl BoardShape {
    const fn to_bits(self) -> u64 {
        (self.peers as u64) << 32 | self.posts as u64
    }
}

type Places = (NonNull<BoardHeader>, NonNull<SenderEntry>, NonNull<PostEntry>);

fn places(memory: NonNull<u8>, shape: BoardShape) -> Result<Places, BoardError> {
    let address = memory.as_ptr() as usize;
    if !address.is_multiple_of(Board::ALIGN) {
        return Err(BoardError::Unaligned { address });
    }
    let is_good = (1..=RANK_MASK).contains(&shape.peers) && (1..NONE).contains(&shape.posts);
    if !is_good {
        return Err(BoardError::Shape(shape));
    }
    let sources = size_of::<BoardHeader>();
    let entries = sources + shape.peers as usize * size_of::<SenderEntry>();
    // SAFETY: offsets inside `memory_size` bytes, which the callers promise.
    unsafe { Ok((memory.cast(), memory.add(sources).cast(), memory.add(entries).cast())) }
}

impl fmt::Debug for Board<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("peers", &self.sources.len())
            .field("posts", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for BoardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unaligned { address } => {
                write!(f, "the memory at {address:#x} is not aligned to {} bytes", Board::ALIGN)
            }
            Self::Shape(BoardShape { peers, posts }) => write!(
                f,
                "a board of {posts} posts for {peers} ranks: it has 1 to {} posts and 1 to \
                 {RANK_MASK} ranks",
                NONE - 1
            ),
            Self::Missing(shape) => {
                let BoardShape { peers, posts } = shape;
                write!(f, "the memory contains no board of {posts} posts for {peers} ranks")
            }
        }
    }
}

impl core::error::Error for BoardError {}
