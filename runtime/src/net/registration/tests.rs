//! Tests which windows are registered, which make room, and which stay.

use super::*;

/// A full window of the heap.
fn full(index: usize) -> AdoptedArea {
    AdoptedArea { start: (index + 1) * STRIDE, bytes: 2 * STRIDE }
}

fn key(area: AdoptedArea) -> RegionKey {
    RegionKey::new(area.start / STRIDE, 1)
}

/// Takes a window, and gives it back at once; returns the windows that were hidden
/// for it.
fn touch(known: &mut KnownAreas, area: AdoptedArea) -> Vec<RegionKey> {
    let mut hidden = Vec::new();
    if known.find(area).is_none() {
        while let Some(key) = known.make_room(area.bytes).unwrap() {
            hidden.push(key);
        }
        known.add(area, key(area));
    }
    known.give_back(area.start);
    hidden
}

#[test]
fn the_least_recently_used_window_makes_room() {
    let mut known = KnownAreas::default();
    for index in 0..BYTES_MAX / (2 * STRIDE) {
        assert_eq!(touch(&mut known, full(index)), []);
    }
    assert_eq!(touch(&mut known, full(0)), []);
    assert_eq!(touch(&mut known, full(100)), [key(full(1))]);
    assert_eq!(touch(&mut known, full(101)), [key(full(2))]);
    assert_eq!(known.bytes, BYTES_MAX);
}

#[test]
fn the_number_of_short_windows_is_bounded() {
    let mut known = KnownAreas::default();
    let short = |index| AdoptedArea { bytes: 4096, ..full(index) };
    for index in 0..WINDOWS_MAX {
        assert_eq!(touch(&mut known, short(index)), []);
    }
    assert_eq!(touch(&mut known, short(1000)), [key(short(0))]);
    // A full window takes the place of a short one, though there are bytes for more.
    assert_eq!(touch(&mut known, full(1001)), [key(short(1))]);
    assert_eq!(known.windows.len(), WINDOWS_MAX);
}

#[test]
fn a_window_in_use_stays_registered() {
    let mut known = KnownAreas::default();
    for index in 0..BYTES_MAX / (2 * STRIDE) {
        touch(&mut known, full(index));
        assert_eq!(known.find(full(index)), Some(key(full(index))));
    }
    assert_eq!(known.make_room(1), Err(InUse));
    known.give_back(full(7).start);
    assert_eq!(known.make_room(1), Ok(Some(key(full(7)))));
}

#[test]
fn a_window_is_replaced_if_the_system_locks_no_more_memory() {
    let mut known = KnownAreas::default();
    assert_eq!(touch(&mut known, full(3)), []);
    known.is_refused = true;
    assert_eq!(touch(&mut known, full(4)), [key(full(3))]);
    assert_eq!(known.windows.len(), 1);
}

#[test]
fn windows_of_adopted_memory_end_with_it() {
    let mut known = KnownAreas::default();
    let (start, bytes) = (100 * STRIDE + 24, 5 * STRIDE + 1);
    let area = AdoptedArea { start, bytes };
    known.adopt(AdoptedArea { start: start + bytes, bytes: 64 });
    known.adopt(area);
    assert_eq!(known.area_of(start + bytes - 1), Some(area));
    assert_eq!(known.area_of(start - 1), None);
    assert_eq!(known.area_of(start + bytes + 64), None);
    let windows = [0, 2 * STRIDE, 5 * STRIDE].map(|offset| area.window(start + offset));
    assert_eq!(windows[2].bytes, 1, "a window ends with its area");
    let other = AdoptedArea { start: start + bytes, bytes: 64 };
    for window in windows.into_iter().chain([other]) {
        assert_eq!(touch(&mut known, window), []);
    }
    assert!(known.find(windows[1]).is_some());
    assert_eq!(known.disown(start), Err(InUse), "the device may use a window");
    assert_eq!(known.area_of(start), Some(area), "the refused call changes nothing");
    known.give_back(windows[1].start);
    let mut ended = known.disown(start).unwrap();
    ended.sort_by_key(|key| key.index());
    assert_eq!(ended, windows.map(key));
    assert_eq!((known.area_of(start), known.bytes), (None, 64));
    assert!(windows.into_iter().all(|window| known.find(window).is_none()));
    assert!(known.find(other).is_some());
}
