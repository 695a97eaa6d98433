//! Sets of indices, stored as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that neither touch nor overlap, by their starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<usize, usize>);

impl Ranges {
    pub(super) fn insert(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        let touched: Vec<_> = self.touching(start..end).collect();
        for run in touched {
            start = start.min(run.start);
            end = end.max(run.end);
            self.0.remove(&run.start);
        }
        self.0.insert(start, end);
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        let touched: Vec<_> = self.overlapping(range.clone()).collect();
        for run in touched {
            self.0.remove(&run.start);
            if run.start < range.start {
                self.0.insert(run.start, range.start);
            }
            if range.end < run.end {
                self.0.insert(range.end, run.end);
            }
        }
    }

    /// The parts of `range` that are in the set.
    pub(super) fn within(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let cut = |run: Range<usize>| run.start.max(range.start)..run.end.min(range.end);
        let mut parts: Vec<_> = self.overlapping(range.clone()).map(cut).collect();
        parts.reverse();
        parts
    }

    /// The parts of `range` that are not in the set.
    pub(super) fn gaps(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for run in self.within(range.clone()) {
            if at < run.start {
                gaps.push(at..run.start);
            }
            at = run.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    pub(super) fn overlaps(&self, range: Range<usize>) -> bool {
        self.overlapping(range).next().is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.0.iter().map(|(start, end)| *start..*end)
    }

    fn overlapping(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let Range { start, end } = range;
        self.runs_to(end).take_while(move |run| run.end > start).filter(move |_| start < end)
    }

    fn touching(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let Range { start, end } = range;
        self.runs_to(end + 1).take_while(move |run| run.end >= start)
    }

    /// The ranges that begin before `end`, the last one first.
    fn runs_to(&self, end: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        self.0.range(..end).rev().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_the_elements_that_were_inserted_and_not_removed() {
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (mut ranges, mut model) = (Ranges::default(), [false; 40]);
        for _ in 0..2000 {
            let start = draw(40);
            let end = start + draw(41 - start);
            let is_in = draw(2) == 0;
            if is_in {
                ranges.insert(start..end);
            } else {
                ranges.remove(start..end);
            }
            model[start..end].fill(is_in);
            let (from, to) = (draw(20), 20 + draw(20));
            let mut found = [false; 40];
            ranges.within(from..to).into_iter().for_each(|run| found[run].fill(true));
            assert_eq!(found[from..to], model[from..to]);
            let mut found = [true; 40];
            ranges.gaps(from..to).into_iter().for_each(|run| found[run].fill(false));
            assert_eq!(found[from..to], model[from..to]);
            assert_eq!(ranges.overlaps(from..to), model[from..to].contains(&true));
            let runs: Vec<_> = ranges.iter().collect();
            assert!(runs.windows(2).all(|two| two[0].end < two[1].start), "{runs:?}");
        }
    }
}
