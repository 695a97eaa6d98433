//! `tsumugi info`: what this machine offers to a job, and what a job would use.
//!
//! Facts that cannot be found out are shown as unknown. What depends on the moment, such
//! as a trial with a time limit, is a measurement, and only `--measure` makes it.

use crate::failure::Failure;
use crate::{args, memory, space, text};
use serde_json::{Value as Json, json};
use std::fmt;
use std::fs;
use std::time::Duration;
use tsumugi::affinity;
use tsumugi::boot::{self, env};
use tsumugi::pvas::calibrate::{self, Calibration, Measured, TransferMethod};
use tsumugi::pvas::config::RANKS_MAX;
use tsumugi::pvas::distance::{Distance, Thresholds};
use tsumugi::pvas::partition::{PartitionShape, ShapeError};
use tsumugi::pvas::space::limits;
use tsumugi::pvas::{HugePages, Space, SpaceConfig, attach, cma, fence, numa, system};
use tsumugi::{Beside, Config, Knob, KnobGroup, Ledger};
use tsumugi_core::mem::LocalRank;

/// The parts of the description that the arguments select; the machine if they
/// select none.
pub fn info(args: &args::InfoArgs) -> Result<String, Failure> {
    // The ranks that describe the space print nothing else.
    let mut text = if args.space { space::describe()? } else { String::new() };
    if args.space && attach::is_rank() {
        return Ok(text);
    }
    if args.json {
        let found = match args.config {
            Some(group) => Json::Array(configuration_json(&knobs(args.ranks, group)?)),
            None => machine_json(args),
        };
        return Ok(format!("{found:#}\n"));
    }
    if let Some(group) = args.config {
        text += &configuration(args.ranks, &knobs(args.ranks, group)?);
    }
    if args.memory {
        text += &tables(args.ranks)?;
    }
    let is_machine = text.is_empty() && !args.space;
    Ok(if is_machine { machine(args).iter().map(FactGroup::to_string).collect() } else { text })
}

/// Facts of one subject.
struct FactGroup {
    title: &'static str,
    facts: Vec<(&'static str, String)>,
    /// A table under the facts, for people.
    table: String,
}

impl FactGroup {
    fn into_json(self) -> (String, Json) {
        let facts = self.facts.into_iter().map(|(name, fact)| (name.to_owned(), fact.into()));
        (self.title.to_owned(), Json::Object(facts.collect()))
    }
}

impl fmt::Display for FactGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}{}", self.title, text::facts(&self.facts), self.table)
    }
}

/// The variables of a group, or all, with the values that a job of `ranks` ranks would
/// use.
fn knobs(ranks: u32, group: Option<KnobGroup>) -> Result<Vec<Knob>, Failure> {
    let mut knobs = Config::from_env()?.knobs(ranks).map_err(no_job)?;
    knobs.retain(|knob| group.is_none_or(|group| knob.group == group));
    Ok(knobs)
}

/// Variables with their meanings, for people: at most 100 columns.
fn configuration(ranks: u32, knobs: &[Knob]) -> String {
    let mut text = format!("variables, for a job of {ranks} ranks on this node\n");
    for of_group in knobs.chunk_by(|one, other| one.group == other.group) {
        text += &format!("\n{}\n", of_group[0].group.name());
        for Knob { name, meaning, default, chosen, .. } in of_group {
            let here = chosen.as_deref().unwrap_or("not set");
            let default = match default {
                Some(default) if default != here => format!("  [{default}]"),
                _ => String::new(),
            };
            text += &format!("  {name:27} {here}{default}\n      {meaning}\n");
        }
    }
    text + "\nIn brackets: the default, where it differs. auto stands for the default.\n"
}

fn configuration_json(knobs: &[Knob]) -> Vec<Json> {
    let one = |knob: &Knob| {
        json!({
            "group": knob.group.name(),
            "name": knob.name,
            "meaning": knob.meaning,
            "default": knob.default,
            "value": knob.chosen,
        })
    };
    knobs.iter().map(one).collect()
}

/// The parts of the paper's table of memory, in a job of so many ranks on many nodes.
pub fn beside_paper(ranks: u64) -> Result<Vec<Beside>, Failure> {
    let config = Config::from_env()?;
    let of_node = Ledger::NODE_RANKS as u32;
    let shape = PartitionShape::fit(of_node, &config.space, limits()).map_err(no_job)?;
    Ok(Ledger::new(&config.choose(of_node), &shape).beside_paper(ranks))
}

