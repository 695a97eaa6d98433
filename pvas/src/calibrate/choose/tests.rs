//! What is chosen from times that a test makes up.

use super::super::pair::Timing;
use super::*;

fn none(trip_ns: f64) -> Measured {
    Measured { trip_ns, timings: Vec::new(), sample_ns: None, took: Default::default() }
}

/// Timings of push, stream and pull at each size: a time that is the same for all sizes, and a
/// number of bytes per nanosecond.
fn measured(trip_ns: f64, methods: [(f64, f64); 3]) -> Measured {
    let mut measured = none(trip_ns);
    for bytes in SIZES {
        for (method, (ns, rate)) in
            [TransferMethod::Push, TransferMethod::Stream, TransferMethod::Pull]
                .into_iter()
                .zip(methods)
        {
            let ns = ns + bytes as f64 / rate;
            measured.timings.push(Timing { method, bytes, ns });
        }
    }
    measured
}

fn bounds(measured: &Measured) -> [u64; 3] {
    let chosen = choose(measured);
    [chosen.direct_max, chosen.pull_from, chosen.nt_from]
}

/// The middle between two sizes.
fn after(bytes: usize) -> u64 {
    between(SIZES.into_iter().position(|size| size > bytes).unwrap())
}

#[test]
fn thresholds_follow_the_fastest_way_by_size() {
    let never = Thresholds::NEVER;
    // Stream beats push from 3,600 bytes on.
    let far = measured(165.0, [(0.0, 2.0), (1500.0, 12.0), (300.0, 2.0)]);
    let stream = after(2 << 10);
    assert_eq!(bounds(&far), [stream - 1, never, stream]);
    // Pull beats push from 4,300 bytes on, stream pull from 104,000.
    let near = measured(31.0, [(0.0, 7.0), (3000.0, 40.0), (400.0, 20.0)]);
    let (pull, stream) = (after(4 << 10), after(64 << 10));
    assert_eq!(bounds(&near), [pull - 1, pull, stream]);
    // Pull beats push from 180,000 bytes on, and stream never wins.
    let near = measured(31.0, [(0.0, 30.0), (3000.0, 20.0), (3000.0, 60.0)]);
    let pull = after(128 << 10);
    assert_eq!(bounds(&near), [pull - 1, pull, never]);
}

#[test]
fn a_push_is_requested_where_it_gains_more_than_the_request_costs() {
    let asked = |stream: (f64, f64), pull: (f64, f64)| {
        let mut far = measured(165.0, [(0.0, 2.0), stream, pull]);
        let (method, bytes, ns) = (TransferMethod::Inline, PAYLOADS[0], 300.0);
        far.timings.push(Timing { method, bytes, ns });
        choose(&far).ask_from
    };
    // With a request of 300 ns, streams win by a seventh from 4,400 bytes on.
    assert_eq!(asked((500.0, 12.0), (0.0, 4.0)), after(4 << 10));
    // A stream never wins by that much.
    assert_eq!(asked((0.0, 4.2), (0.0, 4.0)), Thresholds::NEVER);
    let unasked = choose(&measured(165.0, [(0.0, 2.0), (0.0, 12.0), (0.0, 2.0)]));
    assert_eq!(unasked.ask_from, Thresholds::unmeasured(Distance::Far).ask_from);
}

#[test]
fn a_disturbed_measurement_of_one_size_changes_nothing() {
    let mut one = measured(31.0, [(0.0, 9.0), (500.0, 8.0), (500.0, 8.0)]);
    one.timings.iter_mut().find(|one| one.bytes == 16 << 10).unwrap().ns *= 1.5;
    assert_eq!(bounds(&one), [Thresholds::NEVER; 3]);
}

#[test]
fn where_plain_pushes_always_win_no_other_way_is_used() {
    let one = measured(31.0, [(0.0, 9.0), (100.0, 8.0), (100.0, 8.0)]);
    assert_eq!(bounds(&one), [Thresholds::NEVER; 3]);
}

