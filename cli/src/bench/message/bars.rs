//! The bars of messages.

use super::case::{OURS, TWO_COPY};
use super::{crowd, halo, together};
use crate::bench::row::Row;
use crate::core_distance::CoreDistance;
use crate::text;

/// A line for each bar; empty if no row has one.
pub fn bars(rows: &[Row]) -> String {
    let mut bars = Vec::new();
    for state in CoreDistance::ALL {
        for name in ["latency_pre", "latency"] {
            bars.extend(smallest(rows, name, state));
            for span in SPANS.iter().filter(|span| span.state.is_none_or(|only| only == state)) {
                bars.extend(span.bar(rows, name, state));
            }
        }
        for name in ["put", "get"] {
            bars.extend(ONE_SIDED.bar(rows, name, state));
        }
        bars.extend(rate(rows, state));
    }
    // The cycle against each peer, and against the computation alone, which all
    // systems must do anyway.
    for (peer, limit) in [("openmpi", 1.10), ("mpich", 3.0), (halo::COMPUTING, 0.95)] {
        bars.extend(cycle(rows, OURS, peer, limit));
    }
    bars.extend(cycle(rows, halo::COMPUTING, "openmpi", 1.10));
    bars.extend(crowd(rows));
    bars.extend(collective(rows));
    if bars.is_empty() {
        return String::new();
    }
    let header = ["target", "limit", "median", "min", "met"];
    let table = text::table(&header, bars.into_iter().map(Bar::line));
    format!("\n{table}  met: by the medians; min: only by the fastest batches\n")
}

/// One bar with its measurement.
struct Bar {
    what: String,
    limit: String,
    median: String,
    min: String,
    met: [bool; 2],
}

impl Bar {
    fn line(self) -> Vec<String> {
        let met = match self.met {
            [true, _] => "yes",
            [false, true] => "min",
            [false, false] => "no",
        };
        vec![self.what, self.limit, self.median, self.min, met.to_owned()]
    }
}

/// A range of sizes at which our messages must be ahead, and the systems that they
/// must beat.
struct Span {
    bytes: [u64; 2],
    /// The least ratio of the other's time to ours.
    ahead: f64,
    of: &'static [&'static str],
    state: Option<CoreDistance>,
}

const PEERS: &[&str] = &["ucx", "openmpi", "mpich"];
const SPANS: &[Span] = &[
    Span { bytes: [8, 8], ahead: 1.0, of: PEERS, state: None },
    Span { bytes: [128, 4 << 10], ahead: 1.0, of: PEERS, state: None },
    Span { bytes: [128, 4 << 10], ahead: 1.0, of: &[TWO_COPY], state: None },
    Span { bytes: [8 << 10, 128 << 10], ahead: 1.0, of: &["openmpi", "mpich"], state: None },
    Span {
        bytes: [8 << 10, 128 << 10],
        ahead: 1.0 / 1.1,
        of: &["ucx"],
        state: Some(CoreDistance::Near),
    },
    Span { bytes: [8 << 10, 128 << 10], ahead: 3.0, of: PEERS, state: Some(CoreDistance::Far) },
    // The limit of what two cores can do.
    Span {
        bytes: [8 << 10, 128 << 10],
        ahead: 0.9,
        of: &[together::NAME],
        state: Some(CoreDistance::Far),
    },
    Span { bytes: [2 << 20, 2 << 20], ahead: 1.8, of: PEERS, state: None },
];

/// The bar for figures 4 and 5.
const ONE_SIDED: Span = Span { bytes: [1, 64 << 10], ahead: 1.0, of: PEERS, state: None };

impl Span {
    /// The bar at the size and against the peer where our ratio is worst.
    fn bar(&self, rows: &[Row], name: &str, state: CoreDistance) -> Option<Bar> {
        let state_word = state.to_string();
        let of = |row: &&Row| {
            row.name == name
                && row.word("state") == Some(&state_word)
                && row.number("bytes").is_some_and(|n| (self.bytes[0]..=self.bytes[1]).contains(&n))
        };
        let rows: Vec<&Row> = rows.iter().filter(of).collect();
        let mut worst: [Option<(f64, String)>; 2] = [None, None];
        for ours in rows.iter().filter(|row| row.system == OURS) {
            let same = |row: &&&Row| row.number("bytes") == ours.number("bytes");
            for peer in rows.iter().filter(same).filter(|row| self.of.contains(&&*row.system)) {
                let ratios = [
                    peer.summary.median / ours.summary.median,
                    peer.summary.min / ours.summary.min,
                ];
                let bytes = text::bytes(ours.number("bytes").unwrap_or_default());
                for (ratio, worst) in ratios.into_iter().zip(&mut worst) {
                    if worst.as_ref().is_none_or(|(least, _)| ratio < *least) {
                        *worst = Some((ratio, format!("{ratio:.2} ({}, {bytes})", peer.system)));
                    }
                }
            }
        }
        let [Some(median), Some(min)] = worst else { return None };
        let [from, to] = self.bytes.map(text::bytes);
        let sizes = if from == to { from } else { format!("{from} to {to}") };
        Some(Bar {
            what: format!("{name}, {state}, {sizes}, speedup"),
            limit: format!(">= {:.2} over {}", self.ahead, self.of.join(", ")),
            met: [median.0 >= self.ahead, min.0 >= self.ahead],
            median: median.1,
            min: min.1,
        })
    }
}