/// The machine, as JSON.
pub fn machine_json(args: &args::InfoArgs) -> Json {
    Json::Object(machine(args).into_iter().map(FactGroup::into_json).collect())
}

/// The bytes of each table of a rank. A job with more ranks than a node can have
/// runs on several nodes.
fn tables(ranks: u32) -> Result<String, Failure> {
    let config = Config::from_env()?;
    let of_node = if ranks > RANKS_MAX { Ledger::NODE_RANKS as u32 } else { ranks };
    let shape = PartitionShape::fit(of_node, &config.space, limits()).map_err(no_job)?;
    let ledger = Ledger::new(&config.choose(of_node), &shape);
    let sizes = [ranks.into(), 1_000, 1_000_000];
    let line = |name: String, bytes: &dyn Fn(u64) -> u64| {
        let slope = bytes(1_000_001) - bytes(1_000_000);
        let bytes = sizes.map(|ranks| text::count(bytes(ranks)));
        [vec![name], bytes.to_vec(), vec![text::count(slope)]].concat()
    };
    let tables = ledger
        .tables
        .iter()
        .map(|table| line(format!("{}: {}", table.part, table.name), &|ranks| table.bytes(ranks)));
    let total = line("total".to_owned(), &|ranks| ledger.bytes(ranks));
    let units = ledger.units.iter().map(|unit| line(unit.name.to_owned(), &|n| unit.bytes(n)));
    let here = format!("{} ranks", text::count(ranks.into()));
    let many = if ranks > RANKS_MAX { ranks.into() } else { MANY };
    let header = |what| [what, here.as_str(), "1,000", "1,000,000", "one rank more"];
    let [before, in_use] = Ledger::BARS;
    let beside = ledger.beside_paper(many).into_iter().map(|line| {
        let paper = line.paper_bytes.map_or_else(|| "-".to_owned(), text::count);
        let bar = if line.name == "total" { text::count(before) } else { String::new() };
        vec![line.name.to_owned(), paper, text::count(line.bytes), bar]
    });
    let used = ledger.in_use(many, PEERS).map(|used| {
        vec![
            format!("total, {} peers {}", text::count(PEERS), used.name),
            String::new(),
            text::count(used.bytes),
            text::count(in_use),
        ]
    });
    let beside = beside.chain(used);
    let title = format!("a rank of {}, 32 on a node, before any traffic", text::count(many));
    Ok(format!(
        "bytes of the tables of a rank\n{}\nbytes of each object that a program makes\n{}\n{}{}",
        text::table(&header("table"), tables.chain([total])),
        text::table(&header("object"), units),
        text::table(&[title.as_str(), "ACP", "here", "at most"], beside),
        what_counts(&ledger)
    ))
}

/// An explanation of what the last table counts and what it leaves out.
fn what_counts(ledger: &Ledger) -> String {
    format!(
        "The totals of the last table count all memory of a rank, from the start and in use,\n\
         without that of the network's own library. In this table, what a node has once is\n\
         divided by its 32 ranks; all nodes have the same number of ranks. Waiting messages\n\
         between ranks of two nodes take up to {} for each pair while they wait.\n",
        text::bytes(ledger.lanes_bytes())
    )
}

/// The number of ranks in the paper's table 3.
const MANY: u64 = 1_000_000;
/// The number of peers with which a rank communicates.
const PEERS: u64 = 1024;

fn no_job(error: ShapeError) -> Failure {
    Failure::Failed(error.to_string())
}

/// The machine, as a job would find it.
fn machine(args: &args::InfoArgs) -> Vec<FactGroup> {
    let cpus = affinity::allowed().unwrap_or_default();
    let facts = vec![
        ("kernel", or_unknown(word_of("/proc/sys/kernel/osrelease"))),
        ("ranks find each other by", boot_method()),
        ("cpus", format!("{} ({})", cpus.len(), ranges(&cpus))),
        ("memory nodes", or_unknown(word_of("/sys/devices/system/node/online"))),
        ("page", text::bytes(page_bytes())),
        ("memory left", memory::left_bytes().map_or_else(unknown, text::bytes)),
        ("memory limit of the control group", memory::limit_bytes().map_or_else(none, text::bytes)),
        ("huge pages for memory files", space::allowed(HugePages::Advise)),
        ("huge pages reserved", space::allowed(HugePages::Reserved)),
        ("cross-memory copy (process_vm_readv)", cross_copy()),
        ("memory files (memfd, seals)", memory_files()),
        ("policy of memory files (mbind)", memory_policy(&cpus)),
        ("watch of processes (pidfd_open)", watches()),
        ("fence of all processors (membarrier)", fences()),
        ("address space limit", limit(libc::RLIMIT_AS)),
        ("file size limit", limit(libc::RLIMIT_FSIZE)),
        ("locked memory limit", limit(libc::RLIMIT_MEMLOCK)),
        ("mappings limit", or_unknown(word_of("/proc/sys/vm/max_map_count"))),
    ];
    let machine = FactGroup { title: "machine", facts, table: String::new() };
    let network = if args.measure { tried_network() } else { network() };
    let messages = if args.measure { messages(&cpus) } else { None };
    [Some(machine), Some(network), messages].into_iter().flatten().collect()
}

