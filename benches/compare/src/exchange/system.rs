//! The MPIs, and how a program is run by one of them.

use crate::turns;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An MPI: the command that starts a program with it, in which N stands for the ranks, its last
/// word the exchange, and LULESH, if it is wanted.
#[derive(Clone)]
pub struct System {
    pub name: String,
    command: Vec<String>,
    lulesh: Option<String>,
    pub env: Vec<(String, String)>,
}

/// What a run has said.
pub struct Run {
    /// Elements per second.
    pub rate: f64,
    /// What the exchange says of the messages of each phase.
    pub phases: Vec<Phase>,
    /// The last lines of our own library.
    pub told: String,
}

/// The messages of one phase of the exchange.
pub struct Phase {
    pub name: String,
    /// How many of all cycles found their receive posted.
    pub posted: u64,
    /// Those of one cycle, by length.
    pub lengths: Vec<u64>,
}

/// Our library first, then the peers that can be installed.
pub fn systems(lulesh: Option<&Path>) -> Result<Vec<System>, String> {
    let release = turns::cargo(&["--package", "tsumugi-mpi", "--package", "tsumugi-cli"])?;
    let folder = turns::work()?;
    let library = folder.join("libmpi_abi.so.1");
    let _ = std::fs::remove_file(&library);
    std::os::unix::fs::symlink(release.join("libmpi_abi.so"), &library)
        .map_err(|error| format!("{}: {error}", library.display()))?;
    let source = "benches/compare/peers/exchange.c";
    let headers = turns::root().join("mpi/include");
    let program = turns::compile("exchange", source, &headers, &["-O3", &word(&library)])?;
    let run = ["run", "-n", "N"].map(str::to_owned);
    let command =
        std::iter::once(word(&release.join("tsumugi"))).chain(run).chain([word(&program)]);
    let env = vec![("LD_LIBRARY_PATH".to_owned(), word(&folder))];
    let of_lulesh = |name: &str, compiler: &Path, more: &[&str]| {
        lulesh.map(|sources| build_lulesh(sources, name, compiler, more)).transpose()
    };
    let more = [&*format!("-I{}", headers.display()), &word(&library)];
    let ours = System {
        name: "tsumugi".to_owned(),
        command: command.collect(),
        lulesh: of_lulesh("tsumugi", Path::new("c++"), &more)?,
        env,
    };
    let heap = System { name: "tsumugi, heap".to_owned(), ..ours.with("TSUMUGI_MPI_HEAP", "on") };
    let mut systems = vec![ours, heap];
    let peers = Command::new(turns::root().join("ci/peers.sh"))
        .arg("exchange")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("ci/peers.sh: {error}"))?;
    for line in String::from_utf8_lossy(&peers.stdout).lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        let name = words.next().ok_or("ci/peers.sh prints a line without a name")?;
        let command: Vec<_> = words.collect();
        let program = command.last().ok_or("ci/peers.sh prints a line without a command")?;
        let lulesh = of_lulesh(&name, &Path::new(program).with_file_name("bin/mpicxx"), &[])?;
        systems.push(System { name, command, lulesh, env: Vec::new() });
    }
    Ok(systems)
}

fn word(path: &Path) -> String {
    path.display().to_string()
}

/// Compiles LULESH's sources; returns the program.
fn build_lulesh(
    sources: &Path,
    name: &str,
    compiler: &Path,
    more: &[&str],
) -> Result<String, String> {
    let program = turns::work()?.join(format!("lulesh-{name}"));
    let entries =
        std::fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let files: Vec<PathBuf> =
        files.filter(|file| file.extension() == Some("cc".as_ref())).collect();
    let mut command = Command::new(compiler);
    command.args(["-O3", "-DUSE_MPI=1", "-o"]).arg(&program).args(files).args(more);
    match command.status().is_ok_and(|status| status.success()) {
        true => Ok(word(&program)),
        false => Err(format!("{command:?} could not build LULESH")),
    }
}

impl System {
    /// The same with one more variable of the environment.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut system = self.clone();
        system.env.push((name.to_owned(), value.to_owned()));
        system
    }

    /// Runs the exchange with a mesh of this side for each rank.
    pub fn run(&self, ranks: usize, [side, cycles, passes]: [usize; 3]) -> Result<Run, String> {
        let args = [side, cycles, passes].map(|arg| arg.to_string());
        self.start(ranks, None, &args, |line| {
            line.strip_prefix("elements per second: ")?.parse().ok()
        })
    }

    /// Runs LULESH, if it was built.
    pub fn run_lulesh(
        &self,
        ranks: usize,
        side: usize,
        cycles: usize,
    ) -> Option<Result<Run, String>> {
        let args = ["-s", &side.to_string(), "-i", &cycles.to_string()].map(str::to_owned);
        Some(self.start(ranks, Some(self.lulesh.as_ref()?), &args, |line| {
            let thousands = line.trim().strip_prefix("FOM")?.trim_start().strip_prefix('=')?;
            let thousands: f64 = thousands.trim().strip_suffix("(z/s)")?.trim().parse().ok()?;
            Some(1e3 * thousands)
        }))
    }

    fn start(
        &self,
        ranks: usize,
        program: Option<&String>,
        args: &[String],
        rate: impl Fn(&str) -> Option<f64>,
    ) -> Result<Run, String> {
        let ranks = ranks.to_string();
        let (last, command) = self.command.split_last().expect("a command has words");
        let mut words = command.iter().map(|word| if word == "N" { &ranks } else { word });
        let mut process = Command::new(words.next().expect("a launcher and a program"));
        process.args(words).arg(program.unwrap_or(last)).args(args);
        process.envs(self.env.iter().map(|(name, value)| (name, value)));
        let ran = process.output().map_err(|error| format!("{process:?}: {error}"))?;
        let [said, told] =
            [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        match said.lines().find_map(rate) {
            Some(rate) if ran.status.success() => {
                Ok(Run { rate, phases: said.lines().filter_map(phase).collect(), told })
            }
            _ => Err(format!("{process:?} ended without a rate: {}\n{told}", ran.status)),
        }
    }
}

/// `forces: 324 posted; 8 24 24 0 0 0 0 0`
fn phase(line: &str) -> Option<Phase> {
    let (name, rest) = line.split_once(": ")?;
    let (posted, lengths) = rest.split_once(" posted;")?;
    let lengths = lengths.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Phase { name: name.to_owned(), posted: posted.parse().ok()?, lengths })
}
