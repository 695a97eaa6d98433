//! The layout of the control region: the memory that each rank provides for the
//! protocols of all ranks.
//!
//! ```text
//!  tables    4 KiB a colour: what this rank has registered      peers read
//!  holders   a bit a rank: it may hold a copy of the tables     peers set
//!  drops     a bit a rank: it asks to drop copies of its own    peers set
//!  acks      a bit a rank: it has dropped its copy              peers set
//!  hints     a bit for each 64 of drops, and of acks            peers set
//!  notes     words: a command lies at that rank, for this one   peers set
//!  ends      a word a command: how it ended                     peers set
//!  commands  64 bytes each, of this rank's                      peers read
//!  cells     64 bytes each, for commands with their note        peers write
//!  landings  256 bytes a copy under way                         own
//!  copies    4 KiB each: tables of other ranks                  own
//! ```
//!
//! The control region is registered first on every rank, so that it has the same key
//! everywhere and no rank stores P keys. Its words belong to
//! [`Agent::Cpu`](crate::table::Agent), because the owner's processor changes them,
//! too.
//!
//! The only parts that grow with the job are the three bitmaps: 3 bits a rank.
//! The words of a large bitmap are not all read: a rank that sets a bit there then
//! sets a bit in the hints, which says in which word it set the first.

use tsumugi_core::mem::{LocalAddr, Rank, RegionKey, RemoteAddr};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};

/// The sizes of the parts: the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlShape {
    /// Ranks of the job.
    pub ranks: u32,
    /// Colours of a rank.
    pub colors: u32,
    /// Tables of other ranks that are kept: a power of two, at least [`WAYS`].
    pub copies: u32,
    /// The largest number of words of a bitmap that are read one by one: a larger
    /// bitmap has hints.
    pub flat_words: u32,
    /// Words for notes: a power of two.
    pub notes: u32,
    /// Places for commands that come with their notes: a power of two, or 0.
    pub cells: u32,
    /// Copies that other ranks can be doing for this rank at a time.
    pub commands: u32,
    /// Operations of this rank that can be under way or wait for others at a time.
    pub own_jobs: u32,
    /// Copies that this rank does for others at a time.
    pub remote_jobs: u32,
    /// Conditions of order that can wait at a time.
    pub conditions: u32,
    /// Operations of all these jobs that can be in flight.
    pub flights: u32,
    /// Tables of other ranks that can be on their way here.
    pub fetches: u32,
}

/// The places of the parts, from the start of the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlRegion {
    pub(crate) key: RegionKey,
    pub(crate) rank: Rank,
    shape: ControlShape,
}

/// One part of a rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// The name of the part.
    pub name: &'static str,
    /// The size of the part.
    pub bytes: u64,
    /// Whether the part lies in the region that other ranks reach.
    pub is_registered: bool,
}

/// Ways of a set of the cache of tables.
pub const WAYS: u32 = 4;
/// Bytes of a table: its 256 entries, of which the last is unused.
pub const TABLE_BYTES: usize = 4096;
/// Bytes of a command.
pub const COMMAND_BYTES: usize = 64;
/// Bytes of a landing: a command, or some entries of a list.
pub(crate) const LANDING_BYTES: usize = 256;

impl ControlShape {
    /// The default for a job of `ranks` ranks: at most 1,024 tables of other ranks,
    /// which are 4 MiB.
    pub const fn of(ranks: u32, colors: u32) -> Self {
        Self { colors, ..Self::within(ranks, 1024, 4 << 20) }
    }

    /// The default, with at most `copies` tables of other ranks, in at most `bytes`
    /// bytes.
    pub const fn within(ranks: u32, copies: u32, bytes: u64) -> Self {
        let by_bytes = bytes / TABLE_BYTES as u64;
        let copies = if (copies as u64) < by_bytes { copies as u64 } else { by_bytes };
        // Not more than there are other ranks, but room for all of them, whatever
        // sets they fall into, and for tables that are being dropped.
        let wanted = (ranks as u64 * 2).next_power_of_two();
        let copies = if copies < wanted { copies } else { wanted };
        let copies = if copies < WAYS as u64 { WAYS } else { 1 << copies.ilog2() };
        Self {
            ranks,
            colors: 1,
            copies,
            flat_words: 64,
            notes: 256,
            cells: if ranks > 512 { 512 } else { ranks.next_power_of_two() },
            commands: 64,
            own_jobs: 256,
            remote_jobs: 64,
            conditions: 512,
            flights: 64,
            fetches: 8,
        }
    }

    /// The number of words of the region.
    pub const fn words(self) -> usize {
        self.copies_at() as usize / 8 + self.copies as usize * TABLE_BYTES / 8
    }

