//! Numbers, sizes and times as users write them, within their bounds.

use super::error::ConfigError;
use super::kind::ValueKind;
use tsumugi_core::excerpt::Excerpt;

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
