//! Short values of a collective among ranks that share memory: each member publishes its
//! value in its own memory, and the others read it there.
//!
//! ```text
//!  row of a member      done      cell 0        cell 1       ...     collective n uses the
//!                     [n|sleep] [n,len|sleep] [n,len|sleep]          cell n mod CELLS
//!                               [ the value ] [ the value ]
//!
//!  a member, in n:    its own done = n - 1 ─► all have done what its cell had before
//!                     ─► value, number ─► reads the cells of others ─► done = n
//! ```
//!
//! A value with up to 48 bytes is in one line with its number, so a reader that waits has
//! it after one trip of the line; and the lines of all members come at the same time. The
//! depth is one trip for any number of members, and the work of a reader is one line for
//! each.
//!
//! Numbers only grow, so nothing is ever reset: a group that gets the row of a former
//! group begins above all numbers of its members. A member runs its collectives one after
//! the other. So a member that publishes the number `n` has done `n - 1`, and in a series of
//! collectives in which all read all, no member looks at a count `done` of another.
//!
//! A reader that sleeps sets its bit beside the word for which it waits, and looks once
//! more; the writer changes the word, and then looks at the bits. Only the owner of a bit
//! clears it.
//!
//! Progress: each call is wait-free; a collective waits for the members whose values it
//! reads, and for those that still read what its cell had before.

use crate::mutate;
use crate::sync::{AtomicU64, Ordering, edge, fence};

/// The memory of one member for one group. All zeroes at first.
#[repr(C, align(128))]
pub struct CellRow {
    done: WatchedCount,
    cells: [ValueCell; CELLS],
}

/// A word that only grows, and the members that sleep until it does, a bit each.
#[repr(C, align(128))]
struct WatchedCount {
    count: AtomicU64,
    sleepers: AtomicU64,
}

/// One value. Its count is the number of the collective and the length in bytes.
#[repr(C, align(128))]
struct ValueCell {
    count: AtomicU64,
    sleepers: AtomicU64,
    words: [AtomicU64; CELL_WORDS],
}

/// The rows of a group.
pub trait RowMemory {
    /// The row of a member.
    fn row(&self, member: u32) -> &CellRow;

    /// Wakes a member that may sleep because of the word `at` of this member's row.
    fn wake(&self, member: u32, at: &AtomicU64);
}

/// One member of a group, as it uses the rows.
#[derive(Debug)]
pub struct RowSeat {
    me: u32,
    size: u32,
    /// The number of the next collective of this member.
    next: AtomicU64,
    /// All members have done this one.
    all_done: AtomicU64,
    /// The last number that this member has published in each cell.
    published: [AtomicU64; CELLS],
}

/// What a member waits for: a count of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWait {
    member: u32,
    /// `None`: the count of what it has done.
    cell: Option<usize>,
    until: u64,
}

impl RowWait {
    /// The member for which the wait is; the own one: for an earlier collective.
    pub const fn member(&self) -> u32 {
        self.member
    }
}

impl CellRow {
    /// The largest value in bytes.
    pub const VALUE_BYTES: usize = CELL_WORDS * size_of::<u64>();
    /// The most members that a group with rows can have: a sleeper is a bit of a word.
    pub const MEMBERS_MAX: u32 = u64::BITS;

    /// A row that was never used.
    pub fn new() -> Self {
        let word = || AtomicU64::new(0);
        let cell = |_| ValueCell {
            count: word(),
            sleepers: word(),
            words: core::array::from_fn(|_| word()),
        };
        let done = WatchedCount { count: word(), sleepers: word() };
        Self { done, cells: core::array::from_fn(cell) }
    }

    /// The number of the last collective that the owner has done.
    pub fn done(&self) -> u64 {
        // Acquire: pairs with the swap in `RowSeat::leave`: what the owner has read may be
        // written over.
        self.done.count.load(Ordering::Acquire)
    }

    fn watched(&self, cell: Option<usize>) -> (&AtomicU64, &AtomicU64) {
        match cell {
            None => (&self.done.count, &self.done.sleepers),
            Some(cell) => (&self.cells[cell].count, &self.cells[cell].sleepers),
        }
    }
}

impl Default for CellRow {
    fn default() -> Self {
        Self::new()
    }
}

