//! Tags: names of operations in flight, each with a generation.
//!
//! A [`Tag`] names one of a fixed number of operations in flight. Any thread may
//! take and release tags in any order. Each time, the tag gets a new *generation*,
//! by which a completion that comes late or twice is recognized.
//!
//! ```text
//!  Tag:    generation (40) | index (24)
//!
//!  shard:  free            one bit for each of 64 tags    ─┐ cache lines
//!          generations     one word for each of them      ─┘ of their own
//!
//!   free, even generation ──try_take──► taken, odd generation
//!            ▲                                    │
//!            └───────────────release──────────────┘
//!              (of an older generation: refused)
//! ```
//!
//! A worker looks first in the shard that its hint names, so that workers do not
//! share cache lines, and then in all other shards, so that a thread that has moved
//! to another worker gets a tag as long as one is free. A tag always goes back to
//! its own shard, whichever thread releases it. A set bit has no history, so the ABA
//! problem cannot occur.
//!
//! Progress: `try_take` is lock-free; `release` and `is_current` are wait-free where
//! the processor has an atomic or, otherwise lock-free.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::tag::TagTable;
//!
//! let table = TagTable::<1>::new();
//! let tags = table.pool();
//! let tag = tags.try_take(0).expect("64 tags are free");
//! assert!(tags.is_current(tag));
//! assert!(tags.release(tag));
//! assert!(!tags.release(tag), "a second completion of the same life");
//! ```

use crate::mutate;
use crate::sync::{AtomicU64, CachePadded, Ordering};
use core::fmt;
use core::ptr::NonNull;

/// The name of an operation in flight: one of a fixed number, and its generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Tag(u64);

impl Tag {
    /// The tag of no operation.
    pub const NONE: Self = Self(u64::MAX);
    /// The greatest number of tags in a pool.
    pub const INDEX_MAX: usize = (1 << INDEX_BITS) - 1;

    /// The tag's index in its pool.
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }

    /// The tag's generation.
    #[inline(always)]
    pub const fn generation(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    /// The tag as a word that a device carries.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The tag that [`to_bits`](Self::to_bits) made the word from. A word that is no
    /// tag is refused at its first use.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    const fn new(index: usize, generation: u64) -> Self {
        Self(generation << INDEX_BITS | index as u64)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => f.write_str("Tag(none)"),
            tag => write!(f, "Tag({}.{})", tag.index(), tag.generation()),
        }
    }
}

/// A fixed number of tags, in memory that the pool does not own: a view, cheap to
/// copy and to send.
#[derive(Clone, Copy)]
pub struct TagPool<'a> {
    shards: &'a [Shard],
    tags: usize,
}

/// A [`TagPool`] with its own memory: 64 tags in each of `SHARDS` shards.
pub struct TagTable<const SHARDS: usize> {
    shards: [Shard; SHARDS],
}

/// Why a pool could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagPoolError {
    /// A pool has 1 to [`Tag::INDEX_MAX`] tags.
    Count {
        /// The number that the caller asked for.
        tags: usize,
    },
    /// The memory is not aligned to [`TagPool::ALIGN`].
    Unaligned {
        /// The address of the memory.
        address: usize,
    },
}

/// 64 tags. A free one has its bit set and an even generation.
#[repr(C, align(64))]
struct Shard {
    free: CachePadded<AtomicU64>,
    generations: [AtomicU64; PER_SHARD],
}

impl<'a> TagPool<'a> {
    /// The alignment that the memory of a pool needs.
    pub const ALIGN: usize = align_of::<Shard>();
    /// Tags that share one shard.
    pub const PER_SHARD: usize = PER_SHARD;

    /// Bytes that a pool of `tags` tags needs.
    pub const fn memory_size(tags: usize) -> usize {
        tags.div_ceil(PER_SHARD) * size_of::<Shard>()
    }

