//! Finds the variables of a launcher in the environment, and reads them.
//!
//! | found | by |
//! |---|---|
//! | `TSUMUGI_SERVER`, `TSUMUGI_RANK`, `TSUMUGI_SIZE` | `tsumugi run --hosts` |
//! | `TSUMUGI_MASTER`, `TSUMUGI_RANK`, `TSUMUGI_SIZE` | a script: rank 0 serves there |
//! | `PMI_FD`, `PMI_RANK`, `PMI_SIZE` | MPICH's hydra, `srun --mpi=pmi2` |
//! | `PMIX_NAMESPACE`, `PMIX_RANK` | Open MPI's `mpirun`, `srun --mpi=pmix` |
//! | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS`, `SLURM_STEP_NODELIST` | `srun` |
//! | `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT` | torchrun and its relatives |
//! | `FLUX_TASK_RANK` and others | with `TSUMUGI_MASTER` |
//!
//! The first row that is found is used. `TSUMUGI_BOOT` names one row and forbids
//! the others. Nothing here reads the environment itself: the caller passes a
//! lookup function.

use std::fmt;
use std::time::Duration;
use tsumugi_core::boot::JOB_RANKS_MAX;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::quantity;

/// How ranks find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootMethod {
    /// `tsumugi run` on this node has handed over everything.
    Launcher,
    /// By the name of the job, on one node.
    Name,
    /// Through the server of `tsumugi run --hosts`.
    Server,
    /// Through a server in rank 0; the named launcher sets rank and size.
    Master(&'static str),
    /// PMI-1.
    Pmi,
    /// PMIx.
    Pmix,
    /// By an allgather of the embedding program.
    Given,
    /// Not at all: the job has one rank.
    Alone,
}

/// The result of a search in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootEnv {
    /// The program was not started as a rank.
    NotARank,
    /// A descriptor on which a server speaks PMI-1.
    Pmi {
        /// The descriptor.
        fd: i32,
        /// This rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
    },
    /// A PMIx server is there.
    Pmix,
    /// Rank and size, and the addresses of a server.
    Tcp {
        /// The way, with the launcher that set the variables.
        method: BootMethod,
        /// This rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
        /// The addresses of the server, `host:port`, which are tried one after the
        /// other.
        addresses: Vec<String>,
    },
}

impl BootEnv {
    /// The way that this is.
    pub fn method(&self) -> BootMethod {
        match self {
            Self::NotARank => BootMethod::Alone,
            Self::Pmi { .. } => BootMethod::Pmi,
            Self::Pmix => BootMethod::Pmix,
            Self::Tcp { method, .. } => *method,
        }
    }
}

