//! All systems side by side: a line a row, a column a system.

use super::Cell;
use crate::bench::row::Row as Line;
use crate::text;
use tsumugi_bench_ult::System;
use tsumugi_bench_ult::inbox::NO_SUCH_THING;
use tsumugi_bench_ult::turns::Missing;

/// Least and middle; where there is none, why, and what it was elsewhere.
pub fn grid(cells: &[Cell], systems: &[&'static System]) -> String {
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
        let name = |cell: &Cell| Some(cell.outcome.as_ref().ok()?.get(part)?.name.clone());
        let name = cells.iter().filter(|cell| cell.row == row).find_map(name);
        let cell = |system: &&&System| {
            let is = |cell: &&Cell| {
                (cell.row, cell.workers, cell.system.name) == (row, workers, system.name)
            };
            cells.iter().find(is).map_or_else(String::new, |cell| shown(cell, part))
        };
        let first = [name.unwrap_or_else(|| row.to_owned()), workers.to_string()];
        first.into_iter().chain(columns.iter().map(cell)).collect()
    });
    format!("\n{}{}", text::table(&header, lines), failures(cells))
}

/// What did not go as it should, a line each.
pub fn failures(cells: &[Cell]) -> String {
    let line = |cell: &Cell| {
        let missing = cell.outcome.as_ref().err()?;
        if *missing == Missing::Refused(NO_SUCH_THING.to_owned()) {
            return None;
        }
        let Cell { system, row, workers, .. } = cell;
        let elsewhere = system.elsewhere(row, *workers);
        let elsewhere = elsewhere.map_or_else(String::new, |min| format!("; elsewhere {min}"));
        Some(format!("  {row}, {workers} workers: {} {missing}{elsewhere}\n", system.name))
    };
    cells.iter().filter_map(line).collect()
}

fn parts(cells: &[Cell], row: &str) -> usize {
    let of = |cell: &Cell| cell.outcome.as_ref().map_or(1, Vec::len);
    cells.iter().filter(|cell| cell.row == row).map(of).max().unwrap_or(1)
}

fn shown(cell: &Cell, part: usize) -> String {
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
