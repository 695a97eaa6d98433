//! Fast paths of accesses.

use super::*;
use core::cell::Cell;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// Words of a rank and of a frame, without the memory of an array.
struct Loose {
    first: AtomicU64,
    second: AtomicU64,
    header: AtomicU64,
}

fn loose(first: u64, second: u64, header: u64) -> Loose {
    let [first, second, header] = [first, second, header].map(AtomicU64::new);
    Loose { first, second, header }
}

/// A read is good if it finds the page's header before and after the bytes.
#[test]
fn a_read_is_valid_between_two_equal_headers() {
    let layout = layout(3, false);
    let moved = FIRST.moved(MOVER, 1);
    let (right, header) = (FIRST.seen_of(PAGE), FIRST.header(PAGE));
    let moving = PageState::Moving { owner: Rank(0), frame: 0, by: MOVER }.to_bits();
    for (seen, entry, before, after, is_good) in [
        (right, FIRST.to_bits(), header, header, true),
        (0, FIRST.to_bits(), header, header, false),
        (FIRST.seen_of(PageId(1)), FIRST.to_bits(), header, header, false),
        (right, moving, header, header, false),
        (right, FIRST.to_bits(), gone(header), header, false),
        (right, FIRST.to_bits(), header, gone(header), false),
        (right, FIRST.to_bits(), header, moved.header(PAGE), false),
    ] {
        let words = loose(seen, entry, before);
        let own = ReadFast::of(&layout, MOVER, PAGE, |at| match at {
            at if at == layout.seen(MOVER, PAGE) => &words.first,
            at if at == layout.seen_entry(MOVER, PAGE) => &words.second,
            at => panic!("{at:?}"),
        });
        let reads = Cell::new(0);
        let read = |place: DirectoryEntry| {
            reads.set(reads.get() + 1);
            words.header.store(after, Ordering::Relaxed);
            place
        };
        let found = own.hit(PAGE, |entry| Some((&words.header, entry)), read);
        assert_eq!(found, is_good.then_some(FIRST), "{seen:x} {entry:x} {before:x} {after:x}");
        assert!(reads.get() <= 1);
        words.header.store(header, Ordering::Relaxed);
        let out_of_reach =
            own.hit(PAGE, |_| None::<(&AtomicU64, ())>, |()| panic!("the frame is out of reach"));
        assert_eq!(out_of_reach, None::<()>);
    }
}

/// A use of the page is counted in its gate, if the gate is valid.
#[test]
fn a_use_is_counted_while_it_lasts() {
    let layout = layout(3, false);
    let other = PageId(PAGE.0 + 4);
    let gate = |page, state, count| Gate::new(page, state, count).to_bits();
    let moving = PageState::Moving { owner: Rank(0), frame: 0, by: MOVER }.to_bits();
    for (word, kept, is_good) in [
        (gate(PAGE, GateState::Valid, 0), FIRST.to_bits(), true),
        (gate(PAGE, GateState::Valid, 2), FIRST.to_bits(), true),
        (gate(other, GateState::Valid, 0), FIRST.to_bits(), false),
        (gate(PAGE, GateState::Stopped, 0), FIRST.to_bits(), false),
        (gate(PAGE, GateState::Pending, 0), FIRST.to_bits(), false),
        (gate(PAGE, GateState::Valid, 0), moving, false),
    ] {
        let words = loose(word, kept, 0);
        let pin = PinFast::of(&layout, MOVER, PAGE, |at| match at {
            at if at == layout.gate(MOVER, PAGE) => &words.first,
            at if at == layout.kept(MOVER, PAGE) => &words.second,
            at => panic!("{at:?}"),
        });
        let now = || words.first.load(Ordering::Relaxed);
        let access = |entry: DirectoryEntry| {
            assert_eq!(now(), word + 1);
            entry
        };
        assert_eq!(pin.hit(PAGE, Some, access), is_good.then_some(FIRST));
        assert_eq!(now(), word, "no access is counted");
        assert_eq!(pin.hit(PAGE, |_| None::<()>, |()| panic!("out of reach")), None::<()>);
        assert_eq!(now(), word, "no access is counted");
    }
}
