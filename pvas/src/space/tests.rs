use super::*;

fn config() -> Config {
    Config { heap_bytes: 64 << 20, stack_bytes: 16 << 20, ..Config::default() }
}

#[test]
fn partitions_are_apart_and_at_their_places() {
    let space = Space::create(3, &config()).unwrap();
    let shape = space.shape();
    for rank in (0..3).map(Rank) {
        assert_eq!(space.control(rank).check(rank, 3), Ok(()));
        let heap = space.heap(rank).unwrap().start();
        assert!(space.contains(rank, heap, shape.heap_bytes as u64));
        assert!(!space.contains(Rank((rank.0 + 1) % 3), heap, 1));
    }
    let head = NonNull::new(shape.start(Rank(0)) as *mut u8).unwrap();
    assert!(!space.contains(Rank(0), head, 8), "the head is not to be registered");
    let last = NonNull::new((shape.start(Rank(0)) + shape.bytes() - 8) as *mut u8).unwrap();
    assert!(space.contains(Rank(0), last, 8) && !space.contains(Rank(0), last, 9));
    assert!(!space.contains(Rank(0), last, u64::MAX));
}

#[test]
fn spaces_of_one_process_do_not_meet_and_come_back_clean() {
    let config = Config { starter_bytes: 12 << 10, ..config() };
    let first = Space::create(2, &config).unwrap();
    let second = Space::create(2, &config).unwrap();
    assert_ne!(first.shape().base, second.shape().base);
    second.control(Rank(1)).attach(1).unwrap();
    let base = second.shape().base;
    drop(second);
    let third = Space::create(1, &config).unwrap();
    assert_eq!(third.shape().base, base, "made of the retired one");
    assert_eq!(third.control(Rank(0)).check(Rank(0), 1), Ok(()));
    drop(third);
    let fourth = Space::create(2, &config).unwrap();
    assert_eq!(fourth.control(Rank(1)).pid(), 0);
}

#[test]
fn a_base_that_is_taken_is_an_error_that_names_it() {
    let config = Config { base: Some(0x3000_0000_0000), ..config() };
    let first = Space::create(1, &config).unwrap();
    let second = Space::create(1, &config).unwrap_err();
    assert!(second.to_string().contains("0x300000000000"), "{second}");
    drop(first);
}

#[test]
fn a_file_of_another_length_is_refused() {
    let (mut files, _windows) = Files::create(1, &config()).unwrap();
    files.shape.stack_bytes += config::BASE_ALIGN;
    let error = Space::adopt(&files, Rank(0)).unwrap_err();
    assert!(matches!(error, SpaceError::Length { rank: Rank(0), .. }), "{error}");
}
