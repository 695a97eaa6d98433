//! One requester and a communication thread: the cost of a submit, and the latency
//! of an 8-byte read when the requester polls and when a ULT sleeps.
//!
//! ```text
//!  offload_submit1     [submit] wait [submit] wait ...       the brackets, less
//!  offload_submit64    [submit submit ... submit] wait all   the clock's own time
//!  offload_latency_*   [submit wait submit wait ...]
//! ```

use super::super::sample::{Budget, Contender};
use super::bed::{BenchDevice, TestBed};
use super::bench::RmaBench;
use super::listing::clock_ns;
use crate::bench::catalogue::Group;
use crate::bench::measured::budget;
use crate::bench::pinned;
use crate::bench::sample::sample;
use crate::failure::Failure;
use std::time::Instant;
use tsumugi::affinity;
use tsumugi::{AddrError, Config, Path, Rank, Remote, Runtime};
use tsumugi_core::completion::Ticket;
use tsumugi_core::engine::Engine;
use tsumugi_core::mem::Width;
use tsumugi_core::op::Op;
use tsumugi_core::sync::spin_loop;

pub const GROUP: Group = Group {
    name: "offload",
    rows: &["offload_submit1", "offload_submit64", "offload_latency_poll", "offload_latency_ult"],
};

pub fn measure(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    let budget = budget(bench.measure);
    for name in ["offload_submit1", "offload_submit64"] {
        if bench.wants(name) {
            bench.rows.progress.stage(name, 1);
            submit(bench, bed, budget, name)?;
        }
    }
    if bench.wants("offload_latency_poll") {
        bench.rows.progress.stage("offload_latency_poll", 1);
        latency_poll(bench, bed, budget)?;
    }
    if bench.wants("offload_latency_ult") {
        bench.rows.progress.stage("offload_latency_ult", 1);
        latency_ult(bench, budget)?;
    }
    Ok(())
}

fn submit(
    bench: &RmaBench<'_>,
    bed: &mut TestBed,
    budget: Budget,
    name: &str,
) -> Result<(), Failure> {
    let timed = bench.between_trips(|| {
        let clock_ns = clock_ns();
        let serving = bed.offload(bench.cpus[1]);
        let engine = serving.engine();
        let mut places = bench.places.chunks_exact(BATCH).cycle();
        let mut batch = || {
            let places = places.next().expect("the places repeat");
            match name {
                "offload_submit1" => submit_one(engine, places, clock_ns),
                _ => submit_all(engine, places, clock_ns),
            }
        };
        for _ in 0..WARM_UP {
            batch()?;
        }
        collect(budget, batch)
    })?;
    let outstanding = if name == "offload_submit1" { 1 } else { BATCH };
    let params = format!("outstanding={outstanding} {}", bench.params);
    bench.rows.write(timed.row(name, &params, &mut timed.value.clone()))
}

/// Submits a read of each place after the one before has ended; ns per submit.
#[inline(never)]
fn submit_one(
    engine: &Engine<'static, BenchDevice>,
    places: &[Remote<u64>],
    clock_ns: f64,
) -> Result<f64, AddrError> {
    let mut ns = 0;
    for place in places {
        let begin = Instant::now();
        let ticket = post(engine, *place);
        ns += begin.elapsed().as_nanos() as u64;
        end(ticket)?;
    }
    Ok(ns as f64 / places.len() as f64 - clock_ns)
}

/// Submits reads of all places and then waits for all of them; ns per submit.
#[inline(never)]
fn submit_all(
    engine: &Engine<'static, BenchDevice>,
    places: &[Remote<u64>],
    clock_ns: f64,
) -> Result<f64, AddrError> {
    let mut tickets = [const { None }; BATCH];
    let begin = Instant::now();
    for (place, ticket) in places.iter().zip(&mut tickets) {
        *ticket = Some(post(engine, *place));
    }
    let ns = begin.elapsed().as_nanos() as f64 - clock_ns;
    for ticket in tickets.into_iter().flatten() {
        end(ticket)?;
    }
    Ok(ns / places.len() as f64)
}

