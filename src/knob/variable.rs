//! An environment variable, and its subject.

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