    /// Makes a pool of `tags` free tags in `memory`.
    ///
    /// # Errors
    ///
    /// [`TagPoolError::Count`] if `tags` is 0 or above [`Tag::INDEX_MAX`];
    /// [`TagPoolError::Unaligned`] if `memory` is not aligned to
    /// [`ALIGN`](Self::ALIGN).
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size(tags)`](Self::memory_size) bytes, and for
    /// `'a` no other code uses them.
    pub unsafe fn init(memory: NonNull<u8>, tags: usize) -> Result<Self, TagPoolError> {
        if tags == 0 || tags > Tag::INDEX_MAX {
            return Err(TagPoolError::Count { tags });
        }
        let address = memory.as_ptr() as usize;
        if !address.is_multiple_of(Self::ALIGN) {
            return Err(TagPoolError::Unaligned { address });
        }
        let first = memory.cast::<Shard>();
        let shards = tags.div_ceil(PER_SHARD);
        for index in 0..shards {
            let here = (tags - index * PER_SHARD).min(PER_SHARD);
            // SAFETY: inside the caller's memory, which is large and aligned enough
            // and which no other code uses.
            unsafe { first.add(index).write(Shard::new(here)) };
        }
        // SAFETY: the shards were just written, and the caller promises that the
        // memory is valid for `'a`.
        let shards = unsafe { core::slice::from_raw_parts(first.as_ptr(), shards) };
        Ok(Self { shards, tags })
    }

    /// The number of tags, free or not.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.tags
    }

    /// Always false: a pool has tags.
    pub const fn is_empty(&self) -> bool {
        self.tags == 0
    }

    /// Takes a free tag, from the shard that `hint` names (a worker's number) if
    /// that shard has one. `None`: each shard had no free tag when this function
    /// looked at it. Lock-free.
    #[inline]
    pub fn try_take(&self, hint: usize) -> Option<Tag> {
        let shards = self.shards.len();
        let mut at = if hint < shards { hint } else { hint % shards };
        for _ in 0..shards {
            if let Some(bit) = self.shards[at].try_take() {
                let word = &self.shards[at].generations[bit];
                // Relaxed: the last holder's store came before its release of the
                // bit, which `try_take` acquired. Another thread learns of the tag
                // only through the caller.
                let generation = word.load(Ordering::Relaxed) + 1;
                word.store(generation & GENERATION_MASK, Ordering::Relaxed);
                return Some(Tag::new(at * PER_SHARD + bit, generation & GENERATION_MASK));
            }
            at += 1;
            if at == shards {
                at = 0;
            }
        }
        None
    }

    /// Ends this life of a tag and frees it. Returns false, and changes nothing, if
    /// that life had ended before or never began.
    #[inline]
    pub fn release(&self, tag: Tag) -> bool {
        let Some((shard, bit)) = self.place(tag) else { return false };
        let word = &shard.generations[bit];
        let next = (tag.generation() + 1) & GENERATION_MASK;
        let ended = tag.generation() & TAKEN != 0
            // Relaxed: the bit below carries the order. On failure the only
            // information is that the tag is stale.
            && word
                .compare_exchange(tag.generation(), next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        let ended = mutate!("tag_release_unchecked": ended => {
            word.store(next, Ordering::Relaxed);
            true
        });
        if ended {
            shard.put_back(bit);
        }
        ended
    }

    /// Whether the tag is taken, in this life. False is final: the tag was released.
    /// True is reliable only for a holder of the tag, which knows it anyway.
    #[inline]
    pub fn is_current(&self, tag: Tag) -> bool {
        self.place(tag).is_some_and(|(shard, bit)| {
            tag.generation() & TAKEN != 0
                && shard.generations[bit].load(Ordering::Relaxed) == tag.generation()
        })
    }

    /// The number of free tags; a hint, because other threads take and release
    /// meanwhile.
    pub fn available(&self) -> usize {
        // SeqCst: pairs with `put_back`, for a thread that is about to wait for a
        // tag.
        let free = |shard: &Shard| shard.free.load(Ordering::SeqCst).count_ones() as usize;
        self.shards.iter().map(free).sum()
    }

    /// Releases a tag that only the caller holds: without a check and without a
    /// second read-modify-write.
    #[inline]
    pub(crate) fn put_back(&self, tag: Tag) {
        let (shard, bit) = self.place(tag).expect("a tag of this pool");
        let next = (tag.generation() + 1) & GENERATION_MASK;
        // Relaxed: the bit carries the order, see `Shard::put_back`.
        shard.generations[bit].store(next, Ordering::Relaxed);
        shard.put_back(bit);
    }

    #[inline(always)]
    fn place(&self, tag: Tag) -> Option<(&'a Shard, usize)> {
        let shard = self.shards.get(tag.index() / PER_SHARD)?;
        Some((shard, tag.index() % PER_SHARD))
    }
}

