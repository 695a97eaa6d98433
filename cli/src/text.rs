//! Numbers and tables for people.

use crate::failure::Failure;
use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes to standard output; a reader that has gone away is no error.
pub fn show(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::write(Path::new("standard output"), &error))
        }
        _ => Ok(()),
    }
}

/// A table without colours or frames: the first column to the left, the rest
/// to the right, so that it reads the same on a terminal and in a file.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_constraint(ColumnConstraint::ContentWidth);
        column.set_padding((2, 0));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Lines of a name and a fact each, the facts flush right.
pub fn facts(rows: &[(&str, String)]) -> String {
    let name_chars = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let fact_chars = rows.iter().map(|(_, fact)| fact.chars().count()).max().unwrap_or(0);
    let line =
        |(name, fact): &(&str, String)| format!("  {name:name_chars$}  {fact:>fact_chars$}\n");
    rows.iter().map(line).collect()
}

/// `1234567` as `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in the unit that leaves one to three digits before the point.
pub fn time(ns: f64) -> String {
    scaled(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

/// A rate, with its unit after it: `12.3 M`.
pub fn rate(per_second: f64) -> String {
    scaled(per_second, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]).trim_end().to_owned()
}

/// A size in powers of 1,024.
pub fn bytes(n: u64) -> String {
    const KI: f64 = 1024.0;
    let units = [(KI * KI * KI * KI, "TiB"), (KI * KI * KI, "GiB"), (KI * KI, "MiB"), (KI, "KiB")];
    if n < 1024 { format!("{n} B") } else { scaled(n as f64, &units) }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units.last().expect("the list has a unit");
    let (unit, name) = units.iter().find(|(unit, _)| value >= *unit).unwrap_or(last);
    let value = value / unit;
    match value {
        v if v >= 100.0 => format!("{v:.0} {name}"),
        v if v >= 10.0 => format!("{v:.1} {name}"),
        v => format!("{v:.2} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let shown: Vec<String> = [0, 999, 1000, 63_666, 1_234_567].map(count).into();
        assert_eq!(shown, ["0", "999", "1,000", "63,666", "1,234,567"]);
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(time(3.25), "3.25 ns");
        assert_eq!(time(0.56), "0.56 ns");
        assert_eq!(time(47_300.0), "47.3 us");
        assert_eq!(time(812e6), "812 ms");
        assert_eq!(rate(12_340_000.0), "12.3 M");
        assert_eq!(rate(12.0), "12.0");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
    }

    #[test]
    fn columns_line_up() {
        let text = table(&["name", "ns"], [vec!["get8".into(), "3.4".into()]]);
        assert_eq!(text, "  name   ns\n  get8  3.4\n");
        let text = facts(&[("a", "123".into()), ("long", "4".into())]);
        assert_eq!(text, "  a     123\n  long    4\n");
    }
}
