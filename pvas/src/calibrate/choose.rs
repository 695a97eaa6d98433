//! Thresholds from timings.

use super::pair::{Measured, PAYLOADS, SIZES, Way};
use crate::distance::{Distance, Thresholds};

/// What wins at which size. What is missing among the timings is taken from
/// the class that the trip belongs to; what would be out of bounds is clamped.
pub fn choose(measured: &Measured) -> Thresholds {
    let unmeasured = Thresholds::unmeasured(Distance::of_trip(measured.trip_ns));
    let inline_max = inline_max(measured).unwrap_or(unmeasured.inline_max);
    let (direct_max, nt_from, pull_from) = pushes(measured).unwrap_or((
        unmeasured.direct_max,
        unmeasured.nt_from,
        unmeasured.pull_from,
    ));
    Thresholds {
        inline_max,
        direct_from: inline_max + 1,
        eager_max: eager_max(measured).unwrap_or(unmeasured.eager_max),
        direct_max,
        nt_from,
        pull_from,
        ..unmeasured
    }
}

/// The largest payload whose packet is no slower than a copy into the buffer,
/// which its receiver must have told the sender of.
fn inline_max(measured: &Measured) -> Option<u64> {
    let mut max = None;
    for payload in PAYLOADS {
        let (inline, push) = (measured.ns(Way::Inline, payload)?, measured.ns(Way::Push, payload)?);
        if max.is_none() || inline <= push * POST {
            max = Some(payload as u64);
        } else {
            break;
        }
    }
    max
}

/// The largest size at which two copies through slots are no slower than
/// waiting for the receiver; never so large that a few messages fill them.
fn eager_max(measured: &Measured) -> Option<u64> {
    let mut max = EAGER_MIN;
    for bytes in measured.sizes(Way::Bounce) {
        let (bounce, pull) = (measured.ns(Way::Bounce, bytes)?, measured.ns(Way::Pull, bytes)?);
        if bounce <= pull {
            max = bytes as u64;
        }
    }
    measured.ns(Way::Bounce, EAGER_MIN as usize)?;
    Some(max.clamp(EAGER_MIN, EAGER_MAX))
}

/// `direct_max`, `nt_from`, `pull_from`; none unless all sizes were measured.
fn pushes(measured: &Measured) -> Option<(u64, u64, u64)> {
    let at = |way, bytes| measured.ns(way, bytes);
    let mut best = Vec::new();
    for bytes in SIZES {
        // A push leaves both sides freer than a pull: it wins a draw.
        let ways = [(Way::Push, 1.0), (Way::Stream, 1.0), (Way::Pull, DRAW)];
        let times = ways.map(|(way, handicap)| at(way, bytes).map(|ns| (way, ns * handicap)));
        let [Some(push), Some(stream), Some(pull)] = times else { return None };
        let least = [push, stream, pull].into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        best.push((bytes as u64, least.0));
    }
    let never = Thresholds::NEVER;
    // Where the run of sizes begins that ends at `until` and that `way` wins.
    let from = |way: Way, until: u64| {
        let below = best.iter().rev().skip_while(|(bytes, _)| *bytes >= until);
        below.take_while(|(_, best)| *best == way).last().map(|(bytes, _)| *bytes)
    };
    let pull_from = from(Way::Pull, never).unwrap_or(never);
    let nt_from = from(Way::Stream, pull_from).unwrap_or(pull_from);
    let lost = best.iter().position(|(_, best)| *best != Way::Push);
    let direct_max = match lost {
        None => never,
        Some(0) => best[0].0 - 1,
        Some(first) => best[first - 1].0,
    };
    Some((direct_max.max(DIRECT_MIN), nt_from.max(NT_MIN), pull_from.max(PULL_MIN)))
}

const EAGER_MIN: u64 = 4 << 10;
/// Half of the slots.
const EAGER_MAX: u64 = 16 << 10;
/// Below it the fence of a streaming copy is never paid back.
const NT_MIN: u64 = 2 << 10;
const PULL_MIN: u64 = 2 << 10;
const DIRECT_MIN: u64 = 1 << 10;
const DRAW: f64 = 1.03;
/// What telling a sender of a receive adds, about.
const POST: f64 = 1.05;