    /// The parts of the region, in their order.
    pub const fn parts(self) -> [MemoryPart; 9] {
        const fn part(name: &'static str, from: u64, to: u64) -> MemoryPart {
            MemoryPart { name, bytes: to - from, is_registered: true }
        }
        let end = self.words() as u64 * 8;
        [
            part("own tables", 0, self.holders_at()),
            part("holders, drops, acks", self.holders_at(), self.drop_hints_at()),
            part("hints", self.drop_hints_at(), self.notes_at()),
            part("notes", self.notes_at(), self.ends_at()),
            part("ends of commands", self.ends_at(), self.commands_at()),
            part("commands", self.commands_at(), self.cells_at()),
            part("cells", self.cells_at(), self.landings_at()),
            part("landings", self.landings_at(), self.copies_at()),
            part("tables of others", self.copies_at(), end),
        ]
    }

    /// The number of words of a bitmap of all ranks.
    pub const fn bitmap_words(self) -> usize {
        self.ranks.div_ceil(64) as usize
    }

    /// The number of words of the hints of a bitmap; 0: it has none.
    pub(crate) const fn hint_words(self) -> usize {
        let words = self.bitmap_words();
        if words > self.flat_words as usize { words.div_ceil(64) } else { 0 }
    }

    /// The number of jobs, own ones and those for others.
    pub const fn jobs(self) -> usize {
        (self.own_jobs + self.remote_jobs) as usize
    }

    const fn bitmap_bytes(self) -> u64 {
        line(self.bitmap_words() as u64 * 8)
    }

    const fn holders_at(self) -> u64 {
        self.colors as u64 * TABLE_BYTES as u64
    }

    const fn drops_at(self) -> u64 {
        self.holders_at() + self.bitmap_bytes()
    }

    const fn acks_at(self) -> u64 {
        self.drops_at() + self.bitmap_bytes()
    }

    const fn drop_hints_at(self) -> u64 {
        self.acks_at() + self.bitmap_bytes()
    }

    const fn ack_hints_at(self) -> u64 {
        self.drop_hints_at() + line(self.hint_words() as u64 * 8)
    }

    const fn notes_at(self) -> u64 {
        self.ack_hints_at() + line(self.hint_words() as u64 * 8)
    }

    const fn ends_at(self) -> u64 {
        self.notes_at() + line(self.notes as u64 * 8)
    }

    const fn commands_at(self) -> u64 {
        self.ends_at() + line(self.commands as u64 * 8)
    }

    const fn cells_at(self) -> u64 {
        self.commands_at() + self.commands as u64 * COMMAND_BYTES as u64
    }

    const fn landings_at(self) -> u64 {
        self.cells_at() + self.cells as u64 * COMMAND_BYTES as u64
    }

    const fn copies_at(self) -> u64 {
        self.landings_at() + self.jobs() as u64 * LANDING_BYTES as u64
    }

    /// The limit that an impossible shape breaks, as text for a panic.
    pub(crate) const fn fault(self) -> Option<&'static str> {
        if self.ranks == 0 || self.colors == 0 || self.own_jobs == 0 || self.remote_jobs == 0 {
            Some("ranks, colors, own_jobs and remote_jobs must be at least 1")
        } else if self.flights == 0 || self.flights >= 1 << 24 || self.fetches == 0 {
            Some("flights must be 1 to 16,777,215, and fetches at least 1")
        } else if !self.copies.is_power_of_two() || self.copies < WAYS {
            Some("copies must be a power of two of at least 4")
        } else if self.cells != 0 && !self.cells.is_power_of_two() {
            Some("cells must be 0 or a power of two")
        } else if !self.notes.is_power_of_two() || self.commands == 0 || self.commands > 1 << 16 {
            Some("notes must be a power of two, and commands 1 to 65,536")
        } else if self.own_jobs > 1 << 16 {
            Some("own_jobs must be at most 65,536")
        } else {
            None
        }
    }
}

/// Whether a notified word of the control region has changed since the machine
/// handled it. It needs no lock: `words` is the region. Wait-free.
#[inline]
pub fn has_rung(words: &[AtomicU64], shape: ControlShape) -> bool {
    let drops = if shape.hint_words() > 0 { shape.drop_hints_at() } else { shape.drops_at() };
    // The words from the drops, or their hints, up to the commands: acks or their
    // hints, notes, ends.
    let rung = &words[drops as usize / 8..shape.commands_at() as usize / 8];
    // SeqCst: a thread that is about to sleep reads these words after it has
    // announced that.
    rung.iter().any(|word| word.load(Ordering::SeqCst) != 0)
}

impl ControlRegion {
    pub(crate) const fn new(key: RegionKey, rank: Rank, shape: ControlShape) -> Self {
        Self { key, rank, shape }
    }

    /// The address of the table of that colour at that rank.
    pub(crate) const fn table(self, rank: Rank, color: u8) -> RemoteAddr {
        self.at(rank, color as u64 * TABLE_BYTES as u64)
    }

    /// The word of this rank's bit among the holders of `rank`'s tables, and
    /// the bit.
    pub(crate) const fn holder(self, rank: Rank) -> (RemoteAddr, u64) {
        self.bit(rank, self.shape.holders_at())
    }

    /// The word and the bit of the request to `rank` to drop its copy of this rank's
    /// tables.
    pub(crate) const fn drop(self, rank: Rank) -> (RemoteAddr, u64) {
        self.bit(rank, self.shape.drops_at())
    }

