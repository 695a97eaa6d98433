//! What the values of variables are: numbers, sizes and times as users write them.

use tsumugi_core::quantity::{self, Size};

/// What the value of a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// A number: decimal, or hexadecimal after `0x`.
    Number,
    /// A number that is shown in hexadecimal digits.
    Address,
    /// A size in bytes: a number, or one with a unit, such as `64K` or `8MiB`.
    Size,
    /// A time with its unit, such as `300ms` or `5s`; counted in milliseconds.
    Time,
}

impl ValueKind {
    /// The value of a text; `None` if it is no such value.
    pub(super) fn parse(self, text: &str) -> Option<usize> {
        let value = match self {
            Self::Number | Self::Address => quantity::number(text)?,
            Self::Size => quantity::bytes(text)?,
            Self::Time => quantity::time(text)?.as_millis().try_into().ok()?,
        };
        value.try_into().ok()
    }

    /// The value as it is shown.
    pub fn show(self, value: usize) -> String {
        match self {
            Self::Number => value.to_string(),
            Self::Address => format!("{value:#x}"),
            Self::Size => Size(value as u64).to_string(),
            Self::Time if value.is_multiple_of(1000) => format!("{}s", value / 1000),
            Self::Time => format!("{value}ms"),
        }
    }

    /// How such a value is written.
    pub(super) fn grammar(self) -> &'static str {
        match self {
            Self::Number | Self::Address => {
                "a number below 2^64 (decimal, or hexadecimal after 0x)"
            }
            Self::Size => {
                "a size below 16 EiB (bytes, or a number with K, M, G, T, KiB, MiB, GiB or TiB)"
            }
            Self::Time => "a time with its unit (300ms, 5s, 2m, 1h)",
        }
    }
}
