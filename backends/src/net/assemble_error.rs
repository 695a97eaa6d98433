//! Why a domain cannot be opened, with any library.

use core::ffi::c_int;

/// The reasons; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssembleError {
    /// A number of the configuration is out of its range.
    Number {
        /// The name of the number.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The least value that is allowed.
        min: usize,
        /// The largest value that is allowed.
        max: usize,
    },
    /// A wire does not report its address.
    Address(c_int),
    /// The addresses do not fit in a card.
    CardTooLong {
        /// The bytes of the card.
        bytes: usize,
    },
}

impl AssembleError {
    /// Checks a number of a configuration.
    pub(crate) fn check(
        name: &'static str,
        value: usize,
        min: usize,
        max: usize,
    ) -> Result<(), Self> {
        let fits = (min..=max).contains(&value);
        if fits { Ok(()) } else { Err(Self::Number { name, value, min, max }) }
    }
}