/// Why the environment is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvError {
    /// Other variables of the same launcher are set, and this one is not; or
    /// `TSUMUGI_BOOT` selects a way that needs this variable.
    Missing {
        /// The variable.
        name: &'static str,
    },
    /// The value is no number, or too large.
    Number {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// The value is not a time with its unit, or is too short or too long.
    Time {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// The value is no known word, or no list of hosts or of addresses.
    Choice {
        /// The variable.
        name: &'static str,
        /// The value of the variable, as far as it fits.
        value: Excerpt,
    },
    /// The rank is not below the size.
    Size {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
    },
}

/// A lookup function that takes the place of the environment.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Whether a launcher's variables show that all `size` ranks are on this node.
pub fn is_one_node(size: u32, lookup: Lookup<'_>) -> bool {
    let says = |name: &&str, number: u32| {
        lookup(name).is_some_and(|text| text.trim().parse() == Ok(number))
    };
    size == 1
        || LOCAL_SIZES.iter().any(|name| says(name, size))
        || NODE_COUNTS.iter().any(|name| says(name, 1))
}

/// Searches for the variables of a launcher with `lookup`.
///
/// # Errors
///
/// - [`EnvError::Missing`]: a variable is not set that the launcher's other variables
///   or `TSUMUGI_BOOT` require.
/// - [`EnvError::Number`]: a rank, a size, a port or a descriptor is not a number, or
///   is too large.
/// - [`EnvError::Choice`]: `TSUMUGI_BOOT` has an unknown word, or a list of hosts or
///   addresses cannot be used.
/// - [`EnvError::Size`]: the rank is not below the size.
pub fn find(lookup: Lookup<'_>) -> Result<BootEnv, EnvError> {
    let wanted = lookup(BOOT).unwrap_or_else(|| "auto".to_owned());
    let may = |word: &str| wanted == "auto" || wanted == word;
    if !["auto", "tcp", "pmi", "pmix", "alone"].contains(&wanted.as_str()) {
        return Err(EnvError::Choice { name: BOOT, value: Excerpt::new(&wanted) });
    }
    let is_set = |name: &str| lookup(name).is_some();
    if may("tcp") && (is_set(SERVER) || is_set(MASTER) && is_set(RANK)) {
        return own(lookup);
    }
    if may("pmi") && is_set(PMI_FD) {
        let (rank, size) = rank_of_size(lookup, PMI_RANK, PMI_SIZE)?;
        let fd = number(lookup, PMI_FD, i32::MAX as u32)? as i32;
        return Ok(BootEnv::Pmi { fd, rank, size });
    }
    if may("pmix") && is_set(PMIX_NAMESPACE) {
        return Ok(BootEnv::Pmix);
    }
    if may("tcp") {
        for launcher in LAUNCHERS {
            if is_set(launcher.rank) && launcher.marks.iter().all(|mark| is_set(mark)) {
                return launcher.found(lookup);
            }
        }
    }
    match wanted.as_str() {
        "tcp" => Err(EnvError::Missing { name: MASTER }),
        "pmi" => Err(EnvError::Missing { name: PMI_FD }),
        "pmix" => Err(EnvError::Missing { name: PMIX_NAMESPACE }),
        _ => Ok(BootEnv::NotARank),
    }
}

/// How long ranks wait for each other at start.
///
/// # Errors
///
/// [`EnvError::Time`] if `TSUMUGI_BOOT_TIMEOUT` is not a time with its unit, or is not
/// between one second and a day.
pub fn limit(lookup: Lookup<'_>) -> Result<Duration, EnvError> {
    let Some(text) = lookup(TIMEOUT).filter(|text| text != "auto") else {
        return Ok(TIMEOUT_DEFAULT);
    };
    let limit = quantity::time(&text).filter(|limit| (1..=86_400).contains(&limit.as_secs()));
    limit.ok_or(EnvError::Time { name: TIMEOUT, value: Excerpt::new(&text) })
}

/// A launcher that sets rank and size for its ranks, and no more.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    /// Further variables that must be set, because other programs use these names,
    /// too.
    marks: &'static [&'static str],
    master: fn(Lookup<'_>) -> Result<String, EnvError>,
}

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "SLURM",
        rank: "SLURM_PROCID",
        // Not SLURM_NTASKS, which is also set in a batch script.
        size: "SLURM_STEP_NUM_TASKS",
        marks: &["SLURM_STEP_NUM_TASKS"],
        master: slurm_master,
    },
    Launcher {
        name: "torchrun",
        rank: "RANK",
        size: "WORLD_SIZE",
        marks: &["WORLD_SIZE", MASTER_ADDR, MASTER_PORT],
        master: torch_master,
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        marks: &[],
        master: no_master,
    },
    Launcher {
        name: "MVAPICH",
        rank: "MV2_COMM_WORLD_RANK",
        size: "MV2_COMM_WORLD_SIZE",
        marks: &[],
        master: no_master,
    },
    Launcher {
        name: "Flux",
        rank: "FLUX_TASK_RANK",
        size: "FLUX_JOB_SIZE",
        marks: &[],
        master: no_master,
    },
];

