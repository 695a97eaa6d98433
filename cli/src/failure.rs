//! How a command ends when it does not succeed.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a command did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line asks for something that does not exist: exit code 2.
    Usage(String),
    /// The command was right and could not be done: exit code 1.
    Failed(String),
}

impl Failure {
    /// What the process returns.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) => 1,
        }
    }

    /// A file that could not be written.
    pub fn write(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: cannot be written: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Failed(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Failure {}
