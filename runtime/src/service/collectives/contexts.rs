//! The context numbers of messages that are in use at this rank. A group gets a number
//! that is free at all of its members, so it is used again when the group has gone.

use std::fmt;

/// A bit for each context number up to the highest one that was ever used.
pub(super) struct ContextTable {
    words: Vec<u64>,
    /// All lower numbers are in use, so no search begins below it.
    lowest: u32,
}

impl ContextTable {
    /// The numbers of the first communicator and of the group of all ranks are in use.
    pub(super) fn new() -> Self {
        Self { words: vec![0b11], lowest: 2 }
    }

    /// The first free number from `from` on.
    pub(super) fn first_free(&mut self, from: u32) -> Option<u32> {
        let start = from.max(self.lowest);
        let free = self.free_from(start);
        if start == self.lowest {
            self.lowest = free;
        }
        (free < COUNT).then_some(free)
    }

    /// The first free number from `from` on, in words of 64.
    fn free_from(&self, from: u32) -> u32 {
        let mut mask = u64::MAX << (from % 64);
        for (at, word) in (from / 64..).zip(self.words.iter().skip((from / 64) as usize)) {
            let free = !word & mask;
            if free != 0 {
                return at * 64 + free.trailing_zeros();
            }
            mask = u64::MAX;
        }
        from.max(self.words.len() as u32 * 64)
    }

    /// Takes a number. Returns whether it was free.
    pub(super) fn claim(&mut self, number: u32) -> bool {
        let word = (number / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let was_free = !self.is_used(number);
        self.words[word] |= 1 << (number % 64);
        was_free
    }

    pub(super) fn free(&mut self, number: u32) {
        self.words[(number / 64) as usize] &= !(1 << (number % 64));
        self.lowest = self.lowest.min(number);
    }

    fn is_used(&self, number: u32) -> bool {
        let word = self.words.get((number / 64) as usize);
        word.is_some_and(|word| word & 1 << (number % 64) != 0)
    }
}

impl fmt::Debug for ContextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        write!(f, "ContextTable({used} in use)")
    }
}

/// All numbers that a message can have.
pub(super) const COUNT: u32 = 1 << 16;
/// The context of the group of all ranks.
pub(crate) const WORLD: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut table = ContextTable::new();
        assert_eq!(table.first_free(0), Some(2));
        assert!(table.claim(2) && !table.claim(2) && table.claim(200));
        assert_eq!((table.first_free(0), table.first_free(200)), (Some(3), Some(201)));
        table.free(2);
        assert_eq!(table.first_free(0), Some(2));
        assert_eq!((table.first_free(199), table.first_free(1000)), (Some(199), Some(1000)));
        (2..COUNT).for_each(|number| _ = table.claim(number));
        assert_eq!((table.first_free(0), table.first_free(COUNT)), (None, None));
        table.free(COUNT - 1);
        table.free(70);
        assert_eq!((table.first_free(0), table.first_free(71)), (Some(70), Some(COUNT - 1)));
    }
}
