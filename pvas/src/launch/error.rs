//! Why a job did not start.

use crate::config::ConfigError;
use crate::space::SpaceError;
use std::fmt;
use std::io;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::Rank;

/// Why a job did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// No program was named.
    NoProgram,
    /// The environment is wrong.
    Config(ConfigError),
    /// The partitions cannot be made.
    Space(SpaceError),
    /// A rank cannot be started.
    Spawn {
        /// The rank.
        rank: Rank,
        /// The program, as far as it fits.
        program: Excerpt,
        /// The system's error number; 0 if there is none, as for an argument with a NUL byte.
        errno: i32,
    },
    /// Another job of this process catches the signals already.
    SignalsTaken,
    /// The system refused another call.
    System {
        /// The call that was refused.
        what: &'static str,
        /// Its error number; 0 if there is none.
        errno: i32,
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: &i32| match *errno {
            0 => "failed without an error number".to_owned(),
            errno => io::Error::from_raw_os_error(errno).to_string(),
        };
        match self {
            Self::NoProgram => write!(f, "no program is set: Launch::program sets it"),
            Self::Config(error) => error.fmt(f),
            Self::Space(error) => error.fmt(f),
            Self::Spawn { rank, program, errno } => {
                write!(f, "starting {} as {rank}: {}", program.as_str(), system(errno))
            }
            Self::SignalsTaken => {
                write!(f, "another job of this process forwards signals: only one can at a time")
            }
            Self::System { what, errno } => write!(f, "{what}: {}", system(errno)),
        }
    }
}

impl std::error::Error for LaunchError {}
