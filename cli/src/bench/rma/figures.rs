//! The paper's figures: latency, overhead and rate by number of threads and size,
//! with and without a communication thread.
//!
//! Without a communication thread the requesters call the endpoint themselves, under
//! a try-lock, and are spread over both CPUs; an operation then ends inside the
//! call, so overhead and latency are the same. All requests read the same bytes into
//! the same buffer, which only the executor writes.

use super::bed::TestBed;
use super::bench::{BYTES_MAX, RmaBench};
use super::crew::{self, Crew};
use super::listing::{Calls, Listing6, Listing7, Measurements, RequesterSetup, clock_ns};
use crate::bench::catalogue::Group;
use crate::bench::sample::Budget;
use crate::failure::Failure;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tsumugi::pvas::Direct;
use tsumugi::{Error, Rank};
use tsumugi_core::mem::{Access, LocalAddr, Region};
use tsumugi_core::op::Op;

pub const GROUP: Group = Group { name: "figures", rows: &["latency", "overhead", "rate"] };

pub fn measure(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    let Some(long) = bench.long else { return Ok(()) };
    let local = Local::new(bed.memory())?;
    let get = |bytes| {
        let to = LocalAddr { key: local.region.key, offset: 0 };
        Op::get(long.at(Rank(1), 0).addr(), to, bytes)
    };
    let wanted = WantedLoops {
        listing6: bench.wants("latency") || bench.wants("overhead"),
        listing7: bench.wants("rate"),
    };
    for (path, cpus) in [("offload", &bench.cpus[..1]), ("delegate", &bench.cpus[..])] {
        for threads in THREADS {
            bench
                .rows
                .progress
                .stage(&format!("figures: {path}, {threads} threads"), SIZES.len() as u64);
            for (step, bytes) in (1..).zip(SIZES) {
                let rows = bench.between_trips(|| {
                    let serving = match path {
                        "offload" => bed.offload(bench.cpus[1]),
                        _ => bed.delegate(),
                    };
                    point(bench, serving.engine(), get(bytes), threads, cpus, wanted)
                })?;
                let params = format!("threads={threads} bytes={bytes} path={path}");
                let [mut latency, mut overhead, mut rate] = rows.value.clone();
                let rows = [
                    rows.row("latency", &params, &mut latency),
                    rows.row("overhead", &params, &mut overhead),
                    rows.row("rate", &params, &mut rate),
                ];
                let rows = rows.into_iter().flatten().filter(|row| bench.wants(&row.name));
                bench.rows.write(rows)?;
                bench.rows.progress.at(step);
            }
        }
    }
    Ok(())
}

/// The loops to run.
#[derive(Clone, Copy)]
pub struct WantedLoops {
    pub listing6: bool,
    pub listing7: bool,
}

impl WantedLoops {
    pub const BOTH: Self = Self { listing6: true, listing7: true };
}

/// Latency, overhead and time per operation of one point of the figures.
pub fn point<C: Calls>(
    bench: &RmaBench<'_>,
    calls: C,
    op: Op,
    threads: usize,
    cpus: &[usize],
    wanted: WantedLoops,
) -> Result<[Vec<f64>; 3], Failure> {
    let is_alone = threads <= cpus.len();
    let window = (IN_FLIGHT_BYTES / op.bytes()).clamp(1, WINDOW);
    let request = RequesterSetup { calls, op, is_alone, window, clock_ns: clock_ns() };
    let (crew, budget) = (Crew::Threads(cpus), budget(bench));
    let both = Arc::new(Mutex::new(Measurements::default()));
    if wanted.listing6 {
        let one = |hint| Listing6::new(&request, hint, &both);
        crew::run(crew, budget, (0..threads).map(one).collect())?;
    }
    let mut rate = Vec::new();
    if wanted.listing7 {
        let one = |hint| Listing7::new(&request, hint);
        rate = crew::run(crew, budget, (0..threads).map(one).collect())?;
    }
    let both = std::mem::take(&mut *both.lock().unwrap_or_else(PoisonError::into_inner));
    Ok([both.latency, both.overhead, rate])
}

/// A short budget, because there are hundreds of points.
fn budget(bench: &RmaBench<'_>) -> Budget {
    match (bench.measure.ops, bench.measure.quick) {
        (Some(ops), _) => Budget::Operations(ops),
        (None, false) => Budget::Time(Duration::from_millis(200)),
        (None, true) => Budget::Time(Duration::from_millis(20)),
    }
}

/// The buffer into which all reads copy.
struct Local {
    memory: Direct,
    region: Region,
    bytes: Vec<u8>,
}

impl Local {
    fn new(memory: &Direct) -> Result<Self, Failure> {
        let mut bytes = vec![1; BYTES_MAX];
        let base = NonNull::from(&mut bytes[0]);
        // SAFETY: the buffer is unregistered before it is freed, and not used
        // otherwise.
        let region = unsafe { memory.register(base, bytes.len() as u64, Access::Local) };
        let region = region.map_err(|error| Failure::from(Error::Register(error)))?;
        Ok(Self { memory: memory.clone(), region, bytes })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.memory.unregister(self.region.key);
        self.bytes.clear();
    }
}

/// The numbers of requesters in the figures.
pub const THREADS: [usize; 5] = [1, 2, 4, 8, 16];

/// 1 B to 16 MiB, and the 8 bytes of the paper's numbers.
pub const SIZES: [u64; 14] = {
    let mut sizes = [8; 14];
    let mut power = 0;
    while power < 13 {
        sizes[power + (power > 1) as usize] = 1 << (2 * power);
        power += 1;
    }
    sizes
};

const WINDOW: u64 = 64;
/// The greatest number of bytes in flight of one requester, so that the rest at the
/// end takes only a moment.
const IN_FLIGHT_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_from_one_byte_to_the_longest() {
        assert!(SIZES.is_sorted() && SIZES[..4] == [1, 4, 8, 16]);
        assert_eq!(SIZES.last(), Some(&(BYTES_MAX as u64)));
    }
}