impl Launcher {
    fn found(&self, lookup: Lookup<'_>) -> Result<BootEnv, EnvError> {
        let (rank, size) = rank_of_size(lookup, self.rank, self.size)?;
        let method = BootMethod::Master(self.name);
        let addresses = match (lookup(MASTER), size) {
            (_, 1) => Vec::new(),
            (Some(text), _) => list(MASTER, &text)?,
            (None, _) => vec![(self.master)(lookup)?],
        };
        Ok(BootEnv::Tcp { method, rank, size, addresses })
    }
}

fn own(lookup: Lookup<'_>) -> Result<BootEnv, EnvError> {
    let (rank, size) = rank_of_size(lookup, RANK, SIZE)?;
    let (method, name) = match lookup(SERVER) {
        Some(_) => (BootMethod::Server, SERVER),
        None => (BootMethod::Master("TSUMUGI_RANK"), MASTER),
    };
    let addresses = list(name, &lookup(name).unwrap_or_default())?;
    Ok(BootEnv::Tcp { method, rank, size, addresses })
}

/// The address for torchrun. If torchrun's agent listens on the port itself, the
/// next port is used.
fn torch_master(lookup: Lookup<'_>) -> Result<String, EnvError> {
    let host = lookup(MASTER_ADDR).ok_or(EnvError::Missing { name: MASTER_ADDR })?;
    let agent = lookup("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|word| word == "True");
    let port = number(lookup, MASTER_PORT, 65_534)? + u32::from(agent);
    let address = format!("{host}:{port}");
    list(MASTER_ADDR, &address).map(|_| address)
}

/// The address for SLURM: the first node of the step, and a port that other steps
/// hardly use.
fn slurm_master(lookup: Lookup<'_>) -> Result<String, EnvError> {
    let nodes = "SLURM_STEP_NODELIST";
    let text = lookup(nodes).ok_or(EnvError::Missing { name: nodes })?;
    let host = first_host(&text);
    let host = host.ok_or(EnvError::Choice { name: nodes, value: Excerpt::new(&text) })?;
    let of = |name: &str| lookup(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let (job, step) = (of("SLURM_JOB_ID"), of("SLURM_STEP_ID"));
    let port = 20_000 + job.wrapping_mul(31).wrapping_add(step) % 10_000;
    Ok(format!("{host}:{port}"))
}

fn no_master(_: Lookup<'_>) -> Result<String, EnvError> {
    Err(EnvError::Missing { name: MASTER })
}

/// The first host of a list: `node03` of `node[03-07,9],other`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find(['[', ',']).unwrap_or(list.len());
    let (stem, rest) = list.split_at(end);
    let number = match rest.strip_prefix('[') {
        Some(ranges) => &ranges[..ranges.find(['-', ',', ']'])?],
        None => "",
    };
    let host = format!("{stem}{number}");
    is_host(&host).then_some(host)
}

/// Parses addresses, `host:port` each, with commas between them.
fn list(name: &'static str, text: &str) -> Result<Vec<String>, EnvError> {
    let is_address = |address: &&str| {
        address.rsplit_once(':').is_some_and(|(host, port)| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            is_host(host) && port.parse::<u16>().is_ok_and(|port| port != 0)
        })
    };
    let all: Vec<&str> = text.split(',').collect();
    if all.len() > ADDRESSES_MAX || !all.iter().all(is_address) {
        return Err(EnvError::Choice { name, value: Excerpt::new(text) });
    }
    Ok(all.into_iter().map(str::to_owned).collect())
}

fn is_host(text: &str) -> bool {
    let may = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    !text.is_empty() && text.len() <= 255 && text.chars().all(may)
}

fn rank_of_size(
    lookup: Lookup<'_>,
    rank: &'static str,
    size: &'static str,
) -> Result<(u32, u32), EnvError> {
    let (rank, size) = (number(lookup, rank, u32::MAX)?, number(lookup, size, JOB_RANKS_MAX)?);
    if rank < size { Ok((rank, size)) } else { Err(EnvError::Size { rank, size }) }
}

