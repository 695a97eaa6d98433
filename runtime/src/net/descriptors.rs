//! Raises the limit of file descriptors, so that connections of strangers do not use
//! them up.
//!
//! libfabric's tcp provider accepts each connection to its port, and learns the peer
//! from the first bytes that come; it keeps any number of connections that send
//! nothing. Each takes a descriptor of this process. The limit is 1,024 as a rule,
//! though the process may raise it to many more, and a rank without a free
//! descriptor can neither be reached nor open a file. So a rank raises its limit, up
//! to a number with which programs that it starts can live: some of them close each
//! descriptor that there may be.

use std::io;

/// Raises the limit of descriptors to the maximum of this process, at most [`MOST`].
///
/// # Errors
///
/// The error of the system call; the limit is unchanged.
pub(super) fn take_all() -> io::Result<()> {
    let mut limit = limit()?;
    let most = limit.rlim_max.min(MOST);
    if limit.rlim_cur < most {
        limit.rlim_cur = most;
        // SAFETY: the kernel reads one `rlimit`, which is a local.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`, which is a local.
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
    fn the_limit_of_descriptors_is_raised_to_the_maximum() {
        let rlim_max = limit().unwrap().rlim_max;
        let most = rlim_max.min(MOST);
        let less = libc::rlimit { rlim_cur: most - 1, rlim_max };
        // SAFETY: the pointer is to an `rlimit`.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &less) }, 0);
        take_all().unwrap();
        assert_eq!(limit().unwrap().rlim_cur, most);
        take_all().unwrap();
    }
}
