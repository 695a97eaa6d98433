//! The beginning or end of a text, for errors that name a bad value and must stay
//! small and [`Copy`].

use core::fmt;

/// The first bytes of a text, or the last bytes.
///
/// ```
/// use tsumugi_core::excerpt::Excerpt;
///
/// let path = "/usr/lib/x86_64-linux-gnu/libfabric.so.1";
/// assert_eq!(Excerpt::new(path).as_str(), "/usr/lib/x86_64-linux-gnu/libfa");
/// assert_eq!(Excerpt::of_end(path).as_str(), "x86_64-linux-gnu/libfabric.so.1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; BYTES_MAX],
    len: u8,
}

impl Excerpt {
    /// The beginning of `text`.
    pub fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(BYTES_MAX);
        let mut bytes = [0; BYTES_MAX];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self { bytes, len: end as u8 }
    }

    /// The end of `text`: of a path, the more telling part.
    pub fn of_end(text: &str) -> Self {
        Self::new(&text[text.ceil_char_boundary(text.len().saturating_sub(BYTES_MAX))..])
    }

    /// The excerpt as text.
    pub fn as_str(&self) -> &str {
        // The text was cut between characters, so the bytes are valid UTF-8.
        core::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or_default()
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

const BYTES_MAX: usize = 31;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let (text, left) = ("紬".repeat(20), "紬".repeat(10));
        assert_eq!(Excerpt::new(&text).as_str(), left);
        assert_eq!(Excerpt::of_end(&text).as_str(), left);
        assert_eq!(Excerpt::of_end("short"), Excerpt::new("short"));
    }
}
