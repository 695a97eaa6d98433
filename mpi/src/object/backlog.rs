//! Operations for which no call waits, with what is to be kept until they have ended.
//!
//! A call that adds one looks at a few others, in turn. So each of them is looked at again and
//! again, and the time of an addition does not depend on their number.

use std::mem;

/// Operations that were added, and may have ended.
#[derive(Debug)]
pub(crate) struct Backlog<T> {
    all: Vec<T>,
    /// The one that is looked at next.
    next: usize,
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        Self { all: Vec::new(), next: 0 }
    }
}

impl<T> Backlog<T> {
    pub(crate) fn add(&mut self, one: T) {
        self.all.push(one);
    }

    /// Looks at some, and takes those out that have ended. As two are looked at for each that is
    /// added, operations that have ended do not gather.
    pub(crate) fn look(&mut self, has_ended: impl FnMut(&T) -> bool) -> Vec<T> {
        self.look_at(LOOKS, has_ended)
    }

    /// Looks at all of them.
    pub(crate) fn look_at_all(&mut self, has_ended: impl FnMut(&T) -> bool) -> Vec<T> {
        self.look_at(self.all.len(), has_ended)
    }

    fn look_at(&mut self, looks: usize, mut has_ended: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut ended = Vec::new();
        for _ in 0..looks.min(self.all.len()) {
            if self.next >= self.all.len() {
                self.next = 0;
            }
            if has_ended(&self.all[self.next]) {
                ended.push(self.all.swap_remove(self.next));
            } else {
                self.next += 1;
            }
        }
        ended
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes all of them out.
    pub(crate) fn take(&mut self) -> Vec<T> {
        mem::take(&mut self.all)
    }
}

/// How many are looked at for each that is added.
const LOOKS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_have_ended_are_found_by_a_few_looks_for_each_addition() {
        let mut backlog = Backlog::default();
        let mut looks = 0;
        for one in 0..1000 {
            backlog.add(one);
            let mut never = |_: &i32| {
                looks += 1;
                false
            };
            assert!(backlog.look(&mut never).is_empty());
        }
        assert!(looks <= 1000 * LOOKS, "{looks}");
        let mut found = Vec::new();
        for one in 1000..2000 {
            backlog.add(one);
            found.extend(backlog.look(|one| *one < 1000));
        }
        found.sort_unstable();
        assert_eq!(found, Vec::from_iter(0..1000));
        assert_eq!(backlog.look_at_all(|one| *one < 1500).len(), 500);
        assert_eq!(backlog.take().len(), 500);
        assert!(backlog.look_at_all(|_| true).is_empty());
    }
}
