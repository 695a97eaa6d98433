//! Room for connections that nobody has asked for.
//!
//! libfabric's tcp provider takes each connection to its port, and learns who it
//! is from what comes by it: of those that say nothing it keeps any number. Each is
//! a descriptor of this process, which has 1,024 as a rule though it may have many
//! more, and a rank without one can neither be reached nor open a file. So a rank
//! takes what it may have, up to a number that programs which it starts can live
//! with: some close each descriptor that there may be.

use std::io;

/// Raises the limit of descriptors to what this process may have, at most
/// [`MOST`].
///
/// # Errors
///
/// Those of the system: the limit is as it was.
pub(super) fn take_all() -> io::Result<()> {
    let mut limit = limit()?;
    let most = limit.rlim_max.min(MOST);
    if limit.rlim_cur < most {
        limit.rlim_cur = most;
        // SAFETY: the kernel reads one `rlimit`, which is ours.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`, which is ours.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

const MOST: libc::rlim_t = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_what_it_may_have() {
        let rlim_max = limit().unwrap().rlim_max;
        let most = rlim_max.min(MOST);
        let less = libc::rlimit { rlim_cur: most - 1, rlim_max };
        // SAFETY: one `rlimit`.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &less) }, 0);
        take_all().unwrap();
        assert_eq!(limit().unwrap().rlim_cur, most);
        take_all().unwrap();
    }
}
