//! The rows of a figure, each written as soon as it is measured: a benchmark that is
//! killed has shown all rows that it had.
//!
//! ```text
//!  measured ─► RowWriter ─┬─► standard output   a line of fixed columns
//!                         ├─► --csv FILE        a line
//!                         ├─► --json FILE       a line, an element of an array
//!                         └─► end()             for figures and comparisons at the end
//! ```
//!
//! A JSON file has its closing bracket only when the benchmark has ended.

use super::measured::Measured;
use super::row::{self, Row};
use super::table;
use crate::failure::Failure;
use crate::progress::ProgressLine;
use crate::text;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes the rows of one figure, and keeps them.
#[derive(Debug)]
pub struct RowWriter {
    pub progress: ProgressLine,
    /// Whether this process shows nothing: another rank measures.
    is_silent: bool,
    written: RefCell<Written>,
}

#[derive(Debug, Default)]
struct Written {
    rows: Vec<Row>,
    /// The last row that was shown.
    shown: Option<Row>,
    json: Option<RowFile>,
    csv: Option<RowFile>,
}

#[derive(Debug)]
struct RowFile {
    path: PathBuf,
    file: File,
}

impl RowWriter {
    /// Opens the files, so that a path that cannot be written is reported before
    /// anything is measured.
    pub fn new(json: Option<&Path>, csv: Option<&Path>) -> Result<Self, Failure> {
        let mut written = Written {
            json: json.map(RowFile::create).transpose()?,
            csv: csv.map(RowFile::create).transpose()?,
            ..Written::default()
        };
        if let Some(json) = &mut written.json {
            json.write("[")?;
        }
        if let Some(csv) = &mut written.csv {
            csv.write(row::CSV_HEADER)?;
        }
        let (progress, is_silent) = (ProgressLine::new(), false);
        Ok(Self { progress, is_silent, written: written.into() })
    }

    /// Of a process that hands its rows to another one, in a file.
    pub fn of_file(json: &Path) -> Result<Self, Failure> {
        Ok(Self {
            progress: ProgressLine::silent(),
            is_silent: true,
            ..Self::new(Some(json), None)?
        })
    }

    /// Of a rank that measures for another one.
    pub fn silent() -> Self {
        Self { progress: ProgressLine::silent(), is_silent: true, written: RefCell::default() }
    }

    /// Shows rows, and writes them to the files.
    pub fn write(&self, rows: impl IntoIterator<Item = Row>) -> Result<(), Failure> {
        for row in rows {
            if self.is_silent {
                continue;
            }
            let mut written = self.written.borrow_mut();
            let mut lines = table::line(&row, written.shown.as_ref());
            if written.shown.is_none() {
                lines.insert_str(0, &table::header());
            }
            written.shown = Some(row.clone());
            // First: a row that is shown is in the files.
            written.keep(row)?;
            self.progress.hidden(|| text::show(&lines))?;
        }
        Ok(())
    }

    /// Shows rows that were measured by turns, and their difference.
    pub fn write_measured(&self, measured: Measured) -> Result<(), Failure> {
        let overhead = table::overhead(&measured);
        self.write(measured.rows)?;
        match self.is_silent {
            true => Ok(()),
            false => self.progress.hidden(|| text::show(&overhead)),
        }
    }

    /// Writes rows to the files only: thousands of points say nothing as lines.
    pub fn write_unshown(&self, rows: impl IntoIterator<Item = Row>) -> Result<(), Failure> {
        let mut written = self.written.borrow_mut();
        rows.into_iter().try_for_each(|row| written.keep(row))
    }

    /// Ends the files; returns all rows.
    pub fn end(self) -> Result<Vec<Row>, Failure> {
        let mut written = self.written.into_inner();
        if let Some(json) = &mut written.json {
            json.write("\n]\n")?;
        }
        if written.rows.iter().any(|row| !row.is_steady()) {
            self.progress.hidden(|| text::show(table::UNSTEADY))?;
        }
        Ok(written.rows)
    }
}

impl Written {
    fn keep(&mut self, row: Row) -> Result<(), Failure> {
        if let Some(json) = &mut self.json {
            let comma = if self.rows.is_empty() { "" } else { "," };
            json.write(&format!("{comma}\n{}", row::json(&row)))?;
        }
        if let Some(csv) = &mut self.csv {
            csv.write(&row::csv(&row))?;
        }
        self.rows.push(row);
        Ok(())
    }
}

impl RowFile {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Failure::write(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// A file without a buffer, so that what was written stays when this process is
    /// killed.
    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Failure::write(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;
    use std::fs;

    #[test]
    fn files_have_each_row_as_soon_as_it_is_written() {
        let path = |end| std::env::temp_dir().join(format!("rows-{}.{end}", std::process::id()));
        let [json, csv] = ["json", "csv"].map(path);
        let rows = RowWriter::new(Some(&json), Some(&csv)).unwrap();
        rows.write_unshown([row("tsumugi", "get8", 3.0), row("bare", "bare_get8", 1.0)]).unwrap();
        let begun = fs::read_to_string(&json).unwrap();
        assert_eq!(begun.lines().count(), 3, "{begun}");
        assert_eq!(row::of_json(&(begun + "]")).unwrap().len(), 2);
        let lines = fs::read_to_string(&csv).unwrap();
        let names: Vec<_> = lines.lines().map(|line| line.split(',').nth(2).unwrap()).collect();
        assert_eq!(names, ["name", "get8", "bare_get8"]);
        let ended = rows.end().unwrap();
        assert_eq!(row::of_json(&fs::read_to_string(&json).unwrap()).unwrap(), ended);
        for path in [json, csv] {
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn without_rows_the_array_is_empty() {
        let path = std::env::temp_dir().join(format!("no-rows-{}.json", std::process::id()));
        RowWriter::new(Some(&path), None).unwrap().end().unwrap();
        assert_eq!(row::of_json(&fs::read_to_string(&path).unwrap()).unwrap(), []);
        fs::remove_file(path).unwrap();
    }
}
