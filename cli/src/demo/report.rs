//! The demo's results and costs, as text for people and as JSON.

use super::histogram::Histogram;
use crate::summary::Summary;
use crate::text;
use serde::Serialize;
use std::fmt::Write;

/// The demo's results and costs.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The graph that was searched, for people.
    pub graph: String,
    /// The graph's vertices.
    pub vertices: u64,
    /// The graph's undirected edges.
    pub edges: u64,
    /// The first vertex of the search.
    pub from: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// User-level threads of each rank.
    pub ults: u32,
    /// Worker threads of each rank.
    pub workers: u32,
    /// The number of vertices at each distance.
    pub levels: Vec<u64>,
    /// Undirected edges between vertices that were reached.
    pub edges_searched: u64,
    /// The time until all threads had started and met.
    pub start_ns: u64,
    /// The time of the search from then on.
    pub ns: u64,
    /// The time of the serial search.
    pub serial_ns: u64,
    /// The one-sided operations.
    pub operations: Operations,
    /// The waits of threads and workers.
    pub waits: Waits,
    /// Nanoseconds of a blocking get of one word, in batches of 64.
    pub get_ns: Option<Summary>,
    /// The times that threads slept at the level barrier.
    pub slept_at_level_barrier: Histogram,
    /// The first vertex on which the two searches differ.
    pub disagreement: Option<Disagreement>,
}

/// One-sided operations of all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Words and slices that were read.
    pub gets: u64,
    /// Words and slices that were written.
    pub puts: u64,
    /// Compare-swaps and fetch-adds.
    pub atomics: u64,
    /// The number of these operations that went to another rank.
    pub remote: u64,
    /// Bytes that were moved.
    pub bytes: u64,
}

/// The number of waits during the search, on all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// Submits that were refused for the moment (`Busy`).
    pub busy: u64,
    /// Times that a thread yielded.
    pub yields: u64,
    /// Times that a thread slept until it was woken.
    pub parks: u64,
    /// Threads that a worker stole from another worker of its rank.
    pub steals: u64,
    /// Times that a worker found nothing to run and slept in the system.
    pub sleeps: u64,
}

/// A vertex on which the searches differ; a level is absent if the search did not
/// reach the vertex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// The vertex's name.
    pub vertex: String,
    /// The vertex's level by the serial search.
    pub serial: Option<u32>,
    /// The vertex's level by the ranks.
    pub found: Option<u32>,
}

impl Report {
    /// The number of vertices that were reached.
    pub fn reached(&self) -> u64 {
        self.levels.iter().sum()
    }

    /// The report as tables.
    pub fn text(&self) -> String {
        let levels = self.levels.iter().enumerate();
        let levels = levels.map(|(level, n)| vec![level.to_string(), text::count(*n)]);
        [
            self.title(),
            text::table(&["level", "vertices"], levels),
            "\n".to_owned(),
            text::facts(&self.facts()),
            "\n".to_owned(),
            self.slept_text(),
            self.verdict(),
        ]
        .concat()
    }

    fn title(&self) -> String {
        format!(
            "{}: {} vertices, {} edges, searched from {}\n{} x {} user-level threads on {}\n\n",
            self.graph,
            text::count(self.vertices),
            text::count(self.edges),
            self.from,
            plural(self.ranks, "rank"),
            text::count(self.ults.into()),
            plural(self.workers, "worker each"),
        )
    }

    fn facts(&self) -> [(&'static str, String); 16] {
        let Operations { gets, puts, atomics, remote, bytes } = self.operations;
        let all = gets + puts + atomics;
        let share = remote as f64 / all.max(1) as f64 * 100.0;
        let per_second = self.edges_searched as f64 / (self.ns.max(1) as f64 / 1e9);
        let reached = [self.reached(), self.vertices].map(text::count);
        let get = match self.get_ns {
            Some(get) => [get.min, get.median, get.p99].map(text::time).join(" / "),
            None => "not measured".to_owned(),
        };
        [
            ("reached", format!("{} of {}", reached[0], reached[1])),
            ("time to start the threads", text::time(self.start_ns as f64)),
            ("time of the search", text::time(self.ns as f64)),
            ("time of a serial search", text::time(self.serial_ns as f64)),
            ("edges per second", text::rate(per_second)),
            ("gets", text::count(gets)),
            ("puts", text::count(puts)),
            ("atomics", text::count(atomics)),
            ("operations on other ranks", format!("{} ({share:.0}%)", text::count(remote))),
            ("bytes moved", text::bytes(bytes)),
            ("refused submits", text::count(self.waits.busy)),
            ("yields", text::count(self.waits.yields)),
            ("parks", text::count(self.waits.parks)),
            ("steals", text::count(self.waits.steals)),
            ("sleeps of workers", text::count(self.waits.sleeps)),
            ("blocking get in batches of 64, min / median / p99", get),
        ]
    }

    fn slept_text(&self) -> String {
        let total = self.slept_at_level_barrier.total();
        if total == 0 {
            return "No thread slept at the level barrier.\n\n".to_owned();
        }
        let most = self.slept_at_level_barrier.counts.iter().copied().max().unwrap_or(1);
        let mut shown = format!("Sleeps at the level barrier: {}\n", text::count(total));
        for (from_ns, count) in self.slept_at_level_barrier.used() {
            let bar = "#".repeat((count * BAR_CHARS).div_ceil(most) as usize);
            let from = text::time(from_ns as f64);
            let line = format!("  from {from:>8}  {:>10}  {bar}", text::count(count));
            writeln!(shown, "{}", line.trim_end()).expect("a string takes everything");
        }
        shown + "\n"
    }

    fn verdict(&self) -> String {
        match &self.disagreement {
            None => format!(
                "The answer agrees with a serial search: all {} levels are the same.\n",
                text::count(self.vertices)
            ),
            Some(Disagreement { vertex, serial, found }) => format!(
                "THE ANSWER IS WRONG: {vertex} is {} by a serial search, {} by the ranks.\n",
                level(*serial),
                level(*found)
            ),
        }
    }
}

fn level(level: Option<u32>) -> String {
    level.map_or_else(|| "not reached".to_owned(), |level| format!("at level {level}"))
}

fn plural(n: u32, what: &str) -> String {
    let (noun, rest) = what.split_once(' ').unwrap_or((what, ""));
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{s} {rest}").trim_end().to_owned()
}

const BAR_CHARS: u64 = 40;

#[cfg(test)]
mod tests {
    use super::super::histogram::BUCKETS;
    use super::*;

