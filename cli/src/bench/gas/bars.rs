//! The bars of arrays with pages that move.

use crate::bench::bar::{self, Bar, Met};
use crate::bench::row::Row;

/// Two lines for each page size, and two more if there is a network; empty if no
/// rows have a bar.
pub fn bars(rows: &[Row]) -> String {
    let lines = rows.iter().filter(|row| row.name == "get_cached").flat_map(|cached| {
        let beside =
            |name: &str| rows.iter().find(|row| row.name == name && row.params == cached.params);
        let counted = |name: &str| Some(beside(name)?.summary.median);
        let wire = counted("wire_raw_read").zip(counted("wire_get_cached"));
        let of_cached = wire.map(|(raw, found)| {
            let is_met = found == raw && raw <= bytes(cached).div_ceil(PIECE) as f64;
            trips("cached", cached, &format!("{raw}, as raw"), found, is_met)
        });
        let of_uncached = |kind: &str| {
            let wire = counted(&format!("wire_get_{kind}")).zip(counted("wire_raw_read"));
            wire.map(|(found, raw)| {
                let most = raw + MORE_TRIPS;
                trips(kind, cached, &format!("<= {most}"), found, found <= most)
            })
        };
        let of = |kind: &str| {
            let uncached = beside(&format!("get_{kind}"))?;
            let counted = counted(&format!("wire_get_{kind}")).zip(counted("wire_get_cached"));
            let more = counted.map_or(MORE_TRIPS, |(found, cached)| found - cached);
            Some(of(uncached, cached, more, bytes_take(rows, cached)))
        };
        let over = beside("raw_read").map(|raw| over(cached, raw));
        let (known, asked) = ([over, of_cached], ["uncached", "uncached_device"]);
        let asked = asked.map(|kind| [of(kind), of_uncached(kind)]);
        known.into_iter().chain(asked.into_iter().flatten()).flatten()
    });
    bar::table(lines.collect())
}

/// The bar of the number of operations on the network.
fn trips(kind: &str, row: &Row, limit: &str, found: f64, is_met: bool) -> Bar {
    Bar {
        what: format!("trips of get_{kind}, {} B", bytes(row)),
        limit: limit.to_owned(),
        median: format!("{found}"),
        min: format!("{found}"),
        trip: None,
        met: Met::of(is_met, is_met),
    }
}

/// The bar of the extra time of a cached get over a raw read.
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

/// The bar of the benefit of the location cache. An uncached get makes `more` extra
/// trips, each as long as a cached get without its bytes; the bytes take the part
/// `share` of a cached get.
fn of(uncached: &Row, cached: &Row, more: f64, share: f64) -> Bar {
    let median = uncached.summary.median / cached.summary.median;
    let min = uncached.summary.min / cached.summary.min;
    let (mut limit, mut met) = (format!(">= {TIMES}"), Met::of(median >= TIMES, min >= TIMES));
    if met != Met::Yes && share >= SHARE && 1.0 + more * (1.0 - share) < TIMES {
        limit += &format!(", bytes take {:.0} %", share * 100.0);
        met = Met::Bytes;
    }
    Bar {
        what: format!("{} of get_cached, {} B", uncached.name, bytes(cached)),
        limit,
        median: format!("{median:.2}"),
        min: format!("{min:.2}"),
        trip: cached.trip_ns(),
        met,
    }
}

/// The part of a cached get's time that the page's bytes take: its extra time over
/// that of the smallest page.
pub fn bytes_take(rows: &[Row], cached: &Row) -> f64 {
    let all = rows.iter().filter(|row| row.name == cached.name);
    let smallest = all.min_by_key(|row| bytes(row)).unwrap_or(cached);
    (1.0 - smallest.summary.median / cached.summary.median).max(0.0)
}

fn bytes(row: &Row) -> u64 {
    row.number("page_bytes").unwrap_or_default()
}

