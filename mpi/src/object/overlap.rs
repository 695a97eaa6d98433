//! The checking mode of buffers: those of a call that the standard wants to be disjoint.

use crate::abi;
use crate::fault::{Answer, fail};
use crate::object::datatype::{Datatype, DatatypeRef};
use std::ops::Range;

/// Elements in the memory of a call.
#[derive(Default)]
pub(crate) struct Region(Vec<RegionBlock>);

/// Elements of a datatype that follow each other.
struct RegionBlock {
    at: usize,
    count: usize,
    datatype: DatatypeRef,
}

impl Region {
    /// Adds `count` elements from `at` on.
    pub(crate) fn add(&mut self, at: *const u8, count: usize, datatype: DatatypeRef) {
        if count > 0 && datatype.size > 0 {
            self.0.push(RegionBlock { at: at.addr(), count, datatype });
        }
    }

    /// The bytes of data.
    fn bytes(&self) -> usize {
        self.0.iter().map(|block| block.datatype.size.saturating_mul(block.count)).sum()
    }

    /// From the first to the last byte.
    fn bounds(&self) -> Range<usize> {
        let start = self.0.iter().map(|block| block.bounds().start).min().unwrap_or(0);
        start..self.0.iter().map(|block| block.bounds().end).max().unwrap_or(0)
    }

    /// The bytes of data, as ranges in the order of their addresses. `None`: they are too many.
    fn ranges(&self) -> Option<Vec<Range<usize>>> {
        let runs = self.0.iter().map(|block| block.runs_count());
        if runs.fold(0, usize::saturating_add) > RUNS_MAX {
            return None;
        }
        let mut ranges: Vec<_> = self.0.iter().flat_map(RegionBlock::ranges).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        Some(ranges)
    }
}

impl RegionBlock {
    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    fn bounds(&self) -> Range<usize> {
        let bounds = self.datatype().bounds;
        let last = bounds.extent().wrapping_mul(self.count as isize - 1);
        let (low, high) = (last.min(0) + bounds.true_lb, last.max(0) + bounds.true_ub);
        self.at.wrapping_add_signed(low)..self.at.wrapping_add_signed(high)
    }

    fn runs_count(&self) -> usize {
        if self.datatype().is_dense { 1 } else { self.datatype().runs.len() * self.count }
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        let of = self.datatype();
        if of.is_dense {
            return Vec::from([self.bounds()]);
        }
        let element = |number: usize| {
            let base = self.at.wrapping_add_signed(of.bounds.extent() * number as isize);
            of.runs.iter().map(move |run| {
                let start = base.wrapping_add_signed(run.at);
                start..start + run.len
            })
        };
        (0..self.count).flat_map(element).collect()
    }
}

/// Checks that no byte is both sent and received.
pub(crate) fn check_disjoint(sent: &Region, received: &Region) -> Answer {
    let (one, other) = (sent.bounds(), received.bounds());
    if one.start >= other.end || other.start >= one.end {
        return Ok(());
    }
    let (Some(ones), Some(others)) = (sent.ranges(), received.ranges()) else { return Ok(()) };
    let (mut ones, mut others) = (ones.iter().peekable(), others.iter().peekable());
    while let (Some(a), Some(b)) = (ones.peek(), others.peek()) {
        if a.start < b.end && b.start < a.end {
            fail!(
                abi::ERR_BUFFER,
                "the buffers overlap: {} bytes from {:#x} on are sent, and {} from {:#x} on received",
                sent.bytes(),
                one.start,
                received.bytes(),
                other.start
            );
        }
        if a.end <= b.start {
            ones.next()
        } else {
            others.next()
        };
    }
    Ok(())
}

/// Data in more runs is not compared.
const RUNS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::MPI_Datatype;
    use crate::object::datatype::Recipe;
    use crate::object::type_map::TypeMap;
    use std::ptr;
    use std::sync::Arc;

    fn region(at: usize, count: usize, datatype: &DatatypeRef) -> Region {
        let mut region = Region::default();
        region.add(ptr::without_provenance(at), count, datatype.clone());
        region
    }

    #[test]
    fn bytes_that_are_sent_and_received_are_found() {
        let int = DatatypeRef::given(MPI_Datatype::INT).unwrap();
        let is_disjoint = |one: &Region, other: &Region| check_disjoint(one, other).is_ok();
        let four = region(1000, 4, &int);
        for (at, count, wanted) in [
            (1000, 4, false),
            (1012, 1, false),
            (1015, 1, false),
            (1016, 9, true),
            (996, 1, true),
            (996, 2, false),
            (900, 0, true),
        ] {
            assert_eq!(is_disjoint(&four, &region(at, count, &int)), wanted, "{at} {count}");
        }
        let fault = check_disjoint(&four, &region(1008, 1, &int)).unwrap_err();
        let wanted = "16 bytes from 0x3e8 on are sent, and 4 from 0x3f0 on received";
        assert!(fault.text.ends_with(wanted), "{}", fault.text);
    }

    #[test]
    fn columns_of_one_matrix_are_disjoint() {
        let int = DatatypeRef::given(MPI_Datatype::INT).unwrap();
        let mut map = TypeMap::default();
        (0..3).for_each(|row| map.lay(&int, 1, row * 16).unwrap());
        let column = DatatypeRef::Made(Arc::new(map.finish(Recipe::default())));
        let first = region(1000, 1, &column);
        assert!(check_disjoint(&first, &region(1004, 1, &column)).is_ok());
        assert!(check_disjoint(&first, &region(1016, 1, &column)).is_err());
        let mut several = region(1008, 1, &column);
        several.add(ptr::without_provenance(1032), 1, int);
        assert!(check_disjoint(&first, &several).is_err());
    }
}
