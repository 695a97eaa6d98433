//! Measures how long an operation takes, one after another and many at once.

use std::time::Instant;
use tsumugi::{AddrError, Runtime};

/// The time of one operation after another in microseconds: minimum, 10th
/// percentile, median.
pub fn one_after_another(
    rt: &Runtime,
    operations: usize,
    once: impl Fn(&Runtime, usize) -> Result<(), AddrError>,
) -> Result<[f64; 3], AddrError> {
    for _ in 0..WARM_UP {
        once(rt, 0)?;
    }
    let mut times = Vec::with_capacity(operations);
    for _ in 0..operations {
        let start = Instant::now();
        once(rt, 0)?;
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    Ok([0, 10, 50].map(|part| times[operations * part / 100] as f64 / 1e3))
}

/// The time in microseconds for each of at least `operations` operations, with
/// `ults` of them in progress at a time; and the number of operations.
pub fn at_once(
    rt: &Runtime,
    ults: usize,
    operations: usize,
    once: impl Fn(&Runtime, usize) -> Result<(), AddrError> + Copy + Send + 'static,
) -> Result<(f64, usize), AddrError> {
    let (each, start) = (operations.div_ceil(ults), Instant::now());
    let repeat = |ult| rt.spawn(move |rt| (0..each).try_for_each(|_| once(rt, ult)));
    let all: Vec<_> = (0..ults).map(repeat).collect();
    for ult in all {
        ult.join().expect("no operation panics")?;
    }
    let count = each * ults;
    Ok((start.elapsed().as_nanos() as f64 / 1e3 / count as f64, count))
}

const WARM_UP: usize = 50;
