//! How near ranks that outnumber the cores come to what the cores would do without messages:
//! twice the rate of one rank alone, where there are two cores. The rate alone is the best that
//! any system has reached in this run. Virtual cores may do less together than twice what one
//! does: the first line of a job is the sum of as many jobs of one rank at once as there are cores.

use super::system::{Run, System};
use super::{Options, spread};
use tsumugi_cli::{Axis, Plot, Point, Series, draw};

/// A job: its ranks, the side of a rank's mesh, and which shares LULESH itself has once reached
/// with Open MPI and with MPICH on two cores, in runs of a few cycles.
struct Job {
    ranks: usize,
    side: usize,
    lulesh: Option<[u32; 2]>,
}

const JOBS: [Job; 4] = [
    Job { ranks: 8, side: 20, lulesh: Some([82, 57]) },
    Job { ranks: 27, side: 10, lulesh: Some([38, 27]) },
    Job { ranks: 64, side: 6, lulesh: Some([19, 11]) },
    Job { ranks: 216, side: 6, lulesh: None },
];

/// So short are the runs of these shares. MPICH's ranks wait for whole time slices of each other
/// from the third cycle or so on.
const CYCLES: usize = 2;
/// A rank alone has as many cycles as give so many elements.
const ELEMENTS_ALONE: usize = 200_000;

/// The rates of one system in a job.
struct Rates<'s> {
    system: &'s System,
    rates: Vec<f64>,
}

pub fn compare(systems: &[System], options: &Options) -> Result<(), String> {
    let mut series: Vec<Series> = Vec::new();
    for job in JOBS.iter().filter(|job| options.wants_mesh(job.ranks, job.side)) {
        for (name, point) in shares(job, systems, options)? {
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
    }
    let plot = Plot {
        title: "Ranks that outnumber the cores".to_owned(),
        x: Axis { name: "ranks".to_owned(), is_log: true },
        y: Axis { name: "% of the cores without messages".to_owned(), is_log: false },
        series,
    };
    draw(options.svg.as_deref(), [("shares", plot)].into_iter())
}

/// Prints and returns the shares of a job, of each system the minimum, the median and the maximum.
fn shares(
    job: &Job,
    systems: &[System],
    options: &Options,
) -> Result<Vec<(String, Point)>, String> {
    let (cycles, passes) = (options.cycles.unwrap_or(CYCLES), options.passes());
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(job.ranks);
    let cycles_alone = (ELEMENTS_ALONE / job.side.pow(3)).max(cycles);
    // Each job binds its first rank to the first core, but these run at once.
    let unbound = systems[0].with("TSUMUGI_BIND", "none");
    let mut all = Vec::new();
    for is_lulesh in [false, true] {
        if is_lulesh && options.lulesh.is_none() {
            continue;
        }
        let run = |system: &System, ranks, cycles| match is_lulesh {
            true => system.run_lulesh(ranks, job.side, cycles).expect("LULESH was built"),
            false => system.run(ranks, [job.side, cycles, passes]),
        };
        let of = |system| Rates { system, rates: Vec::new() };
        let mut rates: Vec<_> = systems.iter().map(of).collect();
        let (mut alone, mut sums) = (0.0_f64, Vec::new());
        for _ in 0..options.rounds {
            sums.push(at_once(cores, || run(&unbound, 1, cycles_alone))?);
            for of in &mut rates {
                alone = alone.max(run(of.system, 1, cycles_alone)?.rate);
                of.rates.push(run(of.system, job.ranks, cycles)?.rate);
            }
        }
        let ideal = alone * cores as f64;
        let what = if is_lulesh { "LULESH" } else { "exchange" };
        println!(
            "{what}, {} ranks of {}^3 elements, {cycles} cycles: {cores} cores without messages \
             would do {ideal:.0} elements/s",
            job.ranks, job.side
        );
        let [low, middle, high] = spread(&mut sums).map(|sum| 100.0 * sum / ideal);
        let name = format!("{cores} x 1 rank");
        println!("  {name:<14} {low:5.1} / {middle:5.1} / {high:5.1} %");
        for mut of in rates {
            let [low, y, high] = spread(&mut of.rates).map(|rate| 100.0 * rate / ideal);
            println!("  {:<14} {low:5.1} / {y:5.1} / {high:5.1} %", of.system.name);
            let name = match is_lulesh {
                true => format!("LULESH, {}", of.system.name),
                false => of.system.name.clone(),
            };
            all.push((name, Point { x: job.ranks as f64, y, low, high }));
        }
    }
    if let Some([open_mpi, mpich]) = job.lulesh {
        println!("  (LULESH, elsewhere: Open MPI {open_mpi} %, MPICH {mpich} %)");
    }
    Ok(all)
}

/// The sum of the rates of some jobs that run at once.
fn at_once(jobs: usize, run: impl Fn() -> Result<Run, String> + Sync) -> Result<f64, String> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..jobs).map(|_| scope.spawn(&run)).collect();
        let ended = running.into_iter().map(|job| job.join().expect("a job was started"));
        ended.map(|run| Ok(run?.rate)).sum()
    })
}
