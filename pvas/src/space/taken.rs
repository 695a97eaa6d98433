//! Finds the mapping that lies where a partition should, in the system's list.

use std::fmt;
use std::fs;
use tsumugi_core::excerpt::Excerpt;

/// A mapping that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupiedRange {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// The end of its name, if it has one.
    pub what: Excerpt,
}

/// The mappings of this process at one time.
pub(super) struct Maps(String);

impl Maps {
    /// The mappings of this moment; none where the system does not report them.
    pub(super) fn now() -> Self {
        Self(fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    /// The first mapping within `bytes` bytes at `at`.
    pub(super) fn find(&self, at: usize, bytes: usize) -> Option<OccupiedRange> {
        let (number, end) = (|text| usize::from_str_radix(text, 16).ok(), at.saturating_add(bytes));
        self.0.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (first, last) = range.split_once('-')?;
            let (first, last) = (number(first)?, number(last)?);
            let what = Excerpt::of_end(rest.split_whitespace().nth(4).unwrap_or(""));
            (first < end && last > at).then_some(OccupiedRange { start: first, end: last, what })
        })
    }
}

impl fmt::Display for OccupiedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.what.as_str() {
            "" => "memory without a name",
            name => name,
        };
        write!(f, "{name} lies at {:#x}-{:#x}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mapping_in_the_range_is_found() {
        let maps = Maps(String::from(
            "00400000-00500000 r-xp 00000000 08:01 42   /usr/bin/program\n\
                    10000000-20000000 rw-p 00000000 00:00 0 \n",
        ));
        let find = |at, bytes| maps.find(at, bytes).map(|taken| taken.to_string());
        assert_eq!(find(0x1000, 0x1000), None);
        let program = Some("/usr/bin/program lies at 0x400000-0x500000".to_owned());
        assert_eq!(find(0x4f_ffff, 1 << 40), program);
        let unnamed = Some("memory without a name lies at 0x10000000-0x20000000".to_owned());
        assert_eq!(find(0x50_0000, 0x1000_0000), unnamed);
        assert_eq!(find(0x2000_0000, 1), None);
    }
}
