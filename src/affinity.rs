//! Which CPUs the process may use, and how a thread keeps to one of them.
//!
//! Counts follow the cpuset: a container that was given 2 of 128 CPUs has 2.

use std::io;

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
///
/// The system's.
pub fn allowed() -> io::Result<Vec<usize>> {
    let mut words = vec![0u64; 16];
    loop {
        let bytes = size_of_val(words.as_slice());
        // SAFETY: the kernel writes at most `bytes` bytes at the pointer, and
        // the vector holds that many.
        let outcome = unsafe { libc::sched_getaffinity(0, bytes, words.as_mut_ptr().cast()) };
        if outcome == 0 {
            return Ok(bits(&words));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words.len() >= WORDS_MAX {
            return Err(error);
        }
        // The kernel knows more CPUs than the mask has bits.
        words.resize(words.len() * 2, 0);
    }
}

/// Keeps the calling thread, and those that it starts, on `cpu`.
///
/// # Errors
///
/// The system's: there is no such CPU, or it is not for this process.
pub fn pin(cpu: usize) -> io::Result<()> {
    keep_to(&[cpu])
}

/// Keeps the calling thread, and those that it starts, to `cpus`.
///
/// # Errors
///
/// The system's: there are no such CPUs, or they are not for this process.
pub fn keep_to(cpus: &[usize]) -> io::Result<()> {
    let last = cpus.iter().max().copied().unwrap_or(0);
    let mut words = vec![0u64; last / 64 + 1];
    for cpu in cpus {
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads the given number of bytes at the pointer, and
    // the vector holds that many.
    let outcome =
        unsafe { libc::sched_setaffinity(0, size_of_val(words.as_slice()), words.as_ptr().cast()) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bits(words: &[u64]) -> Vec<usize> {
    (0..words.len() * 64).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1).collect()
}

/// 65,536 CPUs.
const WORDS_MAX: usize = 1024;

/// Asks that this thread's sleeps are not stretched by the 50 us that are
/// usual.
pub(crate) fn sleep_exactly() {
    // SAFETY: a plain call on the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_its_bits() {
        assert_eq!(bits(&[0b1001, 1 << 63]), [0, 3, 127]);
    }

    #[test]
    fn a_pinned_thread_may_use_one_cpu() {
        std::thread::spawn(|| {
            let last = *allowed().unwrap().last().expect("at least one CPU is allowed");
            pin(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert!(pin(WORDS_MAX * 64 - 1).is_err());
    }
}
