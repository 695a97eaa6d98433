//! A doubly linked list of table entries, linked through the entries themselves:
//! the list needs no memory of its own, and an entry can leave from the middle at
//! once. An entry has a link for each list that it can be in at the same time;
//! the number of the link that a list uses is part of the list's type.

/// The neighbours of an entry in one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListLink {
    prev: u32,
    next: u32,
}

/// An entry with a link number `L`.
pub(super) trait Linked<const L: usize> {
    fn link(&mut self) -> &mut ListLink;
    fn next(&self) -> u32;
}

/// A stack of free entries: the entry that came last goes first, because it is in
/// the cache. It uses the link `L`, of which it writes one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexStack<const L: usize> {
    top: u32,
}

/// The ends of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexList<const L: usize> {
    first: u32,
    last: u32,
}

impl ListLink {
    pub(super) const NONE: Self = Self { prev: END, next: END };

    #[inline(always)]
    pub(super) const fn next(&self) -> u32 {
        self.next
    }
}

impl<const L: usize> IndexStack<L> {
    pub(super) const EMPTY: Self = Self { top: END };

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.top == END
    }

    #[inline(always)]
    pub(super) fn push<T: Linked<L>>(&mut self, entries: &mut [T], index: usize) {
        entries[index].link().next = self.top;
        self.top = index as u32;
    }

    #[inline(always)]
    pub(super) fn pop<T: Linked<L>>(&mut self, entries: &[T]) -> Option<usize> {
        let top = self.top as usize;
        self.top = entries.get(top)?.next();
        Some(top)
    }
}

impl<const L: usize> IndexList<L> {
    pub(super) const EMPTY: Self = Self { first: END, last: END };

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.first == END
    }

    #[inline(always)]
    pub(super) const fn first(&self) -> Option<usize> {
        if self.first == END { None } else { Some(self.first as usize) }
    }

    /// The entry after one that is in the list.
    #[inline(always)]
    pub(super) fn after<T: Linked<L>>(entries: &[T], index: usize) -> Option<usize> {
        let next = entries[index].next();
        if next == END { None } else { Some(next as usize) }
    }

    /// Appends an entry that is in no list of this link.
    #[inline]
    pub(super) fn push<T: Linked<L>>(&mut self, entries: &mut [T], index: usize) {
        *entries[index].link() = ListLink { prev: self.last, next: END };
        match self.last {
            END => self.first = index as u32,
            last => entries[last as usize].link().next = index as u32,
        }
        self.last = index as u32;
    }

    /// Takes the first entry out.
    #[inline(always)]
    pub(super) fn pop<T: Linked<L>>(&mut self, entries: &mut [T]) -> Option<usize> {
        let index = self.first()?;
        self.first = entries[index].next();
        match entries.get_mut(self.first as usize) {
            Some(next) => next.link().prev = END,
            None => self.last = END,
        }
        Some(index)
    }

    /// Takes out all entries before `first`; all entries if `first` is `None`.
    #[inline(always)]
    pub(super) fn cut<T: Linked<L>>(&mut self, entries: &mut [T], first: Option<usize>) {
        self.first = first.map_or(END, |first| first as u32);
        match first {
            Some(first) => entries[first].link().prev = END,
            None => self.last = END,
        }
    }

    /// Takes an entry out of this list.
    #[inline]
    pub(super) fn remove<T: Linked<L>>(&mut self, entries: &mut [T], index: usize) {
        let ListLink { prev, next } = *entries[index].link();
        match prev {
            END => self.first = next,
            prev => entries[prev as usize].link().next = next,
        }
        match next {
            END => self.last = prev,
            next => entries[next as usize].link().prev = prev,
        }
    }
}

/// No entry: a table has fewer entries than this.
const END: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked<0> for ListLink {
        fn link(&mut self) -> &mut ListLink {
            self
        }
        fn next(&self) -> u32 {
            ListLink::next(self)
        }
    }

    fn order(list: IndexList<0>, entries: &[ListLink]) -> [Option<usize>; 4] {
        let mut at = list.first();
        core::array::from_fn(|_| {
            let index = at?;
            at = IndexList::<0>::after(entries, index);
            Some(index)
        })
    }

    #[test]
    fn a_stack_pops_the_newest_entry() {
        let mut entries = [ListLink::NONE; 3];
        let mut stack = IndexStack::<0>::EMPTY;
        assert!(stack.is_empty() && stack.pop(&entries).is_none());
        for index in [2, 0, 1] {
            stack.push(&mut entries, index);
        }
        assert_eq!([(); 4].map(|()| stack.pop(&entries)), [Some(1), Some(0), Some(2), None]);
    }

    #[test]
    fn a_list_removes_entries_at_any_place() {
        let mut entries = [ListLink::NONE; 4];
        let mut list = IndexList::<0>::EMPTY;
        for index in 0..4 {
            list.push(&mut entries, index);
        }
        list.remove(&mut entries, 2);
        assert_eq!(order(list, &entries), [Some(0), Some(1), Some(3), None]);
        list.remove(&mut entries, 3);
        list.push(&mut entries, 2);
        assert_eq!(list.pop(&mut entries), Some(0));
        assert_eq!(order(list, &entries), [Some(1), Some(2), None, None]);
        list.push(&mut entries, 0);
        list.push(&mut entries, 3);
        list.cut(&mut entries, Some(0));
        assert_eq!(order(list, &entries), [Some(0), Some(3), None, None]);
        list.cut(&mut entries, None);
        assert!(list.is_empty() && list.pop(&mut entries).is_none());
        list.push(&mut entries, 1);
        list.push(&mut entries, 2);
        list.remove(&mut entries, 1);
        list.remove(&mut entries, 2);
        assert!(list.is_empty() && list.pop(&mut entries).is_none());
    }
}
