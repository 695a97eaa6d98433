//! Histories: the accesses of many threads to one element, and the check whether a
//! sequential order explains them.

/// One access to one element. It has the moments before its begin and after its end,
/// as the observer counts moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The moment before the begin.
    pub start: u64,
    /// The moment after the end; [`NEVER`] for an access that failed and may have
    /// taken effect.
    pub end: u64,
    /// The kind of access, with its value.
    pub what: What,
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A read that found this value.
    Read(u64),
    /// A write of this value, which no other access writes.
    Write(u64),
    /// An addition of 1 that found this value.
    Add(u64),
}

/// The end of an access that has no end.
pub const NEVER: u64 = u64::MAX;

/// Checks the history of a register with the first value `first` and unique writes,
/// after P. B. Gibbons and E. Korach: Testing shared memories, SIAM J. Comput. 26
/// (1997). A value's *zone* lies between the first end and the last start of the
/// accesses that wrote or read the value. The zone is forward if these accesses do
/// not all overlap, else backward. There is a sequential order if no two forward
/// zones overlap, no backward zone lies within a forward zone, and no read returns a
/// value before its write has begun.
///
/// # Errors
///
/// A text with accesses that do not fit together.
pub fn check_register(first: u64, events: &[Event]) -> Result<(), String> {
    let mut zones: Vec<(u64, Event, u64, u64)> = vec![];
    let origin = Event { start: 0, end: 0, what: What::Write(first) };
    for write in events.iter().chain([&origin]) {
        if let What::Write(value) = write.what {
            zones.push((value, *write, write.end, write.start));
        }
    }
    for read in events {
        let What::Read(value) = read.what else { continue };
        let zone = zones.iter_mut().find(|zone| zone.0 == value);
        let Some(zone) = zone else { return Err(format!("no access wrote the value of {read:?}")) };
        if read.end < zone.1.start {
            return Err(format!("{read:?} ended before {:?} began", zone.1));
        }
        zone.2 = zone.2.min(read.end);
        zone.3 = zone.3.max(read.start);
    }
    // Drops the zones of failed writes with values that no access read.
    zones.retain(|zone| zone.2 != NEVER);
    for (index, one) in zones.iter().enumerate() {
        for other in &zones[index + 1..] {
            let (forward, backward) = match (one.2 < one.3, other.2 < other.3) {
                (true, true) if one.2 < other.3 && other.2 < one.3 => {
                    return Err(format!("the zones {one:?} and {other:?} overlap"));
                }
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => continue,
            };
            if forward.2 < backward.3 && backward.2 < forward.3 {
                return Err(format!("the zone {backward:?} lies within {forward:?}"));
            }
        }
    }
    Ok(())
}

/// Checks the history of a counter that was 0 at first: each addition found another
/// number, and none found a smaller number than an addition that had ended before.
///
/// # Errors
///
/// A text with additions that do not fit together.
pub fn check_counter(events: &[Event]) -> Result<(), String> {
    let mut adds: Vec<_> = events
        .iter()
        .filter_map(|event| match event.what {
            What::Add(old) => Some((old, event)),
            What::Read(_) | What::Write(_) => None,
        })
        .collect();
    adds.sort_by_key(|(old, _)| *old);
    let mut last_start = 0;
    for (index, (old, event)) in adds.iter().enumerate() {
        if index > 0 && adds[index - 1].0 == *old {
            return Err(format!("two additions found {old}"));
        }
        if event.end < last_start {
            return Err(format!("{event:?} had ended before an addition that found less began"));
        }
        last_start = last_start.max(event.start);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn event(start: u64, end: u64, what: What) -> Event {
        Event { start, end, what }
    }

    #[test]
    fn sequential_histories_are_accepted() {
        let events = [
            event(1, 4, What::Write(7)),
            event(2, 3, What::Read(0)),
            event(2, 5, What::Read(7)),
            event(6, 9, What::Write(8)),
            event(7, 8, What::Read(7)),
            event(10, NEVER, What::Write(9)),
            event(12, 13, What::Read(8)),
        ];
        check_register(0, &events).unwrap();
        check_counter(&[event(1, 4, What::Add(1)), event(2, 3, What::Add(0))]).unwrap();
    }

    #[test]
    fn histories_without_a_sequential_order_are_refused() {
        let lost = [event(1, 2, What::Write(7)), event(3, 4, What::Read(0))];
        assert!(check_register(0, &lost).is_err());
        let back =
            [event(1, 9, What::Write(7)), event(2, 3, What::Read(7)), event(4, 5, What::Read(0))];
        assert!(check_register(0, &back).is_err());
        let from_nowhere = [event(1, 2, What::Read(5))];
        assert!(check_register(0, &from_nowhere).is_err());
        let early = [event(1, 2, What::Read(7)), event(3, 4, What::Write(7))];
        assert!(check_register(0, &early).is_err());
        let twice = [event(1, 2, What::Add(0)), event(3, 4, What::Add(0))];
        assert!(check_counter(&twice).is_err());
    }
}
