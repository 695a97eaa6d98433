//! Scans: the values of all lower members, combined in their order (W. D. Hillis, G. L.
//! Steele: "Data parallel algorithms", 1986). In round `k` each member sends what it
//! has to the one `2^k` above it. log2 P deep.

use super::peers::log2_ceil;
use super::step::{BufferSpan, CollStep, CombineOrder};
use crate::mutate;

#[derive(Clone, Copy, Debug)]
pub struct PrefixScan {
    pub(super) me: u32,
    pub(super) size: u32,
    /// The values of this member and of lower ones; this member's own at first.
    pub(super) data: BufferSpan,
    pub(super) temp: BufferSpan,
    /// Where the values of lower members go, in an exclusive scan.
    pub(super) lower: Option<BufferSpan>,
}

impl PrefixScan {
    pub(super) const fn rounds(&self) -> u32 {
        if self.size == 1 { 0 } else { log2_ceil(self.size) + 1 }
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size, data, temp, lower } = *self;
        let order = mutate!("coll_scan_order": CombineOrder::FromFirst => CombineOrder::IntoFirst);
        let has_come = round > 0 && me >= 1 << (round - 1);
        let mut index = index;
        if has_come {
            if index == 0 {
                return Some(CollStep::Combine { from: temp, into: data, order });
            }
            index -= 1;
            if let Some(lower) = lower {
                if index == 0 {
                    return Some(match round {
                        1 => CollStep::Copy { from: temp, to: lower },
                        _ => CollStep::Combine { from: temp, into: lower, order },
                    });
                }
                index -= 1;
            }
        }
        if round + 1 == self.rounds() {
            return None;
        }
        let distance = 1u32 << round;
        let upper = me.checked_add(distance).filter(|upper| *upper < size);
        if let Some(to) = upper {
            if index == 0 {
                return Some(CollStep::Send { to, from: data });
            }
            index -= 1;
        }
        let from = me.checked_sub(distance)?;
        (index == 0).then_some(CollStep::Receive { from, into: temp })
    }
}