/// The network that a job on several nodes would open, and the devices that the system
/// has; nothing is opened.
fn network() -> FactGroup {
    let facts = match Config::from_env() {
        Ok(config) => vec![
            ("library", config.network.kind.to_string()),
            ("interfaces", or_nothing(names_of("/sys/class/net").join(", "))),
            (
                "InfiniBand and RoCE devices",
                or_nothing(names_of("/sys/class/infiniband").join(", ")),
            ),
            ("operations", "not tried: `tsumugi info --measure` tries each".to_owned()),
        ],
        Err(error) => vec![("none", error.to_string())],
    };
    FactGroup { title: "network to other nodes", facts, table: String::new() }
}

/// The same network, opened and tried now.
fn tried_network() -> FactGroup {
    let found = Config::from_env().map(|config| config.probe_network());
    let facts = match found {
        Ok(Ok(facts)) => vec![
            ("provider", facts.provider),
            ("device", facts.device),
            ("missing features, in one trial each", or_nothing(facts.lacks.join("; "))),
            ("emulated by the target's processor", or_nothing(facts.emulated.join(", "))),
        ],
        Ok(Err(error)) => vec![("none", error.to_string())],
        Err(error) => vec![("none", error.to_string())],
    };
    FactGroup { title: "network to other nodes", facts, table: String::new() }
}

