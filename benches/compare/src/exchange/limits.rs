//! The paper's table 2 and figure 8: how much faster messages that a sender copies straight into
//! a posted receive are than those of two copies, by eager limit and mesh; the lengths of the
//! messages; and how many found their receive posted. The memory of the program lies in its
//! rank's partition, as it does in the paper.

use super::system::{Phase, Run, System};
use super::{Options, spread};
use tsumugi_cli::{Axis, Plot, Point, Series, draw};

/// The eager limits of the paper in KiB, and the sides of its meshes.
const LIMITS_KIB: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const SIDES: [usize; 3] = [10, 20, 30];
/// The design that copies twice, and the two that copy once.
const DESIGNS: [&str; 3] = ["two_copy", "locked", "mirror"];
/// Where the bins of lengths end, in bytes: see `bin_ends` of the exchange. Longer messages are
/// in one more bin.
const BIN_ENDS: [u64; 7] = [256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
const CYCLES: usize = 5;

/// One design with one mesh.
#[derive(Default)]
struct Measured {
    /// The least, the middle and the greatest rate, by limit.
    rates: Vec<[f64; 3]>,
    /// Messages through slots, and those that their sender has copied into a posted receive.
    eager: u64,
    direct: u64,
    /// The messages of a cycle by phase, and how many of all cycles found a posted receive.
    phases: Vec<Phase>,
    cycles: usize,
}

pub fn compare(ours: &System, options: &Options) -> Result<(), String> {
    let ranks = options.ranks.unwrap_or(if options.is_quick { 27 } else { 216 });
    let mut plots = Vec::new();
    let mut lengths = Vec::new();
    for side in SIDES.into_iter().filter(|side| options.wants_mesh(ranks, *side)) {
        let designs = measure(ours, ranks, side, options)?;
        print(ranks, side, &designs);
        let named = DESIGNS.iter().zip(&designs);
        let rates = named.map(|(name, of)| series(name, &LIMITS_KIB, &of.rates));
        plots.push((
            format!("limits{side}"),
            Plot {
                title: format!("{ranks} ranks of {side} x {side} x {side} elements"),
                x: axis("eager limit, KiB", true),
                y: axis("elements/s", false),
                series: rates.collect(),
            },
        ));
        let all = (0..BIN_ENDS.len()).map(|bin| {
            let phases = designs[0].phases.iter();
            [phases.map(|phase| phase.lengths[bin]).sum::<u64>() as f64; 3]
        });
        let bins = BIN_ENDS.map(|end| end as usize);
        lengths.push(series(&format!("{side} x {side} x {side}"), &bins, &all.collect::<Vec<_>>()));
    }
    plots.push((
        "lengths".to_owned(),
        Plot {
            title: format!("Messages of a cycle of {ranks} ranks"),
            x: axis("bytes up to", true),
            y: axis("messages", false),
            series: lengths,
        },
    ));
    draw(options.svg.as_deref(), plots.iter().map(|(name, plot)| (&**name, plot.clone())))
}

fn axis(name: &str, is_log: bool) -> Axis {
    Axis { name: name.to_owned(), is_log }
}

fn series(name: &str, at: &[usize], values: &[[f64; 3]]) -> Series {
    let point = |(x, [low, y, high]): (&usize, &[f64; 3])| Point {
        x: *x as f64,
        y: *y,
        low: *low,
        high: *high,
    };
    Series { name: name.to_owned(), points: at.iter().zip(values).map(point).collect() }
}

/// Runs all designs by turns with each limit.
fn measure(
    ours: &System,
    ranks: usize,
    side: usize,
    options: &Options,
) -> Result<[Measured; 3], String> {
    let cycles = options.cycles.unwrap_or(CYCLES);
    let mut designs = DESIGNS.map(|_| Measured::default());
    for limit in LIMITS_KIB {
        let systems = DESIGNS.map(|design| {
            ours.with("TSUMUGI_MESSAGES", design)
                .with("TSUMUGI_EAGER_MAX_BYTES", &(limit << 10).to_string())
                .with("TSUMUGI_MPI_HEAP", "on")
                .with("TSUMUGI_VERBOSE", "on")
        });
        let mut rates = DESIGNS.map(|_| Vec::new());
        for _ in 0..options.rounds {
            for ((system, rates), of) in systems.iter().zip(&mut rates).zip(&mut designs) {
                let run = system.run(ranks, [side, cycles, options.passes()])?;
                rates.push(run.rate);
                of.add(run, cycles);
            }
        }
        for (of, rates) in designs.iter_mut().zip(&mut rates) {
            of.rates.push(spread(rates));
        }
    }
    Ok(designs)
}

impl Measured {
    fn add(&mut self, run: Run, cycles: usize) {
        self.eager += count(&run.told, "eager");
        self.direct += count(&run.told, "direct");
        self.cycles += cycles;
        for (at, phase) in run.phases.into_iter().enumerate() {
            match self.phases.get_mut(at) {
                Some(sum) => sum.posted += phase.posted,
                None => self.phases.push(phase),
            }
        }
    }

    /// The best of the middle rates, and its limit in KiB.
    fn peak(&self) -> (f64, usize) {
        let rates = self.rates.iter().map(|rate| rate[1]).zip(LIMITS_KIB);
        rates.max_by(|one, other| one.0.total_cmp(&other.0)).expect("there are limits")
    }

    /// Which part of the messages that are too long for a packet was copied once, in %.
    fn once(&self) -> f64 {
        100.0 * self.direct as f64 / (self.direct + self.eager).max(1) as f64
    }
}

/// The number after a word in the counts that our library prints at the end of a job.
fn count(told: &str, word: &str) -> u64 {
    let line = told.lines().find(|line| line.contains(" messages: inline "));
    let mut words = line.unwrap_or_default().split_whitespace().skip_while(|other| *other != word);
    words.nth(1).and_then(|number| number.trim_end_matches(',').parse().ok()).unwrap_or(0)
}

fn print(ranks: usize, side: usize, designs: &[Measured; 3]) {
    let [twice, once @ ..] = designs;
    let line = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        println!("  {name:<20}{}", cells.map(|cell| format!("{cell:>9}")).collect::<String>());
    };
    println!("{ranks} ranks of {side}^3 elements");
    line("eager limit, KiB", &mut LIMITS_KIB.iter().map(usize::to_string));
    line("two_copy, 1000/s", &mut twice.rates.iter().map(|rate| format!("{:.0}", rate[1] / 1e3)));
    for (name, of) in DESIGNS[1..].iter().zip(once) {
        let pairs = of.rates.iter().zip(&twice.rates);
        let gain = |one: f64, other: f64| 100.0 * (one / other - 1.0);
        let mut gains = pairs.map(|(one, other)| format!("{:.1}", gain(one[1], other[1])));
        line(&format!("{name}, gain in %"), &mut gains);
        let (peak, limit) = of.peak();
        println!("    best to best: {:.1} % ({limit} KiB)", gain(peak, twice.peak().0));
        println!("    copied once: {:.0} % of those too long for a packet", of.once());
    }
    line("messages up to", &mut BIN_ENDS.iter().map(u64::to_string));
    for (at, phase) in twice.phases.iter().enumerate() {
        line(&phase.name, &mut phase.lengths[..BIN_ENDS.len()].iter().map(u64::to_string));
        let posted: u64 = designs.iter().map(|of| of.phases[at].posted).sum();
        let cycles: usize = designs.iter().map(|of| of.cycles).sum();
        let all = phase.lengths.iter().sum::<u64>() * cycles as u64;
        let share = 100.0 * posted as f64 / all.max(1) as f64;
        println!("    posted before their send: {share:.0} %");
    }
}
