//! All systems side by side: a line for each row, a column for each system.

use super::cell::SystemResult;
use crate::bench::row::Row as Line;
use crate::text;
use tsumugi_bench_ult::System;
use tsumugi_bench_ult::inbox::NO_SUCH_THING;
use tsumugi_bench_ult::turns::Missing;

/// Minimum and median; if a number is missing, the reason, and the number elsewhere.
pub fn grid(cells: &[SystemResult], systems: &[&'static System]) -> String {
    let mut rows: Vec<(&str, usize, usize)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.system.name != "bare") {
        for part in 0..parts(cells, cell.row) {
            if !rows.contains(&(cell.row, cell.workers, part)) {
                rows.push((cell.row, cell.workers, part));
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let columns: Vec<_> = systems.iter().filter(|system| system.name != "bare").collect();
    let names = columns.iter().map(|system| system.name);
    let header: Vec<&str> = ["min / median", "workers"].into_iter().chain(names).collect();
    let lines = rows.into_iter().map(|(row, workers, part)| {
        let name = |cell: &SystemResult| Some(cell.outcome.as_ref().ok()?.get(part)?.name.clone());
        let name = cells.iter().filter(|cell| cell.row == row).find_map(name);
        let cell = |system: &&&System| {
            let is = |cell: &&SystemResult| {
                (cell.row, cell.workers, cell.system.name) == (row, workers, system.name)
            };
            cells.iter().find(is).map_or_else(String::new, |cell| shown(cell, part))
        };
        let first = [name.unwrap_or_else(|| row.to_owned()), workers.to_string()];
        first.into_iter().chain(columns.iter().map(cell)).collect()
    });
    format!("\n{}{}", text::table(&header, lines), failures(cells))
}

/// The failures, a line each.
pub fn failures(cells: &[SystemResult]) -> String {
    let line = |cell: &SystemResult| {
        let missing = cell.outcome.as_ref().err()?;
        if *missing == Missing::Refused(NO_SUCH_THING.to_owned()) {
            return None;
        }
        let SystemResult { system, row, workers, .. } = cell;
        let elsewhere = system.elsewhere(row, *workers);
        let elsewhere = elsewhere.map_or_else(String::new, |min| format!("; elsewhere {min}"));
        Some(format!("  {row}, {workers} workers: {} {missing}{elsewhere}\n", system.name))
    };
    cells.iter().filter_map(line).collect()
}

fn parts(cells: &[SystemResult], row: &str) -> usize {
    let of = |cell: &SystemResult| cell.outcome.as_ref().map_or(1, Vec::len);
    cells.iter().filter(|cell| cell.row == row).map(of).max().unwrap_or(1)
}

fn shown(cell: &SystemResult, part: usize) -> String {
    match &cell.outcome {
        Ok(lines) => lines.get(part).map_or_else(String::new, numbers),
        Err(Missing::Refused(why)) if why == NO_SUCH_THING => "-".to_owned(),
        Err(missing) if part == 0 => {
            let word = match missing {
                Missing::Refused(_) => "not here",
                Missing::Hung(_) => "hung",
                Missing::Died(_) => "died",
            };
            let elsewhere = cell.system.elsewhere(cell.row, cell.workers);
            elsewhere.map_or_else(|| word.to_owned(), |min| format!("{word}, elsewhere {min}"))
        }
        Err(_) => String::new(),
    }
}

fn numbers(line: &Line) -> String {
    let number = |value: f64| match value {
        v if v >= 1000.0 => text::count(v as u64),
        v => format!("{v:.1}"),
    };
    format!("{} / {}", number(line.summary.min), number(line.summary.median))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;
    use std::time::Duration;
    use tsumugi_bench_ult::{Elsewhere, bare, ults};

    const PEER: System = System {
        name: "peer",
        serve: |_| (),
        elsewhere: &[Elsewhere { row: "yield2", workers: 1, min: 15.3 }],
    };

    fn shown(outcome: Result<Vec<Line>, Missing>) -> String {
        let systems: [&'static System; 3] = [&bare::SYSTEM, &ults::SYSTEM, &PEER];
        let cell = |system, outcome| SystemResult { system, row: "yield2", workers: 1, outcome };
        let ours = cell(systems[1], Ok(vec![row("tsumugi", "yield2", 8.0)]));
        grid(&[ours, cell(systems[2], outcome)], &systems)
    }

    fn words(shown: &str, line: usize) -> String {
        shown.lines().nth(line).unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn systems_stand_side_by_side() {
        let shown = shown(Ok(vec![row("peer", "yield2", 24.0)]));
        assert_eq!(words(&shown, 1), "min / median workers tsumugi peer");
        assert_eq!(words(&shown, 2), "yield2 1 4.0 / 8.0 12.0 / 24.0");
    }

    #[test]
    fn a_cell_says_why_it_is_empty() {
        let none = shown(Err(Missing::Refused(NO_SUCH_THING.to_owned())));
        assert_eq!(words(&none, 2), "yield2 1 4.0 / 8.0 -");
        let absent = shown(Err(Missing::Refused("is not installed (libpeer.so)".to_owned())));
        assert_eq!(words(&absent, 2), "yield2 1 4.0 / 8.0 not here, elsewhere 15.3");
        assert!(absent.contains("peer is not installed (libpeer.so); elsewhere 15.3"), "{absent}");
        let hung = shown(Err(Missing::Hung(Duration::from_secs(10))));
        assert!(hung.contains("peer hung: no answer in 10 s"), "{hung}");
    }
}