    fn report() -> Report {
        let mut counts = vec![0; BUCKETS];
        counts[12] = 80;
        counts[13] = 1;
        Report {
            graph: "packages".into(),
            vertices: 1_234,
            edges: 5_000,
            from: "libc6".into(),
            ranks: 4,
            ults: 2_048,
            workers: 1,
            levels: vec![1, 1_000, 200],
            edges_searched: 4_000,
            start_ns: 5_000_000,
            ns: 2_000_000,
            serial_ns: 1_500_000,
            operations: Operations { gets: 900, puts: 0, atomics: 100, remote: 750, bytes: 4096 },
            waits: Waits { busy: 0, yields: 7, parks: 81, steals: 5, sleeps: 9 },
            get_ns: Some(Summary { n: 10, min: 3.0, median: 3.5, low: 3.5, high: 3.5, p99: 12.25 }),
            slept_at_level_barrier: Histogram { counts },
            disagreement: None,
        }
    }

    #[track_caller]
    fn assert_line(text: &str, expected: &str) {
        let found = text
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == expected);
        assert!(found, "no line {expected:?} in\n{text}");
    }

    #[test]
    fn every_fact_has_its_line() {
        let text = report().text();
        for line in [
            "packages: 1,234 vertices, 5,000 edges, searched from libc6",
            "4 ranks x 2,048 user-level threads on 1 worker each",
            "level vertices",
            "1 1,000",
            "reached 1,201 of 1,234",
            "time to start the threads 5.00 ms",
            "time of the search 2.00 ms",
            "time of a serial search 1.50 ms",
            "edges per second 2.00 M",
            "gets 900",
            "operations on other ranks 750 (75%)",
            "bytes moved 4.00 KiB",
            "refused submits 0",
            "yields 7",
            "parks 81",
            "steals 5",
            "sleeps of workers 9",
            "blocking get in batches of 64, min / median / p99 3.00 ns / 3.50 ns / 12.2 ns",
            "Sleeps at the level barrier: 81",
            "from 8.19 us 1 #",
            "The answer agrees with a serial search: all 1,234 levels are the same.",
        ] {
            assert_line(&text, line);
        }
        let bar = "#".repeat(BAR_CHARS as usize);
        assert_line(&text, &format!("from 4.10 us 80 {bar}"));
    }

    #[test]
    fn the_text_is_plain() {
        let text = report().text();
        assert!(!text.contains('\u{1b}') && text.is_ascii());
        assert!(text.lines().all(|line| line.len() < 100 && line.trim_end() == line));
    }

    #[test]
    fn a_wrong_answer_is_reported_in_capitals() {
        let disagreement =
            Some(Disagreement { vertex: "bash".into(), serial: Some(2), found: None });
        let text = Report { disagreement, ..report() }.text();
        assert_line(
            &text,
            "THE ANSWER IS WRONG: bash is at level 2 by a serial search, not reached by the ranks.",
        );
        assert!(!text.contains("agrees"));
    }

    #[test]
    fn an_empty_run_divides_by_nothing() {
        let empty = Report {
            ns: 0,
            levels: vec![1],
            ranks: 1,
            operations: Operations::default(),
            get_ns: None,
            slept_at_level_barrier: Histogram { counts: vec![0; BUCKETS] },
            ..report()
        };
        let text = empty.text();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert_line(&text, "No thread slept at the level barrier.");
        assert_line(&text, "1 rank x 2,048 user-level threads on 1 worker each");
    }

    #[test]
    fn the_json_names_every_field() {
        let value = serde_json::to_value(report()).unwrap();
        assert_eq!(value["levels"][1], 1_000);
        assert_eq!(value["operations"]["remote"], 750);
        assert_eq!(value["get_ns"]["median"], 3.5);
        assert!(value["disagreement"].is_null());
    }
}