#[cfg(test)]
mod tests {
    use super::super::pair::Timing;
    use super::*;

    fn none(trip_ns: f64) -> Measured {
        Measured { trip_ns, timings: Vec::new(), took: Default::default() }
    }

    /// Push, stream and pull of each size: as many bytes a nanosecond, after a
    /// time that is the same for all sizes.
    fn measured(trip_ns: f64, ways: [(f64, f64); 3]) -> Measured {
        let mut measured = none(trip_ns);
        for bytes in SIZES {
            for (way, (ns, rate)) in [Way::Push, Way::Stream, Way::Pull].into_iter().zip(ways) {
                let ns = ns + bytes as f64 / rate;
                measured.timings.push(Timing { way, bytes, ns });
            }
        }
        measured
    }

    fn bounds(measured: &Measured) -> [u64; 3] {
        let chosen = choose(measured);
        [chosen.direct_max, chosen.nt_from, chosen.pull_from]
    }

    #[test]
    fn ways_follow_each_other_by_size() {
        // Stream beats push from 3,600 bytes on.
        let far = measured(165.0, [(0.0, 2.0), (1500.0, 12.0), (300.0, 2.0)]);
        assert_eq!(bounds(&far), [2 << 10, 4 << 10, Thresholds::NEVER]);
        // Pull beats push from 7,700 bytes on, stream pull from 50,000.
        let near = measured(31.0, [(0.0, 7.0), (3000.0, 16.0), (300.0, 10.0)]);
        assert_eq!(bounds(&near), [4 << 10, 128 << 10, Thresholds::NEVER]);
        // Pull beats push from 400,000 bytes on, and stream never wins.
        let near = measured(31.0, [(0.0, 30.0), (3000.0, 20.0), (3000.0, 38.0)]);
        assert_eq!(bounds(&near), [128 << 10, 512 << 10, 512 << 10]);
    }

    #[test]
    fn where_plain_pushes_always_win_nothing_else_is_done() {
        let one = measured(31.0, [(0.0, 9.0), (100.0, 8.0), (100.0, 8.0)]);
        assert_eq!(bounds(&one), [Thresholds::NEVER; 3]);
    }

    #[test]
    fn what_lacks_a_size_is_not_trusted() {
        let mut one = measured(31.0, [(0.0, 9.0), (100.0, 8.0), (100.0, 8.0)]);
        one.timings.pop();
        let Thresholds { direct_max, nt_from, pull_from, .. } =
            Thresholds::unmeasured(Distance::Near);
        assert_eq!(bounds(&one), [direct_max, nt_from, pull_from]);
    }

    #[test]
    fn packets_are_as_long_as_they_win() {
        let mut near = none(31.0);
        for (payload, inline, push) in
            [(32, 60.0, 50.0), (88, 70.0, 80.0), (144, 95.0, 90.0), (200, 80.0, 90.0)]
        {
            near.timings.push(Timing { way: Way::Inline, bytes: payload, ns: inline });
            near.timings.push(Timing { way: Way::Push, bytes: payload, ns: push });
        }
        let chosen = choose(&near);
        assert_eq!((chosen.inline_max, chosen.direct_from), (88, 89));
    }

    #[test]
    fn slots_are_used_while_they_win_and_within_bounds() {
        let mut near = none(31.0);
        for (bytes, bounce, pull) in
            [(4 << 10, 5.0, 4.0), (8 << 10, 5.0, 6.0), (64 << 10, 5.0, 9.0)]
        {
            near.timings.push(Timing { way: Way::Bounce, bytes, ns: bounce });
            near.timings.push(Timing { way: Way::Pull, bytes, ns: pull });
        }
        assert_eq!(choose(&near).eager_max, EAGER_MAX);
        near.timings.truncate(2);
        assert_eq!(choose(&near).eager_max, EAGER_MIN);
    }
}