impl fmt::Debug for TagPool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TagPool({} of {} free)", self.available(), self.tags)
    }
}

impl<const SHARDS: usize> TagTable<SHARDS> {
    const SHARDS_ARE_VALID: () = assert!(
        SHARDS >= 1 && SHARDS * PER_SHARD <= Tag::INDEX_MAX,
        "SHARDS is at least 1, and 64 * SHARDS at most `Tag::INDEX_MAX`"
    );

    /// All tags free.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        let () = Self::SHARDS_ARE_VALID;
        Self { shards: [const { Shard::new(PER_SHARD) }; SHARDS] }
    }

    /// All tags free.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        let () = Self::SHARDS_ARE_VALID;
        Self { shards: core::array::from_fn(|_| Shard::new(PER_SHARD)) }
    }

    /// The table's pool.
    #[inline(always)]
    pub const fn pool(&self) -> TagPool<'_> {
        TagPool { shards: &self.shards, tags: SHARDS * PER_SHARD }
    }
}

impl<const SHARDS: usize> Default for TagTable<SHARDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SHARDS: usize> fmt::Debug for TagTable<SHARDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool().fmt(f)
    }
}

impl fmt::Display for TagPoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { tags } => {
                write!(f, "a pool of {tags} tags: it needs 1 to {}", Tag::INDEX_MAX)
            }
            Self::Unaligned { address } => {
                write!(f, "the memory at {address:#x} is not aligned to {} bytes", TagPool::ALIGN)
            }
        }
    }
}

impl core::error::Error for TagPoolError {}

impl Shard {
    #[cfg(not(tsumugi_loom))]
    const fn new(tags: usize) -> Self {
        Self {
            free: CachePadded::new(AtomicU64::new(low_bits(tags))),
            generations: [const { AtomicU64::new(0) }; PER_SHARD],
        }
    }

    #[cfg(tsumugi_loom)]
    fn new(tags: usize) -> Self {
        Self {
            free: CachePadded::new(AtomicU64::new(low_bits(tags))),
            generations: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[inline(always)]
    fn try_take(&self) -> Option<usize> {
        let mut seen = self.free.load(Ordering::Relaxed);
        while seen != 0 {
            let rest = seen & (seen - 1);
            // Acquire: pairs with the Release in `put_back`, so that all accesses of
            // the last holder are over.
            let taken = mutate!("tag_take_load_store":
                self.free.compare_exchange_weak(seen, rest, Ordering::Acquire, Ordering::Relaxed)
                => {
                    self.free.store(rest, Ordering::Relaxed);
                    Ok(seen)
                }
            );
            match taken {
                Ok(_) => return Some(seen.trailing_zeros() as usize),
                Err(changed) => seen = changed,
            }
        }
        None
    }

    #[inline(always)]
    fn put_back(&self, bit: usize) {
        // Release: pairs with the Acquire in `try_take`. SeqCst: a thread that has
        // freed a tag then looks for threads that wait for one, without another
        // fence.
        let order = mutate!("tag_release_relaxed": Ordering::SeqCst => Ordering::Relaxed);
        self.free.fetch_or(1 << bit, order);
    }
}

const fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const GENERATION_MASK: u64 = u64::MAX >> INDEX_BITS;
const TAKEN: u64 = 1;
const PER_SHARD: usize = if cfg!(tsumugi_loom) { 2 } else { 64 };

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
