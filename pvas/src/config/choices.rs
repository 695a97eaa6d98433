//! Variables whose value is one of a few words.

use super::error::ConfigError;
use super::number::AUTO;
use tsumugi_core::excerpt::Excerpt;

/// The words of a variable, and what each of them chooses.
#[derive(Clone, Copy, Debug)]
pub struct Choices<T: 'static> {
    words: &'static [&'static str],
    values: &'static [T],
}

impl<T: Copy + PartialEq> Choices<T> {
    /// Makes choices; each word has its value at the same place.
    ///
    /// # Panics
    ///
    /// If the numbers of words and values differ.
    pub const fn new(words: &'static [&'static str], values: &'static [T]) -> Self {
        assert!(words.len() == values.len());
        Self { words, values }
    }

    /// Reads the value of a variable. `None`: the variable is not set, or is `auto`, and
    /// so has its default.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoSuchChoice`] if the text is none of the words.
    pub fn read(&self, name: &'static str, text: Option<&str>) -> Result<Option<T>, ConfigError> {
        Ok(place(self.words, name, text)?.map(|at| self.values[at]))
    }

    /// The word of a value; `auto` if it has none.
    pub fn word(&self, value: T) -> &'static str {
        let found = self.values.iter().position(|other| *other == value);
        found.map_or(AUTO, |at| self.words[at])
    }

    /// The words, with commas between them.
    pub fn list(&self) -> String {
        self.words.join(", ")
    }
}

/// The place of the value among the words.
fn place(
    words: &'static [&'static str],
    name: &'static str,
    text: Option<&str>,
) -> Result<Option<usize>, ConfigError> {
    let Some(text) = text.filter(|text| *text != AUTO) else { return Ok(None) };
    let found = words.iter().position(|word| *word == text);
    let none = || ConfigError::NoSuchChoice { name, value: Excerpt::new(text), choices: words };
    found.map(Some).ok_or_else(none)
}
