//! Why an option was refused.

use super::kind::ValueKind;
use std::fmt;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::quantity;

/// Why a variable of the environment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The value is not a number, a size or a time, as the variable requires.
    Unreadable {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
        /// What the variable requires.
        kind: ValueKind,
    },
    /// A value outside of the allowed range. Times are in milliseconds.
    OutOfBounds {
        /// The variable.
        name: &'static str,
        /// The value of the variable.
        value: usize,
        /// The smallest value that is allowed.
        min: usize,
        /// The largest value that is allowed.
        max: usize,
        /// What the value is.
        kind: ValueKind,
    },
    /// The value is none of the words that the variable accepts.
    NoSuchChoice {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
        /// The words.
        choices: &'static [&'static str],
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
            Self::Unreadable { name, value, kind } => {
                write!(f, "{name}={value:?} is not {}", kind.grammar())
            }
            Self::OutOfBounds { name, value, min, max, kind } => {
                let [value, min, max] = [value, min, max].map(|value| kind.show(*value));
                write!(f, "{name}={value} is not between {min} and {max}")
            }
            Self::NoSuchChoice { name, value, choices } => {
                write!(f, "{name}={value:?} is none of its values: {}, auto", choices.join(", "))?;
                match quantity::nearest(value.as_str(), choices.iter().copied()) {
                    Some(word) => write!(f, "; did you mean {word}?"),
                    None => Ok(()),
                }
            }
            Self::Unaligned { name, value, align } => {
                write!(f, "{name}={value:#x} is not a multiple of {align:#x}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}