#[test]
fn an_incomplete_measurement_is_not_used() {
    let mut one = measured(31.0, [(0.0, 9.0), (100.0, 8.0), (100.0, 8.0)]);
    one.timings.retain(|timing| timing.bytes != 16 << 10 || timing.method != TransferMethod::Pull);
    let Thresholds { direct_max, pull_from, nt_from, .. } = Thresholds::unmeasured(Distance::Near);
    assert_eq!(bounds(&one), [direct_max, pull_from, nt_from]);
}

#[test]
fn larger_sizes_are_as_the_last_measured_one() {
    let mut far = measured(165.0, [(0.0, 2.0), (1500.0, 12.0), (300.0, 2.0)]);
    let all = bounds(&far);
    while far.ns(TransferMethod::Pull, 128 << 10).is_some() {
        far.timings.pop();
        assert_eq!(bounds(&far), all);
    }
}

#[test]
fn inline_packets_are_used_while_they_win() {
    let mut near = none(31.0);
    for (payload, inline, push) in
        [(32, 60.0, 50.0), (88, 70.0, 80.0), (144, 119.0, 90.0), (200, 121.0, 90.0)]
    {
        near.timings.push(Timing { method: TransferMethod::Inline, bytes: payload, ns: inline });
        near.timings.push(Timing { method: TransferMethod::Push, bytes: payload, ns: push });
    }
    assert_eq!(choose(&near).inline_max, 144);
    assert_eq!(choose(&near).direct_from, 201, "slots were not measured");
}

#[test]
fn a_push_begins_where_it_gains_more_than_its_offer_costs() {
    let mut near = none(31.0);
    near.timings.push(Timing { method: TransferMethod::Inline, bytes: PAYLOADS[0], ns: 60.0 });
    let mut from = |bytes, push, bounce| {
        near.timings.push(Timing { method: TransferMethod::Push, bytes, ns: push });
        near.timings.push(Timing { method: TransferMethod::Bounce, bytes, ns: bounce });
        direct_from(&near, 200)
    };
    assert_eq!(from(2 << 10, 80.0, 100.0), Some((2 << 10) + 1));
    assert_eq!(from(4 << 10, 130.0, 200.0), Some((2 << 10) + (2 << 10) / 5));
    near.timings.retain(|timing| timing.bytes != 2 << 10);
    assert_eq!(direct_from(&near, 200), None);
    near.timings.push(Timing { method: TransferMethod::Push, bytes: 2 << 10, ns: 70.0 });
    near.timings.push(Timing { method: TransferMethod::Bounce, bytes: 2 << 10, ns: 100.0 });
    assert_eq!(direct_from(&near, 200), Some(201));
}

#[test]
fn a_separate_offer_costs_more_than_one_in_a_packet() {
    let mut near = none(31.0);
    near.timings.push(Timing { method: TransferMethod::Inline, bytes: PAYLOADS[0], ns: 60.0 });
    for (bytes, push, bounce) in [(1 << 10, 80.0, 120.0), (2 << 10, 100.0, 250.0)] {
        near.timings.push(Timing { method: TransferMethod::Push, bytes, ns: push });
        near.timings.push(Timing { method: TransferMethod::Bounce, bytes, ns: bounce });
    }
    // A push and slots take 110 and 120 ns, or 140 and 120, at 1 KiB, and 160
    // and 250 at 2 KiB.
    let Thresholds { direct_from, alone_from, .. } = choose(&near);
    assert!(direct_from == 201 && (1 << 10..2 << 10).contains(&alone_from), "{alone_from}");
    assert_eq!(choose(&none(31.0)).alone_from, Thresholds::unmeasured(Distance::Near).alone_from);
}

