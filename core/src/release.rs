//! The release of tsumugi with which a program was built. Ranks of two releases refuse
//! each other, because what they write for each other differs.

use core::fmt;

/// A release, in 16 bits: 4 of the major number, 6 each of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release(pub u16);

impl Release {
    /// The release of this program.
    pub const OWN: Self = Self(
        decimal(env!("CARGO_PKG_VERSION_MAJOR"), 16) << 12
            | decimal(env!("CARGO_PKG_VERSION_MINOR"), 64) << 6
            | decimal(env!("CARGO_PKG_VERSION_PATCH"), 64),
    );
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0 >> 12, self.0 >> 6 & 63, self.0 & 63)
    }
}

const fn decimal(text: &str, limit: u16) -> u16 {
    let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as u16;
        at += 1;
    }
    assert!(value < limit);
    value
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_release_is_shown_as_cargo_shows_it() {
        assert_eq!(Release::OWN.to_string(), env!("CARGO_PKG_VERSION"));
        assert_eq!(Release(2 << 12 | 41 << 6 | 7).to_string(), "2.41.7");
    }
}
