//! Short messages between two ranks with several workers each, of which one has a ULT.
//!
//! The other workers have nothing to do, so they must cost the messages nothing: each row
//! is to be compared with the row of one worker. If the machine has fewer cores than the
//! two ranks have workers, workers do not spin by themselves; `TSUMUGI_SPIN` makes them.

use super::bench::MessageBench;
use super::case::{Case, WINDOW};
use crate::failure::Failure;

/// Measures the selected rows, by the number of workers.
pub fn measure(bench: &mut MessageBench<'_>) -> Result<(), Failure> {
    let rounds = bench.rounds();
    for workers in WORKERS {
        let systems = bench.one_of_ours(&[])?;
        let systems: Vec<_> =
            systems.into_iter().map(|system| system.with_workers(workers)).collect();
        bench.measure(&cases(workers, rounds), (&systems, 2), None)?;
    }
    Ok(())
}

fn cases(workers: u32, rounds: Option<u64>) -> [Case; 2] {
    let [latency, rate] = ROWS else { unreachable!("there are two rows") };
    let params = format!("workers={workers} bytes=8");
    let command = |name, rounds| format!("{name} bytes=8 rounds={rounds} repeat=5");
    let trips = command("latency", rounds.unwrap_or(TRIPS));
    let windows = command("rate", rounds.unwrap_or(WINDOWS));
    [
        Case::new(latency, params.clone(), trips, false),
        Case::new(rate, format!("{params} window={WINDOW}"), windows, false),
    ]
}

/// Half of a round trip, and the time per message with many in flight.
pub const ROWS: &[&str] = &["workers_latency", "workers_rate8"];
const WORKERS: [u32; 4] = [1, 2, 4, 8];
const TRIPS: u64 = 2000;
const WINDOWS: u64 = 200;
