//! Which ranks of a part of a job its own ranks declare lost, in order.
//!
//! ```text
//!  rank 0 ──┐ "rank 2", and only then do ranks learn that rank 2 has died
//!  rank 1 ──┴─► one pipe ──► launcher: rank 2 ended first, others may have heard
//! ```
//!
//! The ranks of a part watch each other, and a rank that learns of a death may end
//! before the launcher has looked once. The launcher then sees both ends in one
//! look, which has no order; the pipe has an order.

use crate::sys;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
use tsumugi_core::mem::Rank;

/// The launcher's end of the pipe, and the ranks that it has read from it.
#[derive(Debug)]
pub struct Losses {
    reader: PipeReader,
    /// Each rank inherits this end.
    writer: PipeWriter,
    lost: Vec<Rank>,
}

impl Losses {
    /// Makes a pipe for the ranks of a part.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        // Neither side waits: a rank that finds the pipe full goes on, and so does
        // a launcher that finds it empty.
        sys::set_nonblocking(reader.as_fd())?;
        sys::set_nonblocking(writer.as_fd())?;
        Ok(Self { reader, writer, lost: Vec::new() })
    }

    /// The end of the pipe that each rank inherits.
    pub fn writer(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }

    /// Reads the ranks that have come.
    pub fn read(&mut self) {
        let mut words = [0; WORDS * size_of::<u32>()];
        loop {
            match self.reader.read(&mut words) {
                // Each word is written at once, so the length read is a multiple of
                // a word's.
                Ok(len @ 1..) => {
                    let (words, _) = words[..len].as_chunks();
                    words.iter().for_each(|word| self.add(Rank(u32::from_le_bytes(*word))));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    fn add(&mut self, rank: Rank) {
        if !self.lost.contains(&rank) {
            self.lost.push(rank);
        }
    }

    /// The position of a rank in the order of the declarations; the last if it was
    /// not declared lost.
    pub fn place(&self, rank: Rank) -> usize {
        self.lost.iter().position(|lost| *lost == rank).unwrap_or(usize::MAX)
    }

    /// Whether another rank was declared lost before this one, so that this rank
    /// may have ended because it learned of that loss.
    pub fn may_have_told(&self, rank: Rank) -> bool {
        self.lost.first().is_some_and(|first| *first != rank)
    }
}

/// The number of words in one read.
const WORDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_first_lost_rank_cannot_have_heard_of_another() {
        let mut losses = Losses::new().unwrap();
        losses.read();
        assert!(!losses.may_have_told(Rank(0)));
        for rank in [5_u32, 2, 5] {
            losses.writer.write_all(&rank.to_le_bytes()).unwrap();
        }
        losses.read();
        let heard = [5, 2, 0].map(|rank| losses.may_have_told(Rank(rank)));
        assert_eq!(heard, [false, true, true]);
        let mut ranks = [0, 2, 5].map(Rank);
        ranks.sort_by_key(|rank| losses.place(*rank));
        assert_eq!(ranks, [5, 2, 0].map(Rank));
    }
}