/// The bar of the smallest message, in trips of a cache line.
fn smallest(rows: &[Row], name: &str, state: CoreDistance) -> Option<Bar> {
    let row = ours(rows, name, state).find(|row| row.number("bytes") == Some(8))?;
    let more_ns = if state == CoreDistance::Near { 66.0 } else { 120.0 };
    let limit = row.line_ns_before?.min(row.line_ns_after?) + more_ns;
    let (median, min) = (row.summary.median, row.summary.min);
    Some(Bar {
        what: format!("{name}, {state}, 8 B"),
        limit: format!("<= a trip + {more_ns} = {limit:.0} ns"),
        median: format!("{median:.1} ns"),
        min: format!("{min:.1} ns"),
        met: [median <= limit, min <= limit],
    })
}

/// The bars of the rate of small messages.
fn rate(rows: &[Row], state: CoreDistance) -> Vec<Bar> {
    let Some(row) = ours(rows, "rate8", state).next() else { return Vec::new() };
    let shown = |ns: f64| format!("{:.1} M/s", 1e3 / ns);
    let (median, min) = (row.summary.median, row.summary.min);
    let mut bars = Vec::new();
    if state == CoreDistance::Near {
        bars.push(Bar {
            what: format!("rate8, {state}"),
            limit: format!(">= {}", shown(RATE_NS)),
            median: shown(median),
            min: shown(min),
            met: [median <= RATE_NS, min <= RATE_NS],
        });
    }
    let same = |other: &&Row| other.name == "rate8" && other.word("state") == row.word("state");
    for peer in rows.iter().filter(same).filter(|row| PEERS.contains(&&*row.system)) {
        let ahead = [peer.summary.median / median, peer.summary.min / min];
        bars.push(times(format!("rate8, {state}, speedup over {}", peer.system), 1.0, ahead));
    }
    bars
}

/// The bar of the cycle, computation included, against one peer.
fn cycle(rows: &[Row], of: &str, peer: &str, limit: f64) -> Option<Bar> {
    let row = |system: &str| {
        rows.iter().find(|row| {
            row.name == "halo10" && row.system == system && row.number("compute_us") != Some(0)
        })
    };
    let (ours, theirs) = (row(of)?, row(peer)?);
    let ahead =
        [theirs.summary.median / ours.summary.median, theirs.summary.min / ours.summary.min];
    let whose = if of == OURS { "" } else { "computation alone, " };
    Some(times(format!("halo10, {whose}speedup over {peer}"), limit, ahead))
}

/// The bars that a rank among 64 on the same cores goes on as fast as a rank among
/// 8.
fn crowd(rows: &[Row]) -> Vec<Bar> {
    let of = |system: &str, ranks: u32| {
        rows.iter().find(|row| {
            row.name == crowd::ROW
                && row.system == system
                && row.number("ranks") == Some(ranks.into())
        })
    };
    let mut bars = Vec::new();
    for ranks in crowd::RANKS {
        let Some(ours) = of(OURS, ranks) else { continue };
        for (peer, theirs) in PEERS.iter().filter_map(|peer| Some((peer, of(peer, ranks)?))) {
            let ahead = [
                theirs.summary.median / ours.summary.median,
                theirs.summary.min / ours.summary.min,
            ];
            bars.push(times(format!("crowd of {ranks}, speedup over {peer}"), 1.0, ahead));
        }
        let Some(few) = of(OURS, crowd::RANKS[0]).filter(|_| ranks > crowd::RANKS[0]) else {
            continue;
        };
        let more = f64::from(ranks) / f64::from(crowd::RANKS[0]);
        let pace = [
            few.summary.median * more / ours.summary.median,
            few.summary.min * more / ours.summary.min,
        ];
        bars.push(times(
            format!("crowd of {ranks}, speed of a rank, of that in a crowd of 8"),
            PACE,
            pace,
        ));
    }
    bars
}

