//! The answer of a system call, as a result.

use std::io::{Error, Result};

/// The error number of the calling thread as an error, if the call returned -1.
pub fn check(result: i32) -> Result<()> {
    if result == -1 { Err(Error::last_os_error()) } else { Ok(()) }
}