impl RowSeat {
    /// The member `me` of `size`, in a group whose members have used no number above
    /// `base` in these rows.
    pub fn new(me: u32, size: u32, base: u64, rows: &impl RowMemory) -> Self {
        // Release: what this member has read for a former group may be written over.
        rows.row(me).done.count.store(base, Ordering::Release);
        let all_done = AtomicU64::new(base);
        let published = core::array::from_fn(|_| AtomicU64::new(base));
        Self { me, size, next: AtomicU64::new(base + 1), all_done, published }
    }

    /// Takes the numbers of the next `count` collectives; returns the first of them.
    pub fn take_numbers(&self, count: u64) -> u64 {
        // Relaxed: a program orders the collectives of a group itself.
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// The number of the last collective that this member has begun. When all members have
    /// done it, none of them reads or watches a row for this group.
    pub fn last_number(&self) -> u64 {
        // Relaxed: the group is no longer used.
        self.next.load(Ordering::Relaxed) - 1
    }

    /// Begins the collective `number`, in which this member publishes `value`, if
    /// anything.
    ///
    /// # Errors
    ///
    /// An earlier collective of this member is not over, or another member still reads
    /// what the cell had before: the caller waits, and calls again.
    ///
    /// # Panics
    ///
    /// If the value is longer than [`CellRow::VALUE_BYTES`].
    #[inline]
    pub fn try_enter(
        &self,
        rows: &impl RowMemory,
        number: u64,
        value: Option<&[u8]>,
    ) -> Result<(), RowWait> {
        let own = rows.row(self.me);
        if own.done() < number - 1 {
            return Err(RowWait { member: self.me, cell: None, until: number - 1 });
        }
        let Some(value) = value else { return Ok(()) };
        let cell = cell_of(number);
        // Relaxed, all words of the seat: `done` has ordered the collectives before.
        let before = self.published[cell].load(Ordering::Relaxed);
        let is_known = self.all_done.load(Ordering::Relaxed) >= before;
        if !mutate!("row_no_room": is_known => true) {
            self.look_at_done(rows, before)?;
        }
        let ValueCell { count, sleepers, words } = &own.cells[cell];
        let publish = || {
            // SeqCst: Release for the value, pairs with Acquire in `try_take`; and before
            // the look at the sleepers, pairs with `watch`.
            count.swap(count_of(number, value.len()), Ordering::SeqCst);
        };
        mutate!("row_value_late": {} => publish());
        store(words, value);
        mutate!("row_value_late": publish() => ());
        self.published[cell].store(number, Ordering::Relaxed);
        self.wake(rows, count, sleepers);
        Ok(())
    }

    #[cold]
    fn look_at_done(&self, rows: &impl RowMemory, needed: u64) -> Result<(), RowWait> {
        let done = |member: u32| (rows.row(member).done(), member);
        let others = (0..self.size).filter(|member| *member != self.me);
        let Some((least, member)) = others.map(done).min() else { return Ok(()) };
        if least < needed {
            return Err(RowWait { member, cell: None, until: needed });
        }
        self.all_done.store(least, Ordering::Relaxed);
        Ok(())
    }

    /// Copies bytes of the value of a member from `at` on, as many as `into` has, and
    /// returns the length of the whole value. Nothing is copied if it is too short.
    ///
    /// # Errors
    ///
    /// The member has not published it: the caller waits, and calls again.
    #[inline]
    pub fn try_take(
        &self,
        rows: &impl RowMemory,
        number: u64,
        member: u32,
        at: usize,
        into: &mut [u8],
    ) -> Result<usize, RowWait> {
        let index = cell_of(number);
        let cell = &rows.row(member).cells[index];
        // Acquire: pairs with the swap in `try_enter`.
        let count = cell.count.load(Ordering::Acquire);
        let until = count_of(number, 0);
        if count < until {
            return Err(RowWait { member, cell: Some(index), until });
        }
        let len = (count - until) as usize;
        if len <= CellRow::VALUE_BYTES && len.checked_sub(at) >= Some(into.len()) {
            load(&cell.words, at, into);
        }
        Ok(len)
    }

    /// Ends the collective `number`. `all_left`: every member has ended the one so many before,
    /// 1 if this member has seen the number `number` of all, 2 if the value that it has taken
    /// was published by a member that had seen `number - 1` of all.
    #[inline]
    pub fn leave(&self, rows: &impl RowMemory, number: u64, all_left: Option<u64>) {
        if let Some(before) = all_left {
            self.all_done.store(number - before, Ordering::Relaxed);
        }
        let WatchedCount { count, sleepers } = &rows.row(self.me).done;
        // SeqCst: Release for what this member has read, pairs with Acquire in
        // `CellRow::done`; and before the look at the sleepers, pairs with `watch`.
        count.swap(number, Ordering::SeqCst);
        self.wake(rows, count, sleepers);
    }

    /// Looks whether any member sleeps because of a count that has changed.
    #[inline]
    fn wake(&self, rows: &impl RowMemory, count: &AtomicU64, sleepers: &AtomicU64) {
        edge("row_sleeper_missed");
        let mut asleep = sleepers.load(Ordering::SeqCst);
        while asleep != 0 {
            rows.wake(asleep.trailing_zeros(), count);
            asleep &= asleep - 1;
        }
    }

    /// The word of a wait, and the count that it must reach.
    pub fn word<'r>(&self, rows: &'r impl RowMemory, wait: RowWait) -> (&'r AtomicU64, u64) {
        (rows.row(wait.member).watched(wait.cell).0, wait.until)
    }

