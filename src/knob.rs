//! A list of the environment variables, with their meanings and values, and the search
//! for misspelt ones.

mod listed;

use crate::config::Config;
use tsumugi_core::quantity;
use tsumugi_pvas::partition::ShapeError;

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The subject to which it belongs.
    pub group: KnobGroup,
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub meaning: String,
    /// The value if the variable is not set; `None` for a variable that a launcher
    /// sets for its ranks.
    pub default: Option<String>,
    /// The value that a job would use now on this node; `None` outside of a job.
    pub chosen: Option<String>,
}

/// The subject of an environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KnobGroup {
    /// How ranks are started and find each other.
    Ranks,
    /// Workers and user-level threads.
    Threads,
    /// The partitions of ranks.
    Memory,
    /// Operations and messages.
    Messages,
    /// The sizes at which messages change their path, each measured if it is not set.
    Thresholds,
    /// The network between nodes.
    Network,
    /// Time limits.
    Limits,
    /// Reports, traces and injected faults.
    Debugging,
    /// Set by a launcher for its ranks.
    Launcher,
}

impl KnobGroup {
    /// All groups, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Ranks,
        Self::Threads,
        Self::Memory,
        Self::Messages,
        Self::Thresholds,
        Self::Network,
        Self::Limits,
        Self::Debugging,
        Self::Launcher,
    ];

    /// The name, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ranks => "ranks",
            Self::Threads => "threads",
            Self::Memory => "memory",
            Self::Messages => "messages",
            Self::Thresholds => "thresholds",
            Self::Network => "network",
            Self::Limits => "limits",
            Self::Debugging => "debugging",
            Self::Launcher => "launcher",
        }
    }
}

impl Config {
    /// Returns every variable, by group, with the value that a job of `size` ranks on
    /// this node would use.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] if the partitions of such a job do not fit in the address
    /// space.
    pub fn knobs(&self, size: u32) -> Result<Vec<Knob>, ShapeError> {
        listed::listed(self, size)
    }
}

/// Prints each variable of the environment that begins with `TSUMUGI_` and means nothing
/// to any part of the project, with the variable that it most likely means.
pub(crate) fn report_misspelt() {
    let Ok(known) = Config::default().knobs(1) else { return };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let lines: String = names.filter_map(|name| misspelt(&name, &known)).collect();
    // One write, so that the lines do not mix with other output.
    if !lines.is_empty() {
        eprint!("{lines}");
    }
}

/// The report of a variable, if it is not known.
fn misspelt(name: &str, known: &[Knob]) -> Option<String> {
    let stem = name.strip_prefix("TSUMUGI_")?;
    let is_known = known.iter().any(|knob| knob.name == name);
    if is_known || stem.starts_with("TEST_") || OF_SIMULATOR.contains(&stem) {
        return None;
    }
    let of_users = known.iter().filter(|knob| knob.group != KnobGroup::Launcher);
    let stems = of_users.filter_map(|knob| knob.name.strip_prefix("TSUMUGI_"));
    let hint = match quantity::nearest(stem, stems) {
        Some(near) => format!("did you mean TSUMUGI_{near}?"),
        None => "tsumugi info --config lists all".to_owned(),
    };
    Some(format!("tsumugi: {name} is set, and no variable has this name: {hint}\n"))
}

/// The variables of tests in the simulator, without their common beginning.
const OF_SIMULATOR: [&str; 4] = ["SEED", "SEEDS", "SEED_BASE", "SHRUNK"];

#[cfg(test)]
mod tests;
