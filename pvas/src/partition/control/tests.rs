use super::*;

pub(in crate::partition) fn zeroed() -> Box<ControlBlock> {
    // SAFETY: all zeroes is a valid `ControlBlock`, and the layout is its own.
    unsafe {
        let memory = std::alloc::alloc_zeroed(std::alloc::Layout::new::<ControlBlock>());
        Box::from_raw(memory.cast())
    }
}

#[test]
fn zeroes_are_a_rank_that_has_not_started() {
    let control = zeroed();
    assert_eq!((control.state(), control.pid()), (RankState::Starting, 0));
    assert!(control.is_alive() && control.regions().is_empty());
    assert_eq!((control.wanted_report(), control.card()), (None, None));
    assert_eq!(control.check(LocalRank(0), 1), Err(HeaderError::Magic { found: 0 }));
}

#[test]
fn a_rank_is_taken_once() {
    let control = zeroed();
    assert_eq!(control.attach(41), Ok(()));
    assert_eq!(control.attach(42), Err(41));
    assert_eq!((control.state(), control.pid()), (RankState::Running, 41));
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
