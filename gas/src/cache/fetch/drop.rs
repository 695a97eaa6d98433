//! Drops tables that their owners ask back, and answers.

use super::*;

impl Fetcher<'_> {
    /// From now on no lookup finds the slot. Lookups that have found it are waited
    /// for, and then the owner gets an answer, if it has asked.
    pub(super) fn drain(&mut self, slot: usize, is_asked: bool) {
        self.slot(slot).asked.store(u8::from(is_asked), Ordering::Relaxed);
        let word = SlotWord(self.slot(slot).word.load(Ordering::Relaxed));
        self.store(slot, SlotWord::new(word.table(), word.version(), SlotState::Draining));
        self.draining += 1;
        self.is_fenced = false;
    }

    /// The next rank that must get the answer that its tables were dropped.
    pub(super) fn poll_ack(&mut self) -> Option<Rank> {
        if let Some(rank) = self.settle() {
            return Some(rank);
        }
        while let Some(rank) = self.next_asked() {
            self.forget(rank);
            let mut is_held = false;
            for color in 0..self.colors {
                let table = self.cache.split.table_of(rank, color as u8);
                is_held |= self.drop_table(table);
            }
            if mutate!("gas_ack_before_drained": !is_held => true) {
                return Some(rank);
            }
            if let Some(rank) = self.settle() {
                return Some(rank);
            }
        }
        None
    }

    /// Drops a table; true if a slot or a fetch of it has to end first.
    pub(super) fn drop_table(&mut self, table: u32) -> bool {
        let mut is_held = false;
        let first = self.cache.set(table);
        for slot in first..first + WAYS as usize {
            let word = SlotWord(self.slot(slot).word.load(Ordering::Relaxed));
            if word.table() != table {
                continue;
            }
            match word.state() {
                SlotState::Ready => {
                    self.drain(slot, true);
                    is_held = true;
                }
                SlotState::Draining => {
                    self.slot(slot).asked.store(1, Ordering::Relaxed);
                    is_held = true;
                }
                SlotState::Empty | SlotState::Filling => {}
            }
        }
        for fetch in self.fetches.iter_mut().filter(|fetch| fetch.table == table) {
            if !matches!(fetch.step, FetchState::Free | FetchState::Ended) {
                fetch.is_poisoned = true;
                is_held = true;
            }
        }
        is_held
    }

    /// Empties a slot that no access holds any more. Returns the slot's rank, if
    /// this was the last of the tables for which the rank waits.
    pub(super) fn settle(&mut self) -> Option<Rank> {
        if self.draining == 0 {
            return None;
        }
        if !core::mem::replace(&mut self.is_fenced, true) {
            // Before the pins and hazard pointers are read; pairs with
            // `TableCache::pin`.
            self.cache.hazards.heavy();
        }
        for slot in 0..self.cache.slots.len() {
            let word = SlotWord(self.slot(slot).word.load(Ordering::Relaxed));
            if word.state() != SlotState::Draining || self.is_held(slot) {
                continue;
            }
            self.store(slot, SlotWord(0));
            self.draining -= 1;
            if self.slot(slot).asked.swap(0, Ordering::Relaxed) == 0 {
                continue;
            }
            let (rank, _) = self.cache.split.owner(word.table())?;
            let mut tables =
                (0..self.colors).map(|color| self.cache.split.table_of(rank, color as u8));
            if !tables.any(|table| self.is_dropping(table)) {
                return Some(rank);
            }
        }
        None
    }

    pub(super) fn is_dropping(&self, table: u32) -> bool {
        let first = self.cache.set(table);
        let drains = |slot: &CacheSlot| {
            let word = SlotWord(slot.word.load(Ordering::Relaxed));
            let is_asked = slot.asked.load(Ordering::Relaxed) != 0;
            word.table() == table && word.state() == SlotState::Draining && is_asked
        };
        let is_poisoned = |fetch: &Fetch| {
            let is_under_way = !matches!(fetch.step, FetchState::Free | FetchState::Ended);
            fetch.table == table && fetch.is_poisoned && is_under_way
        };
        self.cache.slots[first..first + WAYS as usize].iter().any(drains)
            || self.fetches.iter().any(is_poisoned)
    }

    /// The next rank that asks for its tables to be dropped.
    pub(super) fn next_asked(&mut self) -> Option<Rank> {
        loop {
            let (index, bits) = self.asked;
            if bits != 0 {
                self.asked.1 &= bits - 1;
                return Some(Rank(index as u32 * 64 + bits.trailing_zeros()));
            }
            let index = self.next_word()?;
            // Acquire: the owner had cleared the entries before it asked.
            self.asked = (index, take(&self.words[self.control.drop_words() + index]));
        }
    }

    /// The index of the next word of the drops to read.
    fn next_word(&mut self) -> Option<usize> {
        let (hints, count) = self.control.drop_hint_words();
        loop {
            let (word, bits) = self.hinted;
            if bits != 0 {
                self.hinted.1 &= bits - 1;
                let index = word * 64 + bits.trailing_zeros() as usize;
                if index < self.told.len() {
                    return Some(index);
                }
                continue;
            }
            let next = self.scan?;
            let is_flat = count == 0;
            let end = if is_flat { self.told.len() } else { count };
            self.scan = (next < end).then_some(next + 1);
            if next == end {
                return None;
            }
            if is_flat {
                return Some(next);
            }
            self.hinted = (next, take(&self.words[hints + next]));
        }
    }
}
