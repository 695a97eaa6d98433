//! The drawings of figures.

use super::plot::Plot;
use crate::failure::Failure;
use std::fs;
use std::path::Path;

/// Draws each figure to a file of the folder, if there is one.
pub fn draw<'a>(
    folder: Option<&Path>,
    plots: impl Iterator<Item = (&'a str, Plot)>,
) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, &error))?;
    for (name, plot) in plots {
        let path = folder.join(name).with_extension("svg");
        let svg =
            plot.svg().map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        fs::write(&path, svg).map_err(|error| Failure::write(&path, &error))?;
    }
    Ok(())
}