const OVER_NS: f64 = 10.0;
const OVER_FAR: f64 = 1.05;
const TIMES: f64 = 2.0;
/// If bytes take a smaller share of the time, they are no excuse for a missed bar.
const SHARE: f64 = 0.1;
/// Extra trips for a page that is not in the cache: two accesses to words of its
/// home.
const MORE_TRIPS: f64 = 2.0;
/// The least size that a network transfers at once.
const PIECE: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    fn of_page(name: &str, bytes: u64, median: f64) -> Row {
        Row { params: format!("page_bytes={bytes}"), ..row("tsumugi", name, median) }
    }

    #[test]
    fn a_get_is_compared_with_the_raw_read_of_its_size() {
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
    fn a_bar_says_where_bytes_take_the_time() {
        let rows = [
            of_page("get_cached", 8, 20.0),
            of_page("get_uncached", 8, 30.0),
            // The bytes of a small page take too little time to matter.
            of_page("get_cached", 64, 21.0),
            of_page("get_uncached", 64, 40.0),
            of_page("wire_get_cached", 64, 1.0),
            of_page("wire_get_uncached", 64, 2.0),
            // The request is one trip, and would make the time 1.8 times as long.
            of_page("get_cached", 4096, 25.0),
            of_page("get_uncached", 4096, 44.0),
            of_page("wire_get_cached", 4096, 1.0),
            of_page("wire_get_uncached", 4096, 2.0),
            of_page("get_cached", 1 << 20, 400.0),
            of_page("get_uncached", 1 << 20, 440.0),
            of_page("get_uncached_device", 1 << 20, 420.0),
        ];
        let shown = bars(&rows);
        let line = |what: &str| shown.lines().find(|line| line.contains(what)).unwrap();
        for page in [8, 64] {
            let line = line(&format!("get_uncached of get_cached, {page} B"));
            assert!(line.ends_with("no"), "{shown}");
        }
        let short = line("get_uncached of get_cached, 4096 B");
        assert!(short.contains(">= 2, bytes take 20 %") && short.ends_with("bytes"), "{shown}");
        for name in ["get_uncached", "get_uncached_device"] {
            let line = line(&format!("{name} of get_cached, 1048576 B"));
            assert!(line.contains(">= 2, bytes take 95 %") && line.ends_with("bytes"), "{shown}");
        }
        assert!(shown.contains("bytes: not met and not reachable"), "{shown}");
        assert!(!bars(&rows[..2]).contains("not reachable"));
    }

    #[test]
    fn bars_compare_the_trips_of_gets_with_those_of_raw_reads() {
        let counts = |bytes: u64, [raw, cached, uncached]: [f64; 3]| {
            let of = |name, trips| of_page(name, bytes, trips);
            let (raw, cached) = (of("wire_raw_read", raw), of("wire_get_cached", cached));
            [raw, cached, of("wire_get_uncached", uncached), of("get_cached", 20.0)]
        };
        let rows = [
            counts(8, [1.0, 1.0, 3.0]),
            counts(64, [1.0, 2.0, 3.5]),
            counts(4096, [2.0, 2.0, 4.0]),
            counts(1 << 20, [16.0, 16.0, 18.0]),
        ];
        let shown = bars(&rows.into_iter().flatten().collect::<Vec<_>>());
        let met = |what: &str| {
            let line = shown.lines().find(|line| line.contains(what)).unwrap();
            line.ends_with("yes")
        };
        assert!(met("get_cached, 8 B") && met("get_uncached, 8 B"), "{shown}");
        assert!(!met("get_cached, 64 B") && !met("get_uncached, 64 B"), "{shown}");
        assert!(!met("get_cached, 4096 B") && met("get_cached, 1048576 B"), "{shown}");
    }

    #[test]
    fn without_rows_there_are_no_bars() {
        assert_eq!(bars(&[of_page("own", 8, 3.0)]), "");
    }
}