    /// The word and the bit of the answer to `rank` that its tables were dropped
    /// here.
    pub(crate) const fn ack(self, rank: Rank) -> (RemoteAddr, u64) {
        self.bit(rank, self.shape.acks_at())
    }

    /// The word and the bit of the hint for `drop`, if there are hints.
    pub(crate) const fn drop_hint(self, rank: Rank) -> Option<(RemoteAddr, u64)> {
        self.hint(rank, self.shape.drop_hints_at())
    }

    /// The word and the bit of the hint for `ack`, if there are hints.
    pub(crate) const fn ack_hint(self, rank: Rank) -> Option<(RemoteAddr, u64)> {
        self.hint(rank, self.shape.ack_hints_at())
    }

    pub(crate) const fn note(self, rank: Rank, index: u32) -> RemoteAddr {
        self.at(rank, self.shape.notes_at() + index as u64 * 8)
    }

    pub(crate) const fn end(self, rank: Rank, index: u32) -> RemoteAddr {
        self.at(rank, self.shape.ends_at() + index as u64 * 8)
    }

    pub(crate) const fn command(self, rank: Rank, index: u32) -> RemoteAddr {
        self.at(rank, self.shape.commands_at() + index as u64 * COMMAND_BYTES as u64)
    }

    /// The cell for commands of `from` at `rank`, which other ranks use, too.
    pub(crate) const fn cell(self, rank: Rank, from: Rank) -> RemoteAddr {
        let offset = self.shape.cells_at() + self.cell_of(from) as u64 * COMMAND_BYTES as u64;
        self.at(rank, offset)
    }

    /// The index of the cell of `from` in the own region, in words.
    pub(crate) const fn cell_words(self, from: Rank) -> usize {
        (self.shape.cells_at() as usize + self.cell_of(from) as usize * COMMAND_BYTES) / 8
    }

    const fn cell_of(self, from: Rank) -> u32 {
        // Neighbouring ranks have cells of their own.
        from.0 & (self.shape.cells - 1)
    }

    /// The own command with that index.
    pub(crate) const fn own_command(self, index: u32) -> LocalAddr {
        self.here(self.shape.commands_at() + index as u64 * COMMAND_BYTES as u64)
    }

    /// The landing of a job of this rank.
    pub(crate) const fn landing(self, job: usize) -> LocalAddr {
        self.here(self.shape.landings_at() + (job * LANDING_BYTES) as u64)
    }

    /// The place for a table of another rank.
    pub(crate) const fn copy(self, slot: usize) -> LocalAddr {
        self.here(self.shape.copies_at() + (slot * TABLE_BYTES) as u64)
    }

    // The indices of the own parts, in words.

    pub(crate) const fn holder_words(self) -> usize {
        self.shape.holders_at() as usize / 8
    }

    pub(crate) const fn drop_words(self) -> usize {
        self.shape.drops_at() as usize / 8
    }

    pub(crate) const fn ack_words(self) -> usize {
        self.shape.acks_at() as usize / 8
    }

    /// The index of the hints of the drops, and how many words they are.
    pub(crate) const fn drop_hint_words(self) -> (usize, usize) {
        (self.shape.drop_hints_at() as usize / 8, self.shape.hint_words())
    }

    pub(crate) const fn ack_hint_words(self) -> (usize, usize) {
        (self.shape.ack_hints_at() as usize / 8, self.shape.hint_words())
    }

    pub(crate) const fn note_words(self) -> usize {
        self.shape.notes_at() as usize / 8
    }

    pub(crate) const fn end_words(self) -> usize {
        self.shape.ends_at() as usize / 8
    }

    pub(crate) const fn command_words(self) -> usize {
        self.shape.commands_at() as usize / 8
    }

    pub(crate) const fn landing_words(self, job: usize) -> usize {
        (self.shape.landings_at() as usize + job * LANDING_BYTES) / 8
    }

    pub(crate) const fn copy_words(self) -> usize {
        self.shape.copies_at() as usize / 8
    }

    const fn hint(self, rank: Rank, part: u64) -> Option<(RemoteAddr, u64)> {
        if self.shape.hint_words() == 0 {
            return None;
        }
        let word = self.rank.0 / 64;
        Some((self.at(rank, part + word as u64 / 64 * 8), 1 << (word % 64)))
    }

    const fn bit(self, rank: Rank, part: u64) -> (RemoteAddr, u64) {
        let word = self.at(rank, part + self.rank.0 as u64 / 64 * 8);
        (word, 1 << (self.rank.0 % 64))
    }

    const fn at(self, rank: Rank, offset: u64) -> RemoteAddr {
        RemoteAddr { offset, rank, key: self.key }
    }

    const fn here(self, offset: u64) -> LocalAddr {
        LocalAddr { offset, key: self.key }
    }
}

/// Rounds up to a cache line.
const fn line(bytes: u64) -> u64 {
    bytes.next_multiple_of(64)
}

#[cfg(test)]
mod tests;