fn latency_poll(bench: &RmaBench<'_>, bed: &mut TestBed, budget: Budget) -> Result<(), Failure> {
    let timed = bench.between_trips(|| {
        let serving = bed.offload(bench.cpus[1]);
        let engine = serving.engine();
        let mut places = bench.places.chunks_exact(BATCH).cycle();
        let batch = || {
            let places = places.next().expect("the places repeat");
            let sum = places.iter().try_fold(0, |sum: u64, place| {
                Ok::<_, AddrError>(sum.wrapping_add(end(post(engine, *place))?))
            })?;
            Ok(sum)
        };
        let mut contender =
            [Contender { system: "tsumugi", name: "offload_latency_poll", batch: Box::new(batch) }];
        Ok(sample(budget, BATCH as u64, &mut contender)?.concat())
    })?;
    let params = format!("outstanding=1 {}", bench.params);
    bench.rows.write(timed.row("offload_latency_poll", &params, &mut timed.value.clone()))
}

/// A job of two ranks in this process, with all operations through the communication
/// thread.
fn latency_ult(bench: &RmaBench<'_>, budget: Budget) -> Result<(), Failure> {
    let cpus = bench.cpus;
    let job = || {
        // An OS thread, because the job has schedulers of its own.
        let job = std::thread::spawn(move || {
            let config = Config::default().spin(SPIN);
            config.workers(1).path(Path::Offload).run_ranks(2, |rt| sleeper(rt, cpus, budget))
        });
        let samples = job.join().expect("the thread does not panic")?;
        Ok(samples.concat())
    };
    let timed = bench.between_trips(job)?;
    let params = "outstanding=1 peers=1 path=offload";
    bench.rows.write(timed.row("offload_latency_ult", params, &mut timed.value.clone()))
}

fn sleeper(rt: &Runtime, cpus: [usize; 2], budget: Budget) -> Result<Vec<f64>, Failure> {
    let words = rt.share::<u64>(WORDS)?;
    rt.barrier()?;
    let mut samples = Vec::new();
    if rt.rank() == Rank(0) {
        let _ = affinity::pin(cpus[0]);
        pinned::pin_named("tsumugi-comm", cpus[1]);
        let mut turn = 0;
        let batch = || {
            let mut sum = 0u64;
            for _ in 0..BATCH {
                turn += 1;
                sum = sum.wrapping_add(rt.get(words.at(Rank(1), turn * STRIDE % WORDS))?);
            }
            Ok(sum)
        };
        let batch = Box::new(batch);
        let mut contender = [Contender { system: "tsumugi", name: "offload_latency_ult", batch }];
        samples = sample(budget, BATCH as u64, &mut contender)?.concat();
    }
    rt.barrier()?;
    Ok(samples)
}

#[inline(always)]
fn post(engine: &Engine<'static, BenchDevice>, place: Remote<u64>) -> Ticket<'static, ()> {
    let op = Op::get_word(place.addr(), Width::W8);
    // At most one batch is outstanding, so there is room.
    engine.post(0, op, ()).expect("64 tags and 64 slots are free")
}

#[inline(always)]
fn end(mut ticket: Ticket<'static, ()>) -> Result<u64, AddrError> {
    loop {
        match ticket.try_finish() {
            Ok(outcome) => return outcome.result,
            Err(again) => ticket = again,
        }
        spin_loop();
    }
}

/// Runs batches until the budget is used up.
fn collect(
    budget: Budget,
    mut batch: impl FnMut() -> Result<f64, AddrError>,
) -> Result<Vec<f64>, Failure> {
    let (begin, mut samples) = (Instant::now(), Vec::with_capacity(SAMPLES_MAX));
    let mut batches = 0;
    while match budget {
        Budget::Time(time) => batches == 0 || begin.elapsed() < time,
        Budget::Operations(operations) => batches * (BATCH as u64) < operations,
    } {
        let ns = batch()?;
        batches += 1;
        if samples.len() < SAMPLES_MAX {
            samples.push(ns);
        }
    }
    Ok(samples)
}

const BATCH: usize = 64;
const WARM_UP: u32 = 16;
const SAMPLES_MAX: usize = 1 << 16;
const WORDS: usize = 4096;
/// A stride beyond one cache line, so that no two successive gets share a line.
const STRIDE: usize = 17;
const SPIN: u32 = 200;