/// The bars of the shortest values: with two ranks against the best peer and one trip more,
/// with eight against Open MPI, which yields.
fn collective(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for ours in rows.iter().filter(|row| row.system == OURS && SHORT.contains(&&*row.name)) {
        let is_peer =
            |row: &&Row| row.name == ours.name && row.params == ours.params && row.system != OURS;
        let peers = rows.iter().filter(is_peer);
        match ours.number("ranks") {
            _ if ours.number("bytes").is_some_and(|bytes| bytes > 8) => {}
            Some(2) => {
                let best = peers.min_by(|a, b| a.summary.median.total_cmp(&b.summary.median));
                let (Some(best), Some(trip)) = (best, ours.trip_ns()) else { continue };
                let limit = best.summary.median + trip;
                let [median, min] = [ours.summary.median, ours.summary.min];
                bars.push(Bar {
                    what: format!("{}, {}", ours.name, ours.params),
                    limit: format!("<= {} + a trip = {limit:.0} ns", best.system),
                    median: format!("{median:.0} ns"),
                    min: format!("{min:.0} ns"),
                    met: [median <= limit, min <= limit],
                });
            }
            Some(8) => bars.extend(peers.filter(|row| row.system == "openmpi").map(|row| {
                let ahead =
                    [row.summary.median / ours.summary.median, row.summary.min / ours.summary.min];
                times(format!("{} of 8 ranks, speedup over openmpi", ours.name), 1.0 / 0.7, ahead)
            })),
            _ => {}
        }
    }
    bars
}

fn times(what: String, limit: f64, [median, min]: [f64; 2]) -> Bar {
    Bar {
        what,
        limit: format!(">= {limit:.2}"),
        median: format!("{median:.2}"),
        min: format!("{min:.2}"),
        met: [median >= limit, min >= limit],
    }
}

fn ours<'a>(rows: &'a [Row], name: &'a str, state: CoreDistance) -> impl Iterator<Item = &'a Row> {
    let word = state.to_string();
    rows.iter().filter(move |row| {
        row.system == OURS && row.name == name && row.word("state") == Some(&word)
    })
}

/// The least pace of a rank among many, relative to a rank among few.
const PACE: f64 = 0.8;
/// The time per message at 20 million messages a second.
const RATE_NS: f64 = 50.0;

/// The collectives with a bar.
const SHORT: [&str; 2] = ["barrier", "allreduce"];

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    fn line<'a>(shown: &'a str, what: &str) -> &'a str {
        shown.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {shown}"))
    }

    fn latency(system: &str, bytes: u64, median: f64) -> Row {
        let params = format!("bytes={bytes} state=near");
        Row { params, ..row(system, "latency_pre", median) }
    }

    #[test]
    fn the_smallest_message_is_measured_in_trips() {
        let shown = bars(&[latency(OURS, 8, 97.0), latency("ucx", 8, 98.0)]);
        // The shorter of the row's two trips is 31 ns.
        assert!(line(&shown, "8 B  ").contains("<= a trip + 66 = 97 ns"), "{shown}");
        assert!(line(&shown, "8 B, speedup").ends_with("yes"), "{shown}");
    }

    #[test]
    fn the_worst_size_decides() {
        let rows = [
            latency(OURS, 128, 100.0),
            latency(OURS, 4096, 500.0),
            latency("ucx", 128, 200.0),
            latency("ucx", 4096, 450.0),
        ];
        let shown = bars(&rows);
        let bar = line(&shown, "128 B to 4.00 KiB");
        assert!(bar.contains("0.90 (ucx, 4.00 KiB)") && bar.ends_with("no"), "{shown}");
    }

    #[test]
    fn rates_and_halos_are_compared_with_those_of_peers() {
        let rate = |system, ns| Row {
            params: "bytes=8 window=64 state=near".to_owned(),
            ..row(system, "rate8", ns)
        };
        let halo = |system, ns| Row {
            params: "mesh=10 compute_us=470".to_owned(),
            ..row(system, "halo10", ns)
        };
        let rows =
            [rate(OURS, 40.0), rate("openmpi", 60.0), halo(OURS, 2.0e6), halo("openmpi", 2.1e6)];
        let shown = bars(&rows);
        assert!(line(&shown, "rate8, near  ").contains("25.0 M/s"), "{shown}");
        assert!(line(&shown, "speedup over openmpi").ends_with("yes"), "{shown}");
        assert!(line(&shown, "halo10, speedup over openmpi").ends_with("no"), "{shown}");
    }
}
