//! `compare exchange [OPTIONS]`: the exchange of a hydrodynamics code (`peers/exchange.c`) by
//! ranks that outnumber the cores, on our MPI, MPICH and Open MPI in turn; and the table of
//! eager limits of the paper on messages.
//!
//! | option | |
//! |---|---|
//! | `--quick` | one round of each measurement in the place of five, and 27 ranks in the table |
//! | `--rounds N` | other rounds |
//! | `--ranks N`, `--side N` | only jobs with so many ranks, or with meshes of this side |
//! | `--cycles N`, `--passes N` | other lengths of a run, and of its computation |
//! | `--only rates`, `--only limits` | one of the two parts |
//! | `--lulesh FOLDER` | LULESH beside the exchange, from its sources in this folder |
//! | `--svg FOLDER` | draws both parts |

mod system;
mod rates;
mod limits;

use std::path::PathBuf;
use std::str::FromStr;
use system::systems;

/// The options of the command.
#[derive(Default)]
struct Options {
    rounds: usize,
    is_quick: bool,
    ranks: Option<usize>,
    side: Option<usize>,
    cycles: Option<usize>,
    passes: Option<usize>,
    only: Option<String>,
    lulesh: Option<PathBuf>,
    svg: Option<PathBuf>,
}

/// The passes of the computation over a mesh in each phase, with which a rank alone is about as
/// fast as one of LULESH: see docs/measuring.md.
const PASSES: usize = 40;

/// Runs the command; the error names what went wrong.
pub fn compare(args: impl Iterator<Item = String>) -> Result<(), String> {
    let options = options(args)?;
    let systems = systems(options.lulesh.as_deref())?;
    if options.wants("rates") {
        rates::compare(&systems, &options)?;
    }
    if options.wants("limits") {
        limits::compare(&systems[0], &options)?;
    }
    Ok(())
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    fn value<T: FromStr>(arg: &str, text: Option<String>) -> Result<T, String> {
        let text = text.ok_or(format!("{arg} needs a value"))?;
        text.parse().map_err(|_| format!("{arg}: '{text}' is not a number"))
    }
    let mut options = Options { rounds: 5, ..Options::default() };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => (options.rounds, options.is_quick) = (1, true),
            "--rounds" => options.rounds = value(&arg, args.next())?,
            "--ranks" => options.ranks = Some(value(&arg, args.next())?),
            "--side" => options.side = Some(value(&arg, args.next())?),
            "--cycles" => options.cycles = Some(value(&arg, args.next())?),
            "--passes" => options.passes = Some(value(&arg, args.next())?),
            "--only" => options.only = Some(value(&arg, args.next())?),
            "--lulesh" => options.lulesh = Some(value(&arg, args.next())?),
            "--svg" => options.svg = Some(value(&arg, args.next())?),
            _ => return Err(format!("'{arg}' is no option of exchange")),
        }
    }
    match options.rounds {
        0 => Err("--rounds: 0 rounds measure nothing".to_owned()),
        _ => Ok(options),
    }
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    fn wants_mesh(&self, ranks: usize, side: usize) -> bool {
        self.ranks.is_none_or(|wanted| wanted == ranks)
            && self.side.is_none_or(|wanted| wanted == side)
    }

    fn passes(&self) -> usize {
        self.passes.unwrap_or(PASSES)
    }
}

/// The least, the middle and the greatest of some values.
fn spread(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}
