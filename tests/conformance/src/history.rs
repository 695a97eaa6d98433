//! What many did to one element, and whether one after the other could have
//! done it.

/// One access to one element, from the moment before it began to the one after
/// it ended, as the observer counts moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The moment before.
    pub start: u64,
    /// The one after; [`NEVER`] of one that failed and may have taken effect.
    pub end: u64,
    /// What it did.
    pub what: What,
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Found that.
    Read(u64),
    /// Each writes what nobody else writes.
    Write(u64),
    /// Adds 1 to what it found.
    Add(u64),
}

/// The end of what has none.
pub const NEVER: u64 = u64::MAX;

/// Checks a register that was `first` at first, whose writes are unique, after
/// P. B. Gibbons and E. Korach: Testing shared memories, SIAM J. Comput. 26
/// (1997). A value's *zone* lies between the first end and the last start of
/// those that wrote or read it: forward if they do not all overlap, else
/// backward. There is an order if no two forward zones overlap, no backward one
/// lies within a forward one, and nobody reads what was not begun to be written.
///
/// # Errors
///
/// Which accesses do not fit together.
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
        let Some(zone) = zone else { return Err(format!("nobody wrote what {read:?} has read")) };
        if read.end < zone.1.start {
            return Err(format!("{read:?} ended before {:?} began", zone.1));
        }
        zone.2 = zone.2.min(read.end);
        zone.3 = zone.3.max(read.start);
    }
    // Nobody saw what a failed write would have written.
    zones.retain(|zone| zone.2 != NEVER);
    for (index, one) in zones.iter().enumerate() {
        for other in &zones[index + 1..] {
            let (forward, backward) = match (one.2 < one.3, other.2 < other.3) {
                (true, true) if one.2 < other.3 && other.2 < one.3 => {
                    return Err(format!("{one:?} and {other:?} were both the last"));
                }
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => continue,
            };
            if forward.2 < backward.3 && backward.2 < forward.3 {
                return Err(format!("{backward:?} came in the middle of {forward:?}"));
            }
        }
    }
    Ok(())
}

/// Checks a counter that was 0 at first: each addition found another number,
/// and none a smaller one than an addition that had ended before.
///
/// # Errors
///
/// Which additions do not fit together.
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
            return Err(format!("{event:?} had ended before a smaller one began"));
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
    fn what_one_after_the_other_could_have_done_is_accepted() {
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
    fn what_it_could_not_is_not() {
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
