//! The ways in which a command can fail.

use std::fmt;
use std::io;
use std::path::Path;
use tsumugi::{AddrError, CollError, Error, MessageError};
use tsumugi_core::boot::BootError;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line names something that does not exist: exit code 2.
    Usage(String),
    /// The command was valid but could not be carried out: exit code 1.
    Failed(String),
    /// The program to run does not exist, or is no program: exit code 127 or 126, as
    /// in shells.
    Program(u8, String),
    /// The failure was already reported; this is the exit code.
    Said(u8),
}

impl Failure {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) => 1,
            Self::Program(code, _) | Self::Said(code) => *code,
        }
    }

    /// The message that is still to be printed.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Usage(what) | Self::Failed(what) | Self::Program(_, what) => Some(what),
            Self::Said(_) => None,
        }
    }

    /// A file that could not be written.
    pub fn write(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: cannot be written: {error}", path.display()))
    }
}

/// A rank that fails because of another rank's end prints no message: the launcher
/// has named the other rank.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Addr(AddrError::PeerLost { .. })
            | Error::Coll(CollError::Addr(AddrError::PeerLost { .. }))
            | Error::Boot(BootError::PeerLost { .. })
            | Error::Access(AddrError::PeerLost { .. })
            | Error::Message(MessageError::PeerLost { .. }) => Self::Said(1),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<MessageError> for Failure {
    fn from(error: MessageError) -> Self {
        Error::from(error).into()
    }
}

impl From<AddrError> for Failure {
    fn from(error: AddrError) -> Self {
        Error::from(error).into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().unwrap_or("a rank has failed"))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi::Rank;

    #[test]
    fn the_end_of_another_rank_is_reported_once() {
        let lost = AddrError::PeerLost { rank: Rank(2) };
        assert_eq!(Failure::from(lost), Failure::Said(1));
        assert_eq!(Failure::from(Error::Coll(CollError::Addr(lost))).message(), None);
        let failed = Failure::from(Error::program("no"));
        assert_eq!((failed.exit_code(), failed.message()), (1, Some("no")));
    }
}
