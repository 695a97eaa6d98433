//! Numbers as users write them, within their bounds.

use super::error::ConfigError;
use tsumugi_core::excerpt::Excerpt;

/// Parses a number as the user writes it: decimal, or hexadecimal after `0x`.
///
/// # Errors
///
/// [`ConfigError::NotANumber`] if the text is not such a number, or the number is above
/// [`usize::MAX`].
pub fn parse_number(name: &'static str, text: &str) -> Result<usize, ConfigError> {
    let plain: String = text.trim().chars().filter(|c| *c != '_').collect();
    let number = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(hex) => usize::from_str_radix(hex, 16),
        None => plain.parse(),
    };
    number.map_err(|_| ConfigError::NotANumber { name, value: Excerpt::new(text) })
}

/// Checks that the value is between `min` and `max`.
pub(super) fn bounded(
    name: &'static str,
    value: usize,
    min: usize,
    max: usize,
) -> Result<usize, ConfigError> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(ConfigError::OutOfBounds { name, value, min, max })
    }
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
