//! The files for rows and figures that the arguments name.

use super::plot::Plot;
use super::row::{self, Row};
use crate::args;
use crate::failure::Failure;
use std::fs;
use std::path::Path;

/// Writes the rows and figures to the files that the arguments name.
pub fn keep_all<'a>(
    measure: &args::MeasureArgs,
    rows: &[Row],
    plots: impl Iterator<Item = (&'a str, Plot)>,
) -> Result<(), Failure> {
    keep(rows, measure.json.as_deref(), measure.csv.as_deref())?;
    match &measure.svg {
        Some(folder) => draw(folder, plots),
        None => Ok(()),
    }
}

/// Writes the rows for other programs.
pub fn keep(rows: &[Row], json: Option<&Path>, csv: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = json {
        write(path, &row::json(rows))?;
    }
    if let Some(path) = csv {
        write(path, &row::csv(rows))?;
    }
    Ok(())
}

/// Draws the figures.
fn draw<'a>(folder: &Path, plots: impl Iterator<Item = (&'a str, Plot)>) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, &error))?;
    for (name, plot) in plots {
        let path = folder.join(name).with_extension("svg");
        let svg =
            plot.svg().map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        write(&path, &svg)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::write(path, &error))
}
