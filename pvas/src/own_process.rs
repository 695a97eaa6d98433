//! The process of a rank, which a child that it forks is not.
//!
//! A word of the process lies alone in a page that the kernel clears in a forked child. So a
//! child is noticed by one load, whatever forked it.

use crate::sys;
use std::process;
use std::sync::OnceLock;
use tsumugi_core::coll::CollError;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// Notes that this process holds a rank, or several.
pub fn begin() {
    // Relaxed, both words: a process is forked by one of its threads, after this.
    RANK_PROCESS.store(process::id(), Ordering::Relaxed);
    let here = HERE.get_or_init(|| sys::word_cleared_by_fork().unwrap_or(&NOT_CLEARED));
    here.store(1, Ordering::Relaxed);
}

/// Refuses a collective in a child that the process of a rank has forked.
///
/// # Errors
///
/// [`CollError::Forked`].
#[inline]
pub fn check() -> Result<(), CollError> {
    // Relaxed: as in `begin`.
    match HERE.get() {
        Some(here) if here.load(Ordering::Relaxed) == 0 => Err(forked()),
        _ => Ok(()),
    }
}

#[cold]
fn forked() -> CollError {
    CollError::Forked { rank_process: RANK_PROCESS.load(Ordering::Relaxed) }
}

// These are statics because a fork copies the whole process.
static HERE: OnceLock<&'static AtomicU32> = OnceLock::new();
static RANK_PROCESS: AtomicU32 = AtomicU32::new(0);
/// Where the kernel clears no pages, or has none left: then no child is noticed.
static NOT_CLEARED: AtomicU32 = AtomicU32::new(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::forked;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn a_forked_child_is_refused() {
        begin();
        assert_eq!(check(), Ok(()));
        let (mut ready, told) = std::io::pipe().unwrap();
        let rank_process = process::id();
        let work = || {
            let is_refused = check() == Err(CollError::Forked { rank_process });
            forked::write_number(told.as_fd(), i32::from(is_refused));
        };
        // SAFETY: loads and a system call.
        let child = unsafe { forked::fork(work) }.unwrap();
        let mut answer = [0; 4];
        ready.read_exact(&mut answer).unwrap();
        forked::reap(child);
        assert_eq!(i32::from_ne_bytes(answer), 1);
        assert_eq!(check(), Ok(()));
    }
}
