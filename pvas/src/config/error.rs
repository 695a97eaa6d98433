//! Why an option was refused.

use std::fmt;
use tsumugi_core::excerpt::Excerpt;

/// Why a variable of the environment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Not a number (decimal, or hexadecimal after `0x`).
    NotANumber {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// A number outside of the allowed range.
    OutOfBounds {
        /// The variable.
        name: &'static str,
        /// The value of the variable.
        value: usize,
        /// The smallest value that is allowed.
        min: usize,
        /// The largest value that is allowed.
        max: usize,
    },
    /// The value is none of the words that the variable accepts.
    NoSuchChoice {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// The value is not a multiple of the required alignment.
    Unaligned {
        /// The variable.
        name: &'static str,
        /// The value of the variable.
        value: usize,
        /// The required alignment.
        align: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { name, value } => {
                write!(f, "{name}={value:?} is not a number (decimal, or hexadecimal after 0x)")
            }
            Self::OutOfBounds { name, value, min, max } => {
                write!(f, "{name}={value:#x} is not between {min:#x} and {max:#x}")
            }
            Self::NoSuchChoice { name, value } => {
                write!(f, "{name}={value:?} is none of its values: see tsumugi info --config")
            }
            Self::Unaligned { name, value, align } => {
                write!(f, "{name}={value:#x} is not a multiple of {align:#x}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}
