//! The words of the job through delegation, that is, under a try-lock: the cost over
//! the same operation without it, and the rate of two cores.

use super::super::sample::{Batch, Contender};
use super::bed::{BenchDevice, TestBed};
use super::bench::RmaBench;
use super::crew::{self, Crew};
use super::requesters::RequestWindow;
use crate::bench::catalogue::Group;
use crate::bench::measured::{self, budget};
use crate::failure::Failure;
use std::sync::Arc;
use tsumugi::pvas::Direct;
use tsumugi::{AddrError, Remote};
use tsumugi_core::backend::execute;
use tsumugi_core::completion::Status;
use tsumugi_core::engine::Engine;
use tsumugi_core::mem::Width;
use tsumugi_core::op::Op;

pub const GROUP: Group = Group {
    name: "delegate",
    rows: &["delegate_get8", "direct_get8", "delegate_alone", "delegate_contended"],
};

pub fn measure(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    uncontended(bench, bed)?;
    contended(bench, bed)
}

fn uncontended(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    let memory = bed.memory().clone();
    let serving = bed.delegate();
    let (engine, places) = (serving.engine(), bench.places);
    let ours = |name, batch| Contender { system: "tsumugi", name, batch };
    let pair = [
        ours("delegate_get8", Box::new(|| Ok(delegate_get8(engine, places)?)) as Batch<'_>),
        ours("direct_get8", Box::new(|| Ok(direct_get8(&memory, places)?))),
    ];
    let mut wanted: Vec<_> =
        pair.into_iter().filter(|contender| bench.wants(contender.name)).collect();
    let Some(first) = wanted.first() else { return Ok(()) };
    bench.rows.progress.stage(first.name, 1);
    let (params, ops) = (&bench.params, places.len() as u64);
    let budget = budget(bench.measure);
    bench.rows.write_measured(measured::measure("rma", params, budget, ops, &mut wanted)?)
}

/// The rate of one thread and the rate of two threads, by turns.
fn contended(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    let names = ["delegate_alone", "delegate_contended"];
    if !names.iter().any(|name| bench.wants(name)) {
        return Ok(());
    }
    bench.rows.progress.stage("delegate_contended", 1);
    let serving = bed.delegate();
    let ops: Arc<[Op]> = bench.places.iter().map(|place| get8(*place)).collect();
    let once = budget(bench.measure).part(ROUNDS);
    let timed = bench.between_trips(|| {
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (threads, samples) in (1..).zip(&mut samples) {
                let window = |hint| RequestWindow::new(serving.engine(), hint, &ops);
                let works = (0..threads).map(window).collect();
                samples.extend(crew::run(Crew::Threads(&bench.cpus), once, works)?);
            }
        }
        Ok(samples)
    })?;
    let rows = (1..).zip(names).zip(timed.value.clone()).filter(|((_, name), _)| bench.wants(name));
    let rows = rows.filter_map(|((threads, name), mut samples)| {
        timed.row(name, &format!("threads={threads} {}", bench.params), &mut samples)
    });
    bench.rows.write(rows)
}

/// Gets every word through the engine; returns their sum.
#[inline(never)]
fn delegate_get8(
    engine: &Engine<'_, BenchDevice>,
    places: &[Remote<u64>],
) -> Result<u64, AddrError> {
    places.iter().try_fold(0, |sum: u64, place| {
        let word = match engine.submit(0, get8(*place), ()) {
            Ok(Status::Done(outcome)) => outcome.result?,
            // This thread is alone, so this case never occurs.
            Ok(Status::Pending(_)) | Err(_) => unreachable!("no other thread holds the endpoint"),
        };
        Ok(sum.wrapping_add(word))
    })
}

/// Gets every word of the memory directly; returns their sum.
#[inline(never)]
fn direct_get8(memory: &Direct, places: &[Remote<u64>]) -> Result<u64, AddrError> {
    places
        .iter()
        .try_fold(0, |sum: u64, place| Ok(sum.wrapping_add(execute(memory, &get8(*place))?)))
}

#[inline(always)]
fn get8(place: Remote<u64>) -> Op {
    Op::get_word(place.addr(), Width::W8)
}

const ROUNDS: u32 = 10;
