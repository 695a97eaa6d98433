//! Which CPUs the process may use, and how a thread keeps to one of them.
//!
//! Counts follow the cpuset: a container that was given 2 of 128 CPUs has 2.

use std::fs;
use std::io;

/// The CPUs that the calling thread may run on, ascending.
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

/// Keeps the calling thread on `cpu`.
pub fn pin(cpu: usize) -> io::Result<()> {
    bind(0, &[cpu])
}

/// Keeps the threads of this process that are called `name` on `cpu`, as far
/// as the system allows.
pub fn pin_named(name: &str, cpu: usize) {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return };
    for thread in threads.flatten() {
        let called = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if called.trim_end() == name
            && let Some(id) = thread.file_name().to_str().and_then(|id| id.parse().ok())
        {
            // One that has ended meanwhile needs no CPU.
            let _ = bind(id, &[cpu]);
        }
    }
}

/// The calling thread, on one CPU until this is dropped there.
pub struct Pinned(Vec<usize>);

impl Pinned {
    /// On `cpu`, as far as the system allows.
    pub fn to(cpu: usize) -> Self {
        let before = allowed().unwrap_or_default();
        let _ = pin(cpu);
        Self(before)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let _ = bind(0, &self.0);
        }
    }
}

/// Of the thread `id`; 0 is the calling one.
fn bind(id: libc::pid_t, cpus: &[usize]) -> io::Result<()> {
    let mut words = vec![0u64; cpus.iter().max().map_or(0, |cpu| cpu / 64 + 1)];
    for cpu in cpus {
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    let bytes = size_of_val(words.as_slice());
    // SAFETY: the kernel reads the given number of bytes at the pointer, and
    // the vector holds that many.
    let outcome = unsafe { libc::sched_setaffinity(id, bytes, words.as_ptr().cast()) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bits(words: &[u64]) -> Vec<usize> {
    (0..words.len() * 64).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1).collect()
}

/// 65,536 CPUs.
const WORDS_MAX: usize = 1024;

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
    fn a_thread_is_let_go_where_it_was_pinned() {
        std::thread::spawn(|| {
            let before = allowed().unwrap();
            let pinned = Pinned::to(before[0]);
            assert_eq!(allowed().unwrap(), before[..1]);
            drop(pinned);
            assert_eq!(allowed().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_is_found_by_its_name() {
        let last = *allowed().unwrap().last().expect("at least one CPU is allowed");
        let named = std::thread::Builder::new().name("by-its-name".into());
        let thread = named.spawn(move || {
            pin_named("by-its-name", last);
            assert_eq!(allowed().unwrap(), [last]);
        });
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert!(pin(WORDS_MAX * 64 - 1).is_err());
    }
}
