//! The bars of ULTs. A bar against a peer exists only if the peer was in the run.

use crate::bench::bar::{self, Bar, Met};
use crate::bench::row::Row as Line;

/// A line for each bar; empty if no row has one.
pub fn bars(lines: &[Line]) -> String {
    bar::table(BARS.iter().filter_map(|goal| goal.of(lines)).collect())
}

struct Goal {
    what: &'static str,
    row: &'static str,
    workers: u64,
    limit: GoalLimit,
}

enum GoalLimit {
    /// At most this value, in the row's unit.
    Most(f64),
    /// At most this many times the given row of the given system.
    Times(f64, &'static str, &'static str),
    /// At most this many times the trip that was measured by the same turns, plus
    /// one trip for the answer.
    Trips(f64),
    /// At least this many times the rate with one worker.
    Rate(f64),
}

impl Goal {
    fn of(&self, lines: &[Line]) -> Option<Bar> {
        let ours = find(lines, "tsumugi", self.row, self.workers)?;
        let values = [ours.summary.median, ours.summary.min];
        let over = |other: &Line| [values[0] / other.summary.median, values[1] / other.summary.min];
        let times = |[median, min]: [f64; 2]| [format!("{median:.2} x"), format!("{min:.2} x")];
        let (limit, [median, min], met) = match self.limit {
            GoalLimit::Most(most) => {
                let shown = values.map(|value| format!("{value:.1} {}", ours.unit));
                (format!("<= {most} {}", ours.unit), shown, values.map(|value| value <= most))
            }
            GoalLimit::Times(most, system, row) => {
                let ratios = over(other(lines, ours, system, row)?);
                (format!("<= {most} x"), times(ratios), ratios.map(|ratio| ratio <= most))
            }
            GoalLimit::Trips(most) => {
                let trips = over(other(lines, ours, "bare", "line_trip")?).map(|all| all - 1.0);
                (format!("<= {most} trips"), times(trips), trips.map(|trips| trips <= most))
            }
            GoalLimit::Rate(least) => {
                let alone = find(lines, "tsumugi", self.row, 1)?;
                let rates = over(alone).map(f64::recip);
                (format!(">= {least} x"), times(rates), rates.map(|rate| rate >= least))
            }
        };
        Some(Bar {
            what: self.what.to_owned(),
            limit,
            median,
            min,
            trip: (self.workers > 1).then(|| ours.trip_ns()).flatten(),
            met: Met::of(met[0], met[1]),
        })
    }
}

/// The reference that took turns with our row: a row of the same name of the machine
/// itself may have been measured more than once.
fn other<'a>(lines: &'a [Line], ours: &Line, system: &str, row: &str) -> Option<&'a Line> {
    let is_of_ours = |line: &&Line| {
        (line.line_ns_before, line.line_ns_after) == (ours.line_ns_before, ours.line_ns_after)
    };
    let mut found = lines.iter().filter(|line| line.system == system && line.name == row);
    found.clone().find(is_of_ours).or_else(|| found.next())
}

fn find<'a>(lines: &'a [Line], system: &str, row: &str, workers: u64) -> Option<&'a Line> {
    lines.iter().find(|line| {
        (line.system.as_str(), line.name.as_str()) == (system, row)
            && line.number("workers") == Some(workers)
    })
}

const fn goal(what: &'static str, row: &'static str, workers: u64, limit: GoalLimit) -> Goal {
    Goal { what, row, workers, limit }
}

const BARS: &[Goal] = &[
    goal("yield, 2 ULTs, of a switch", "yield2", 1, GoalLimit::Times(4.0, "bare", "raw_switch")),
    goal(
        "yield, 1000 ULTs, of a switch",
        "yield1000",
        1,
        GoalLimit::Times(5.5, "bare", "raw_switch"),
    ),
    goal(
        "create and join, of cmpth",
        "create_join",
        1,
        GoalLimit::Times(0.95, "cmpth", "create_join"),
    ),
    goal(
        "create and join inline, of rayon",
        "create_join_inline",
        1,
        GoalLimit::Times(0.7, "rayon", "create_join_inline"),
    ),
    goal("fib, of rayon", "fib", 1, GoalLimit::Times(1.3, "rayon", "fib")),
    goal(
        "fib not inlined, of cmpth",
        "fib_no_inline",
        1,
        GoalLimit::Times(0.9, "cmpth", "fib_no_inline"),
    ),
    goal("fib, rate of 2 workers, of 1", "fib", 2, GoalLimit::Rate(1.8)),
    goal(
        "park and unpark, of a switch",
        "park_same",
        1,
        GoalLimit::Times(5.0, "bare", "raw_switch"),
    ),
    goal("wake of a spinning worker", "wake_spinning", 2, GoalLimit::Trips(2.5)),
    goal(
        "wake of a sleeping worker, of a futex",
        "wake_sleeping",
        1,
        GoalLimit::Times(1.2, "bare", "futex_wake"),
    ),
    goal("mutex, uncontended", "mutex", 1, GoalLimit::Most(5.0)),
    goal("condvar hand-over", "condvar", 1, GoalLimit::Most(25.0)),
    goal("memory of a sleeping ULT", "bytes_per_ult", 1, GoalLimit::Most(4300.0)),
    goal("creating a sleeping ULT", "create_asleep", 1, GoalLimit::Most(4000.0)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;

    fn line(system: &str, name: &str, workers: u32, median: f64) -> Line {
        Line { params: format!("workers={workers}"), ..row(system, name, median) }
    }

    fn shown(lines: &[Line], what: &str) -> String {
        let shown = bars(lines);
        let found = shown.lines().find(|line| line.contains(what));
        found.unwrap_or_else(|| panic!("{what}: {shown}")).to_owned()
    }

    #[test]
    fn a_bar_compares_rows_of_the_same_turns() {
        let far = |line: Line| Line { line_ns_before: Some(165.0), ..line };
        let lines = [
            far(line("bare", "raw_switch", 1, 9.0)),
            line("bare", "raw_switch", 1, 2.0),
            line("tsumugi", "yield2", 1, 7.0),
        ];
        let bar = shown(&lines, "yield, 2 ULTs");
        assert!(bar.contains("3.50 x") && bar.ends_with("yes"), "{bar}");
    }

    #[test]
    fn a_bar_against_a_peer_needs_the_peer() {
        let ours = line("tsumugi", "create_join", 1, 20.0);
        assert_eq!(bars(std::slice::from_ref(&ours)), "");
        let bar = shown(&[ours, line("cmpth", "create_join", 1, 10.0)], "of cmpth");
        assert!(bar.contains("2.00 x") && bar.ends_with("no"), "{bar}");
    }

    #[test]
    fn the_trip_of_the_answer_is_subtracted() {
        let lines =
            [line("bare", "line_trip", 2, 40.0), line("tsumugi", "wake_spinning", 2, 140.0)];
        let bar = shown(&lines, "spinning");
        assert!(bar.contains("2.50 x") && bar.ends_with("yes"), "{bar}");
    }

    #[test]
    fn two_workers_are_compared_with_one() {
        let lines = [line("tsumugi", "fib", 1, 18.0), line("tsumugi", "fib", 2, 12.0)];
        let bar = shown(&lines, "rate of 2");
        assert!(bar.contains("1.50 x") && bar.ends_with("no"), "{bar}");
    }
}
