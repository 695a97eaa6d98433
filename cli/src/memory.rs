//! How much memory is left: of the machine, and of the process's control group.

use std::fs;

/// The smaller of the two; `None` if neither is known.
pub fn left_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let group =
        limit_bytes().map(|limit| limit.saturating_sub(of_group("memory.current").unwrap_or(0)));
    [machine, group].into_iter().flatten().min()
}

/// The memory limit of the control group; `None` if there is no limit.
pub fn limit_bytes() -> Option<u64> {
    of_group("memory.max")
        .or_else(|| of_group("memory/memory.limit_in_bytes"))
        .filter(|n| *n < 1 << 62)
}

fn of_group(name: &str) -> Option<u64> {
    fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
}

/// The bytes in the line `MemAvailable:  1234 kB`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_among_others() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    7 kB\n"), Some(7 * 1024));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert_eq!(available("MemAvailable: lots\n"), None);
    }

    #[test]
    fn some_memory_is_available() {
        assert!(left_bytes().is_none_or(|bytes| bytes > 0));
    }
}
