//! The libraries whose functions a domain calls.

use super::dct::support;
use super::dct::sys::Driver;
use super::sys::{Library, LoadError};
use core::fmt;
use std::sync::OnceLock;

/// Libibverbs, and the driver's own library. A configuration may name others than the
/// installed ones, such as simulated devices of a test.
#[derive(Clone, Copy)]
pub struct VerbsLibraries {
    /// Libibverbs.
    pub verbs: &'static Library,
    /// The driver's own library, for functions that libibverbs does not have.
    pub driver: Option<&'static Driver>,
}

impl VerbsLibraries {
    /// The libraries of this machine.
    ///
    /// # Errors
    ///
    /// The [`LoadError`] of libibverbs. Without the driver's library there is none.
    pub(super) fn installed() -> Result<Self, LoadError> {
        static VERBS: OnceLock<Result<Library, LoadError>> = OnceLock::new();
        let verbs = VERBS.get_or_init(Library::load).as_ref().map_err(|&error| error)?;
        Ok(Self { verbs, driver: support::driver() })
    }
}

impl PartialEq for VerbsLibraries {
    fn eq(&self, other: &Self) -> bool {
        let driver = |one: &Self| one.driver.map(core::ptr::from_ref);
        core::ptr::eq(self.verbs, other.verbs) && driver(self) == driver(other)
    }
}

impl Eq for VerbsLibraries {}

impl fmt::Debug for VerbsLibraries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbsLibraries").finish_non_exhaustive()
    }
}
