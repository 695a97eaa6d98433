//! Numbers, sizes and times as users write them, within their bounds.

use super::error::ConfigError;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::quantity::{self, Size};

/// What the value of a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Reads the value of a variable. `None`: the variable is not set, or is `auto`, and
    /// so has its default.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unreadable`] if the text is no such value; [`ConfigError::OutOfBounds`]
    /// if the value is not between `min` and `max`.
    pub fn read(
        self,
        name: &'static str,
        text: Option<&str>,
        min: usize,
        max: usize,
    ) -> Result<Option<usize>, ConfigError> {
        match text {
            None | Some(AUTO) => Ok(None),
            Some(text) => {
                let value = self.parse(text);
                let value = value.ok_or(ConfigError::Unreadable {
                    name,
                    value: Excerpt::new(text),
                    kind: self,
                })?;
                self.bounded(name, value, min, max).map(Some)
            }
        }
    }

    fn parse(self, text: &str) -> Option<usize> {
        let value = match self {
            Self::Number | Self::Address => quantity::number(text)?,
            Self::Size => quantity::bytes(text)?,
            Self::Time => quantity::time(text)?.as_millis().try_into().ok()?,
        };
        value.try_into().ok()
    }

    /// Checks that the value is between `min` and `max`.
    pub(super) fn bounded(
        self,
        name: &'static str,
        value: usize,
        min: usize,
        max: usize,
    ) -> Result<usize, ConfigError> {
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(ConfigError::OutOfBounds { name, value, min, max, kind: self })
        }
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
            Self::Number | Self::Address => "a number (decimal, or hexadecimal after 0x)",
            Self::Size => "a size (bytes, or a number with K, M, G, T, KiB, MiB, GiB or TiB)",
            Self::Time => "a time with its unit (300ms, 5s, 2m, 1h)",
        }
    }
}

/// Parses a number as the user writes it: decimal, or hexadecimal after `0x`.
///
/// # Errors
///
/// [`ConfigError::Unreadable`] if the text is not such a number, or the number is above
/// [`usize::MAX`].
pub fn parse_number(name: &'static str, text: &str) -> Result<usize, ConfigError> {
    let kind = ValueKind::Number;
    kind.parse(text).ok_or(ConfigError::Unreadable { name, value: Excerpt::new(text), kind })
}

/// Checks that the value is a multiple of `align`.
pub(super) fn aligned(
    name: &'static str,
    value: usize,
    align: usize,
) -> Result<usize, ConfigError> {
    if value.is_multiple_of(align) {
        Ok(value)
    } else {
        Err(ConfigError::Unaligned { name, value, align })
    }
}

/// The word for the default.
pub(super) const AUTO: &str = "auto";
