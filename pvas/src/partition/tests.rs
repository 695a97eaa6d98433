use super::*;

fn zeroed() -> Box<Control> {
    // SAFETY: all zeroes is a valid `Control`, and the layout is its own.
    unsafe {
        let memory = std::alloc::alloc_zeroed(std::alloc::Layout::new::<Control>());
        Box::from_raw(memory.cast())
    }
}

fn limits(address_space: Option<u64>, file: Option<u64>) -> Limits {
    Limits { address_space_bytes: address_space, file_bytes: file }
}

#[test]
fn zeroes_are_a_rank_that_has_not_started() {
    let control = zeroed();
    assert_eq!((control.state(), control.pid()), (State::Starting, 0));
    assert!(control.is_alive() && control.regions().is_empty());
    assert_eq!((control.wanted_report(), control.card()), (None, None));
    assert_eq!(control.check(Rank(0), 1), Err(HeaderError::Magic { found: 0 }));
}

#[test]
fn a_header_names_what_differs() {
    let control = zeroed();
    control.make(Rank(1), 4);
    assert_eq!(control.check(Rank(1), 4), Ok(()));
    assert_eq!(
        control.check(Rank(2), 4),
        Err(HeaderError::Place { found: (1, 4), wanted: (2, 4) })
    );
    control.header.layout.store(7, Ordering::Relaxed);
    assert_eq!(control.check(Rank(1), 4), Err(HeaderError::Layout { found: 7, ours: LAYOUT }));
    control.header.version.store(2 << 20 | 3, Ordering::Relaxed);
    let message = control.check(Rank(1), 4).unwrap_err().to_string();
    assert!(message.contains("tsumugi 2.0.3"), "{message}");
}

#[test]
fn a_rank_is_taken_once() {
    let control = zeroed();
    assert_eq!(control.attach(41), Ok(()));
    assert_eq!(control.attach(42), Err(41));
    assert_eq!((control.state(), control.pid()), (State::Running, 41));
}

#[test]
fn a_report_belongs_to_its_request() {
    let control = zeroed();
    let first = control.ask_report();
    assert_eq!(control.report(first), None);
    assert_eq!(control.wanted_report(), Some(first));
    control.answer_report(first, "ULT 3: signal");
    assert_eq!(control.wanted_report(), None);
    assert_eq!(control.report(first).as_deref(), Some("ULT 3: signal"));
    let second = control.ask_report();
    assert_eq!(control.report(second), None);
    control.answer_report(second, &"x".repeat(REPORT_BYTES_MAX + 1));
    assert_eq!(control.report(second).unwrap().len(), REPORT_BYTES_MAX);
}

#[test]
fn a_death_is_declared_to_everybody() {
    let controls = [zeroed(), zeroed()];
    declare_lost(Rank(1), controls.iter().map(|control| &**control));
    assert_eq!(controls[1].state(), State::Failed);
    assert!(controls[0].is_alive() && !controls[1].is_alive());
    assert!(controls[0].lot().has_fired());
    assert_ne!(controls[0].boot_words().1.load(Ordering::Relaxed) & BOOT_GONE, 0);
}

#[test]
fn without_limits_a_partition_is_as_configured() {
    let config = Config::default();
    let shape = Shape::fit(4, &config, Limits::default()).unwrap();
    assert_eq!((shape.heap_bytes, shape.stack_bytes), (config.heap_bytes, config.stack_bytes));
    assert_eq!((shape.base, shape.shift), (config::BASE_DEFAULT, 36));
    assert_eq!(shape.start(Rank(3)), config::BASE_DEFAULT + (3 << 36));
    assert_eq!(Shape::from_text(&shape.to_text()), Some(shape));
    assert_eq!(Shape::from_text("1,2,3"), None);
    assert_eq!(Shape::from_text("1,2,3,4,5"), None);
}

#[test]
fn limits_make_partitions_smaller() {
    for (size, gib) in [(1, 1), (4, 4), (33, 16), (2, 100)] {
        let limit = gib << 30;
        let shape = Shape::fit(size, &Config::default(), limits(Some(limit), None)).unwrap();
        assert!(shape.bytes() as u64 * u64::from(size) <= limit - (256 << 20), "{size} {shape:?}");
        assert!(shape.heap_bytes >= config::HEAP_BYTES_MIN);
        assert!(shape.stack_bytes >= config::STACK_BYTES_MIN);
        let file = Shape::fit(size, &Config::default(), limits(None, Some(limit))).unwrap();
        assert!(file.bytes() as u64 <= limit);
    }
}

#[test]
fn a_limit_that_is_too_low_is_named() {
    let error = |limits| Shape::fit(33, &Config::default(), limits).unwrap_err().to_string();
    let address_space = error(limits(Some(1 << 30), None));
    assert!(address_space.contains("RLIMIT_AS (ulimit -v) is 1073741824"), "{address_space}");
    let file = error(limits(None, Some(1 << 20)));
    assert!(file.contains("RLIMIT_FSIZE (ulimit -f) is 1048576"), "{file}");
}

#[test]
fn a_job_has_a_size_and_a_place() {
    let fit = |size| Shape::fit(size, &Config::default(), Limits::default());
    assert_eq!(fit(0), Err(ShapeError::Size { size: 0 }));
    assert!(fit(512).is_ok());
    assert!(matches!(fit(4096), Err(ShapeError::Range { .. })));
}
