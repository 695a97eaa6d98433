//! How much memory is left: of the machine, and of the control group we are in.

use std::fs;

/// The less of the two; `None` where neither is known.
pub fn left_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let number = |name: &str| {
        let path = format!("/sys/fs/cgroup/{name}");
        fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    let group = number("memory.max")
        .map(|limit| limit.saturating_sub(number("memory.current").unwrap_or(0)));
    [machine, group].into_iter().flatten().min()
}

/// Bytes of the line `MemAvailable:  1234 kB`.
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
    fn something_is_left() {
        assert!(left_bytes().is_none_or(|bytes| bytes > 0));
    }
}
