//! The heads of all cards, as runs of equal ones.
//!
//! ```text
//!  run, run, ...       count: u32   head: 24 bytes
//! ```
//!
//! The ranks of a node have the same head, so that the runs take some bytes for
//! each node. An answer has at most [`RUNS_MAX`] runs; the client requests the rest
//! with a further request.

use tsumugi_core::boot::{EndpointHead, HEAD_BYTES, head_of};

/// Adjacent ranks with cards that have the same head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRun {
    /// The number of ranks; at least one.
    pub count: u32,
    /// The head of their cards.
    pub head: EndpointHead,
}

/// The runs of these cards, as many as fit into one answer; a missing card counts
/// as a head of zeros.
pub(super) fn runs_of<'a>(cards: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<HeadRun> {
    let mut runs: Vec<HeadRun> = Vec::new();
    for card in cards {
        let head = head_of(card.unwrap_or_default());
        let count = runs.len();
        match runs.last_mut() {
            Some(run) if run.head == head => run.count += 1,
            _ if count == RUNS_MAX => break,
            _ => runs.push(HeadRun { count: 1, head }),
        }
    }
    runs
}

pub(super) fn to_bytes(runs: &[HeadRun]) -> Vec<u8> {
    let one = |run: &HeadRun| run.count.to_le_bytes().into_iter().chain(run.head);
    runs.iter().flat_map(one).collect()
}

/// Parses runs; `None` if the bytes end within a run, a run is empty, all runs
/// together have more ranks than a `u32`, or there are no runs or too many.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<HeadRun>> {
    let (chunks, []) = bytes.as_chunks::<RUN_BYTES>() else { return None };
    if !(1..=RUNS_MAX).contains(&chunks.len()) {
        return None;
    }
    let mut all = 0_u32;
    let mut runs = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let (count, head) = chunk.split_first_chunk()?;
        let (count, head) = (u32::from_le_bytes(*count), *head.first_chunk()?);
        all = all.checked_add(count).filter(|_| count > 0)?;
        runs.push(HeadRun { count, head });
    }
    Some(runs)
}

const RUN_BYTES: usize = 4 + HEAD_BYTES;
/// The largest number of runs of one answer.
pub(super) const RUNS_MAX: usize = 1024;
pub(super) const RUNS_BYTES_MAX: usize = RUNS_MAX * RUN_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranks_with_equal_heads_form_one_run() {
        let cards = [Some(&[7; 90][..]), Some(&[7; 24]), Some(&[8; 24]), None, Some(&[7; 24])];
        let runs = runs_of(cards.into_iter());
        let counts: Vec<u32> = runs.iter().map(|run| run.count).collect();
        assert_eq!(counts, [2, 1, 1, 1]);
        assert_eq!((runs[0].head, runs[2].head), ([7; HEAD_BYTES], [0; HEAD_BYTES]));
        assert_eq!(parse(&to_bytes(&runs)), Some(runs));
    }

    #[test]
    fn an_answer_holds_a_limited_number_of_runs() {
        let cards: Vec<[u8; 2]> = (0..RUNS_MAX as u16 + 9).map(u16::to_le_bytes).collect();
        let runs = runs_of(cards.iter().map(|card| Some(&card[..])));
        assert_eq!((runs.len(), to_bytes(&runs).len()), (RUNS_MAX, RUNS_BYTES_MAX));
    }

    #[test]
    fn a_malformed_table_is_refused() {
        let run = |count| HeadRun { count, head: [1; HEAD_BYTES] };
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&to_bytes(&[run(0)])), None);
        assert_eq!(parse(&to_bytes(&[run(u32::MAX), run(1)])), None);
        assert_eq!(parse(&to_bytes(&vec![run(1); RUNS_MAX + 1])), None);
        let bytes = to_bytes(&[run(3), run(4)]);
        for end in (0..bytes.len()).filter(|end| end % RUN_BYTES != 0) {
            assert_eq!(parse(&bytes[..end]), None, "{end}");
        }
    }
}
