//! The deques of all ranks, with items that are given by address: of a type, or of a
//! number of bytes that a program of another language has chosen.
//!
//! ```text
//!  ends │ ... │ item 0 │ item 1 │ ... │ item capacity - 1      words of each rank
//!  └ a line of its own: thieves look here
//! ```

use crate::{AddrError, Error, Rank, Remote, RemoteAddr, Runtime, Shared};
use std::fmt;
use tsumugi_core::mem::Agent;
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_gas::steal::{CAPACITY_MAX, StealDeque, Theft, TheftAction};

/// The deques of all ranks, for items of some bytes.
pub struct RawDeque {
    runtime: Runtime,
    words: Shared<u64>,
    capacity: usize,
    item_words: usize,
    item_bytes: usize,
}

impl RawDeque {
    /// Makes a deque on every rank, with room for at least `capacity` items. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::share`], and an [`Error`] of the program if `capacity` is 0
    /// or above 2^23.
    pub fn new(runtime: &Runtime, capacity: usize, item_bytes: usize) -> Result<Self, Error> {
        if capacity == 0 || capacity > CAPACITY_MAX {
            return Err(Error::program(format!(
                "a deque of {capacity} items: it has 1 to {CAPACITY_MAX}"
            )));
        }
        let capacity = capacity.next_power_of_two();
        // Thieves compute places from these numbers.
        runtime.check_length(capacity as u64)?;
        runtime.check_length(item_bytes as u64)?;
        let item_words = item_bytes.div_ceil(WORD_BYTES).max(1);
        // A length that does not fit is one for which there is no memory.
        let words = item_words.saturating_mul(capacity).saturating_add(ITEMS_AT);
        let words = runtime.share_words(Agent::Cpu, words)?;
        Ok(Self { runtime: runtime.clone(), words, capacity, item_words, item_bytes })
    }

    /// The number of items for which a rank's deque has room.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes of an item.
    pub fn item_bytes(&self) -> usize {
        self.item_bytes
    }

    /// The number of items in this rank's deque. When it is returned, there may be fewer.
    pub fn len(&self) -> usize {
        self.own().count() as usize
    }

    /// Whether this rank's deque has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an item to this rank's deque. False: there is no room.
    ///
    /// # Safety
    ///
    /// `item` is valid for a read of `bytes` bytes, the bytes of an item. One thread at a
    /// time pushes and pops.
    #[inline]
    pub unsafe fn push(&self, item: *const u8, bytes: usize) -> bool {
        let words = (0..bytes.div_ceil(WORD_BYTES)).map(|word| {
            let at = word * WORD_BYTES;
            let mut value = [0; WORD_BYTES];
            // SAFETY: as many bytes of the item are left.
            unsafe {
                let left = WORD_BYTES.min(bytes - at);
                value.as_mut_ptr().copy_from_nonoverlapping(item.add(at), left);
            }
            u64::from_ne_bytes(value)
        });
        self.own().push(words)
    }

    /// Takes the newest item of this rank's deque to `into`, if there is one and
    /// `is_wanted` returns true when it is there.
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of `bytes` bytes, the bytes of an item. One thread at
    /// a time pushes and pops.
    #[inline]
    pub unsafe fn pop_if(
        &self,
        into: *mut u8,
        bytes: usize,
        mut is_wanted: impl FnMut() -> bool,
    ) -> bool {
        self.own().pop_if(|words| {
            for (word, value) in words.iter().enumerate().take(bytes.div_ceil(WORD_BYTES)) {
                let at = word * WORD_BYTES;
                // Relaxed: the word was stored by this rank, by one thread at a time.
                let value = value.load(Ordering::Relaxed).to_ne_bytes();
                // SAFETY: the place has room for as many bytes.
                unsafe {
                    let left = WORD_BYTES.min(bytes - at);
                    into.add(at).copy_from_nonoverlapping(value.as_ptr(), left);
                }
            }
            is_wanted()
        })
    }

    /// Takes the oldest item of a rank's deque to `into`. False: there was none, or other
    /// thieves were faster several times. After false or an error, the bytes there may be
    /// those of any items.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank has died; [`AddrError::NoSuchRank`].
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of the bytes of an item, which no other code uses until
    /// this returns.
    pub unsafe fn steal(&self, from: Rank, into: *mut u8) -> Result<bool, AddrError> {
        let handle = self.runtime.handle();
        let mut theft = Theft::new(self.at(from, ENDS_AT), self.capacity);
        loop {
            let answer = match theft.act() {
                TheftAction::Do(op) => handle.carry(&op),
                TheftAction::Copy(item) => {
                    let at = self.at(from, ITEMS_AT + item * self.item_words);
                    // SAFETY: the caller's.
                    unsafe { handle.load(at, into, self.item_bytes) }.map(|()| 0)
                }
                TheftAction::Taken => return Ok(true),
                TheftAction::Nothing => return Ok(false),
                TheftAction::Failed(error) => return Err(error),
            };
            theft.answer(answer);
        }
    }

    /// The address of a word of a rank.
    fn at(&self, rank: Rank, word: usize) -> RemoteAddr {
        let (key, offset) = (self.words.key(rank), (word * WORD_BYTES) as u64);
        // SAFETY: a word of the deques, which thefts alone access, by the protocol of
        // deques.
        unsafe { Remote::<u64>::of_runtime(RemoteAddr { rank, key, offset }) }.addr()
    }

    fn own(&self) -> StealDeque<'_> {
        let words: &[AtomicU64] = self.words.own().words();
        StealDeque::new(&words[ENDS_AT], &words[ITEMS_AT..], (self.capacity, self.item_words))
    }
}

impl fmt::Debug for RawDeque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { capacity, item_bytes, .. } = self;
        write!(f, "{} of {capacity} items of {item_bytes} bytes", self.len())
    }
}

const WORD_BYTES: usize = size_of::<u64>();
const ENDS_AT: usize = 0;
/// On another pair of lines than the ends.
const ITEMS_AT: usize = 16;
