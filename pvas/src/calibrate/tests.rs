use super::*;
use crate::config::SpaceConfig;

fn members(size: u32) -> Vec<Member> {
    Member::threads(size, &SpaceConfig::small()).unwrap()
}

#[test]
fn two_cores_measure_plausible_times() {
    let calibration = between(0, 1, TIME_MAX);
    let Some(Calibration { measured, thresholds }) = calibration else { return };
    assert!(measured.trip_ns > 0.0 && measured.trip_ns.is_finite());
    assert!(thresholds.inline_max < thresholds.direct_from);
    assert!(thresholds.direct_from <= thresholds.direct_max);
    let next = thresholds.pull_from.min(thresholds.nt_from);
    assert_eq!(thresholds.direct_max.saturating_add(1), next);
}

#[test]
fn a_cpu_that_does_not_exist_is_not_measured() {
    assert!(between(0, 1 << 15, TIME_MAX).is_none());
}

#[test]
fn ranks_that_share_cores_are_not_measured() {
    let members = members(3);
    let hand = ByHand { eager_max: Some(5000), ..ByHand::default() };
    members[0].calibrate(&[], &hand);
    let (distance, thresholds) = members[2].distance_to(Rank(1));
    assert_eq!((distance, thresholds.eager_max), (Distance::SameCore, 5000));
    assert!(!members[0].control().place().thresholds(Distance::Near).1);
}

#[test]
fn both_ends_get_the_same_thresholds() {
    let members = members(2);
    members[0].calibrate(&[0, 0], &ByHand::default());
    let methods = [members[0].distance_to(Rank(1)), members[1].distance_to(Rank(0))];
    assert_eq!(methods[0], methods[1]);
    assert_ne!(methods[0].0, Distance::SameCore);
    assert_ne!(members[0].control().place().took_ns(), 0);
}
