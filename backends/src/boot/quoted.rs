//! What a variable holds, as far as it fits into an error.

use std::fmt;

/// The first bytes of a text, kept so that an error stays small and [`Copy`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    bytes: [u8; 31],
    len: u8,
}

impl Quoted {
    /// The start of `text`.
    pub fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(31);
        let mut bytes = [0; 31];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self { bytes, len: end as u8 }
    }
}

impl fmt::Debug for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("");
        fmt::Debug::fmt(text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let quoted = Quoted::new(&"紬".repeat(20));
        assert_eq!(format!("{quoted:?}"), format!("{:?}", "紬".repeat(10)));
    }
}
