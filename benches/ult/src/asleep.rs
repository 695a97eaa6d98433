//! How much memory sleeping ULTs take, and how long it takes to make and to wake
//! them.
//!
//! Each system runs this in a process of its own, which has done nothing else
//! before.

use std::time::Instant;

/// The measurement while the sleepers are made.
#[derive(Debug)]
pub struct Growth {
    before_kib: u64,
    start: Instant,
}

/// The measurement while the sleepers sleep and are woken.
#[derive(Debug)]
pub struct Asleep {
    ults: f64,
    bytes_each: f64,
    create_ns: f64,
    start: Instant,
}

impl Growth {
    /// Begins the measurement.
    pub fn begin() -> Self {
        Self { before_kib: resident_kib(), start: Instant::now() }
    }

    /// Ends the first part, when all `ults` are asleep. They are woken after this.
    pub fn asleep(self, ults: usize) -> Asleep {
        let (elapsed, ults) = (self.start.elapsed(), ults as f64);
        let grown = resident_kib().saturating_sub(self.before_kib) as f64 * 1024.0;
        let create_ns = elapsed.as_nanos() as f64 / ults;
        Asleep { ults, bytes_each: grown / ults, create_ns, start: Instant::now() }
    }
}

impl Asleep {
    /// Ends the measurement, when all ULTs have ended. Returns for one ULT its
    /// bytes, the time to create it, and the time to wake and join it.
    pub fn woken(self) -> [f64; 3] {
        let wake_ns = self.start.elapsed().as_nanos() as f64 / self.ults;
        [self.bytes_each, self.create_ns, wake_ns]
    }
}

/// Bytes of a sleeper's stack, in systems where that can be chosen.
pub const STACK_BYTES: usize = 16 << 10;

/// Returns VmRSS and VmPTE, added.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let field = |name: &str| {
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .expect("/proc/self/status has this field");
        let value = line.split_whitespace().nth(1).expect("the field has a value");
        value.parse::<u64>().expect("the value is a number of KiB")
    };
    field("VmRSS") + field("VmPTE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_are_counted() {
        let growth = Growth::begin();
        let memory = vec![1u8; 64 << 20];
        let [bytes, create, wake] = growth.asleep(1 << 14).woken();
        assert!(std::hint::black_box(&memory).len() == 64 << 20);
        assert!(bytes > 3000.0 && create > 0.0 && wake >= 0.0, "{bytes} {create} {wake}");
    }
}
