//! What arrays whose pages move are to reach on one node, and whether they do.

use crate::bench::bar::{self, Bar, Met};
use crate::bench::row::Row;

/// Two lines a size of page; nothing where no rows have one.
pub fn bars(rows: &[Row]) -> String {
    let lines = rows.iter().filter(|row| row.name == "get_cached").flat_map(|cached| {
        let beside = |name| rows.iter().find(|row| row.name == name && row.params == cached.params);
        let over = beside("raw_read").map(|raw| over(cached, raw));
        over.into_iter().chain(beside("get_uncached").map(|uncached| of(uncached, cached)))
    });
    bar::table(lines.collect())
}

/// What a cached get takes more than a raw read.
fn over(cached: &Row, raw: &Row) -> Bar {
    if cached.word("network").is_some_and(|network| network != "shm") {
        return Bar {
            what: format!("get_cached of raw_read, {} B", bytes(cached)),
            limit: format!("<= {OVER_FAR}"),
            median: format!("{:.3}", cached.summary.median / raw.summary.median),
            min: format!("{:.3}", cached.summary.min / raw.summary.min),
            trip: cached.trip_ns(),
            met: Met::of(
                cached.summary.median <= OVER_FAR * raw.summary.median,
                cached.summary.min <= OVER_FAR * raw.summary.min,
            ),
        };
    }
    let median = cached.summary.median - raw.summary.median;
    let min = cached.summary.min - raw.summary.min;
    Bar {
        what: format!("get_cached over raw_read, {} B", bytes(cached)),
        limit: format!("<= {OVER_NS} ns"),
        median: format!("{median:+.1} ns"),
        min: format!("{min:+.1} ns"),
        trip: cached.trip_ns(),
        met: Met::of(median <= OVER_NS, min <= OVER_NS),
    }
}

/// What the cache is good for.
fn of(uncached: &Row, cached: &Row) -> Bar {
    let median = uncached.summary.median / cached.summary.median;
    let min = uncached.summary.min / cached.summary.min;
    Bar {
        what: format!("get_uncached of get_cached, {} B", bytes(cached)),
        limit: format!(">= {TIMES}"),
        median: format!("{median:.2}"),
        min: format!("{min:.2}"),
        trip: cached.trip_ns(),
        met: Met::of(median >= TIMES, min >= TIMES),
    }
}

fn bytes(row: &Row) -> u64 {
    row.number("page_bytes").unwrap_or_default()
}

const OVER_NS: f64 = 10.0;
const OVER_FAR: f64 = 1.05;
const TIMES: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    fn of_page(name: &str, bytes: u64, median: f64) -> Row {
        Row { params: format!("page_bytes={bytes}"), ..row("tsumugi", name, median) }
    }

    #[test]
    fn a_get_is_beside_the_read_of_its_size() {
        let rows = [
            of_page("raw_read", 8, 18.0),
            of_page("get_cached", 8, 27.0),
            of_page("get_uncached", 8, 81.0),
            of_page("raw_read", 64, 20.0),
            of_page("get_cached", 64, 50.0),
        ];
        let shown = bars(&rows);
        let line = |what: &str| shown.lines().find(|line| line.contains(what)).unwrap();
        assert!(line("over raw_read, 8 B").contains("+9.0 ns"), "{shown}");
        assert!(line("over raw_read, 8 B").ends_with("yes"), "{shown}");
        assert!(line("of get_cached, 8 B").contains("3.00"), "{shown}");
        assert!(line("over raw_read, 64 B").ends_with("no"), "{shown}");
        assert!(!shown.contains("of get_cached, 64 B"), "{shown}");
    }

    #[test]
    fn without_rows_there_are_no_bars() {
        assert_eq!(bars(&[of_page("own", 8, 3.0)]), "");
    }
}
