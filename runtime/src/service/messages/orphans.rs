//! Marks of requests whose handles have gone.

use std::sync::OnceLock;
use tsumugi_core::msg::REQUESTS_MAX;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// For each request of the machine: its handle has gone, and its scope wants the result. The
/// table grows with that of the requests, and no mark moves: a thread that reads one has no lock.
///
/// Wait-free, except for the first use of a part.
pub(super) struct Orphans {
    /// The first part has [`REQUESTS_FIRST`] marks, and each other as many as all before it.
    parts: [OnceLock<Box<[AtomicBool]>>; PARTS],
}

impl Orphans {
    /// Makes the first part.
    pub(super) fn new() -> Self {
        let this = Self { parts: [const { OnceLock::new() }; PARTS] };
        this.mark_of(0);
        this
    }

    /// Sets or removes the mark of the request with this index.
    #[inline]
    pub(super) fn set(&self, index: usize, mark: bool) {
        self.mark_of(index).store(mark, Ordering::Relaxed);
    }

    /// Returns whether the request with this index is marked.
    #[inline]
    pub(super) fn has(&self, index: usize) -> bool {
        self.mark_of(index).load(Ordering::Relaxed)
    }

    #[inline]
    fn mark_of(&self, index: usize) -> &AtomicBool {
        let part = (usize::BITS - (index / REQUESTS_FIRST).leading_zeros()) as usize;
        let from = if part == 0 { 0 } else { REQUESTS_FIRST << (part - 1) };
        let len = from.max(REQUESTS_FIRST);
        let marks =
            self.parts[part].get_or_init(|| (0..len).map(|_| AtomicBool::new(false)).collect());
        &marks[index - from]
    }
}

/// Requests for which a rank has room from its start; so many marks are in the first part.
pub(super) const REQUESTS_FIRST: usize = 4096;
const PARTS: usize = (REQUESTS_MAX / REQUESTS_FIRST).ilog2() as usize + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_a_mark_of_its_own() {
        let orphans = Orphans::new();
        let ends = (0..PARTS).map(|part| REQUESTS_FIRST << part);
        let indices: Vec<usize> = ends.flat_map(|end| [end - 1, end]).collect();
        let indices = [&[0, 1], &indices[..indices.len() - 1]].concat();
        assert_eq!(*indices.last().unwrap(), REQUESTS_MAX - 1);
        for (at, index) in indices.iter().enumerate() {
            assert!(!orphans.has(*index), "{index}");
            orphans.set(*index, true);
            assert!(indices[..=at].iter().all(|index| orphans.has(*index)), "{index}");
        }
        indices.iter().for_each(|index| orphans.set(*index, false));
        assert!(!indices.iter().any(|index| orphans.has(*index)));
    }
}
