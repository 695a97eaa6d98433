//! The oldest kernel and C library on which a rank runs, and the check of both.
//!
//! | part | oldest | because of |
//! |---|---|---|
//! | Linux | 5.3 | `pidfd_open`, by which a launcher waits for its ranks |
//! | glibc | 2.27 | `memfd_create`, which makes the memory files of partitions |
//!
//! Later calls (`close_range`, `MADV_POPULATE_WRITE`, `MFD_NOEXEC_SEAL`) have a substitute.
//! A program that was linked with a newer glibc may need more than 2.27; the dynamic loader
//! says so before `main`.

use crate::sys;
use std::fmt;

/// A part of the system that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPart {
    /// The kernel.
    Linux,
    /// The C library.
    Glibc,
}

/// The first two numbers of a version, such as 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemVersion(pub u32, pub u32);

/// The oldest kernel.
pub const OLDEST_LINUX: SystemVersion = SystemVersion(5, 3);
/// The oldest C library.
pub const OLDEST_GLIBC: SystemVersion = SystemVersion(2, 27);

/// A part of the system is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldSystem {
    /// The part.
    pub part: SystemPart,
    /// Its version.
    pub found: SystemVersion,
    /// The oldest version on which a rank runs.
    pub oldest: SystemVersion,
}

impl SystemVersion {
    /// Reads the beginning of a version as the system writes it, such as `6.1.0-18-amd64`
    /// or `2.36`; `None` if it does not begin with two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, rest) = text.split_once('.')?;
        let end = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        Some(Self(number(major)?, number(&rest[..end])?))
    }
}

/// Checks the kernel and the C library. A version that does not begin with two numbers
/// passes: only a version that is known to be too old is refused.
///
/// # Errors
///
/// [`OldSystem`] names the part, its version and the oldest one.
pub fn check() -> Result<(), OldSystem> {
    refuse_older(SystemPart::Linux, sys::kernel_release().as_deref(), OLDEST_LINUX)?;
    refuse_older(SystemPart::Glibc, sys::glibc_version(), OLDEST_GLIBC)
}

/// Whether this process may watch other processes (`pidfd_open`), as a launcher and the
/// ranks of other launchers do.
///
/// # Errors
///
/// The error number of the system.
pub fn may_watch() -> Result<(), i32> {
    let watched = sys::pidfd(std::process::id());
    watched.map(drop).map_err(|error| error.raw_os_error().unwrap_or(0))
}

fn refuse_older(
    part: SystemPart,
    found: Option<&str>,
    oldest: SystemVersion,
) -> Result<(), OldSystem> {
    match found.and_then(SystemVersion::parse) {
        Some(found) if found < oldest => Err(OldSystem { part, found, oldest }),
        _ => Ok(()),
    }
}

impl fmt::Display for SystemPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linux => "Linux",
            Self::Glibc => "glibc",
        })
    }
}

impl fmt::Display for SystemVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl fmt::Display for OldSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, found, oldest } = self;
        write!(f, "this system has {part} {found}; tsumugi needs {part} {oldest} or later")
    }
}

impl std::error::Error for OldSystem {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SpaceConfig;
    use crate::space::Space;

    #[test]
    fn versions_are_read_as_systems_write_them() {
        for (text, release) in [
            ("6.1.0-18-amd64", Some(SystemVersion(6, 1))),
            ("5.3", Some(SystemVersion(5, 3))),
            ("5.15.167.4-microsoft-standard-WSL2", Some(SystemVersion(5, 15))),
            ("4.18.0-553.el8_10.x86_64", Some(SystemVersion(4, 18))),
            ("6.12-rc1", Some(SystemVersion(6, 12))),
            ("2.36", Some(SystemVersion(2, 36))),
            ("2.17.9000", Some(SystemVersion(2, 17))),
            ("", None),
            ("6", None),
            ("6.", None),
            (".1", None),
            ("+6.1", None),
            ("6.x", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(SystemVersion::parse(text), release, "{text:?}");
        }
    }

    #[test]
    fn an_older_version_is_refused_with_both_numbers() {
        let linux = |found| refuse_older(SystemPart::Linux, Some(found), OLDEST_LINUX);
        let error = linux("4.18.0-553.el8_10.x86_64").unwrap_err().to_string();
        assert_eq!(error, "this system has Linux 4.18; tsumugi needs Linux 5.3 or later");
        // Numbers are compared, not their digits.
        assert_eq!(linux("5.10.0"), Ok(()));
        assert_eq!(linux("5.3.0"), Ok(()));
        let error = refuse_older(SystemPart::Glibc, Some("2.9"), OLDEST_GLIBC).unwrap_err();
        let said = "this system has glibc 2.9; tsumugi needs glibc 2.27 or later";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn a_kernel_that_says_2_6_makes_no_partitions() {
        // The personality is the thread's own.
        let thread = std::thread::spawn(|| {
            // SAFETY: a plain call.
            assert_ne!(unsafe { libc::personality(libc::UNAME26 as libc::c_ulong) }, -1);
            Space::create(1, &SpaceConfig::default()).map(drop)
        });
        let refused = thread.join().unwrap().unwrap_err();
        let said = "this system has Linux 2.6; tsumugi needs Linux 5.3 or later";
        assert_eq!(refused.to_string(), said);
    }

    #[test]
    fn an_unknown_version_passes_and_this_system_does() {
        assert_eq!(refuse_older(SystemPart::Linux, Some("a kernel"), OLDEST_LINUX), Ok(()));
        assert_eq!(refuse_older(SystemPart::Glibc, None, OLDEST_GLIBC), Ok(()));
        assert!(sys::kernel_release().as_deref().and_then(SystemVersion::parse).is_some());
        assert_eq!(check(), Ok(()));
    }
}