/// The files of a folder of the system, sorted.
fn names_of(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Whether the kernel copies between processes, which a container may refuse.
fn cross_copy() -> String {
    let slower = |error| format!("{error}: messages between buffers outside of heaps copy twice");
    cma::probe().map_or_else(slower, |()| "works".to_owned())
}

fn memory_files() -> String {
    match Space::create(1, &SpaceConfig::default()) {
        Ok(_) => "work".to_owned(),
        Err(error) => format!("{error}: no job starts"),
    }
}

/// Whether the pages of a partition can be bound to a memory node.
fn memory_policy(cpus: &[usize]) -> String {
    let node = cpus.get(..1).and_then(numa::node_of);
    let space = Space::create(1, &SpaceConfig::default()).ok();
    let Some((node, space)) = node.zip(space) else { return unknown() };
    match space.prefer_node(LocalRank(0), node) {
        Ok(()) => "works".to_owned(),
        Err(error) => format!("{error}: pages lie on the memory node of their first touch"),
    }
}

fn watches() -> String {
    let refused = |errno| {
        let error = std::io::Error::from_raw_os_error(errno);
        format!("{error}: tsumugi run starts no job")
    };
    system::may_watch().map_or_else(refused, |()| "works".to_owned())
}

fn fences() -> String {
    match fence::register() {
        true => "works".to_owned(),
        false => "refused: senders of messages execute a fence each, which is slower".to_owned(),
    }
}

fn or_nothing(text: String) -> String {
    if text.is_empty() { "nothing".to_owned() } else { text }
}

/// The thresholds of messages between the first two CPUs, and the measurement behind
/// them, taken now as a job does at its start.
fn messages(cpus: &[usize]) -> Option<FactGroup> {
    let &[first, second, ..] = cpus else { return None };
    let Some(Calibration { measured, thresholds }) = calibrate::between(first, second, LIMIT)
    else {
        let facts = vec![("cpus", format!("{first} and {second} could not be measured"))];
        return Some(FactGroup { title: "messages, measured once", facts, table: String::new() });
    };
    let distance = Distance::of_trip(measured.trip_ns);
    let chosen = thresholds.named().map(|(name, bytes)| (name, limit_bytes(bytes)));
    let mut known = vec![
        ("cpus", format!("{first} and {second}: {distance}")),
        ("cache line, one way", text::time(measured.trip_ns)),
        ("measured in", text::time(measured.took.as_nanos() as f64)),
    ];
    known.extend(chosen);
    let table = format!("\n{}", ways(&measured));
    Some(FactGroup { title: "messages, measured once", facts: known, table })
}

/// The least time of each way, by size.
fn ways(measured: &Measured) -> String {
    const WAYS: [(TransferMethod, &str); 9] = [
        (TransferMethod::Inline, "in packet"),
        (TransferMethod::Bounce, "slots"),
        (TransferMethod::Push, "push"),
        (TransferMethod::Pieces, "in pieces"),
        (TransferMethod::Halves, "halves"),
        (TransferMethod::HalvesInPieces, "halves in pieces"),
        (TransferMethod::Stream, "streaming"),
        (TransferMethod::Pull, "pull"),
        (TransferMethod::Both, "both"),
    ];
    let mut sizes: Vec<usize> = measured.timings.iter().map(|timing| timing.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let header: Vec<&str> =
        std::iter::once("bytes").chain(WAYS.iter().map(|(_, name)| *name)).collect();
    let lines = sizes.into_iter().map(|bytes| {
        let cell = |(method, _): &(TransferMethod, &str)| {
            measured.ns(*method, bytes).map_or_else(|| "-".to_owned(), text::time)
        };
        std::iter::once(text::bytes(bytes as u64)).chain(WAYS.iter().map(cell)).collect()
    });
    text::table(&header, lines)
}

fn limit_bytes(bytes: u64) -> String {
    if bytes == Thresholds::NEVER { "never".to_owned() } else { text::bytes(bytes) }
}

/// The bootstrap that a job started here would use.
fn boot_method() -> String {
    if attach::is_watched() {
        return boot::BootMethod::Launcher.to_string();
    }
    let found = env::find(&|name| std::env::var(name).ok());
    match found.map(|found| found.method()) {
        Ok(boot::BootMethod::Alone) if attach::is_rank() => boot::BootMethod::Name.to_string(),
        Ok(method) => method.to_string(),
        Err(error) => error.to_string(),
    }
}

/// CPU numbers as ranges: `0-3,8` for CPUs 0 to 3 and 8.
fn ranges(cpus: &[usize]) -> String {
    let joined = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    joined.collect::<Vec<_>>().join(",")
}

fn limit(resource: libc::__rlimit_resource_t) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit` to the pointer, which refers to a local
    // variable.
    match unsafe { libc::getrlimit(resource, &mut limit) } {
        0 if limit.rlim_cur == libc::RLIM_INFINITY => none(),
        0 => text::bytes(limit.rlim_cur),
        _ => unknown(),
    }
}

fn page_bytes() -> u64 {
    // SAFETY: the call takes a number and accesses no memory of this process.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(0) as u64
}

fn word_of(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn or_unknown(word: Option<String>) -> String {
    word.unwrap_or_else(unknown)
}

fn none() -> String {
    "none".to_owned()
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// More time than a job takes for the measurement.
const LIMIT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn neighbouring_cpus_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn the_slopes_are_in_the_last_column() {
        let text = tables(4).unwrap();
        let slope =
            |line: &str| line.trim().rsplit_once(' ')?.1.replace(',', "").parse::<u64>().ok();
        let (rows, rest) = text.split_once("  total ").unwrap();
        let slopes: Vec<u64> = rows.lines().filter_map(slope).filter(|slope| *slope > 0).collect();
        assert!(slopes.len() > 2, "{text}");
        assert_eq!(rest.lines().next().and_then(slope), Some(slopes.iter().sum()), "{text}");
    }

    #[test]
    fn variables_fit_into_100_columns() {
        let text = configuration(4, &knobs(4, None).unwrap());
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(wide, [""; 0]);
    }

    #[test]
    fn the_machine_is_described() {
        let words = "tsumugi info".split(' ');
        let Ok(args::CliCommand::Info(args)) =
            args::Cli::try_parse_from(words).map(|cli| cli.command)
        else {
            panic!("not a description");
        };
        let text: String = machine(&args).iter().map(FactGroup::to_string).collect();
        for what in ["kernel", "cpus", "page", "address space limit"] {
            assert!(text.contains(what), "{what} in {text}");
        }
        assert!(page_bytes().is_power_of_two());
    }
}
