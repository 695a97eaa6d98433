//! `tsumugi info`: what this machine offers to a job.
//!
//! What is not known is said to be unknown; nothing here fails.

use crate::failure::Failure;
use crate::{affinity, args, bench, memory, text};
use std::fs;

/// The parts of the description that are asked for.
pub fn info(args: &args::Info) -> Result<String, Failure> {
    if args.memory || args.config {
        return Err(Failure::Failed("info: this build has no runtime to ask".to_owned()));
    }
    Ok(machine())
}

/// The machine, as a job would find it.
fn machine() -> String {
    let cpus = affinity::allowed().unwrap_or_default();
    let line = bench::trip_ns();
    let rows = [
        ("kernel", or_unknown(word_of("/proc/sys/kernel/osrelease"))),
        ("cpus", format!("{} ({})", cpus.len(), ranges(&cpus))),
        ("cache line, one way", line.map_or_else(|| "one cpu".to_owned(), text::time)),
        ("page", text::bytes(page_bytes())),
        ("memory left", memory::left_bytes().map_or_else(unknown, text::bytes)),
        ("address space limit", limit(libc::RLIMIT_AS)),
        ("file size limit", limit(libc::RLIMIT_FSIZE)),
        ("locked memory limit", limit(libc::RLIMIT_MEMLOCK)),
        ("mappings limit", or_unknown(word_of("/proc/sys/vm/max_map_count"))),
    ];
    format!("machine\n{}", text::facts(&rows))
}

/// `0-3,8` of CPUs 0 to 3 and 8.
fn ranges(cpus: &[usize]) -> String {
    let joined = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    joined.collect::<Vec<_>>().join(",")
}

fn limit(resource: libc::__rlimit_resource_t) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit` at the pointer, which is ours.
    match unsafe { libc::getrlimit(resource, &mut limit) } {
        0 if limit.rlim_cur == libc::RLIM_INFINITY => "none".to_owned(),
        0 => text::bytes(limit.rlim_cur),
        _ => unknown(),
    }
}

fn page_bytes() -> u64 {
    // SAFETY: the call takes a number and touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(0) as u64
}

fn word_of(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn or_unknown(word: Option<String>) -> String {
    word.unwrap_or_else(unknown)
}

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_cpus_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn the_machine_is_described() {
        let text = machine();
        for what in ["kernel", "cpus", "page", "address space limit"] {
            assert!(text.contains(what), "{what} in {text}");
        }
        assert!(page_bytes().is_power_of_two());
    }
}
