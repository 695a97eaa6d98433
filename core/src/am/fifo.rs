//! A queue of table entries, linked through the entries themselves: the queue
//! needs no memory of its own, and an entry is in it at most once.

/// The ends of the queue; the links lie in the entries.
#[derive(Debug)]
pub(super) struct Fifo<T> {
    first: u32,
    last: u32,
    len: u32,
    link: fn(&mut T) -> &mut u32,
}

impl<T> Fifo<T> {
    /// Makes an empty queue.
    pub(super) fn new(link: fn(&mut T) -> &mut u32) -> Self {
        Self { first: END, last: END, len: 0, link }
    }

    /// Makes a queue of all entries, in their order.
    pub(super) fn of_all(entries: &mut [T], link: fn(&mut T) -> &mut u32) -> Self {
        let mut this = Self::new(link);
        for index in 0..entries.len() {
            this.push(entries, index);
        }
        this
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues an entry that is in no queue of this link.
    pub(super) fn push(&mut self, entries: &mut [T], index: usize) {
        *(self.link)(&mut entries[index]) = END;
        match self.last {
            END => self.first = index as u32,
            last => *(self.link)(&mut entries[last as usize]) = index as u32,
        }
        self.last = index as u32;
        self.len += 1;
    }

    /// Takes the oldest entry.
    pub(super) fn pop(&mut self, entries: &mut [T]) -> Option<usize> {
        if self.first == END {
            return None;
        }
        let index = self.first as usize;
        self.first = *(self.link)(&mut entries[index]);
        if self.first == END {
            self.last = END;
        }
        self.len -= 1;
        Some(index)
    }
}

/// No entry: a table has fewer entries than this.
const END: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_in_the_order_of_their_arrival() {
        let mut links = [0u32; 3];
        let mut fifo = Fifo::of_all(&mut links, |link| link);
        assert_eq!(fifo.pop(&mut links), Some(0));
        fifo.push(&mut links, 0);
        let order = [(); 3].map(|()| fifo.pop(&mut links).unwrap());
        assert_eq!((order, fifo.pop(&mut links), fifo.len()), ([1, 2, 0], None, 0));
        fifo.push(&mut links, 2);
        assert_eq!(fifo.pop(&mut links), Some(2));
    }
}
