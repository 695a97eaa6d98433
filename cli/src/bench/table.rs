//! The rows as a table for people.

use super::row::Row;
use super::{Measured, Over};
use crate::text;

/// A line a row; a row during which the cores moved is marked.
pub fn table(rows: &[Row]) -> String {
    let header = ["what", "by", "n", "min", "median", "p99", "unit", "line before", "after"];
    let lines = rows.iter().map(|row| {
        let mark = if row.is_steady() { "" } else { " *" };
        vec![
            format!("{}{mark}", row.name),
            row.system.clone(),
            text::count(row.summary.n),
            number(row.summary.min),
            number(row.summary.median),
            number(row.summary.p99),
            row.unit.clone(),
            trip(row.line_ns_before),
            trip(row.line_ns_after),
        ]
    });
    let mut shown = text::table(&header, lines);
    if rows.iter().any(|row| !row.is_steady()) {
        shown.push_str("  * the cores moved meanwhile (see the line trips): measure again\n");
    }
    shown
}

/// What each of ours costs over its bare loop, round by round.
pub fn overheads(measured: &[Measured]) -> String {
    let line = |measured: &Measured| {
        let ([ours, bare], Some(over)) = (&measured.rows[..], measured.over) else { return None };
        let Over { p1, median, p99 } = over;
        Some(format!(
            "  {} over {}: {median:+.2} {} (p1 {p1:+.2}, p99 {p99:+.2})\n",
            ours.name, bare.name, ours.unit
        ))
    };
    measured.iter().filter_map(line).collect()
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}

fn trip(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0} ns"))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_row_is_a_line() {
        let shown = table(&[row("tsumugi", "get8", 3.25)]);
        let words: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
        let expected = "get8 tsumugi 10 1.62 3.25 6.50 ns 31 ns 33 ns";
        assert_eq!(words.join(" "), expected);
        assert!(!shown.contains('*') && !shown.contains('\u{1b}'));
    }

    #[test]
    fn a_moved_core_is_marked_and_explained() {
        let moved = Row { line_ns_after: Some(160.0), ..row("bare", "bare_get8", 1.0) };
        let shown = table(&[moved]);
        assert!(shown.contains("bare_get8 *") && shown.contains("measure again"), "{shown}");
    }

    #[test]
    fn overheads_are_differences_of_rounds() {
        let rows = vec![row("tsumugi", "get8", 3.25), row("bare", "bare_get8", 0.75)];
        let over = Some(Over { p1: -0.25, median: 2.5, p99: 9.0 });
        let measured = Measured { rows, over };
        assert_eq!(
            overheads(std::slice::from_ref(&measured)),
            "  get8 over bare_get8: +2.50 ns (p1 -0.25, p99 +9.00)\n"
        );
        assert_eq!(overheads(&[Measured { over: None, ..measured }]), "");
    }
}
