//! The search for misspelt variables.

use super::names::{OF_LAUNCHERS, OF_USERS};
use tsumugi_core::quantity;

/// Prints each variable of the environment that begins with `TSUMUGI_` and means nothing
/// to any part of the project, with the variable that it most likely means.
pub fn report_misspelt() {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let lines: String = names.filter_map(|name| misspelt(&name)).collect();
    // One write, so that the lines do not mix with other output.
    if !lines.is_empty() {
        eprint!("{lines}");
    }
}

/// The report of a variable, if it is not known.
pub(super) fn misspelt(name: &str) -> Option<String> {
    let stem = name.strip_prefix("TSUMUGI_")?;
    let is_known = OF_USERS.contains(&name) || OF_LAUNCHERS.contains(&name);
    let is_of_builds = OF_SIMULATOR.contains(&stem) || OF_WRAPPERS.contains(&stem);
    if is_known || stem.starts_with("TEST_") || is_of_builds {
        return None;
    }
    let stems = OF_USERS.iter().filter_map(|known| known.strip_prefix("TSUMUGI_"));
    let hint = match quantity::nearest(stem, stems) {
        Some(near) => format!("did you mean TSUMUGI_{near}?"),
        None => "tsumugi info --config lists all".to_owned(),
    };
    Some(format!("tsumugi: {name} is set, and no variable has this name: {hint}\n"))
}

/// The variables of tests in the simulator, without their common beginning.
const OF_SIMULATOR: [&str; 4] = ["SEED", "SEEDS", "SEED_BASE", "SHRUNK"];

/// The variables of `mpicc` and `mpicxx`, without their common beginning.
const OF_WRAPPERS: [&str; 2] = ["MPICC", "MPICXX"];