#[test]
fn short_pushes_go_in_pieces_while_that_wins() {
    let mut far = none(165.0);
    assert_eq!(choose(&none(31.0)).pieces_max, 0);
    assert_eq!(choose(&far).pieces_max, PIECES_MAX as u64);
    for (bytes, push, pieces) in
        [(512, 310.0, 290.0), (1 << 10, 400.0, 410.0), (2 << 10, 700.0, 560.0)]
    {
        far.timings.push(Timing { method: TransferMethod::Push, bytes, ns: push });
        far.timings.push(Timing { method: TransferMethod::Pieces, bytes, ns: pieces });
    }
    // There was no time to measure 4 KiB.
    assert_eq!(choose(&far).pieces_max, PIECES_MAX as u64);
    far.timings.push(Timing { method: TransferMethod::Push, bytes: 4 << 10, ns: 1050.0 });
    far.timings.push(Timing { method: TransferMethod::Pieces, bytes: 4 << 10, ns: 1080.0 });
    assert_eq!(choose(&far).pieces_max, 2 << 10);
    far.timings
        .iter_mut()
        .filter(|of| of.method == TransferMethod::Pieces)
        .for_each(|of| of.ns *= 2.0);
    assert_eq!(choose(&far).pieces_max, 0);
}

#[test]
fn defaults_are_used_where_the_time_ran_out() {
    let far = Thresholds::unmeasured(Distance::Far);
    let mut short = none(165.0);
    for (method, ns) in [(TransferMethod::Push, 310.0), (TransferMethod::Pieces, 290.0)] {
        short.timings.push(Timing { method, bytes: 512, ns });
    }
    assert_eq!(choose(&short).pieces_max, far.pieces_max);
    short.timings[1].ns = 330.0;
    assert_eq!(choose(&short).pieces_max, 0);
    // Copies by both sides lose at all sizes that were measured.
    let mut long = measured(165.0, [(0.0, 2.0); 3]);
    let mut both = |bytes: usize, rate: f64| {
        let ns = bytes as f64 / rate;
        long.timings.push(Timing { method: TransferMethod::Both, bytes, ns });
        choose(&long).both_from
    };
    assert_eq!(both(512 << 10, 1.8), far.both_from);
    assert_eq!(both(2 << 20, 1.8), Thresholds::NEVER);
}

#[test]
fn a_push_goes_in_halves_from_where_halves_win() {
    let mut far = none(165.0);
    let unmeasured = Thresholds::unmeasured(Distance::Far).halves_from;
    assert_eq!(choose(&far).halves_from, unmeasured);
    let times = [(4 << 10, 1000.0, [900.0, 950.0]), (8 << 10, 1800.0, [1600.0, 1900.0])];
    for (bytes, push, [plain, pieces]) in times {
        for (method, ns) in [
            (TransferMethod::Push, push),
            (TransferMethod::Halves, plain),
            (TransferMethod::HalvesInPieces, pieces),
        ] {
            assert_eq!(choose(&far).halves_from, unmeasured);
            far.timings.push(Timing { method, bytes, ns });
        }
    }
    assert_eq!(halves_from(&far, 0), Some(between(1)));
    // Halves of 2 KiB go in pieces, and win; halves of 4 KiB do not.
    assert_eq!(halves_from(&far, 2 << 10), Some(between(1)));
    // All halves up to 4 KiB go in pieces.
    far.timings.push(Timing { method: TransferMethod::Pieces, bytes: 4 << 10, ns: 950.0 });
    assert_eq!(halves_from(&far, 4 << 10), Some(Thresholds::NEVER));
    far.timings
        .iter_mut()
        .filter(|of| of.method == TransferMethod::Push)
        .for_each(|of| of.ns = 2000.0);
    assert_eq!(halves_from(&far, 4 << 10), Some(between(2)));
}

#[test]
fn slots_are_used_while_they_win_and_within_their_limits() {
    let mut near = none(31.0);
    for (bytes, bounce, pull) in [(4 << 10, 5.0, 4.0), (8 << 10, 5.0, 6.0), (64 << 10, 5.0, 9.0)] {
        near.timings.push(Timing { method: TransferMethod::Bounce, bytes, ns: bounce });
        near.timings.push(Timing { method: TransferMethod::Pull, bytes, ns: pull });
    }
    assert_eq!(choose(&near).eager_max, EAGER_MAX);
    near.timings.truncate(2);
    assert_eq!(choose(&near).eager_max, EAGER_MIN);
}
