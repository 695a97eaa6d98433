use super::*;
use std::ptr::NonNull;

fn config() -> SpaceConfig {
    SpaceConfig::small()
}

#[test]
fn partitions_are_apart_and_at_their_places() {
    let space = Space::create(3, &config()).unwrap();
    let shape = space.shape();
    for rank in (0..3).map(LocalRank) {
        assert_eq!(space.control(rank).check(rank, 3), Ok(()));
        let heap = space.heap(rank).unwrap().start();
        assert_eq!(heap, place(shape, rank, shape.heap_offset()));
        assert!(!space.is_exposed(rank, heap, 1), "peers may not access the heap");
        let exposed = space.exposed(rank).unwrap().start();
        assert!(space.is_exposed(rank, exposed, shape.exposed_bytes as u64));
        assert!(!space.is_exposed(LocalRank((rank.0 + 1) % 3), exposed, 1));
    }
    let head = place(shape, LocalRank(0), 0);
    assert!(!space.is_exposed(LocalRank(0), head, 8), "the head may not be registered");
    let last = place(shape, LocalRank(0), shape.heap_offset() - 8);
    assert!(space.is_exposed(LocalRank(0), last, 8) && !space.is_exposed(LocalRank(0), last, 9));
    assert!(!space.is_exposed(LocalRank(0), last, u64::MAX));
}

#[test]
fn a_place_lies_in_the_shared_part_of_a_partition() {
    let space = Space::create(2, &config()).unwrap();
    let shape = space.shape();
    let find = |rank, offset: usize, bytes| {
        let at = shape.start(LocalRank(rank)).wrapping_add(offset) as *mut u8;
        space.place_of(NonNull::new(at).unwrap(), bytes)
    };
    let last = shape.bytes() - 1;
    for offset in [
        shape.starter_offset(),
        shape.exposed_offset(),
        shape.heap_offset() + 7,
        shape.stacks_offset(),
        last,
    ] {
        assert_eq!(find(1, offset, 1), Some((LocalRank(1), offset as u64)), "{offset:#x}");
    }
    assert_eq!(find(0, last, 2), None, "beyond the end");
    assert_eq!(find(0, last, u64::MAX), None);
    assert_eq!(find(0, shape.bytes(), 1), None, "between two partitions");
    assert_eq!(find(0, shape.bytes(), 0), Some((LocalRank(0), shape.bytes() as u64)), "nothing");
    assert_eq!(find(1, shape.starter_offset() - 1, 1), None, "a head holds no buffer");
    assert_eq!(find(2, shape.heap_offset(), 1), None, "above the last");
    assert_eq!(find(0, usize::MAX, 1), None, "below the first");
    let local = 0_u64;
    assert_eq!(space.place_of(NonNull::from(&local).cast(), 8), None);
}

#[test]
fn spaces_of_one_process_are_disjoint_and_reused_clean() {
    let config = SpaceConfig { starter_bytes: 12 << 10, ..config() };
    let first = Space::create(2, &config).unwrap();
    let second = Space::create(2, &config).unwrap();
    assert_ne!(first.shape().base, second.shape().base);
    second.control(LocalRank(1)).attach(1).unwrap();
    let layout = std::alloc::Layout::new::<u64>();
    let word = second.exposed(LocalRank(1)).unwrap().allocate_zeroed(layout).unwrap().cast::<u64>();
    // SAFETY: the word is ours. It is never released.
    unsafe { word.write(7) };
    let base = second.shape().base;
    drop(second);
    let third = Space::create(1, &config).unwrap();
    assert_eq!(third.shape().base, base, "made of the retired space");
    assert_eq!(third.control(LocalRank(0)).check(LocalRank(0), 1), Ok(()));
    drop(third);
    let fourth = Space::create(2, &config).unwrap();
    assert_eq!(fourth.control(LocalRank(1)).pid(), 0);
    let exposed = fourth.exposed(LocalRank(1)).unwrap();
    assert_eq!(exposed.free_bytes(), exposed.bytes(), "no exposed memory is lost");
    assert_eq!(exposed.allocate_zeroed(layout), Some(word.cast()));
    // SAFETY: the word is ours.
    assert_eq!(unsafe { word.read() }, 0);
}

#[test]
fn a_base_that_is_taken_is_an_error_that_names_it() {
    let config = SpaceConfig { base: Some(0x3000_0000_0000), ..config() };
    let first = Space::create(1, &config).unwrap();
    let second = Space::create(1, &config).unwrap_err();
    assert!(second.to_string().contains("0x300000000000"), "{second}");
    drop(first);
}

#[test]
fn the_next_base_is_beyond_the_taken_range() {
    let taken = |start, end| {
        Some(OccupiedRange { start, end, what: tsumugi_core::excerpt::Excerpt::new("") })
    };
    let (base, range) = (config::BASE_DEFAULT, 64 << 30);
    assert_eq!(base_after(base, range, None), Some(base + range));
    assert_eq!(base_after(base, range, taken(base, base + 1)), Some(base + range));
    let far = taken(base - 1, base + 9 * range + 1);
    assert_eq!(base_after(base, range, far), Some(base + 10 * range));
    // All of it belongs to a thread sanitizer.
    let all = taken(base - 1, config::BASE_MAX);
    assert_eq!(base_after(base, range, all), Some(config::BASE_TSAN));
    let last = config::BASE_TSAN + 3 * range;
    assert_eq!(base_after(last - range, range, None), Some(last));
    assert_eq!(base_after(last, range, None), None);
    assert_eq!(base_after(base, usize::MAX / 2, all), None);
}

#[test]
fn a_file_of_another_length_is_refused() {
    let (mut files, _windows) = Files::create(1, &config()).unwrap();
    files.shape.stack_bytes += config::BASE_ALIGN;
    let error = Space::adopt(&files, LocalRank(0)).unwrap_err();
    assert!(matches!(error, SpaceError::Length { rank: LocalRank(0), .. }), "{error}");
}