    /// Whether the wait is for the end of an earlier collective of this member.
    pub fn is_turn(&self, wait: RowWait) -> bool {
        wait.member == self.me
    }

    /// Asks to be woken when the count of `wait` changes. The caller looks at the word
    /// once more before it sleeps. A member has one bit beside each word, so only one of its
    /// threads may watch for its turn.
    pub fn watch(&self, rows: &impl RowMemory, wait: RowWait) {
        let sleepers = rows.row(wait.member).watched(wait.cell).1;
        // SeqCst, and the fence: before the last look at the count; pairs with `wake`.
        sleepers.fetch_or(1 << self.me, Ordering::SeqCst);
        mutate!("row_look_too_early": fence(Ordering::SeqCst) => ());
    }

    /// Ends a [`watch`](Self::watch).
    pub fn unwatch(&self, rows: &impl RowMemory, wait: RowWait) {
        let sleepers = rows.row(wait.member).watched(wait.cell).1;
        // Relaxed: a bit too many wakes a member in vain.
        sleepers.fetch_and(!(1 << self.me), Ordering::Relaxed);
    }
}

/// The count of a cell with the value of the collective `number`.
const fn count_of(number: u64, len: usize) -> u64 {
    number << LEN_BITS | len as u64
}

const fn cell_of(number: u64) -> usize {
    (number % CELLS as u64) as usize
}

/// Writes bytes to words, which readers may look at meanwhile.
fn store(words: &[AtomicU64], bytes: &[u8]) {
    assert!(bytes.len() <= CellRow::VALUE_BYTES, "a value of {} bytes", bytes.len());
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, bytes) in words.iter().zip(whole) {
        // Relaxed: the count of the cell publishes them.
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

/// Reads bytes of words, from the byte `at` on.
fn load(words: &[AtomicU64], at: usize, into: &mut [u8]) {
    let (mut word, mut from) = (at / 8, at % 8);
    let mut rest = into;
    while !rest.is_empty() {
        let bytes = words[word].load(Ordering::Relaxed).to_ne_bytes();
        let len = (8 - from).min(rest.len());
        let (now, later) = rest.split_at_mut(len);
        now.copy_from_slice(&bytes[from..from + len]);
        (rest, word, from) = (later, word + 1, 0);
    }
}

impl core::fmt::Debug for CellRow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CellRow({} done)", self.done())
    }
}

/// Cells of a row: a root can be so many broadcasts ahead of the slowest reader.
const CELLS: usize = if cfg!(tsumugi_loom) { 2 } else { 4 };
/// Words of a value, with the blocks for all members: 256 bytes, and what is left of the last
/// pair of lines.
const CELL_WORDS: usize = if cfg!(tsumugi_loom) { 1 } else { 46 };
const LEN_BITS: u32 = 16;

#[cfg(not(tsumugi_loom))]
const _: () = {
    assert!(size_of::<ValueCell>() == 384 && CellRow::VALUE_BYTES < 1 << LEN_BITS);
    assert!(size_of::<CellRow>() == 128 + CELLS * 384);
};
