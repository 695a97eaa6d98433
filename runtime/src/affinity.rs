//! The CPUs that the process may use, and binding threads to them.
//!
//! All counts follow the cpuset: in a container with 2 of 128 CPUs, the count is 2.

use std::io;

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
///
/// The error of the system call.
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
        // The kernel supports more CPUs than the mask has bits.
        words.resize(words.len() * 2, 0);
    }
}

/// Binds the calling thread, and the threads that it starts later, to `cpu`.
///
/// # Errors
///
/// The error of the system call, if there is no such CPU or if the process may not
/// use it.
pub fn pin(cpu: usize) -> io::Result<()> {
    keep_to(&[cpu])
}

/// Binds the calling thread, and the threads that it starts later, to `cpus`.
///
/// # Errors
///
/// The error of the system call, if none of the CPUs exists or if the process may
/// use none of them.
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

/// The maximum size of a mask in words: 65,536 CPUs.
const WORDS_MAX: usize = 1024;

/// Sets the timer slack of this thread to the minimum, so that its sleeps are not
/// extended by the usual 50 us.
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
