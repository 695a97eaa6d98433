//! Random mutants: small defects in the code of the product, each of which a test should
//! catch.
//!
//! ```text
//!  the tree ──copy──► target/mutants/tree ──find──► candidates ──seed──► a sample
//!                           ▲                                              │
//!                           └── weave: `if on(7) { a <= b } else { a < b }` ┘
//!  cargo check, drop the mutants with errors, until there are none; then build all tests
//!  run each test once without a mutant: how long it takes, and which mutants it reaches
//!  run for each mutant the tests that reach it, the quickest first, until one fails
//! ```
//!
//! One build has all mutants, so a mutant costs only the run of a few tests. A
//! mutant is *caught* by a test that fails or exceeds its time limit, *survives*
//! the tests that reach it, or is *not reached*. Mutants that cannot change the behaviour
//! are listed in `ci/mutants.equivalent` and are not drawn.
//!
//! All results are stored in `target/mutants/SEED-COUNT-…`, where an interrupted run is
//! continued.

mod compile;
mod draw;
mod find;
mod report;
mod run;
mod tree;
mod weave;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The options of the command line.
#[derive(Debug)]
pub struct Asked {
    /// The number of mutants.
    pub sample: usize,
    /// The seed of the draw.
    pub seed: u64,
    /// The maximum time of a test without a mutant. Slower tests are left out.
    pub test_limit: Duration,
    /// The time after which no test is started; the next run continues.
    pub until: Option<Instant>,
    /// Whether the model checks run, too, and orderings are drawn.
    pub loom: bool,
    /// Whether the draw is only printed.
    pub list: bool,
    /// Files and folders of the product, relative to the tree.
    pub files: Vec<String>,
    /// The lines to which files are restricted: only mutants that begin there are drawn.
    pub lines: Vec<(String, usize)>,
}

/// The files with data paths and protocols.
const DEFAULT_FILES: &[&str] = &[
    "core/src/ring",
    "core/src/completion",
    "core/src/tag.rs",
    "core/src/engine",
    "core/src/msg",
    "core/src/am",
    "core/src/signal",
    "gas/src/page",
    "gas/src/lock",
    "gas/src/machine",
    "gas/src/table",
    "runtime/src/net/emulation.rs",
    "runtime/src/net/emulation",
    "src/window/hold.rs",
    "backends/src/net",
    "ult/src/sched",
];

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), String> {
    let asked = asked(std::env::args().skip(1))?;
    let root = PathBuf::from(".");
    let work = root.join("target/mutants");
    let files = tree::product_files(&root, &asked.files)?;
    let tree = tree::copy(&root, &work.join("tree"), &files)?;
    let equivalent = draw::Equivalent::read(&root.join("ci/mutants.equivalent"))?;
    let mut sources = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        sources.push(find::Source::read(file, text)?);
    }
    let drawn = draw::sample(&sources, &equivalent, &asked);
    let candidates: usize = sources.iter().map(|source| source.candidates.len()).sum();
    println!(
        "mutants: seed {}, {} of {candidates} in {} files",
        asked.seed,
        drawn.len().min(asked.sample),
        sources.len()
    );
    if asked.list {
        for (id, mutant) in drawn.iter().enumerate() {
            println!("{id:4} {}:{} {}", mutant.file, mutant.line, mutant.what);
        }
        return Ok(());
    }
    let state =
        work.join(format!("{}-{}-{:016x}", asked.seed, asked.sample, digest(&drawn, &asked)));
    std::fs::create_dir_all(&state).map_err(|error| format!("{}: {error}", state.display()))?;
    let builds = compile::builds(&files, asked.loom);
    let dropped = compile::drop_ill_typed((&root, &tree), &state, &sources, &drawn, &builds)?;
    let chosen: Vec<u32> =
        (0..drawn.len() as u32).filter(|id| !dropped.contains(id)).take(asked.sample).collect();
    let tests = compile::tests(&tree, &builds)?;
    let reached = run::baseline(&absolute(&state)?, &tests, drawn.len(), &asked)?;
    let verdicts = run::all(&state, &chosen, &tests, &reached, &asked)?;
    report::print(&drawn, &chosen, &verdicts, &reached, &asked);
    Ok(())
}

fn asked(args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        sample: 300,
        seed: 1,
        test_limit: Duration::from_secs(60),
        until: None,
        loom: false,
        list: false,
        files: Vec::new(),
        lines: Vec::new(),
    };
    let mut args = args;
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().unwrap_or_default();
            value.parse::<u64>().map_err(|_| format!("{arg} {value:?} is not a number"))
        };
        match arg.as_str() {
            "--sample" => asked.sample = number()? as usize,
            "--seed" => asked.seed = number()?,
            "--test-seconds" => asked.test_limit = Duration::from_secs(number()?),
            "--seconds" => asked.until = Some(Instant::now() + Duration::from_secs(number()?)),
            "--loom" => asked.loom = true,
            "--list" => asked.list = true,
            _ if arg.starts_with('-') => return Err(format!("there is no option {arg}")),
            _ => match arg.split_once(':') {
                Some((file, line)) => {
                    let line = line.parse().map_err(|_| format!("{arg}: not a line number"))?;
                    asked.lines.push((file.to_owned(), line));
                    asked.files.push(file.to_owned());
                }
                None => asked.files.push(arg),
            },
        }
    }
    if asked.files.is_empty() {
        asked.files = DEFAULT_FILES.iter().map(|file| (*file).to_owned()).collect();
    }
    Ok(asked)
}

/// A hash of the draw, which keeps the results of different draws apart.
fn digest(drawn: &[draw::Drawn], asked: &Asked) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    asked.loom.hash(&mut hasher);
    for mutant in drawn {
        (&mutant.file, mutant.line, &mutant.what, &mutant.text).hash(&mut hasher);
    }
    hasher.finish()
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}