fn number(lookup: Lookup<'_>, name: &'static str, max: u32) -> Result<u32, EnvError> {
    let text = lookup(name).ok_or(EnvError::Missing { name })?;
    let number = text.trim().parse().ok().filter(|number| *number <= max);
    number.ok_or(EnvError::Number { name, value: Excerpt::new(&text) })
}

impl fmt::Display for BootMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launcher => f.write_str("tsumugi run (TSUMUGI_PVAS_FDS)"),
            Self::Name => f.write_str("the job's name (TSUMUGI_JOB)"),
            Self::Server => f.write_str("the launcher's server (TSUMUGI_SERVER)"),
            Self::Master(who) => write!(f, "rank 0's server ({who})"),
            Self::Pmi => f.write_str("PMI-1 (PMI_FD)"),
            Self::Pmix => f.write_str("PMIx (PMIX_NAMESPACE)"),
            Self::Given => f.write_str("an allgather of the program"),
            Self::Alone => f.write_str("no exchange: the job has one rank"),
        }
    }
}

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name: MASTER } => write!(
                f,
                "{MASTER} is not set: set it to the address where rank 0 listens (host:port), the \
                 same on all ranks"
            ),
            Self::Missing { name } => write!(
                f,
                "{name} is not set, although the launcher's other variables or {BOOT} require it"
            ),
            Self::Number { name, value } => {
                write!(f, "{name}={value:?} is not a number, or is too large")
            }
            Self::Time { name, value } => {
                write!(f, "{name}={value:?} is not a time from 1s to 24h, such as 90s or 5m")
            }
            Self::Choice { name: BOOT, value } => {
                write!(f, "{BOOT}={value:?}: must be auto, tcp, pmi, pmix or alone")
            }
            Self::Choice { name, value } => write!(
                f,
                "{name}={value:?} is not a list of hosts, or of up to {ADDRESSES_MAX} addresses \
                 (host:port)"
            ),
            Self::Size { rank, size } => {
                write!(f, "rank {rank} does not exist: the job has {size} ranks")
            }
        }
    }
}

impl std::error::Error for EnvError {}

/// The variable for the way of the bootstrap: `auto`, `tcp`, `pmi`, `pmix`,
/// `alone`.
pub const BOOT: &str = "TSUMUGI_BOOT";
/// How long ranks wait for each other at start.
pub const TIMEOUT: &str = "TSUMUGI_BOOT_TIMEOUT";
/// Where rank 0 listens: `host:port`.
pub const MASTER: &str = "TSUMUGI_MASTER";
/// Where the launcher of several hosts listens.
pub const SERVER: &str = "TSUMUGI_SERVER";
/// The secret that ranks share which meet over TCP.
pub const SECRET: &str = "TSUMUGI_SECRET";
/// The command that starts a command on another host: words, then the host.
pub const RSH: &str = "TSUMUGI_RSH";
/// Default of [`RSH`].
pub const RSH_DEFAULT: &str = "ssh -T -o BatchMode=yes";
/// The library that PMIx is loaded from.
pub const PMIX_LIBRARY: &str = "TSUMUGI_PMIX";
const RANK: &str = "TSUMUGI_RANK";
const SIZE: &str = "TSUMUGI_SIZE";
const PMI_FD: &str = "PMI_FD";
const PMI_RANK: &str = "PMI_RANK";
const PMI_SIZE: &str = "PMI_SIZE";
const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";
const MASTER_ADDR: &str = "MASTER_ADDR";
const MASTER_PORT: &str = "MASTER_PORT";
/// Default of [`TIMEOUT`]: some launchers start thousands of processes.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
const ADDRESSES_MAX: usize = 16;

/// The variables in which launchers report how many ranks are on this node:
/// hydra's, Open MPI's, torchrun's.
const LOCAL_SIZES: [&str; 3] =
    ["MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"];
/// The variables in which launchers report on how many nodes the job is: srun's.
const NODE_COUNTS: [&str; 1] = ["SLURM_STEP_NUM_NODES"];

#[cfg(test)]
mod tests;
