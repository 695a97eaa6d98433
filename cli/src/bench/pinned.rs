//! Threads that stay on one CPU during a measurement.

use std::fs;
use tsumugi::affinity;

/// Keeps the calling thread on one CPU until this is dropped on the same thread.
pub struct Pinned(Vec<usize>);

impl Pinned {
    /// Moves the thread to `cpu`, as far as the system allows.
    pub fn to(cpu: usize) -> Self {
        let before = affinity::allowed().unwrap_or_default();
        let _ = affinity::pin(cpu);
        Self(before)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let _ = affinity::keep_to(&self.0);
        }
    }
}

/// Keeps the threads of this process with the name `name` on `cpu`, as far as the
/// system allows.
pub fn pin_named(name: &str, cpu: usize) {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return };
    let mut words = vec![0u64; cpu / 64 + 1];
    words[cpu / 64] = 1 << (cpu % 64);
    let bytes = size_of_val(words.as_slice());
    for thread in threads.flatten() {
        let called = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        let id = thread.file_name().to_str().and_then(|id| id.parse::<libc::pid_t>().ok());
        if called.trim_end() == name
            && let Some(id) = id
        {
            // A thread that has ended meanwhile needs no CPU.
            // SAFETY: the kernel reads the given number of bytes at the pointer, and the
            // vector holds that many.
            unsafe { libc::sched_setaffinity(id, bytes, words.as_ptr().cast()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_old_cpus_after_it_was_pinned() {
        std::thread::spawn(|| {
            let before = affinity::allowed().unwrap();
            let pinned = Pinned::to(before[0]);
            assert_eq!(affinity::allowed().unwrap(), before[..1]);
            drop(pinned);
            assert_eq!(affinity::allowed().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_is_found_by_its_name() {
        let last = *affinity::allowed().unwrap().last().expect("at least one CPU is allowed");
        let named = std::thread::Builder::new().name("by-its-name".into());
        let thread = named.spawn(move || {
            pin_named("by-its-name", last);
            assert_eq!(affinity::allowed().unwrap(), [last]);
        });
        thread.unwrap().join().unwrap();
    }
}
