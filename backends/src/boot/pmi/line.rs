//! One line of PMI-1: words `name=value`, with blanks between them.

use std::fmt;

/// A line of PMI-1, split into its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmiLine {
    fields: Vec<(String, String)>,
}

/// Why a text is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// A word without `=`.
    Word {
        /// The index of the word, from 0.
        index: usize,
    },
    /// There are more words than any line has.
    TooMany,
    /// The line does not begin with a command.
    NoCommand,
}

impl PmiLine {
    /// Splits a line. A word without `=` belongs to the message before it.
    ///
    /// # Errors
    ///
    /// A [`LineError`] if the text is not a line of PMI-1:
    ///
    /// - [`LineError::Word`]: a word has no `=`, and does not belong to a message.
    /// - [`LineError::TooMany`]: the line has more than 32 words.
    /// - [`LineError::NoCommand`]: the line does not begin with `cmd=`.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for (index, word) in line.split_whitespace().enumerate() {
            if index == WORDS_MAX {
                return Err(LineError::TooMany);
            }
            match (word.split_once('='), fields.last()) {
                (Some((name, value)), _) => fields.push((name.to_owned(), value.to_owned())),
                (None, Some((name, _))) if name == "msg" => {}
                (None, _) => return Err(LineError::Word { index }),
            }
        }
        match fields.first() {
            Some((name, _)) if name == "cmd" => Ok(Self { fields }),
            _ => Err(LineError::NoCommand),
        }
    }

    /// The value of `name`; the first value, if there are more.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the server reports success; without a return code it counts as
    /// success, because not all servers send one.
    pub fn is_ok(&self) -> bool {
        self.field("rc").is_none_or(|code| code == "0")
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word { index } => write!(f, "word {index} of the line has no '='"),
            Self::TooMany => write!(f, "the line has more than {WORDS_MAX} words"),
            Self::NoCommand => f.write_str("the line does not begin with 'cmd='"),
        }
    }
}

impl std::error::Error for LineError {}

const WORDS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let line = PmiLine::parse("cmd=get_result rc=0 msg=all went well value=04\n").unwrap();
        assert_eq!(line.field("cmd"), Some("get_result"));
        assert_eq!(line.field("value"), Some("04"), "behind the message, as gforker has it");
        assert!(line.is_ok());
        assert!(!PmiLine::parse("cmd=x rc=-1").unwrap().is_ok());
        assert!(PmiLine::parse("cmd=x").unwrap().is_ok(), "a line without rc reports success");
    }

    #[test]
    fn a_malformed_line_is_refused() {
        assert_eq!(PmiLine::parse(""), Err(LineError::NoCommand));
        assert_eq!(PmiLine::parse("rc=0 cmd=x"), Err(LineError::NoCommand));
        assert_eq!(PmiLine::parse("cmd=x value"), Err(LineError::Word { index: 1 }));
        assert_eq!(PmiLine::parse(&"cmd=x ".repeat(33)), Err(LineError::TooMany));
    }
}
